//! What a group that left its peers together has in common: a leaf, a rack, a rail.

use std::collections::BTreeMap;

use super::cell::Side;
use super::column::Column;
use super::node::Node;
use super::order::median;

/// Share of the odd nodes that a label must explain, and share of its own nodes that must be odd.
const EXPLAINS: f64 = 0.8;
const TOUCHED: f64 = 0.4;

/// A group that left its peers together in one metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// Its odd nodes, the strongest evidence first.
    pub(super) nodes: Vec<usize>,
    /// First block of what is said.
    pub(super) since: i64,
    /// What they share, and all nodes that share it.
    pub(super) label: Option<(String, Vec<usize>)>,
}

/// The group behind a metric in which many nodes are odd, once most of them have the evidence that would name a single machine.
pub(super) fn find(column: &Column, nodes: &[Node], evidence_s: f64) -> Option<Group> {
    if !column.together.fast {
        return None;
    }
    let evidence = |node: usize| column.cells[node].evidence().0;
    let mut odd: Vec<usize> = (0..nodes.len()).filter(|&node| evidence(node) >= evidence_s / 4.0).collect();
    if 2 * odd.iter().filter(|&&node| evidence(node) >= evidence_s).count() <= odd.len() {
        return None;
    }
    odd.sort_by(|&a, &b| evidence(b).total_cmp(&evidence(a)));
    let side = |side: Side| odd.iter().copied().filter(|&node| column.cells[node].evidence().1 == side).collect();
    // Where half of the job left, both halves are far from the median between them.
    let sides: [Vec<usize>; 2] = [side(Side::Above), side(Side::Below)];
    let parts = [odd.clone()].into_iter().chain(sides.clone());
    let labelled = parts.filter_map(|part| Some((shared(&part, nodes)?, part)));
    let best = labelled.max_by(|a, b| moved(&a.1, column).total_cmp(&moved(&b.1, column)));
    let side = || {
        sides.into_iter().filter(|side| !side.is_empty()).max_by(|a, b| moved(a, column).total_cmp(&moved(b, column)))
    };
    let (label, odd) = match best {
        Some((label, part)) => (Some(label), part),
        None => (None, side()?),
    };
    let zero = |&node: &usize| {
        let cell = &column.cells[node];
        cell.fast[cell.evidence().1 as usize].zero + 1
    };
    Some(Group { since: odd.iter().map(zero).min()?, nodes: odd, label })
}

/// How far the level of `nodes` is from what is usual for all: of two halves, that one left which is farther.
fn moved(nodes: &[usize], column: &Column) -> f64 {
    let mut values: Vec<f64> = nodes.iter().map(|&node| column.cells[node].now.value).collect();
    let quantum = column.about.quantum;
    let ratio = (median(&mut values) + quantum) / (column.reference + quantum);
    if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY }
}

/// The label that explains the `odd` nodes best: nearly all of them have it, and not many others do.
fn shared(odd: &[usize], nodes: &[Node]) -> Option<(String, Vec<usize>)> {
    if odd.is_empty() {
        return None;
    }
    let mut members: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for (key, value) in &node.labels {
            members.entry((key, value)).or_default().push(at);
        }
    }
    let fit = |all: &Vec<usize>| {
        let both = all.iter().filter(|node| odd.contains(node)).count() as f64;
        let explains = both / odd.len() as f64 >= EXPLAINS && both / all.len() as f64 >= TOUCHED;
        (explains && all.len() < nodes.len()).then(|| both / (odd.len() as f64 + all.len() as f64 - both))
    };
    let best = members.into_iter().filter_map(|(label, all)| Some((fit(&all)?, label, all)));
    let (_, (key, value), all) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = if value.contains(key) { value.to_owned() } else { format!("{key} {value}") };
    Some((name, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(leaves: &[&str]) -> Vec<Node> {
        let labels = |leaf: &&str| vec![("leaf".to_owned(), (*leaf).to_owned()), ("sku".to_owned(), "h100".to_owned())];
        leaves.iter().map(|leaf| Node { labels: labels(leaf), ..Node::default() }).collect()
    }

    #[test]
    fn a_label_names_a_group_only_where_it_explains_nearly_all_of_it_and_little_else() {
        let mut nodes = nodes(&["leaf1", "leaf1", "leaf1", "leaf1", "2", "2", "2", "2"]);
        assert_eq!(shared(&[0, 2, 3], &nodes), Some(("leaf1".to_owned(), vec![0, 1, 2, 3])));
        assert_eq!(shared(&[4, 5], &nodes).map(|found| found.0), Some("leaf 2".to_owned()));
        assert_eq!(shared(&[0, 1, 4, 5], &nodes), None, "the label of everybody explains nothing");
        assert_eq!(shared(&[3], &nodes), None);
        assert_eq!(shared(&[0, 1, 2, 3], &nodes).map(|found| found.1), Some(vec![0, 1, 2, 3]));
        assert_eq!(shared(&[0, 1, 2, 3, 4], &nodes).map(|found| found.1), Some(vec![0, 1, 2, 3]), "all but one");
        for (at, node) in nodes.iter_mut().enumerate() {
            node.labels.push(("rack".to_owned(), if at < 5 { "r1" } else { "r2" }.to_owned()));
        }
        assert_eq!(shared(&[0, 1, 2, 3], &nodes).map(|found| found.0), Some("leaf1".to_owned()), "the closer of two");
    }

    /// A metric with the evidence of each node in blocks, below where it is less than nought, and what each shows.
    fn column(evidence: &[i64], values: &[f64]) -> Column {
        let mut column = Column::new("m".into(), muster_wire::Telemetry::unknown(), evidence.len(), 0);
        for ((cell, blocks), value) in column.cells.iter_mut().zip(evidence).zip(values) {
            let side = if *blocks < 0 { Side::Below } else { Side::Above };
            // All at block 30, so that more evidence began earlier.
            let fast = &mut cell.fast[side as usize];
            (0..=30 - blocks.abs()).for_each(|block| fast.hold(block));
            (31 - blocks.abs()..=30).for_each(|block| fast.add(9.0, block, 130.0));
            cell.now.value = *value;
        }
        (column.reference, column.together.fast) = (100.0, true);
        column
    }

    fn found(evidence: &[i64], values: &[f64], leaves: &[&str]) -> Option<Group> {
        find(&column(evidence, values), &nodes(leaves), 130.0)
    }

    const LEAVES: [&str; 8] = ["leaf1", "leaf1", "leaf1", "leaf1", "leaf2", "leaf2", "leaf2", "leaf2"];

    #[test]
    fn a_group_has_its_odd_nodes_the_strongest_first_and_the_begin_of_the_earliest() {
        let group = found(&[-13, -15, -14, 2, 0, 0, 0, 0], &[40.0; 8], &LEAVES).unwrap();
        assert_eq!((group.nodes, group.since), (vec![1, 2, 0], 30 - 15 + 1));
        assert_eq!(group.label, Some(("leaf1".to_owned(), vec![0, 1, 2, 3])));
    }

    #[test]
    fn more_than_half_of_a_group_must_have_the_evidence_that_names_one() {
        let of = |evidence: &[i64]| found(evidence, &[40.0; 8], &LEAVES).map(|group| group.nodes.len());
        assert_eq!(of(&[-13, -13, -13, -12, 0, 0, 0, 0]), Some(4));
        assert_eq!(of(&[-13, -13, -12, -12, 0, 0, 0, 0]), None);
        assert_eq!(of(&[-13, -13, -13, -3, 0, 0, 0, 0]), Some(3), "30 s are too few to be odd");
        assert_eq!(of(&[-13, -13, -13, -4, 0, 0, 0, 0]), Some(4));
        let mut alone = column(&[-13, -13, -13, 0, 0, 0, 0, 0], &[40.0; 8]);
        alone.together.fast = false;
        assert_eq!(find(&alone, &nodes(&LEAVES), 130.0), None, "few enough to be single machines");
    }

    #[test]
    fn of_two_halves_that_one_left_which_is_farther_from_what_is_usual() {
        let evidence = [-13, -13, -13, -13, 13, 13, 13, 13];
        let of = |low: f64, high: f64, leaves: &[&str]| {
            let group = found(&evidence, &[low, low, low, low, high, high, high, high], leaves).unwrap();
            (group.nodes, group.label.map(|label| label.0))
        };
        assert_eq!(of(40.0, 100.0, &LEAVES), (vec![0, 1, 2, 3], Some("leaf1".to_owned())));
        assert_eq!(of(90.0, 300.0, &LEAVES), (vec![4, 5, 6, 7], Some("leaf2".to_owned())));
        // Without a label that explains either, the half is known and not what it shares.
        let mixed = ["leaf1", "leaf2", "leaf1", "leaf2", "leaf1", "leaf2", "leaf1", "leaf2"];
        assert_eq!(of(40.0, 100.0, &mixed), (vec![0, 1, 2, 3], None));
        assert_eq!(of(90.0, 300.0, &mixed), (vec![4, 5, 6, 7], None));
        assert_eq!(of(0.0, 300.0, &mixed).0, [0, 1, 2, 3], "to nothing is the farthest of all");
    }

    #[test]
    fn a_label_explains_four_fifths_of_a_group_and_two_fifths_of_it_are_touched() {
        let leaves = ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "b", "b"];
        let label = |odd: &[usize]| shared(odd, &nodes(&leaves)).map(|found| found.0);
        assert_eq!(label(&[0, 1, 2, 3]).as_deref(), Some("leaf a"), "four of its ten");
        assert_eq!(label(&[0, 1, 2]), None);
        assert_eq!(label(&[0, 1, 2, 3, 10]).as_deref(), Some("leaf a"), "four of five have it");
        assert_eq!(label(&[0, 1, 2, 3, 10, 11]), None, "four of six");
        assert_eq!(label(&[]), None);
    }
}
