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

#[cfg(test)]
mod tests {
    use muster_wire::Telemetry;

    use super::*;

    /// A metric whose nodes usually show these ratios to their peers, of which so many values were learned.
    fn column(name: &str, gains: &[f64], learned: usize) -> Column {
        let mut column = Column::new(name.to_owned(), Telemetry::unknown(), gains.len(), 0);
        for (cell, gain) in column.cells.iter_mut().zip(gains) {
            cell.now.gain = *gain;
            (0..learned).for_each(|_| cell.usual.push(*gain));
        }
        column
    }

    /// Notes on nodes n0, n1 and so on by their ratios in some metrics.
    fn noted(metrics: &[&[f64]]) -> Vec<String> {
        let node = |at: usize| Node { name: format!("n{at}"), ..Node::default() };
        let nodes: Vec<Node> = (0..metrics[0].len()).map(node).collect();
        let columns: Vec<Column> = (0..).zip(metrics).map(|(at, gains)| column(&format!("m{at}"), gains, 0)).collect();
        notes(&nodes, &columns)
    }

    #[test]
    fn the_only_node_that_differs_in_two_metrics_is_noted() {
        let (odd, even) = ([1.0, 1.01, 0.7, 1.0, 0.99, 1.0], [1.0; 6]);
        let notes = noted(&[&odd, &even, &odd]);
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].starts_with("n2 has differed from its peers since the start (m0 0.70x, m2 0.70x of theirs): "),
            "{notes:?}"
        );
        assert!(noted(&[&odd, &even, &even]).is_empty(), "one metric is not enough");
        assert!(noted(&[&odd[..5], &odd[..5]]).is_empty(), "of five nodes nobody is noted");
        let two = [1.0, 0.7, 0.7, 1.0, 1.0, 1.0];
        assert!(noted(&[&two, &two]).is_empty(), "two are no single one");
        let other = [1.0, 0.7, 1.0, 1.0, 1.0, 1.0];
        assert!(noted(&[&odd, &other]).is_empty(), "another in each metric");
        let idle = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0];
        assert_eq!(noted(&[&idle, &idle]).len(), 1, "a ratio of zero is far from all others");
    }

    #[test]
    fn a_difference_counts_from_a_seventh_and_beyond_what_nodes_differ_by_anyway() {
        // The logarithms of 1.16 and 1.17 are 0.148 and 0.157, those of 0.86 and 0.87 are -0.151 and -0.139.
        for (gain, is_noted) in [(1.16, false), (1.17, true), (0.87, false), (0.86, true)] {
            let gains = [1.0, 1.0, gain, 1.0, 1.0, 1.0];
            assert_eq!(noted(&[&gains, &gains]).len(), usize::from(is_noted), "{gain}");
        }
        // The median node is 0.05 from the middle in logarithms, which are 0.44 for six standard deviations.
        for (log, is_noted) in [(0.42, false), (0.47, true)] {
            let gains = [0.0, 0.05, -0.05, 0.05, -0.05, log, 0.0].map(f64::exp);
            assert_eq!(noted(&[&gains, &gains]).len(), usize::from(is_noted), "{log}");
        }
    }

    #[test]
    fn it_is_time_once_more_than_half_of_the_cells_have_learned_enough() {
        let of = |learned: &[usize]| {
            is_time(&learned.iter().map(|learned| column("m", &[1.0; 3], *learned)).collect::<Vec<_>>())
        };
        assert!(!of(&[]) && !of(&[DIRECT - 1]) && of(&[DIRECT]));
        assert!(!of(&[DIRECT, 0]) && of(&[DIRECT, DIRECT, 0]));
    }
}
