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
                if let (Some(at), Some(node)) = (step.at, owner(log, layout)) {
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
        let error = scatter[(scatter.len() * 9 / 10).min(scatter.len() - 1)];
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
    use super::super::case::{Dump, Entry, Member};
    use super::*;

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
}
