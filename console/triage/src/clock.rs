//! By how much do the clocks of the nodes differ?
//!
//! From events that happen on several nodes at once: the end of the same collective in the flight recorder, the same step in the logs.
//! The median of what a node's stamps differ from the median of all is its offset; the error is how much single differences scatter,
//! and never less than the stamps resolve. Without common events a clock may be off by anything up to [`UNKNOWN_S`].
//!
//! A stamp without a zone is the wall clock of whoever wrote it: a node that was asked tells how far that is from UTC.

use std::collections::BTreeMap;

use super::case::{Case, Log, Whose};
use super::layout::Layout;
use super::report::Offset;
use muster_logs::stamp::Stamp;

/// Seconds by which a clock may be off of which nothing is known.
pub const UNKNOWN_S: f64 = 60.0;
/// Common events without which an offset is not believed.
const FEWEST: usize = 3;
/// Common events that are looked at.
const MOST: usize = 20_000;

/// Clocks of the nodes.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    offsets: BTreeMap<String, (f64, f64)>,
    zones: Zones,
    /// An instant of the job, for stamps without a year.
    pub near_s: f64,
}

impl Clocks {
    /// Measured where the nodes were asked, else estimated from all pairs of events in a case.
    #[must_use]
    pub fn of(case: &Case, layout: &Layout) -> Self {
        let near_s = instant(case);
        let zones = Zones::of(case);
        let mut events: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let ends = case.dumps.iter().flat_map(|dump| dump.entries.iter().map(move |entry| (dump.rank, entry)));
        for (rank, entry) in ends.filter(|(_, entry)| !entry.p2p).take(MOST) {
            if let (Some(at), Some(node)) = (entry.completed_s, layout.node_of(rank)) {
                let key = format!("{}#{}", entry.group, entry.seq);
                events.entry(key).or_default().entry(node.to_owned()).or_insert(at);
            }
        }
        for log in &case.logs {
            for step in &log.steps {
                // What counts from a boot, or from the start of the program, is no common event.
                let at = step.at.filter(|at| !matches!(at, Stamp::Boot(_)));
                if let (Some(at), Some(node)) = (at, owner(log, layout)) {
                    let at = at.seconds_near(near_s) - zones.east_s(Some(&node), at);
                    events.entry(format!("step {}", step.step)).or_default().entry(node).or_insert(at);
                }
            }
        }
        let mut offsets = offsets(&events);
        offsets.extend(measured(case));
        Self { offsets, zones, near_s }
    }

    /// Seconds since 1970 on the common clock, with the error; `None` for a stamp that counts from a boot.
    #[must_use]
    pub fn common(&self, node: Option<&str>, stamp: Stamp) -> Option<f64> {
        let own = match stamp {
            Stamp::Boot(_) => return None,
            stamp => stamp.seconds_near(self.near_s) - self.zones.east_s(node, stamp),
        };
        Some(own - node.and_then(|node| self.offsets.get(node)).map_or(0.0, |(offset, _)| *offset))
    }

    /// By how much a time of a node may be wrong on the common clock, seconds.
    #[must_use]
    pub fn error_s(&self, node: Option<&str>) -> f64 {
        node.and_then(|node| self.offsets.get(node)).map_or(UNKNOWN_S, |(_, error)| *error)
    }

    /// All that is known.
    #[must_use]
    pub fn report(&self, layout: &Layout) -> Vec<Offset> {
        let of = |node: &&str| {
            let (offset_s, error_s) = self.offsets.get(*node).copied().unwrap_or((0.0, UNKNOWN_S));
            Offset { node: (*node).to_owned(), offset_s, error_s }
        };
        layout.nodes().iter().map(of).collect()
    }
}

/// By how much the wall clocks of the nodes' processes are ahead of UTC.
#[derive(Clone, Debug, Default)]
struct Zones {
    of_node: BTreeMap<String, f64>,
    /// Of a line that no node is known of, where all nodes agree.
    all: f64,
}

impl Zones {
    fn of(case: &Case) -> Self {
        let told =
            case.processes.iter().filter_map(|(node, told)| Some((node.clone(), f64::from(*told.zone_s.value()?))));
        let of_node: BTreeMap<String, f64> = told.collect();
        let mut zones = of_node.values();
        let all = zones.next().copied().filter(|first| zones.all(|zone| zone == first)).unwrap_or(0.0);
        Self { of_node, all }
    }

    /// Seconds that a stamp is ahead of UTC because its writer shows a wall clock; 0 where it names its zone.
    fn east_s(&self, node: Option<&str>, stamp: Stamp) -> f64 {
        match stamp {
            Stamp::Utc(_) | Stamp::Boot(_) => 0.0,
            Stamp::Local(_) | Stamp::Yearless { .. } => {
                node.and_then(|node| self.of_node.get(node)).copied().unwrap_or(self.all)
            }
        }
    }
}

/// What was measured while the nodes were asked: worth more than any estimate.
fn measured(case: &Case) -> BTreeMap<String, (f64, f64)> {
    let known: Vec<(&String, (f64, f64))> =
        case.reached.iter().filter_map(|node| Some((&node.node, node.clock?))).collect();
    let middle = median(&mut known.iter().map(|(_, (offset, _))| *offset).collect::<Vec<_>>());
    known.into_iter().map(|(node, (offset, error))| (node.clone(), (offset - middle, error))).collect()
}

fn owner(log: &Log, layout: &Layout) -> Option<String> {
    match &log.whose {
        Whose::Rank(rank) => layout.node_of(*rank).map(str::to_owned),
        Whose::Kernel(node) => Some(node.clone()),
        Whose::Job(_) => None,
    }
}

/// Some instant of the job, from stamps that have a year.
fn instant(case: &Case) -> f64 {
    let with_year = |stamp: Stamp| match stamp {
        Stamp::Utc(at) | Stamp::Local(at) => Some(at),
        _ => None,
    };
    let steps = case.logs.iter().flat_map(|log| log.steps.iter().filter_map(|step| step.at)).filter_map(with_year);
    let polls = case.polls.iter().filter_map(|poll| poll.at).filter_map(with_year);
    let lines = case.logs.iter().filter_map(|log| log.last).filter_map(with_year);
    let timed = case.dumps.iter().flat_map(|dump| dump.entries.iter().filter_map(|entry| entry.created_s));
    let known = steps.chain(polls).chain(timed).chain(case.job.start_s);
    let latest = known.fold(f64::NAN, f64::max);
    if latest.is_nan() { lines.fold(1.6e9, f64::max) } else { latest }
}

fn offsets(events: &BTreeMap<String, BTreeMap<String, f64>>) -> BTreeMap<String, (f64, f64)> {
    let mut differences: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for times in events.values().filter(|times| times.len() > 1) {
        let middle = median(&mut times.values().copied().collect::<Vec<_>>());
        for (node, at) in times {
            differences.entry(node).or_default().push(at - middle);
        }
    }
    let enough = differences.into_iter().filter(|(_, all)| all.len() >= FEWEST);
    let of = |(node, mut all): (&String, Vec<f64>)| {
        let offset = median(&mut all);
        let mut scatter: Vec<f64> = all.iter().map(|difference| (difference - offset).abs()).collect();
        scatter.sort_by(f64::total_cmp);
        let error = scatter[scatter.len() * 9 / 10];
        // Stamps without a fraction resolve a second.
        let whole = all
            .iter()
            .all(|difference| difference.fract().abs() < 1e-6 || (difference.fract().abs() - 0.5).abs() < 1e-6);
        (node.clone(), (offset, error.max(if whole { 1.0 } else { 0.05 })))
    };
    enough.map(of).collect()
}

/// The middle of some values; 0 of none.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Dump, Entry, Member, Poll, Reached, Step};
    use super::*;
    use crate::made;
    use muster_logs::Rules;

    #[test]
    fn a_wall_clock_without_a_zone_is_that_of_its_node_and_one_with_it_is_not() {
        let mut case = Case::default();
        for (node, east) in [("n1", 19_800), ("n2", 0)] {
            let told = muster_wire::Processes { zone_s: muster_wire::Reading::Value(east), ..Default::default() };
            case.processes.insert(node.to_owned(), told);
        }
        let clocks = |case: &Case| Clocks::of(case, &Layout::of(case));
        let at = 1_767_730_348.0;
        let both = clocks(&case);
        assert_eq!(both.common(Some("n1"), Stamp::Local(at + 19_800.0)), Some(at));
        assert_eq!(both.common(Some("n2"), Stamp::Local(at)), Some(at));
        assert_eq!(both.common(Some("n1"), Stamp::Utc(at)), Some(at));
        assert_eq!(both.common(None, Stamp::Local(at)), Some(at), "they differ, so nobody's is taken");
        case.processes.remove("n2");
        assert_eq!(clocks(&case).common(None, Stamp::Local(at + 19_800.0)), Some(at));
    }

    #[test]
    fn the_end_of_the_same_collective_tells_how_far_a_clock_is_ahead() {
        let mut case = Case::default();
        for (rank, skew) in [(0, 0.0), (1, 0.0), (2, 42.5)] {
            case.job.members.push(Member { rank, node: Some(format!("n{rank}")), pid: None, gpu: None });
            let entry = |seq: u64| Entry {
                group: "0".into(),
                seq,
                completed_s: Some(1e9 + seq as f64 + skew),
                ..Entry::default()
            };
            case.dumps.push(Dump { rank, entries: (0..5).map(entry).collect(), ..Dump::default() });
        }
        let layout = Layout::of(&case);
        let clocks = Clocks::of(&case, &layout);
        assert!((clocks.common(Some("n2"), Stamp::Utc(1e9 + 42.5)).unwrap() - 1e9).abs() < 1e-3);
        assert!(clocks.error_s(Some("n2")) < 1.01);
        assert_eq!(clocks.error_s(Some("elsewhere")), UNKNOWN_S);
        assert_eq!(clocks.common(Some("n0"), Stamp::Boot(3.0)), None);
    }

    /// Three ranks on three nodes, which completed the same operations a second apart; node 2's clock is ahead by so much at each.
    fn ahead(by_s: &[f64]) -> Case {
        let mut case = Case::default();
        for rank in 0..3 {
            case.job.members.push(Member { rank, node: Some(format!("n{rank}")), ..Member::default() });
            let entry = |(seq, by_s): (u64, &f64)| Entry {
                group: "0".into(),
                seq,
                completed_s: Some(1e9 + seq as f64 + if rank == 2 { *by_s } else { 0.0 }),
                ..Entry::default()
            };
            case.dumps.push(Dump { rank, entries: (0..).zip(by_s).map(entry).collect(), ..Dump::default() });
        }
        case
    }

    /// Offset and error of node 2's clock, to a thousandth of a second.
    fn of_2(case: &Case) -> (f64, f64) {
        let layout = Layout::of(case);
        let told = Clocks::of(case, &layout).report(&layout);
        let names: Vec<&str> = told.iter().map(|of| of.node.as_str()).collect();
        assert_eq!(names, ["n0", "n1", "n2"]);
        let rounded = |seconds: f64| (seconds * 1e3).round() / 1e3;
        (rounded(told[2].offset_s), rounded(told[2].error_s))
    }

    #[test]
    fn an_offset_is_believed_from_three_common_events_on() {
        assert_eq!(of_2(&ahead(&[42.3; 2])), (0.0, UNKNOWN_S));
        assert_eq!(of_2(&ahead(&[42.3; 3])), (42.3, 0.05));
        let mut between_two = ahead(&[42.3; 3]);
        between_two.dumps[2].entries[0].p2p = true;
        assert_eq!(of_2(&between_two), (0.0, UNKNOWN_S), "what two ranks do with each other ends at no common time");
        let mut alone = ahead(&[42.3; 3]);
        alone.dumps.drain(..2);
        assert_eq!(of_2(&alone), (0.0, UNKNOWN_S), "what one rank tells alone is not common");
    }

    #[test]
    fn the_error_of_a_clock_is_what_nine_of_ten_common_events_lie_within_and_no_less_than_stamps_resolve() {
        let scattered = |even: usize, odd: &[f64]| of_2(&ahead(&[&vec![5.3; even][..], odd].concat()));
        assert_eq!(scattered(9, &[7.6]), (5.3, 2.3));
        assert_eq!(scattered(9, &[3.0, 10.0]), (5.3, 2.3), "the second of eleven");
        assert_eq!(scattered(18, &[3.0, 10.0]), (5.3, 2.3));
        assert_eq!(scattered(19, &[3.0, 10.0]), (5.3, 0.05), "two of twenty-one");
        assert_eq!((of_2(&ahead(&[5.0; 3])), of_2(&ahead(&[-5.0; 3]))), ((5.0, 1.0), (-5.0, 1.0)), "whole seconds");
        assert_eq!(of_2(&ahead(&[5.5; 3])), (5.5, 1.0), "halves come of the middle of two whole seconds");
        assert_eq!(of_2(&ahead(&[5.0, 5.0, 5.25])), (5.0, 0.25), "a fraction shows that they resolve more");
    }

    /// The log of a rank with these steps, by number and time.
    fn log(rank: u32, steps: &[(u64, Stamp)]) -> Log {
        let step = |&(step, at): &(u64, Stamp)| Step { step, row: step, at: Some(at), seconds: None };
        let log = made::log(Whose::Rank(rank), "", &Rules::built_in().unwrap());
        Log { steps: steps.iter().map(step).collect(), ..log }
    }

    #[test]
    fn the_same_step_in_the_logs_of_several_ranks_tells_how_far_a_clock_is_ahead_and_a_zone_is_no_offset() {
        let of = |rank_2: &dyn Fn(f64) -> Stamp, east_s: i32| {
            let mut case = ahead(&[]);
            for rank in 0..3 {
                let at = |step: u64| 1e9 + 10.0 * step as f64;
                let stamp = |step| if rank == 2 { rank_2(at(step)) } else { Stamp::Local(at(step)) };
                case.logs.push(log(rank, &[1, 2, 3].map(|step| (step, stamp(step)))));
            }
            let told =
                |zone_s| muster_wire::Processes { zone_s: muster_wire::Reading::Value(zone_s), ..Default::default() };
            let zones = [("n0", 0), ("n1", 0), ("n2", east_s)].map(|(node, zone_s)| (node.to_owned(), told(zone_s)));
            case.processes = zones.into();
            of_2(&case)
        };
        assert_eq!(of(&|at| Stamp::Local(at + 7.25), 0), (7.25, 0.05));
        assert_eq!(of(&|at| Stamp::Local(at + 3600.0), 3600), (0.0, 1.0));
        assert_eq!(of(&|at| Stamp::Local(at + 3607.25), 3600), (7.25, 0.05));
        assert_eq!(of(&|at| Stamp::Utc(at + 7.25), 3600), (7.25, 0.05));
        assert_eq!(of(&|_| Stamp::Boot(7.25), 0), (0.0, UNKNOWN_S), "seconds since a boot are no time");
    }

    #[test]
    fn what_was_measured_is_worth_more_than_what_was_estimated() {
        let mut case = ahead(&[42.3; 3]);
        let reached = |(nr, clock)| Reached { node: format!("n{nr}"), clock, ..Reached::default() };
        case.reached =
            [(0, Some((100.0, 0.2))), (1, None), (2, Some((103.0, 0.3))), (3, Some((101.0, 0.4)))].map(reached).into();
        let layout = Layout::of(&case);
        let clocks = Clocks::of(&case, &layout);
        let of = |node: &str| (clocks.common(Some(node), Stamp::Utc(1e9)).unwrap() - 1e9, clocks.error_s(Some(node)));
        assert_eq!(of("n2"), (-2.0, 0.3), "two seconds ahead of the middle of all that were asked");
        assert_eq!(of("n0"), (1.0, 0.2));
        assert_eq!(of("n1"), (0.0, 1.0), "by common events");
        assert_eq!((clocks.common(None, Stamp::Utc(1e9)), clocks.error_s(None)), (Some(1e9), UNKNOWN_S));
    }

    #[test]
    fn stamps_without_a_year_are_of_the_year_of_the_job() {
        let near = |case: &Case| Clocks::of(case, &Layout::default()).near_s;
        let rules = Rules::built_in().unwrap();
        let line = |last| Log { last, ..made::log(Whose::Job("out".to_owned()), "", &rules) };
        assert_eq!(near(&Case::default()), 1.6e9, "where nothing tells it");
        let mut case =
            Case { logs: vec![line(Some(Stamp::Utc(1.7e9))), line(Some(Stamp::Local(1.65e9)))], ..Case::default() };
        assert_eq!(near(&case), 1.7e9, "the latest line");
        case.logs.push(line(Some(Stamp::Boot(1.8e9))));
        assert_eq!(near(&case), 1.7e9, "seconds since a boot have no year");
        case.job.start_s = Some(1.61e9);
        assert_eq!(near(&case), 1.61e9, "what the job tells of itself counts before what lines happen to say");
        let entry = Entry { created_s: Some(1.62e9), ..Entry::default() };
        case.dumps = vec![Dump { entries: vec![entry], ..Dump::default() }];
        assert_eq!(near(&case), 1.62e9);
        case.polls = vec![Poll { at: Some(Stamp::Local(1.63e9)), ..Poll::default() }];
        assert_eq!(near(&case), 1.63e9);
        case.logs.push(log(0, &[(1, Stamp::Utc(1.64e9)), (2, Stamp::Yearless { month: 1, day: 1, seconds: 0.0 })]));
        assert_eq!(near(&case), 1.64e9);
    }

    #[test]
    fn of_an_even_number_of_values_the_middle_lies_between_two() {
        let of = |values: &[f64]| median(&mut values.to_vec());
        assert_eq!((of(&[]), of(&[3.0]), of(&[9.0, 1.0]), of(&[9.0, 1.0, 2.0])), (0.0, 3.0, 5.0, 2.0));
        assert_eq!(of(&[4.0, 9.0, 1.0, 2.0]), 3.0);
    }
}
