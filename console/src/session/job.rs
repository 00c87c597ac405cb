//! What is a run to do, and does it begin anew or go on with one that was interrupted?

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use muster_fleet::{Node, Probe, Settings};
use muster_playbook::{Plan, Playbook, builtin, plan, report};
use muster_run::{Run, RunState};
use muster_store::Store;

use super::groups::labels;
use super::judged::params;
use crate::config::Config;
use crate::exit::{CONFIG, Code, IO, Problem, USAGE};
use crate::judge::Judging;
use crate::work::Scan;
use crate::{clock, work};

/// Playbook whose benchmarks the Selector chooses from.
pub const REGULAR: &str = "regular";

/// How often a node in doubt is measured at most, the first time included, unless the command line says otherwise.
pub const VISITS: u8 = 3;

/// Everything a run needs.
#[derive(Debug)]
pub struct Job {
    /// What to do.
    pub playbook: Playbook,
    /// On which nodes.
    pub nodes: Vec<Node>,
    /// How to connect.
    pub settings: Arc<Settings>,
    /// What to push.
    pub probe: Arc<Probe>,
    /// What is known of the fabric before pairs of nodes are measured.
    pub fabric: work::Fabric,
    /// Start anew even when an unfinished run of the same kind exists.
    pub fresh: bool,
    /// Most visits of a node in doubt, the first one included.
    pub visits: u8,
    /// How long after its start a run begins no further visit; `None` for as long as there are visits.
    pub patience: Option<Duration>,
}

impl Job {
    /// With the embedded probe, the usual visits and nothing known of the fabric; goes on with an unfinished run if there is one.
    pub fn new(playbook: Playbook, nodes: Vec<Node>, settings: Arc<Settings>) -> Self {
        let (probe, fabric) = (work::embedded(), work::Fabric::default());
        Self { playbook, nodes, settings, probe, fabric, fresh: false, visits: VISITS, patience: None }
    }
}

/// A playbook by name or file.
///
/// # Errors
/// When it does not exist or does not parse.
pub fn playbook(name: &str) -> Result<Playbook, Problem> {
    if let Some((_, text)) = builtin().iter().find(|(n, _)| *n == name) {
        return Playbook::parse(text, name).code(CONFIG);
    }
    let known: Vec<&str> = builtin().iter().map(|b| b.0).collect();
    let file = name.contains('/') || name.ends_with(".toml");
    let text = std::fs::read_to_string(name)
        .with_context(|| format!("no playbook '{name}': one of {}, or a file", known.join(", ")))
        .code(if file { IO } else { USAGE })?;
    Playbook::parse(&text, name).code(CONFIG)
}

/// A run to carry through: a new one, or an interrupted one resumed.
///
/// # Errors
/// When the store cannot keep it.
pub fn begin(job: &Job, store: &mut dyn Store, config: &Config) -> Result<(Run, Scan), Problem> {
    let names: Vec<String> = job.nodes.iter().map(|n| n.name.clone()).collect();
    let plan = plan(&job.playbook, &names);
    let (run, done) = match unfinished(job, &names, &plan, store)? {
        Some(run) => {
            let done = acknowledged(store, &run)?;
            store.begin(&run).code(IO)?;
            (run, done)
        }
        None => {
            let run = new_run(&job.playbook, names, &plan);
            store.begin(&run).code(IO)?;
            let groups = labels(&job.nodes, &config.group_by.value);
            Judging::now(store, params(config), groups).and_then(|judging| judging.keep(store, &run.id)).code(IO)?;
            (run, BTreeSet::new())
        }
    };
    let judging = Judging::of(store, &run, params(config)).code(IO)?;
    let scan = Scan {
        run: run.clone(),
        judging,
        plan,
        nodes: job.nodes.clone(),
        probe: job.probe.clone(),
        settings: job.settings.clone(),
        fabric: job.fabric.clone(),
        folder: config.db.value.clone(),
        done,
        visits: usize::from(job.visits),
        until: job.patience.map(|patience| Instant::now() + patience),
    };
    Ok((run, scan))
}

/// A name that nothing else has, such as `20261121T143000Z-cbd-1f2e`: when, what, and a few random digits.
#[must_use]
pub fn named(at_ms: u64, what: &str) -> String {
    let stamp: String = report::rfc3339(at_ms).chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    format!("{stamp}-{what}-{:04x}", rand::random::<u16>())
}

fn new_run(playbook: &Playbook, nodes: Vec<String>, plan: &Plan) -> Run {
    let started_ms = clock::now_ms();
    Run {
        id: named(started_ms, &playbook.name),
        playbook: playbook.name.clone(),
        profile: playbook.profile,
        started_ms,
        ended_ms: None,
        nodes,
        plan: plan.work_names(),
        state: RunState::Running,
    }
}

fn unfinished(job: &Job, names: &[String], plan: &Plan, store: &dyn Store) -> Result<Option<Run>, Problem> {
    if job.fresh {
        return Ok(None);
    }
    let same = |run: &Run| {
        run.playbook == job.playbook.name
            && run.profile == job.playbook.profile
            && run.nodes == names
            && run.plan == plan.work_names()
    };
    let newest = store.runs().code(IO)?.into_iter().find(same);
    Ok(newest.filter(|run| run.state != RunState::Finished))
}

fn acknowledged(store: &dyn Store, run: &Run) -> Result<BTreeSet<(String, String)>, Problem> {
    Ok(store.done(&run.id).code(IO)?.into_iter().filter(|(_, work)| muster_run::is_work(work)).collect())
}
