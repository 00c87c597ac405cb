//! What can be known about a run in another console? Its phases from the playbook, its progress from its records.

use muster_playbook::{Phase, Plan, find_builtin};
use muster_run::{Record, Run};

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
    let together = || phase.collectives.iter().any(|collective| collective.benchmark() == benchmark);
    (own && phase.nodes.contains(&record.node)) || pair || together()
}
