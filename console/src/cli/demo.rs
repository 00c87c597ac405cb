//! `muster demo`: a local fleet of real SSH nodes on loopback, one of them slow.

use clap::Args;
use muster_fleet::demo::{self, LocalFleet};

use super::{Common, console, run::Say};
use crate::config::Config;
use crate::exit::{Code, Ended, IO};
use crate::{engine, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster demo\n  muster demo --headless --nodes 24 --slow 2 --json")]
pub struct Options {
    /// How many nodes.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub nodes: u16,
    /// How many of them are slowed, by stopping and continuing their processes.
    #[arg(long, default_value_t = 1)]
    pub slow: u16,
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

/// Raises the fleet, then scans it with or without a screen.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    let dir = tempfile::Builder::new().prefix("muster-demo-").tempdir().code(IO)?;
    let seed = options.seed.unwrap_or_else(rand::random);
    let probe = engine::embedded();
    let fleet = LocalFleet::start(&demo::Options {
        nodes: usize::from(options.nodes),
        slow: usize::from(options.slow.min(options.nodes)),
        seed,
        dir: Some(dir.path().join("fleet")),
        ..demo::Options::default()
    })
    .code(IO)?;
    let mut config = config.clone();
    if common.db.is_none() {
        config.db.value = dir.path().join("db");
    }
    let mut settings = fleet.settings();
    settings.fan_out = common.fan_out.unwrap_or_else(fair_fan_out);
    let mut store = session::write_store(&config)?;
    let nodes = fleet.inventory().nodes().to_vec();
    let playbook = session::playbook("demo")?;
    let job = session::Job { probe, fresh: true, ..session::Job::new(playbook, nodes, settings.into()) };
    if !(options.headless || options.say.json) {
        return console::with_job(job, store, config, common).await;
    }
    let mut done = session::headless(job, &mut store, &config, &options.say).await?;
    done.report.demo = Some(muster_playbook::report::Demo { slowed: fleet.slowed().to_vec() });
    session::finish(&done, &options.say)
}

/// The nodes share this machine: as many at once as leave each two cores to itself, so that they do not
/// measure one another.
fn fair_fan_out() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 8))
}
