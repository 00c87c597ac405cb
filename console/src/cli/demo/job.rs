//! `muster demo --job`: a training on the demo fleet, one rank hurt for real, and whether the watch names its node.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use muster_analysis::watch::Settings;
use muster_fleet::Node;
use muster_fleet::demo::{Hurt, JobOptions, LocalFleet, LocalJob};
use muster_store::Db;
use muster_wire::telemetry_names;

use super::Options;
use crate::app::App;
use crate::cli::watch::live;
use crate::config::Config;
use crate::exit::{Code, Ended, IO};
use crate::options::Common;
use crate::session;
use crate::views::DemoJob;
use crate::work;
use crate::work::ticks::Source;

/// Longest headless demo: what is usual is known after about 3 minutes, and a machine is named about 2 minutes after it was hurt.
const MINUTES: u64 = 10;

/// What is done to one rank of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// Nothing: nobody may be named.
    Ok,
    /// Its processes are stopped and continued in turn (--severity says how much).
    Slow,
    /// It is stopped.
    Hang,
    /// It is killed, which ends the job.
    Crash,
    /// What is sent to it passes a line of 2 Mbit/s.
    Link,
}

impl How {
    const fn hurt(self) -> Hurt {
        match self {
            Self::Ok => Hurt::Nothing,
            Self::Slow => Hurt::Slow,
            Self::Hang => Hurt::Hang,
            Self::Crash => Hurt::Crash,
            Self::Link => Hurt::Link,
        }
    }
}

/// Starts the job and watches it, with or without a screen.
pub(super) async fn run(
    (how, options): (How, &Options),
    (fleet, job): (LocalFleet, session::Job),
    store: Db,
    (config, common): (Config, &Common),
) -> Ended {
    let training = fleet
        .start_job(
            work::embedded_bytes(),
            &JobOptions {
                hurt: how.hurt(),
                ranks_per_node: usize::from(options.ranks),
                after: options.after,
                duty: options.severity.recip(),
                seed: options.seed.unwrap_or_else(rand::random),
            },
        )
        .code(IO)?;
    let metrics: Vec<&'static str> = telemetry_names().filter(|name| name.starts_with("job_")).collect();
    if options.headless || options.say.json {
        let (nodes, settings) = (job.nodes.clone(), job.settings.clone());
        let until = Instant::now() + Duration::from_secs(60 * options.minutes.unwrap_or(MINUTES));
        let hurt = training.hurt().map(str::to_owned).into_iter().collect();
        let told = DemoJob { hurt, how: training.how().to_owned() };
        let of = (&metrics[..], Some(training.id().to_owned()));
        return live::until_named(&nodes, settings, of, until, (told, options.say.json)).await;
    }
    eprintln!("{}; logs of its ranks: {}", training.how(), training.folder().display());
    let nodes = job.nodes.clone();
    screen(how, App::new(job, Ok(store), (config, common), "demo"), (nodes, &metrics, &training)).await
}

/// The screen that such a job is looked at on. Watch for all as yet: what made a job hang, crash or wait for a link is a question for
/// Triage, which is to be opened here.
async fn screen(how: How, app: App, (nodes, metrics, training): (Vec<Node>, &[&'static str], &LocalJob)) -> Ended {
    let metrics = metrics.iter().map(|name| (*name).to_owned()).collect();
    let source = Source::Nodes { nodes, metrics, job: Some(training.id().to_owned()) };
    match how {
        How::Ok | How::Slow | How::Hang | How::Crash | How::Link => app.sit_on_watch(source, Settings::default()).await,
    }
}
