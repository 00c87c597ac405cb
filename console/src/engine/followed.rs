//! What is known here of a run that another console carries? The playbook says in which phases it goes, its records how far it is.

use muster_playbook::{Phase, Plan, find_builtin};
use muster_store::{Record, Run};

/// What `run` carries out; `None` where its playbook is not one of ours, or another one by now.
#[must_use]
pub fn plan(run: &Run) -> Option<Plan> {
    let mut playbook = find_builtin(&run.playbook).ok()?;
    playbook.profile = run.profile;
    if playbook.selects() {
        playbook = playbook.picked(&run.plan);
    }
    Some(muster_playbook::plan(&playbook, &run.nodes)).filter(|plan| plan.work_names() == run.plan)
}

/// Which part of `plan` a record is of: a phase by its place, and after the last one the further visits, as the scan counts them.
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
    let pair = phase.pairs.is_some() && super::is_pair(record);
    let own = benchmark.strip_prefix("collect/").map_or_else(
        || phase.benchmarks.iter().any(|name| name == benchmark),
        |collector| phase.collectors.iter().any(|name| name == collector),
    );
    let together = || phase.collectives.iter().any(|collective| collective.benchmark() == benchmark);
    (own && phase.nodes.contains(&record.node)) || pair || together()
}
