//! `muster demo`: a local fleet of real SSH nodes on loopback, one of them slow, or a job on it of which one rank is hurt.

mod job;
mod many;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use muster_fleet::demo::{self, LocalFleet};
use muster_tui::Intent;

use self::job::How;
use crate::app::App;
use crate::cli::{console, watch};
use crate::config::Config;
use crate::exit::{Code, Ended, IO};
use crate::options::{Common, Say};
use crate::{clock, database, out, session, work};

/// Nodes of a demo, and of one with a job: its ranks work all the time.
const NODES: u16 = 16;
const NODES_OF_JOB: u16 = 8;
/// Minutes of measuring again.
const MINUTES: u64 = 5;
/// Most visits of a node: more of them decide nothing that these do not.
const VISITS: u8 = 12;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster demo
  muster demo --severity 1.5                       the slow node takes one and a half times as long
  muster demo --headless --nodes 24 --slow 2 --json
  muster demo --job slow                           a training on the fleet, one rank slowed after 200 s; Watch names its node
  muster demo --job hang                           one rank stopped after 20 s; Triage names it
  muster demo --job hang --headless --json         the same, watched without a screen
  muster demo --virtual 2000 --slow 5              2,000 virtual nodes: real SSH, recorded values

The database of a demo is kept and its place is told at the end; --db names another one.")]
pub struct Options {
    /// How many nodes [default: 16; 8 with --job].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub nodes: Option<u16>,
    /// Virtual nodes instead: SSH servers in one process that say again what a probe said on this machine, each a little otherwise.
    /// Connections, uploads, frames, store, verdicts and screen are real; JSON says what they cost.
    #[arg(long = "virtual", value_name = "N", conflicts_with_all = ["nodes", "job"], value_parser = clap::value_parser!(u16).range(1..=60_000))]
    pub many: Option<u16>,
    /// How many times as fast as recorded virtual nodes work.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", requires = "many", value_parser = pace)]
    pub pace: f64,
    /// Run a training on the fleet instead of measuring it, hurt one of its ranks, and watch.
    #[arg(long, value_name = "HOW", conflicts_with = "slow")]
    pub job: Option<How>,
    /// Ranks of the job on each node.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2), requires = "job")]
    pub ranks: u8,
    /// How long the job runs before a rank is hurt [default: 200s, as what is usual has to be known first; 20s where Triage looks at
    /// it].
    #[arg(long, value_name = "TIME", value_parser = watch::long, requires = "job")]
    pub after: Option<Duration>,
    /// How many of them are slowed, by stopping and continuing their processes.
    #[arg(long, default_value_t = 1)]
    pub slow: u16,
    /// How many times as long everything takes on a slowed node.
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR", value_parser = severity)]
    pub severity: f64,
    /// Measure again for at most this many minutes while a node is undecided [default: 5]; with --job, watch for at most this
    /// many [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=600))]
    pub minutes: Option<u64>,
    /// Chooses which; random when left out.
    #[arg(long)]
    pub seed: Option<u64>,
    /// No screen: progress on standard error, verdicts on standard output.
    #[arg(long)]
    pub headless: bool,
    /// What a headless demo says.
    #[command(flatten)]
    pub say: Say,
}

fn severity(text: &str) -> Result<f64, String> {
    let range = 1.05..=20.0;
    let factor = text.parse().ok().filter(|factor| range.contains(factor));
    factor.ok_or_else(|| format!("a factor from {} to {}, such as 1.5", range.start(), range.end()))
}

fn pace(text: &str) -> Result<f64, String> {
    let range = 0.01..=1000.0;
    let factor = text.parse().ok().filter(|factor| range.contains(factor));
    factor.ok_or_else(|| format!("a factor from {} to {}, such as 10", range.start(), range.end()))
}

/// Raises the fleet, then scans it with or without a screen.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    if !(options.headless || options.say.json) {
        console::terminal("`muster demo --headless` needs none")?;
    }
    if let Some(count) = options.many {
        return many::run(count, options, config, common).await;
    }
    let dir = tempfile::Builder::new().prefix("muster-demo-").tempdir().code(IO)?;
    let seed = options.seed.unwrap_or_else(rand::random);
    let probe = work::embedded();
    let count = options.nodes.unwrap_or(if options.job.is_some() { NODES_OF_JOB } else { NODES });
    let fleet = LocalFleet::start(&demo::Options {
        nodes: usize::from(count),
        slow: if options.job.is_some() { 0 } else { usize::from(options.slow.min(count)) },
        seed,
        dir: Some(dir.path().join("fleet")),
        duty: options.severity.recip(),
        ..demo::Options::default()
    })
    .code(IO)?;
    let mut config = config.clone();
    if common.db.is_none() {
        config.db.value = kept(&config.db.value, dir.path());
    }
    let mut settings = fleet.settings();
    settings.fan_out = config.fan_out.value;
    settings.at_once = config.at_once.value.unwrap_or_else(fair);
    let mut store = database::write(&config)?;
    let nodes = fleet.inventory().nodes().to_vec();
    let playbook = session::playbook("demo")?;
    let patience = Some(Duration::from_secs(60 * options.minutes.unwrap_or(MINUTES)));
    let job = session::Job::new(playbook, nodes, settings.into());
    let job = session::Job { probe, fresh: true, visits: VISITS, patience, ..job };
    if let Some(how) = options.job {
        let ended = job::run((how, options), (fleet, job), store, (config.clone(), common)).await;
        told(&config, dir.path());
        return ended;
    }
    if !(options.headless || options.say.json) {
        let nodes = job.nodes.iter().map(|node| node.name.clone()).collect();
        let first = Intent::RunPlaybook { playbook: job.playbook.name.clone(), nodes };
        let ended = App::new(job, Ok(store), (config.clone(), common), "demo").sit(Some(first)).await;
        told(&config, dir.path());
        return ended;
    }
    let mut done = session::headless(job, &mut store, &config, &options.say).await?;
    done.report.demo = Some(muster_playbook::report::Demo { slowed: fleet.slowed().to_vec() });
    let ended = session::finish(&done, &options.say);
    if !options.say.quiet {
        told(&config, dir.path());
    }
    ended
}

/// Where a demo keeps what it measures: beside the usual database and never in it, or with the fleet's own files where
/// there is no room.
fn kept(usual: &Path, fleet: &Path) -> PathBuf {
    let kept = usual.with_file_name(session::named(clock::now_ms(), "demo"));
    if std::fs::create_dir_all(&kept).is_ok() { kept } else { fleet.join("db") }
}

/// Says where the database is kept, if it is.
fn told(config: &Config, fleet: &Path) {
    let db = &config.db.value;
    if !db.starts_with(fleet) {
        out::note(format_args!("kept: muster --db {} results", db.display()));
    }
}

/// The nodes share this machine: as many at once as leave each two cores to itself, so that they do not
/// measure one another.
fn fair() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 8))
}
