//! Which nodes are measured again? Those in doubt, together with peers that are not.
//!
//! A doubtful node is compared with peers that are measured at the same time, so that a busy hour, or a machine that all of
//! them share, slows both and cancels. All nodes of a round do the same work; who takes part, and in which order, is drawn.

use std::collections::{BTreeSet, HashSet};

use muster_analysis::findings::{Finding, Source};
use muster_analysis::{State, TOGETHER};
use muster_fleet::Work;
use muster_playbook::Phase;
use muster_playbook::report::NodeFindings;
use muster_wire::{Profile, describe};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::order::{Scan, request};
use crate::judge::{Assessment, Visits};
use muster_analysis::records::works;

/// One more visit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Nodes in doubt.
    pub doubtful: BTreeSet<String>,
    /// Nodes that are measured beside them.
    pub peers: BTreeSet<String>,
    /// Benchmarks that all of them run.
    pub benchmarks: BTreeSet<String>,
}

/// What is to be measured again after what was found; `None` where nothing is in doubt that another visit may decide, or where
/// the visits are used up. A burn-in of a day is not run twice unasked. Nodes that are `lost` cannot be reached.
pub(super) fn choose(
    scan: &Scan,
    phases: &[Phase],
    found: &Assessment,
    (visits, lost): (&Visits, &BTreeSet<String>),
) -> Option<Round> {
    let most = visits.most();
    if scan.plan.profile == Profile::Full {
        return None;
    }
    let (mut doubtful, mut benchmarks) = (BTreeSet::new(), BTreeSet::new());
    for node in found.nodes.iter().filter(|node| !lost.contains(&node.node)) {
        let again = in_doubt(node, visits, scan.visits);
        if !again.is_empty() {
            doubtful.insert(node.node.clone());
            benchmarks.extend(again);
        }
    }
    benchmarks.retain(|name| phases.iter().any(|phase| phase.benchmarks.contains(name)));
    if doubtful.is_empty() || benchmarks.is_empty() {
        return None;
    }
    let earlier = visits.again();
    let mut peers: BTreeSet<String> = earlier.iter().filter(|name| !lost.contains(*name)).cloned().collect();
    // All visits hold the same nodes: peers are drawn once.
    if earlier.is_empty() {
        let members: HashSet<&String> = phases.iter().flat_map(|phase| &phase.nodes).collect();
        let takes_part = |name: &&String| members.contains(name);
        let mut others: Vec<&String> = found.nodes.iter().map(|node| &node.node).filter(takes_part).collect();
        others.retain(|name| !lost.contains(*name) && !doubtful.contains(*name));
        others.shuffle(&mut drawn(scan, most));
        peers.extend(others.into_iter().take((TOGETHER - 1).max(2 * doubtful.len())).cloned());
    }
    peers.retain(|name| !doubtful.contains(name));
    Some(Round { doubtful, peers, benchmarks })
}

/// The benchmarks to repeat because `node` is in doubt, if nodes are visited `most` times; empty if another visit would decide
/// nothing more.
pub fn in_doubt(node: &NodeFindings, visits: &Visits, most: usize) -> BTreeSet<String> {
    let mut benchmarks = BTreeSet::new();
    if visits.most() >= most {
        return benchmarks;
    }
    for finding in node.findings.iter().filter(|finding| finding.again) {
        let again = of(finding, node);
        // Whoever failed twice has failed; a doubt is asked for as long as there are visits.
        let done = if finding.state == State::Fail { 2 } else { most };
        if again.iter().any(|name| (1..done).contains(&visits.of(&node.node, name))) {
            benchmarks.extend(again);
        }
    }
    benchmarks
}

/// The benchmarks of a node that look at the component of a finding: all of them, since they are weighed together.
fn of(finding: &Finding, node: &NodeFindings) -> BTreeSet<String> {
    let mut benchmarks: BTreeSet<String> = finding.source.benchmarks().into_iter().map(str::to_owned).collect();
    for metric in node.verdicts.iter().map(|verdict| &verdict.metric) {
        let same = || match finding.source {
            Source::Load => works::component(&metric.benchmark) == finding.component,
            _ => describe(metric).component == finding.component,
        };
        if !benchmarks.contains(&metric.benchmark) && same() {
            benchmarks.insert(metric.benchmark.clone());
        }
    }
    benchmarks
}

/// The same draw for the same run and visit: a scan that is resumed goes on as it would have.
fn drawn(scan: &Scan, visit: usize) -> StdRng {
    let seed = scan.run.id.bytes().fold(visit as u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    StdRng::seed_from_u64(seed)
}

impl Round {
    /// The works of the round in an order that is drawn.
    pub fn works(&self, scan: &Scan, phases: &[Phase]) -> Vec<Work> {
        let mut works = Vec::new();
        for phase in phases {
            let benchmarks: Vec<String> =
                phase.benchmarks.iter().filter(|b| self.benchmarks.contains(*b)).cloned().collect();
            let takes_part = |name: &String| self.doubtful.contains(name) || self.peers.contains(name);
            let members: HashSet<&String> = phase.nodes.iter().filter(|name| takes_part(name)).collect();
            let nodes = scan.nodes.iter().filter(|n| members.contains(&n.name));
            let work = |node: &muster_fleet::Node| {
                let request = request(scan, phase, Vec::new(), benchmarks.clone());
                Work { known: true, ..Work::new(node.clone(), request, phase.limit) }
            };
            works.extend(nodes.filter(|_| !benchmarks.is_empty()).map(work));
        }
        works.shuffle(&mut drawn(scan, usize::MAX));
        works
    }
}
