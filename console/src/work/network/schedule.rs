//! Which pairs come in the next round, by the method asked for?

use std::collections::BTreeMap;

use muster_analysis::Params;
use muster_analysis::network::schedule::{Bisection, FullScan, Pair, SampledScan, Step, Visit, quick_scan};
use muster_analysis::network::{Topology, health};
use muster_playbook::Pairs;
use muster_run::Record;
use muster_wire::Direction;

use super::keep;

/// The rounds of a scan, in turn.
pub(super) enum Rounds {
    /// Known before the first.
    Planned { rounds: Box<dyn Iterator<Item = Vec<Pair>> + Send>, count: usize, pairs: u64 },
    /// Each follows from those before.
    Adaptive(Box<Bisection>),
}

impl Rounds {
    /// The same `seed` gives the same rounds, so that an interrupted scan goes on with its own.
    pub(super) fn new(method: Pairs, topology: &Topology, params: &Params, seed: u64) -> Self {
        let nodes = topology.len() as u32;
        match method {
            Pairs::Full => {
                let scan = FullScan::new(nodes);
                let rounds = Box::new(scan.rounds().map(|round| round.pairs().collect()));
                Self::Planned { rounds, count: scan.len() as usize, pairs: scan.pairs() }
            }
            Pairs::Quick => {
                let tiers: Vec<Vec<Pair>> =
                    quick_scan(topology).into_iter().map(|tier| tier.pairs).filter(|p| !p.is_empty()).collect();
                let pairs = tiers.iter().map(|pairs| pairs.len() as u64).sum();
                Self::Planned { count: tiers.len(), rounds: Box::new(tiers.into_iter()), pairs }
            }
            Pairs::Sample { rounds } => {
                let scan = SampledScan::new(nodes, rounds, seed);
                let all: Vec<Vec<Pair>> = scan.rounds().collect();
                Self::Planned { count: all.len(), rounds: Box::new(all.into_iter()), pairs: scan.coverage().pairs }
            }
            Pairs::Bisect => {
                let metric = ("health", Direction::HigherIsBetter);
                Self::Adaptive(Box::new(Bisection::new(topology, metric, params, seed)))
            }
        }
    }

    /// The next round; none after the last.
    pub(super) fn next(&mut self) -> Option<Vec<Pair>> {
        match self {
            Self::Planned { rounds, .. } => rounds.next(),
            Self::Adaptive(scan) => match scan.step() {
                Step::Measure(pairs) => Some(pairs),
                Step::Done(_) => None,
            },
        }
    }

    /// Rounds and pairs in all, where they are known.
    pub(super) fn planned(&self) -> Option<(usize, u64)> {
        match self {
            Self::Planned { count, pairs, .. } => Some((*count, *pairs)),
            Self::Adaptive(_) => None,
        }
    }

    /// Tells what a round gave. Uplinks are named as the visits' records do; of several rails the worst counts.
    pub(super) fn visited(&mut self, topology: &Topology, records: &[Record]) {
        type Seen<'a> = (Option<f64>, Option<&'a str>);
        let Self::Adaptive(scan) = self else { return };
        let mut worst: BTreeMap<(u32, u32), Seen<'_>> = BTreeMap::new();
        for record in records {
            let dst = keep::receiver(record).and_then(|dst| topology.endpoint(dst));
            let (Some(src), Some(dst)) = (topology.find(&record.node), dst) else { continue };
            let of: BTreeMap<&str, &[f64]> =
                record.series.iter().map(|s| (s.metric.name.as_str(), s.values.as_slice())).collect();
            let seen = (health(&of), keep::told(record, keep::UP));
            let kept = worst.entry((src, dst)).or_insert(seen);
            // A visit that failed has no health and is worse than any.
            if seen.0 < kept.0 {
                *kept = seen;
            }
        }
        for ((src, dst), (health, up)) in worst {
            let values: Vec<f64> = health.into_iter().collect();
            scan.visited(&[Visit { src, dst, values: &values, up }]);
        }
    }
}
