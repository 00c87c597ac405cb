//! Who was unlike its peers from the start: a note, since another model explains it as well as a fault from before.

use super::column::Column;
use super::node::Node;
use super::order::{NORMAL, median};
use super::settings::DIRECT;

/// Nodes below which nobody is noted.
const NODES: usize = 6;
/// Ratio, as a logarithm, from which a node may be unlike; and in median deviations of all nodes.
const APART: f64 = 0.15;
const DEVIATIONS: f64 = 6.0;
/// Metrics in which it must be the only one.
const METRICS: usize = 2;
/// A ratio of zero has no logarithm.
const LEAST: f64 = 1e-6;

/// Whether enough was learned of most cells to look.
pub(super) fn is_time(columns: &[Column]) -> bool {
    let cells = columns.iter().flat_map(|column| &column.cells);
    let (all, learned) =
        cells.fold((0, 0), |(all, learned), cell| (all + 1, learned + usize::from(cell.usual.count() >= DIRECT)));
    2 * learned > all
}

/// What is noted of nodes unlike all others since the start.
pub(super) fn notes(nodes: &[Node], columns: &[Column]) -> Vec<String> {
    if nodes.len() < NODES {
        return Vec::new();
    }
    let mut found: Vec<Vec<String>> = vec![Vec::new(); nodes.len()];
    for column in columns {
        if let Some(node) = sole_outlier(column) {
            found[node].push(format!("{} {:.2}x", column.name, column.cells[node].now.gain));
        }
    }
    let odd = nodes.iter().zip(found).filter(|(_, metrics)| metrics.len() >= METRICS);
    let note = |(node, metrics): (&Node, Vec<String>)| {
        format!(
            "{} has differed from its peers since the start ({} of theirs): another model or a fault from before, so no alert",
            node.name,
            metrics.join(", ")
        )
    };
    odd.map(note).collect()
}

/// The one node whose usual ratio is far from everybody's.
fn sole_outlier(column: &Column) -> Option<usize> {
    let logs: Vec<f64> = column.cells.iter().map(|cell| cell.now.gain.max(LEAST).ln()).collect();
    let middle = median(&mut logs.clone());
    let apart: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let far = APART.max(DEVIATIONS * NORMAL * median(&mut apart.clone()));
    let mut odd = apart.into_iter().enumerate().filter(|(_, apart)| *apart > far).map(|(at, _)| at);
    let first = odd.next()?;
    odd.next().is_none().then_some(first)
}
