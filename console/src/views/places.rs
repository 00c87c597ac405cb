//! Where the nodes of a step are: done, at work, connecting, waiting or failed, folded into groups.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use muster_fleet::hostlist;
use muster_playbook::Phase;
use muster_run::{Record, Run};
use muster_tui::snapshot::{LinkKind, NodeRow, StepGroup};

/// The work of one step, and who is to do it.
#[derive(Clone, Debug)]
pub struct Step {
    works: BTreeSet<String>,
    nodes: Vec<String>,
}

impl Step {
    /// Whether `work` is a part of it.
    pub fn holds(&self, work: &str) -> bool {
        self.works.contains(work)
    }
}

impl From<&Phase> for Step {
    fn from(phase: &Phase) -> Self {
        Self { works: phase.work_names().into_iter().collect(), nodes: phase.nodes.to_vec() }
    }
}

impl From<&Run> for Step {
    fn from(run: &Run) -> Self {
        Self { works: run.plan.iter().cloned().collect(), nodes: run.nodes.clone() }
    }
}

/// Groups of the step, the busy ones first.
pub fn groups(step: &Step, rows: &HashMap<&str, &NodeRow>, records: &[Arc<Record>]) -> Arc<[StepGroup]> {
    let mut done: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for record in records.iter().filter(|r| step.works.contains(&r.work)) {
        done.entry(&record.node).or_default().insert(&record.work);
    }
    let mut places: BTreeMap<(u8, String), (Vec<&str>, f64)> = BTreeMap::new();
    for node in &step.nodes {
        let share = done.get(node.as_str()).map_or(0.0, |d| d.len() as f64 / step.works.len().max(1) as f64);
        let place = places.entry(place(rows.get(node.as_str()).copied(), share)).or_default();
        place.0.push(node);
        place.1 += share;
    }
    let group = |((_, what), (nodes, sum)): ((u8, String), (Vec<&str>, f64))| StepGroup {
        what,
        count: nodes.len(),
        done: sum / nodes.len() as f64,
        nodes: hostlist::fold(nodes),
    };
    places.into_iter().map(group).collect()
}

fn place(row: Option<&NodeRow>, share: f64) -> (u8, String) {
    match row {
        _ if share >= 1.0 => (3, "done".into()),
        Some(row) if row.link.kind == LinkKind::Failed => (4, format!("failed: {}", row.link.text)),
        Some(row) if row.work.is_some() => (0, row.work.as_ref().map(|w| w.name.clone()).unwrap_or_default()),
        Some(row) if matches!(row.link.kind, LinkKind::Connecting | LinkKind::Waiting) => (1, row.link.text.clone()),
        _ => (2, "waiting".into()),
    }
}
