//! `muster demo --job`: a training on the demo fleet, one rank hurt for real, and whether Watch or Triage names it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use muster_fleet::demo::{Hurt, JobOptions, LocalFleet, LocalJob};
use muster_fleet::{Node, Settings as FleetSettings};
use muster_logs::Rules;
use muster_store::Db;
use muster_watch::Settings;
use muster_wire::{JobOrder, telemetry_names};

use super::Options;
use crate::app::{App, Asking};
use crate::cli::triage;
use crate::cli::watch::live;
use crate::config::Config;
use crate::exit::{Code, Ended, INTERRUPTED, IO};
use crate::options::Common;
use crate::views::DemoJob;
use crate::work::ticks::Source;
use crate::{out, session, work};

/// Longest headless demo: what is usual is known after about 3 minutes, and a machine is named about 2 minutes after it was hurt.
const MINUTES: u64 = 10;

/// How long a job runs before a rank is hurt, where Watch looks at it and where Triage does, and how long after that Triage looks.
const USUAL: Duration = Duration::from_secs(200);
const SOON: Duration = Duration::from_secs(20);
const LOOKED_AT: Duration = Duration::from_secs(15);

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
    /// Whether the job stands still or ends, so that Triage says why.
    const fn ends(self) -> bool {
        matches!(self, Self::Hang | Self::Crash)
    }

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
    let without_screen = options.headless || options.say.json;
    let triaged = !without_screen && how.ends();
    let after = options.after.unwrap_or(if triaged { SOON } else { USUAL });
    let training = fleet
        .start_job(
            work::embedded_bytes(),
            &JobOptions {
                hurt: how.hurt(),
                ranks_per_node: usize::from(options.ranks),
                after,
                duty: options.severity.recip(),
                seed: options.seed.unwrap_or_else(rand::random),
            },
        )
        .code(IO)?;
    let metrics: Vec<&'static str> = telemetry_names().filter(|name| name.starts_with("job_")).collect();
    if without_screen {
        let (nodes, settings) = (job.nodes.clone(), job.settings.clone());
        let until = Instant::now() + Duration::from_secs(60 * options.minutes.unwrap_or(MINUTES));
        let hurt = training.hurt().map(str::to_owned).into_iter().collect();
        let told = DemoJob { hurt, how: training.how().to_owned() };
        let of = (&metrics[..], Some(training.id().to_owned()));
        return live::until_named(&nodes, settings, of, until, (told, options.say.json)).await;
    }
    out::note(format_args!("{}; logs of its ranks: {}", training.how(), training.folder().display()));
    let (nodes, settings) = (job.nodes.clone(), job.settings.clone());
    let app = App::new(job, Ok(store), (config, common), "demo");
    if triaged {
        return triage(app, (&nodes, settings), &training, after + LOOKED_AT).await;
    }
    let metrics = metrics.iter().map(|name| (*name).to_owned()).collect();
    let source = Source::Nodes { nodes, metrics, job: Some(training.id().to_owned()) };
    app.sit_on_watch(source, Settings::default()).await
}

/// Waits until the rank was hurt, asks the nodes, and shows what they told.
async fn triage(
    app: App,
    (nodes, settings): (&[Node], Arc<FleetSettings>),
    training: &LocalJob,
    wait: Duration,
) -> Ended {
    out::note(format_args!("its nodes are asked in {} s", wait.as_secs()));
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        _ = tokio::signal::ctrl_c() => return Ok(INTERRUPTED),
    }
    let folder = training.folder();
    let order = JobOrder {
        job: Some(training.id().to_owned()),
        logs: Some(folder.join("rank_*.log").display().to_string()),
        dumps: Some(folder.display().to_string()),
        // Its ranks answer no RAS: all nodes share one port.
        ras: false,
        ..triage::live::usual_order(nodes.len())
    };
    let kept = folder.join("demo-job");
    let of = (Some(training.id()), Some(&*kept), None);
    match triage::live::ask((nodes, settings.clone()), &order, of, &Rules::built_in().code(IO)?).await? {
        triage::live::Got::Case(_) => {
            let case = kept.clone();
            let job = Some(training.id().to_owned());
            let asking = Asking::new((nodes.to_vec(), settings), order, (job, kept));
            app.asking(asking).sit_on_triage(&case, |_| Ok(())).await
        }
        triage::live::Got::Ended(code) => Ok(code),
    }
}
