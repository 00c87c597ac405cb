//! Who is named: evidence of several metrics together, and never one machine for what a whole group does.

use std::ops::RangeInclusive;

use super::cell::{Cell, Side};
use super::column::{Column, Together};
use super::node::Named;
use super::settings::{BLOCK, RECENT};
use super::slow::NAMES;

/// Evidence of a metric, in seconds, from which it counts beside others.
const COUNTS: f64 = 30.0;
/// Weights of the strongest, second and third metric, and how much they may add to the strongest.
const WEIGHTS: [f64; 3] = [1.0, 0.5, 0.25];
const TOGETHER: f64 = 1.6;
/// Standard deviations that the leading metric must still show; of the last minute for weak evidence.
const STILL: f64 = 3.0;
const STILL_WEAK: f64 = 1.5;
/// A job that one machine disturbs needs so much more for a second name.
const SECOND: f64 = 1.3;
/// So many may be single machines that fail at once.
const SINGLE: usize = 2;
/// Blocks within which the machines of a group leave their peers, and within which the group shows in other metrics of theirs: weak
/// traces need time to add up.
const AT_ONCE: i64 = 30 / BLOCK as i64;
const FOLLOWS: i64 = 120 / BLOCK as i64;
/// Blocks that weak evidence is late by: a minute is averaged.
const LATE: i64 = 2;

/// The case against one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Case {
    /// Seconds of evidence, of all metrics together.
    pub(super) evidence: f64,
    /// The same without weak evidence, and the largest of one metric.
    pub(super) together: f64,
    pub(super) largest: f64,
    /// Leading metric and its side, where strong evidence names.
    strong: Option<(usize, Side)>,
    /// The same of weak evidence.
    weak: Option<(usize, Side)>,
}

/// How many nodes have to leave their peers together in a metric to be no single machines any more: a `share` of `nodes`.
const fn many(nodes: usize, share: usize) -> usize {
    if nodes / share > SINGLE { nodes / share } else { SINGLE }
}

impl Column {
    /// Whether a group left its peers together in this metric.
    pub(super) fn find_group(&mut self, evidence_s: f64) {
        let nodes = self.cells.len();
        let count = |is: &dyn Fn(&Cell) -> bool| self.cells.iter().filter(|cell| is(cell)).count();
        let fast = count(&|cell| odd(cell, evidence_s)) > many(nodes, 4);
        let weak = |cell: &Cell, side: usize| cell.slow[side].sum >= NAMES / 4.0 && !cell.alike.is_alike();
        let slow = [0, 1].map(|side| count(&|cell| weak(cell, side)) > many(nodes, 8));
        let mut zeros: Vec<i64> = self.cells.iter().filter(|cell| fast && odd(cell, evidence_s)).map(zero).collect();
        let middle = zeros.len() / 2;
        let zero = fast.then(|| *zeros.select_nth_unstable(middle).1);
        self.together = Together { fast, slow, zero };
        if let Some(zero) = zero {
            let all: Vec<usize> = (0..nodes).collect();
            self.share(&all, zero - AT_ONCE..=zero + AT_ONCE, (evidence_s, SINGLE + 1));
        }
    }

    /// Marks the evidence of those of `nodes` that left their peers with a group after one of the blocks `begun`. When most of the group
    /// are like their peers again, the rest are few, but still no single machines. What began clearly earlier or later is not the
    /// group's: it may be its cause. Fewer than `least` are no group.
    fn share(&mut self, nodes: &[usize], begun: RangeInclusive<i64>, (evidence_s, least): (f64, usize)) {
        let with_it = |cell: &Cell| odd(cell, evidence_s) && begun.contains(&zero(cell));
        let found: Vec<usize> = nodes.iter().copied().filter(|&node| with_it(&self.cells[node])).collect();
        if found.len() < least {
            return;
        }
        for node in found {
            let side = self.cells[node].evidence().1;
            self.cells[node].fast[side as usize].shared = true;
        }
    }

    /// The same of weak evidence, which begins late as a minute is averaged.
    fn share_weak(&mut self, nodes: &[usize], begun: &RangeInclusive<i64>) {
        let late = *begun.start()..=*begun.end() + RECENT as i64;
        for node in nodes {
            for slow in &mut self.cells[*node].slow {
                slow.shared |= slow.sum > 0.0 && late.contains(&slow.zero);
            }
        }
    }
}

/// Carries a group from the metrics in which most of it shows to those in which only some of it does, be it one machine, and to weak
/// evidence: the cause is one.
pub(super) fn share_across(columns: &mut [Column], evidence_s: f64) {
    let shared = |cell: &Cell| cell.fast.iter().any(|fast| fast.shared);
    let of = |column: &Column| {
        let members = (0..column.cells.len()).filter(|&node| shared(&column.cells[node])).collect();
        Some((column.together.zero?, members))
    };
    let follows = |(zero, members): (i64, Vec<usize>)| (zero - AT_ONCE..=zero + FOLLOWS, members);
    let groups: Vec<(RangeInclusive<i64>, Vec<usize>)> = columns.iter().filter_map(of).map(follows).collect();
    for column in columns.iter_mut().filter(|column| !column.together.fast) {
        groups.iter().for_each(|(begun, members)| column.share(members, begun.clone(), (evidence_s, 1)));
    }
    for column in columns.iter_mut() {
        groups.iter().for_each(|(begun, members)| column.share_weak(members, begun));
    }
}

/// Whether a cell counts towards a group.
fn odd(cell: &Cell, evidence_s: f64) -> bool {
    cell.evidence().0 >= evidence_s / 4.0
}

/// The last block before a cell left its peers.
fn zero(cell: &Cell) -> i64 {
    cell.fast[cell.evidence().1 as usize].zero
}

/// The two largest of what `value` gives of the metrics, and which is the largest.
#[derive(Clone, Copy, Debug, Default)]
struct Two {
    first: f64,
    second: f64,
    lead: Option<(usize, Side)>,
}

impl Two {
    fn add(&mut self, value: f64, lead: (usize, Side)) {
        if value > self.first {
            (self.first, self.second, self.lead) = (value, self.first, Some(lead));
        } else {
            self.second = self.second.max(value);
        }
    }
}

impl Case {
    /// The case against `node` after `block`; `disturbed` while another machine is named.
    pub(super) fn of(node: usize, columns: &[Column], block: i64, disturbed: bool, evidence_s: f64) -> Self {
        let more = if disturbed { SECOND } else { 1.0 };
        let (evidence, lead) = strong(node, columns);
        let own = columns.iter().filter(|column| !column.together.fast).map(|c| c.cells[node].own_evidence().0);
        let largest = own.fold(0.0, f64::max);
        let (two, alone) = weak(node, columns, block);
        let weak_names = (two.first >= more * NAMES && two.second >= more * NAMES / 2.0) || alone >= 2.0 * NAMES;
        let lasting = if two.first >= NAMES / 2.0 { evidence_s / 2.0 } else { 0.0 };
        Self {
            evidence: evidence.max(lasting),
            together: evidence,
            largest,
            strong: lead.filter(|_| evidence >= more * evidence_s),
            weak: two.lead.filter(|_| weak_names),
        }
    }

    /// Whether `node` is named by this case now.
    pub(super) fn named(&self, node: usize, columns: &[Column]) -> Option<Named> {
        let cell = |metric: usize| &columns[metric].cells[node];
        let strong = self.strong.filter(|&(metric, side)| cell(metric).now.z * side.sign() > STILL);
        if let Some((metric, side)) = strong {
            let since = cell(metric).fast[side as usize].zero + 1;
            return Some(Named { node, metric: Some(metric), since, score: cell(metric).now.z.abs() });
        }
        let (metric, side) = self.weak.filter(|&(metric, side)| cell(metric).now.z6 * side.sign() > STILL_WEAK)?;
        let since = cell(metric).slow[side as usize].zero - LATE;
        Some(Named { node, metric: Some(metric), since, score: cell(metric).now.z6.abs() })
    }
}

/// Evidence of all metrics together, and the metric that leads.
fn strong(node: usize, columns: &[Column]) -> (f64, Option<(usize, Side)>) {
    let (mut top, mut most, mut lead) = ([0.0_f64; 3], 0.0, None);
    for (metric, column) in columns.iter().enumerate().filter(|(_, column)| !column.together.fast) {
        let (evidence, side) = column.cells[node].own_evidence();
        if evidence < COUNTS || said_better(metric, columns, |column| column.cells[node].own_evidence().0) {
            continue;
        }
        let leads = evidence * column.about.leads;
        if leads > most {
            (most, lead) = (leads, Some((metric, side)));
        }
        let place = top.iter().position(|known| evidence > *known).unwrap_or(top.len());
        if place < top.len() {
            top[place..].rotate_right(1);
            top[place] = evidence;
        }
    }
    let all: f64 = top.iter().zip(WEIGHTS).map(|(evidence, weight)| evidence * weight).sum();
    (all.min(TOGETHER * top[0]), lead)
}

/// Whether another metric says the same and more clearly: the mean of several GPUs and the worst of them are no two witnesses.
fn said_better(metric: usize, columns: &[Column], evidence: impl Fn(&Column) -> f64) -> bool {
    let of = |column: &Column| column.about.worst_of.unwrap_or(column.about.name);
    let (own, name) = (evidence(&columns[metric]), of(&columns[metric]));
    let same = |(at, column): &(usize, &Column)| *at != metric && !name.is_empty() && of(column) == name;
    let clearer = |(at, column): (usize, &Column)| {
        let more = evidence(column);
        more > own || (more >= own && at < metric)
    };
    columns.iter().enumerate().filter(same).any(clearer)
}

/// The two strongest metrics of weak evidence, and the strongest of those that need no second one.
fn weak(node: usize, columns: &[Column], block: i64) -> (Two, f64) {
    let (mut two, mut alone) = (Two::default(), 0.0_f64);
    for (metric, column) in columns.iter().enumerate().filter(|(_, column)| column.about.leads > 0.0) {
        let (floor, cell) = (column.about.floor, &column.cells[node]);
        let own = |side: &Side| !cell.slow[*side as usize].shared && !cell.alike.is_alike();
        let free = |side: &Side| !column.together.slow[*side as usize] && own(side);
        let worth = |side: Side| (cell.slow[side as usize].worth(block, floor), side);
        let best = Side::BOTH.into_iter().filter(free).map(worth).max_by(|a, b| a.0.total_cmp(&b.0));
        let worth_of =
            |column: &Column| column.cells[node].slow.iter().map(|slow| slow.worth(block, floor)).fold(0.0, f64::max);
        if let Some((sum, side)) = best
            && !(sum > 0.0 && said_better(metric, columns, worth_of))
        {
            two.add(sum, (metric, side));
        }
        let by_itself = Side::BOTH.into_iter().filter(free).map(|side| cell.slow[side as usize].alone(block, floor));
        alone = by_itself.fold(alone, f64::max);
    }
    (two, alone)
}

#[cfg(test)]
mod tests {
    use muster_wire::Telemetry;

    use super::*;

    /// Metrics of two nodes in which the first is above by so many blocks of full evidence: ten seconds each.
    fn columns(blocks: &[u32]) -> Vec<Column> {
        let column = |blocks: &u32| {
            let mut column = Column::new("some".to_owned(), Telemetry::unknown(), 2, 0);
            let fast = &mut column.cells[0].fast[Side::Above as usize];
            (0..i64::from(*blocks)).for_each(|block| fast.add(9.0, block, 130.0));
            column
        };
        blocks.iter().map(column).collect()
    }

    fn near(found: (f64, Option<(usize, Side)>), evidence: f64, lead: Option<usize>) -> bool {
        (found.0 - evidence).abs() < 1e-9 && found.1 == lead.map(|lead| (lead, Side::Above))
    }

    #[test]
    fn of_equal_values_the_first_leads_and_the_second_is_as_large() {
        let two = |values: &[f64]| {
            let mut two = Two::default();
            values.iter().enumerate().for_each(|(metric, value)| two.add(*value, (metric, Side::Above)));
            (two.first, two.second, two.lead.map(|(metric, _)| metric))
        };
        assert_eq!(two(&[0.0]), (0.0, 0.0, None));
        assert_eq!(two(&[3.0, 5.0, 4.0]), (5.0, 4.0, Some(1)));
        assert_eq!(two(&[5.0, 3.0, 4.0]), (5.0, 4.0, Some(0)));
        assert_eq!(two(&[5.0, 5.0]), (5.0, 5.0, Some(0)));
    }

    #[test]
    fn three_metrics_together_are_worth_the_first_half_the_second_and_a_quarter_of_the_third() {
        for (blocks, evidence, lead) in [
            (vec![2], 0.0, None),
            (vec![3], 30.0, Some(0)),
            (vec![2, 10, 3], 115.0, Some(1)),
            (vec![4, 6, 8, 10], 155.0, Some(3)),
            (vec![10, 8, 6, 4], 155.0, Some(0)),
            (vec![10, 10, 10], 160.0, Some(0)),
        ] {
            let found = strong(0, &columns(&blocks));
            assert!(near(found, evidence, lead), "{blocks:?}: {found:?}");
        }
        assert!(near(strong(1, &columns(&[9, 9])), 0.0, None), "nothing is known of the other node");
    }

    #[test]
    fn what_a_group_shows_or_what_says_the_same_less_clearly_is_no_evidence_and_what_follows_from_others_does_not_lead()
    {
        let mut columns = columns(&[10, 8, 6]);
        columns[1].together.fast = true;
        assert!(near(strong(0, &columns), 115.0 + 15.0, Some(0)));
        columns[1].together.fast = false;
        columns[1].about.leads = 0.0;
        (columns[0].about.leads, columns[2].about.leads) = (0.5, 1.0);
        assert!(near(strong(0, &columns), 155.0, Some(2)));
        columns.iter_mut().for_each(|column| column.about.leads = 1.0);
        (columns[0].about.name, columns[2].about.worst_of) = ("power", Some("power"));
        assert!(near(strong(0, &columns), 140.0, Some(0)), "the third is of the first");
        columns[1].about.name = "other";
        assert!(near(strong(0, &columns), 140.0, Some(0)));
        columns[2].cells[0].fast = columns[0].cells[0].fast;
        assert!(near(strong(0, &columns), 140.0, Some(0)), "of two that are as clear one counts");
    }

    #[test]
    fn who_no_longer_shows_it_is_not_named() {
        let (mut columns, above) = (columns(&[10]), Some((0, Side::Above)));
        for (strong, z, z6, named) in [
            (true, 3.1, 0.0, true),
            (true, 3.0, 9.0, false),
            (true, -9.0, 9.0, false),
            (false, 9.0, 1.6, true),
            (false, 9.0, 1.5, false),
            (false, 9.0, -9.0, false),
        ] {
            let case = if strong {
                Case { strong: above, ..Case::default() }
            } else {
                Case { weak: above, ..Case::default() }
            };
            let now = &mut columns[0].cells[0].now;
            (now.z, now.z6) = (z, z6);
            let found = case.named(0, &columns).map(|found| (found.node, found.metric, found.score));
            let expected = named.then_some((0, Some(0), if strong { z } else { z6 }));
            assert_eq!(found, expected, "strong: {strong}, z {z}, of the last minute {z6}");
        }
    }

    #[test]
    fn a_group_is_more_than_two_nodes_and_more_than_a_share_of_all() {
        assert_eq!([4, 8, 11, 12, 40].map(|nodes| many(nodes, 4)), [2, 2, 2, 3, 10]);
        assert_eq!([8, 23, 24].map(|nodes| many(nodes, 8)), [2, 2, 3]);
    }
}
