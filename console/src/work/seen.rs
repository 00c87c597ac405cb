//! What do the phases of a scan learn about nodes on the way, and what becomes of what they send?

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use muster_fleet::{Clock, Event, EventKind, Failure, FailureKind, Work};
use muster_playbook::{Phase, collector_work};
use muster_run::{Record, visit_name};
use muster_wire::{Outcome, Profile};
use tokio_util::sync::CancellationToken;

use super::excess::{Excess, Ordered, Share};
use super::gather::{Closed, Gather, bytes};
use super::link::link_record;
use super::order::Scan;
use super::outage::Outages;
use super::spill::Spill;
use super::under_way::{Noted, UnderWay};
use crate::clock::now_ms;
use crate::judge::{Assessment, notes};

/// What the phases of a scan learn about nodes on the way.
#[derive(Debug)]
pub(super) struct Seen {
    /// What is under way.
    pub(super) way: UnderWay,
    /// Where values wait.
    spill: Spill,
    /// Nodes that others did not wait for, and the phase that they were at.
    pub(super) late: BTreeMap<String, usize>,
    /// Nodes whose link failed: not tried again before the end of the run.
    pub(super) lost: BTreeSet<String>,
    /// Of those the ones that were reached before and may come back.
    pub(super) missed: BTreeSet<String>,
    /// Nodes that were lost while they measured one another, and may come back.
    pub(super) apart: BTreeSet<String>,
    /// Nodes that were reached.
    pub(super) reached: BTreeSet<String>,
    /// Nodes of which it was recorded how their link ended first, and which have not come back.
    told: BTreeMap<String, Failure>,
    outages: Outages,
    /// Uncertainty of the best offset of each node's clock, nanoseconds.
    clocks: HashMap<String, u64>,
    /// What each node was told to do.
    gathers: HashMap<String, Gather>,
    /// What nodes sent for their works.
    excess: Excess,
    /// Works that nodes have finished, and of which it is not known whether they are far larger than those of their peers.
    waiting: Vec<Closed>,
    /// The work of which that may be known now.
    news: Option<Ordered>,
    /// What was made of all records there are; `None` once there may be more.
    pub(super) found: Option<Assessment>,
}

impl Seen {
    /// Nothing yet.
    pub(super) fn new(scan: &Scan, cancel: &CancellationToken) -> Self {
        Self::of(excess(scan), Spill::new(&scan.folder), cancel)
    }

    fn of(excess: Excess, spill: Spill, cancel: &CancellationToken) -> Self {
        Self {
            way: UnderWay::new(cancel),
            spill,
            late: BTreeMap::new(),
            lost: BTreeSet::new(),
            missed: BTreeSet::new(),
            apart: BTreeSet::new(),
            reached: BTreeSet::new(),
            told: BTreeMap::new(),
            outages: Outages::default(),
            clocks: HashMap::new(),
            gathers: HashMap::new(),
            excess,
            waiting: Vec::new(),
            news: None,
            found: None,
        }
    }

    /// Counts what a resumed run has already stored: the nodes that sent it are peers of those still to be measured.
    pub(super) fn stored(&mut self, scan: &Scan, records: &[Record]) {
        let ordered = |phase: &Phase| -> Vec<_> {
            let looks = phase.collectors.iter().map(|name| collector_work(name));
            looks.chain(phase.benchmarks.iter().cloned()).map(|work| (work, phase.profile)).collect()
        };
        let profiles: BTreeMap<String, Profile> = scan.plan.phases.iter().flat_map(ordered).collect();
        for record in records.iter().filter(|record| record.outcome == Outcome::Done) {
            if let Some((work, profile)) = profiles.get_key_value(record.benchmark()) {
                self.excess.done(&record.node, &(*profile, work.clone()), bytes(record));
            }
        }
    }

    /// A record of `clock`, unless the node's clock is known better already.
    fn clock(&mut self, run: &str, node: &str, clock: &Clock) -> Option<Record> {
        let best = self.clocks.entry(node.to_owned()).or_insert(u64::MAX);
        if clock.uncertainty_ns >= *best {
            return None;
        }
        *best = clock.uncertainty_ns;
        Some(notes::offset(run, node, clock, now_ms()))
    }

    /// What an event comes to; a sentence where it is more than one node's matter.
    pub(super) fn take(
        &mut self,
        event: Event,
        noted: &Noted,
        scan: &Scan,
        records: &mut Vec<Record>,
    ) -> Option<String> {
        self.found = None;
        let (node, at_ms, run) = (event.node, now_ms(), scan.run.id.as_str());
        let (gather, visit) = (self.gathers.get_mut(&node)?, noted.visit);
        let mut said = None;
        match event.kind {
            EventKind::Frame(frame) => {
                if let Some(mut closed) = gather.take(frame, at_ms) {
                    closed.record.work = visit_name(&closed.record.work, visit);
                    if closed.is_done() {
                        self.excess.done(&node, &closed.work, closed.bytes());
                        self.news = Some(closed.work.clone());
                    }
                    let share = self.excess.share(&node, &closed.work, closed.bytes(), false);
                    records.extend(self.settled(closed, share));
                }
            }
            EventKind::Ended(_) if noted.skipped => gather.skipped(),
            EventKind::Ended(result) => {
                let failure = result.err();
                let missing = gather.ended(failure.as_ref(), at_ms).into_iter();
                records.extend(missing.map(|record| Record { work: visit_name(&record.work, visit), ..record }));
                match failure {
                    Some(failure) => records.extend(self.link_lost(run, &node, &failure)),
                    None => {
                        self.reached.insert(node.clone());
                        self.told.remove(&node);
                    }
                }
            }
            EventKind::Interrupted(failure, ago) => {
                gather.interrupted();
                self.reached.insert(node.clone());
                self.told.remove(&node);
                let now = Instant::now();
                if failure.kind != FailureKind::Frozen {
                    self.outages.lost(&node, now.checked_sub(ago).unwrap_or(now));
                    said = self.outages.sentence(&node, &scan.nodes);
                }
            }
            EventKind::Clock(clock) => records.extend(self.clock(run, &node, &clock)),
            EventKind::Link(_) => {}
        }
        records.extend(self.gathers.get_mut(&node).and_then(|gather| gather.out_of_turn(at_ms)));
        said
    }

    /// The record of a finished work, or nothing while it waits for peers.
    fn settled(&mut self, closed: Closed, share: Share) -> Option<Record> {
        match share {
            Share::Kept => Some(closed.whole()),
            Share::Refused(why) => Some(closed.refused(why)),
            Share::Waits => {
                self.waiting.push(closed.put_aside(&self.spill));
                None
            }
        }
    }

    /// The next record of those that waited; at the end of a step (`last`) none waits any more.
    pub(super) fn waited(&mut self, last: bool) -> Option<Record> {
        let news = self.news.take();
        let (excess, is_news) = (&mut self.excess, |closed: &Closed| last || news.as_ref() == Some(&closed.work));
        let mut share = |closed: &Closed| excess.share(&closed.record.node, &closed.work, closed.bytes(), last);
        let known =
            |(at, closed): (usize, &Closed)| Some((at, share(closed))).filter(|(_, share)| *share != Share::Waits);
        let (at, share) = self.waiting.iter().enumerate().filter(|(_, closed)| is_news(closed)).find_map(known)?;
        let closed = self.waiting.remove(at);
        self.news = news;
        self.settled(closed, share)
    }

    /// Records how the node's link was lost, and with how many others. Nothing if that is recorded already: the first reason says
    /// what the node was doing, and stays in front of what a retry ended with.
    fn link_lost(&mut self, run: &str, node: &str, failure: &Failure) -> Option<Record> {
        self.lost.insert(node.to_owned());
        if failure.lost() {
            self.reached.insert(node.to_owned());
        }
        if failure.lost() || self.reached.contains(node) && failure.passing() {
            self.missed.insert(node.to_owned());
        }
        let first = self.told.get(node);
        if first.is_some() && failure.passing() {
            return None;
        }
        let failure = failure.clone().after(first.filter(|first| first.phase.is_inside()));
        let mut record = link_record(run, node, &failure);
        self.told.entry(node.to_owned()).or_insert(failure);
        let others = self.outages.together(node).len().saturating_sub(1);
        if let Outcome::Failed(why) = &mut record.outcome
            && others > 0
        {
            let others = if others == 1 { "another node".to_owned() } else { format!("{others} other nodes") };
            why.push_str(&format!("; lost together with {others}: probably the network or a switch"));
        }
        Some(record)
    }

    /// Begins `works`, which are the nodes' visit number `visit`.
    pub(super) fn start(&mut self, scan: &Scan, works: Vec<Work>, visit: usize) {
        self.found = None;
        for work in &works {
            let gather = self.gathers.entry(work.node.name.clone());
            let new = || Gather::new(&scan.run.id, &work.node.name, self.spill.clone());
            gather.or_insert_with(new).expect(&work.request);
        }
        if !works.is_empty() {
            self.way.start(scan, works, visit);
        }
    }
}

/// Nodes are compared with those of their group, as when they are judged.
fn excess(scan: &Scan) -> Excess {
    let group = |node: &str| scan.judging.context.group(scan.plan.profile, node);
    Excess::new(scan.nodes.iter().map(|node| (node.name.as_str(), group(&node.name))))
}

#[cfg(test)]
mod tests {
    use muster_fleet::Phase;

    use super::*;

    fn seen() -> Seen {
        Seen::of(Excess::default(), Spill::new(&std::env::temp_dir()), &CancellationToken::new())
    }

    /// What is recorded of a node that fails like this; empty where nothing is.
    fn told(seen: &mut Seen, phase: Phase, kind: FailureKind, what: &str) -> String {
        let failure = Failure::new("n1", phase, kind, what);
        match seen.link_lost("r", "n1", &failure).map(|record| record.outcome) {
            Some(Outcome::Failed(why)) => why,
            None => String::new(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_node_that_is_lost_while_its_probe_starts_is_told_with_the_step_and_asked_again() {
        let gone = "the connection was lost before the probe's first frame";
        let killed = "the probe was killed by signal KILL before the probe's first frame";
        let silent = "no probe answered within 30 s; it said nothing";
        for (kind, what) in [(FailureKind::LinkLost, gone), (FailureKind::Cut, killed), (FailureKind::Hang, silent)] {
            let mut seen = seen();
            assert_eq!(told(&mut seen, Phase::Start, kind, what), format!("n1: start: {what}"));
            assert!(seen.missed.contains("n1") && seen.reached.contains("n1"));
            assert_eq!(told(&mut seen, Phase::Connect, FailureKind::Unreachable, "no route"), "", "the cause stays");
            assert!(seen.missed.contains("n1"));
        }
        for (phase, kind) in [(Phase::Connect, FailureKind::Unreachable), (Phase::Start, FailureKind::NotStarted)] {
            let mut seen = seen();
            told(&mut seen, phase, kind, "not there");
            assert!(seen.missed.is_empty() && seen.reached.is_empty(), "{phase:?} {kind:?}");
        }
    }

    #[test]
    fn of_a_cancelled_slurm_job_the_cause_comes_first_and_the_run_is_not_over() {
        for (phase, name) in [(Phase::Run, "run"), (Phase::Start, "start")] {
            let mut seen = seen();
            told(&mut seen, phase, FailureKind::Cut, "Slurm cancelled the step");
            let again =
                told(&mut seen, Phase::Connect, FailureKind::Cut, "Slurm job 5 has ended, and muster starts no other");
            let cause =
                format!("n1: {name}: Slurm cancelled the step; the retry failed: connect: Slurm job 5 has ended");
            assert!(again.starts_with(&cause), "{again}");
            assert!(seen.missed.contains("n1"));
        }
    }
}
