//! What can be known about a run in another console? Its phases from the playbook, its progress from its records.

use std::time::Duration;

use muster_analysis::checks::Policy;
use muster_playbook::{Phase, Plan, find_builtin};
use muster_run::{Record, Run};
use muster_wire::{TRAIN_DDP, benchmark};

/// The plan of `run`; `None` if its playbook is not built in, or has changed since.
#[must_use]
pub fn plan(run: &Run) -> Option<Plan> {
    let mut playbook = find_builtin(&run.playbook).ok()?;
    playbook.profile = run.profile;
    if playbook.selects() {
        playbook = playbook.picked(&run.plan);
    }
    Some(muster_playbook::plan(&playbook, &run.nodes)).filter(|plan| plan.work_names() == run.plan)
}

/// All work of `run` as one step, where its playbook is not at hand: when which work is done is not known then, but how much there
/// is. `None` where some of it is between nodes, or of another tool.
#[must_use]
pub fn as_one_step(run: &Run) -> Option<Plan> {
    let (collectors, benchmarks): (Vec<_>, Vec<_>) =
        run.plan.iter().cloned().partition(|work| work.starts_with("collect/"));
    if run.plan.is_empty() || benchmarks.iter().any(|name| benchmark(name).is_none()) {
        return None;
    }
    let collectors = collectors.iter().filter_map(|work| work.strip_prefix("collect/")).map(str::to_owned).collect();
    let phase = Phase {
        step: run.playbook.clone(),
        about: String::new(),
        collectors,
        benchmarks,
        pairs: None,
        collectives: Vec::new(),
        train: None,
        checks: Vec::new(),
        profile: run.profile,
        idle: None,
        limit: Duration::MAX,
        drop_failed: false,
        nodes: run.nodes.clone(),
    };
    let (playbook, title) = (run.playbook.clone(), String::new());
    Some(Plan { playbook, title, profile: run.profile, policy: Policy::default(), phases: vec![phase] })
}

/// The part of `plan` that a record belongs to: the index of its phase; further visits are counted on after the last phase.
#[must_use]
pub fn part(plan: &Plan, record: &Record) -> Option<usize> {
    let phases = plan.phases.len();
    if record.visit() > 1 {
        return Some(phases + record.visit() - 2);
    }
    plan.phases.iter().position(|phase| holds(phase, record))
}

fn holds(phase: &Phase, record: &Record) -> bool {
    let benchmark = record.work.as_str();
    let pair = phase.pairs.is_some() && crate::judge::pairs::is_pair(record);
    let own = benchmark.strip_prefix("collect/").map_or_else(
        || phase.benchmarks.iter().any(|name| name == benchmark),
        |collector| phase.collectors.iter().any(|name| name == collector),
    );
    let together = || {
        phase.collectives.iter().any(|collective| collective.benchmark() == benchmark)
            || phase.train.is_some() && benchmark == TRAIN_DDP
    };
    (own && phase.nodes.contains(&record.node)) || pair || together()
}
