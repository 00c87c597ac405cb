//! Which machines stand in which row: sorted by what speaks against them, folded by what they share.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_watch::{Alert, BLOCK_S, Frame};

use crate::snapshot::{Watched, Watching};

/// Labels that machines are folded by, in this order.
pub(crate) const LABELS: [&str; 3] = ["leaf", "rack", "rail"];
/// Standard deviations below which a score puts nobody before the others.
const CALM: f32 = 3.0;

/// One row of the strip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Name of the machine or of what several share.
    pub(crate) name: String,
    /// Places of its machines, the one with most against it first.
    pub(crate) nodes: Vec<usize>,
    /// Whether it stands for what shares a label, even if that is one machine.
    pub(crate) folded: bool,
}

/// What speaks against a machine: an open alert, evidence, a score that is evidence. Quiet machines are all equal and keep their
/// places.
type Rank = (bool, u32, u32);

/// What machines are ranked by.
pub(crate) struct By<'a> {
    pub(crate) watch: &'a Watching,
    pub(crate) frame: Option<&'a Arc<Frame>>,
    pub(crate) metric: usize,
}

impl By<'_> {
    fn rank(&self, node: usize, open: &BTreeSet<&str>) -> Rank {
        let Some(frame) = self.frame else { return (false, 0, 0) };
        let open = self.watch.nodes.get(node).is_some_and(|node| open.contains(node.name.as_str()));
        let look = frame.look(node, self.metric);
        let score = if look.score.abs() >= CALM { look.score.abs() } else { 0.0 };
        // Evidence and scores are far below what would overflow.
        (open, look.evidence.abs().round() as u32, score.round() as u32)
    }
}

/// The rows of the machines that `keeps` keeps; folded by `label`, or only those that have the label `inside`.
pub(crate) fn rows(
    by: &By<'_>,
    keeps: &dyn Fn(&Watched) -> bool,
    label: Option<&str>,
    inside: Option<&(String, String)>,
) -> Vec<Row> {
    let nodes = &by.watch.nodes;
    let is_inside = |node: &Watched| inside.is_none_or(|label| node.labels.contains(label));
    let shown = (0..nodes.len()).filter(|at| keeps(&nodes[*at]) && is_inside(&nodes[*at]));
    let told = |alert: &&Alert| by.frame.is_some_and(|frame| is_open(alert, frame));
    let open: BTreeSet<&str> = by.watch.alerts.iter().filter(told).map(|alert| alert.node.as_str()).collect();
    let ranks: Vec<Rank> = (0..nodes.len()).map(|at| by.rank(at, &open)).collect();
    let mut rows: Vec<Row> = match label {
        None => shown.map(|at| Row { name: nodes[at].name.clone(), nodes: vec![at], folded: false }).collect(),
        Some(label) => {
            let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            shown.for_each(|at| groups.entry(value(&nodes[at], label).unwrap_or_default()).or_default().push(at));
            let named = |(name, nodes): (&str, Vec<usize>)| Row { name: called(label, name), nodes, folded: true };
            let mut rows: Vec<Row> = groups.into_iter().map(named).collect();
            rows.sort_by(|a, b| crate::text::natural(&a.name, &b.name));
            rows
        }
    };
    for row in &mut rows {
        row.nodes.sort_by_key(|at| Reverse(ranks[*at]));
    }
    rows.sort_by_key(|row| Reverse(row.nodes.first().map(|at| ranks[*at])));
    rows
}

/// Whether an alert had been told and was not over when `frame` ended.
pub(crate) fn is_open(alert: &Alert, frame: &Frame) -> bool {
    // What a block shows is told when it no longer waits for late rows.
    alert.alerted_s < frame.end_s() + BLOCK_S && alert.until_s.is_none_or(|until| until > frame.end_s())
}

/// The labels that machines can be folded by: half of them have it, and it says something.
pub(crate) fn labels(nodes: &[Watched]) -> Vec<&'static str> {
    let tells = |label: &&str| {
        let mut values: Vec<&str> = nodes.iter().filter_map(|node| value(node, label)).collect();
        let having = values.len();
        values.sort_unstable();
        values.dedup();
        2 * having > nodes.len() && values.len() > 1 && values.len() < nodes.len()
    };
    LABELS.into_iter().filter(tells).collect()
}

/// What `label` says of a machine.
pub(crate) fn value<'n>(node: &'n Watched, label: &str) -> Option<&'n str> {
    node.labels.iter().find(|(key, _)| key == label).map(|(_, value)| value.as_str())
}

/// `leaf3`, `rack 7`.
fn called(label: &str, value: &str) -> String {
    match value {
        "" => format!("no {label}"),
        value if value.contains(label) => value.to_owned(),
        value => format!("{label} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, leaf: &str) -> Watched {
        Watched { name: name.to_owned(), labels: vec![("leaf".to_owned(), leaf.to_owned())], lost: None }
    }

    #[test]
    fn machines_are_folded_by_a_label_that_tells_them_apart() {
        let nodes = [node("a", "leaf1"), node("b", "leaf1"), node("c", "2")];
        assert_eq!(labels(&nodes), ["leaf"]);
        assert!(labels(&[node("a", "leaf1"), node("b", "leaf1")]).is_empty(), "one leaf folds everything into nothing");
        assert!(labels(&[node("a", "1"), node("b", "2")]).is_empty(), "a leaf each folds nothing");
        assert_eq!(
            (called("leaf", "leaf1"), called("rack", "7"), called("rail", "")),
            ("leaf1".into(), "rack 7".into(), "no rail".into())
        );
    }
}
