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
    let of = |column: &Column| {
        let members = (0..column.cells.len()).filter(|&node| column.cells[node].is_shared()).collect();
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

    /// Gives node 0 so much weak evidence in each metric, in which it has deviated by that much for twenty blocks.
    fn weaken(columns: &mut [Column], sums: &[f64], deviation: f64) {
        for (column, sum) in columns.iter_mut().zip(sums) {
            let cell = &mut column.cells[0];
            (cell.now.ready, cell.now.z6, cell.now.deviation) = (true, 4.0, deviation);
            cell.recent = [deviation; RECENT];
            (1..=20).for_each(|block| cell.add_slow(block));
            cell.slow[0].sum = *sum;
        }
    }

    fn weak_case(sums: &[f64], deviation: f64, disturbed: bool) -> Case {
        let mut columns = columns(&vec![0; sums.len()]);
        weaken(&mut columns, sums, deviation);
        Case::of(0, &columns, 20, disturbed, 130.0)
    }

    #[test]
    fn weak_evidence_names_by_a_metric_of_forty_and_another_of_twenty_or_by_a_large_one_of_eighty() {
        for (sums, deviation, disturbed, named) in [
            (&[40.0, 20.0][..], 0.10, false, true),
            (&[39.9, 39.9], 0.10, false, false),
            (&[79.0, 19.9], 0.10, false, false),
            (&[20.0, 40.0], 0.10, false, true),
            (&[88.0], 0.10, false, false),
            (&[79.9], 0.30, false, false),
            (&[80.0], 0.30, false, true),
            (&[40.0, 20.0], 0.07, false, false),
            // A second name needs a third more.
            (&[51.9, 51.9], 0.10, true, false),
            (&[52.0, 25.9], 0.10, true, false),
            (&[52.0, 26.0], 0.10, true, true),
            (&[80.0], 0.30, true, true),
        ] {
            let case = weak_case(sums, deviation, disturbed);
            assert_eq!(case.weak.is_some(), named, "{sums:?} {deviation} {disturbed}");
            assert!(case.strong.is_none() && case.together == 0.0 && case.largest == 0.0);
        }
    }

    #[test]
    fn half_of_the_weak_evidence_that_names_keeps_an_alert_open() {
        let evidence =
            [(19.9, 0.10), (20.0, 0.10), (88.0, 0.05)].map(|(sum, by)| weak_case(&[sum], by, false).evidence);
        assert_eq!(evidence, [0.0, 65.0, 0.0], "5 % are not worth it");
    }

    #[test]
    fn strong_evidence_names_from_what_is_asked_for_and_a_third_more_for_a_second_machine() {
        let of = |blocks: &[u32], disturbed: bool| Case::of(0, &columns(blocks), 20, disturbed, 130.0);
        for (blocks, disturbed, named) in [
            (&[13][..], false, true),
            (&[12], false, false),
            (&[13], true, false),
            (&[17], true, true),
            (&[16], true, false),
            (&[11, 4], false, true),
        ] {
            let case = of(blocks, disturbed);
            assert_eq!(case.strong.is_some(), named, "{blocks:?} {disturbed}");
            assert!((case.largest - 10.0 * f64::from(blocks[0])).abs() < 1e-9);
            assert_eq!(case.evidence, case.together);
        }
        let mut grouped = columns(&[13, 5]);
        grouped[0].together.fast = true;
        assert!((Case::of(0, &grouped, 20, false, 130.0).largest - 50.0).abs() < 1e-9, "a group's is not its own");
    }

    #[test]
    fn a_name_dates_from_the_first_block_of_its_evidence_and_of_weak_evidence_a_minute_earlier() {
        let mut columns = columns(&[13]);
        let now = &mut columns[0].cells[0].now;
        (now.z, now.z6) = (7.0, 2.0);
        columns[0].cells[0].fast[0].zero = 5;
        columns[0].cells[0].slow[0].zero = 9;
        let case = |strong, weak| Case { strong, weak, ..Case::default() };
        let above = Some((0, Side::Above));
        assert_eq!(case(above, above).named(0, &columns).map(|found| (found.since, found.score)), Some((6, 7.0)));
        assert_eq!(case(None, above).named(0, &columns).map(|found| (found.since, found.score)), Some((7, 2.0)));
        assert_eq!(case(None, None).named(0, &columns), None);
    }

    #[test]
    fn what_a_group_shows_and_what_says_the_same_less_clearly_is_no_weak_evidence() {
        let two = |change: &dyn Fn(&mut [Column])| {
            let mut columns = columns(&[0, 0]);
            weaken(&mut columns, &[40.0, 30.0], 0.30);
            change(&mut columns);
            let (two, alone) = weak(0, &columns, 20);
            (two.first, two.second, alone)
        };
        assert_eq!(two(&|_| ()), (40.0, 30.0, 40.0));
        assert_eq!(two(&|columns| columns[0].together.slow[0] = true), (30.0, 0.0, 30.0));
        assert_eq!(two(&|columns| columns[0].together.slow[1] = true), (40.0, 30.0, 40.0), "the other side");
        assert_eq!(two(&|columns| columns[0].cells[0].slow[0].shared = true), (30.0, 0.0, 30.0));
        assert_eq!(two(&|columns| columns[1].about.leads = 0.0), (40.0, 0.0, 40.0));
        let same =
            |columns: &mut [Column]| (columns[0].about.name, columns[1].about.worst_of) = ("power", Some("power"));
        assert_eq!(two(&same), (40.0, 0.0, 40.0), "the second is of the first");
        let other = |columns: &mut [Column]| (columns[0].about.name, columns[1].about.name) = ("power", "clock");
        assert_eq!(two(&other), (40.0, 30.0, 40.0));
    }

    /// A metric of so many nodes, the first of which are above by so many blocks of full evidence since each of the blocks `begun`.
    fn left(nodes: usize, begun: &[i64], blocks: i64) -> Column {
        let mut column = Column::new("some".to_owned(), Telemetry::unknown(), nodes, 0);
        for (cell, begun) in column.cells.iter_mut().zip(begun) {
            let fast = &mut cell.fast[Side::Above as usize];
            (0..=*begun).for_each(|block| fast.hold(block));
            (1..=blocks).for_each(|block| fast.add(9.0, begun + block, 130.0));
        }
        column
    }

    fn shared(column: &Column) -> Vec<usize> {
        (0..column.cells.len()).filter(|&node| column.cells[node].fast[0].shared).collect()
    }

    #[test]
    fn who_leaves_within_half_a_minute_of_the_middle_of_a_group_is_of_it_and_who_left_before_may_be_its_cause() {
        let mut column = left(16, &[5, 8, 10, 11, 12, 14, 15], 4);
        column.find_group(130.0);
        assert!(column.together.fast);
        assert_eq!((column.together.zero, shared(&column)), (Some(11), vec![1, 2, 3, 4, 5]));
        let mut few = left(16, &[10; 4], 4);
        few.find_group(130.0);
        assert!(
            !few.together.fast && few.together.zero.is_none() && shared(&few).is_empty(),
            "four of sixteen are single ones"
        );
        let mut weak = left(16, &[10; 5], 3);
        weak.find_group(130.0);
        assert!(!weak.together.fast, "30 s are less than a quarter of what names one");
        // Two in time and three at other times are no group that leaves together.
        let mut apart = left(16, &[1, 10, 11, 20, 30], 4);
        apart.find_group(130.0);
        assert!(apart.together.fast && shared(&apart).is_empty(), "{:?}", shared(&apart));
    }

    #[test]
    fn weak_evidence_of_more_than_an_eighth_on_one_side_is_a_group_s() {
        let of = |nodes: usize, odd: usize, sum: f64| {
            let mut column = left(nodes, &[], 0);
            column.cells[..odd].iter_mut().for_each(|cell| cell.slow[1].sum = sum);
            column.find_group(130.0);
            column.together.slow
        };
        assert_eq!((of(24, 4, 10.0), of(24, 3, 10.0), of(24, 4, 9.9)), ([false, true], [false; 2], [false; 2]));
        assert_eq!((of(8, 3, 10.0), of(8, 2, 10.0)), ([false, true], [false; 2]));
    }

    #[test]
    fn a_group_is_carried_to_metrics_in_which_some_of_it_shows_within_two_minutes() {
        let mut group = left(24, &[10; 8], 5);
        group.find_group(130.0);
        // Of another metric: members in time, a member too early, one too late, and a stranger.
        let mut other = left(24, &[12, 22, 6, 23], 4);
        let stranger = left(16, &[12; 10], 4).cells.remove(9);
        other.cells[9] = stranger;
        other.find_group(130.0);
        assert!(!other.together.fast, "five of twenty-four are single ones");
        let slow = |cell: &mut Cell, zero: i64, sum: f64| (cell.slow[0].zero, cell.slow[0].sum) = (zero, sum);
        for (node, zero, sum) in [(0, 7, 5.0), (1, 28, 5.0), (2, 6, 5.0), (3, 29, 5.0), (4, 12, 0.0), (9, 12, 5.0)] {
            slow(&mut other.cells[node], zero, sum);
        }
        let mut columns = [group, other];
        share_across(&mut columns, 130.0);
        assert_eq!(shared(&columns[1]), [0, 1]);
        let weak: Vec<usize> = (0..24).filter(|&node| columns[1].cells[node].slow[0].shared).collect();
        assert_eq!(weak, [0, 1], "weak evidence comes up to a minute later");
    }

    #[test]
    fn times_of_groups_are_half_a_minute_and_two_minutes() {
        assert_eq!((AT_ONCE, FOLLOWS, LATE), (3, 12, 2));
    }
}
