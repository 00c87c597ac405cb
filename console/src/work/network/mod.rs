//! Carries the pair phase of a plan through: rounds to the nodes, visits into the store, and who is left out.

mod back;
mod extent;
mod keep;
mod look;
mod mesh;
mod place;
mod round;
mod schedule;
mod together;
mod train;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_playbook::{PAIRS, Pairs, Phase};
use muster_run::Record;
use muster_store::Store;
use muster_wire::{Engine, Load, Outcome, PERFTEST, Profile, RDMA};
use tokio_util::sync::CancellationToken;

pub use place::{Fabric, PairEngine};
pub(super) use together::phase as together;

use crate::judge::pairs::{Found, network};
use crate::work::link::lost_records;
use crate::work::order::Scan;
use crate::work::{Observer, Update, failure_line};
use extent::Extent;
use mesh::Mesh;
use round::Visited;
use schedule::Rounds;

/// Visits before a node can be left out.
const JUDGED: usize = 4;
/// Second looks at what the scan left in doubt, and rounds of each.
const LOOKS: usize = 2;
const LOOK_ROUNDS: usize = 3;
/// How often a round is measured again because of nodes or a network that were gone.
const AGAIN: usize = 3;
/// How often in a scan most of a round may fail before that is taken for what the network is like.
const GALES: usize = 3;

/// What is sent between two nodes in a profile.
#[must_use]
pub fn load(profile: Profile) -> Load {
    let (duration_ms, sizes, round_trips) = match profile {
        Profile::Smoke => (200, vec![64, 16 << 10], 32),
        Profile::Quick => (500, vec![8, 1 << 10, 64 << 10], 64),
        Profile::Standard => (2_000, vec![8, 1 << 10, 64 << 10, 1 << 20], 128),
        Profile::Full => (10_000, vec![8, 1 << 10, 64 << 10, 1 << 20], 256),
    };
    Load { streams: 4, duration_ms, sizes, round_trips, engine: Engine::Tcp }
}

/// A pair phase under way.
struct Pass<'a> {
    scan: &'a Scan,
    load: Load,
    topology: muster_analysis::network::Topology,
    mesh: Mesh,
    /// The rails that are measured, one after another; one without a number where every node has one address.
    rails: Vec<Option<usize>>,
    extent: Extent,
    /// Visits of an earlier attempt at this run, by node and work.
    earlier: BTreeMap<(String, String), Record>,
    times: keep::Count,
    tally: Tally,
    visits: u64,
    /// Rounds of which most failed.
    gales: usize,
    /// Nodes that were lost and may come back for another run.
    missed: BTreeSet<String>,
    /// Second looks begun, and their rounds still to come.
    looks: usize,
    doubts: Vec<Vec<(u32, u32)>>,
}

/// Visits of each node and how many of them failed.
#[derive(Default)]
struct Tally {
    nodes: BTreeMap<String, (usize, usize)>,
    dropped: BTreeMap<String, String>,
}

impl Tally {
    fn count(&mut self, visited: &Visited) {
        let Some(outcome) = visited.outcome() else { return };
        for name in [&visited.src, &visited.dst] {
            let of = self.nodes.entry(name.clone()).or_default();
            of.0 += 1;
            of.1 += usize::from(outcome != Outcome::Done);
        }
    }

    /// Nodes that fail with most of their peers, new since the last call.
    fn hopeless(&mut self) -> Vec<String> {
        let bad = |(visits, failed): &(usize, usize)| *visits >= JUDGED && failed * 4 >= visits * 3;
        let new: Vec<(String, String)> = self
            .nodes
            .iter()
            .filter(|(name, of)| bad(of) && !self.dropped.contains_key(*name))
            .map(|(name, (visits, failed))| (name.clone(), format!("{failed} of {visits} pairs failed")))
            .collect();
        self.dropped.extend(new.iter().cloned());
        new.into_iter().map(|(name, _)| name).collect()
    }
}

/// Runs the rounds that `method` asks for over the nodes of `phase`. What an earlier attempt at this run measured is
/// not measured again. Gives the nodes that were lost on the way and may come back.
///
/// # Errors
/// When the topology cannot be used or the store cannot keep a record.
pub(super) async fn phase(
    scan: &Scan,
    (phase, method): (&Phase, Pairs),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (index, lost, cancel): (usize, &mut BTreeSet<String>, &CancellationToken),
) -> Result<BTreeSet<String>> {
    let names: Vec<String> = phase.nodes.iter().filter(|name| !lost.contains(*name)).cloned().collect();
    let records = store.records(&scan.run.id).context("reading back the pairs of this run")?;
    let owed = records.iter().filter(|record| keep::is_owed(record)).map(|record| record.node.as_str());
    let owed: BTreeSet<&str> = owed.collect();
    let done = |name: &String| scan.done.contains(&(name.clone(), PAIRS.to_owned())) && !owed.contains(name.as_str());
    if names.iter().all(done) {
        return Ok(BTreeSet::new());
    }
    let topology = scan.fabric.topology(&scan.nodes, &names)?;
    let earlier: BTreeMap<_, _> = records
        .into_iter()
        .filter(|record| keep::receiver(record).is_some())
        .map(|record| ((record.node.clone(), record.work.clone()), record))
        .collect();
    let mut rounds = Rounds::new(method, &topology, &scan.judging.terms.params, seed(&scan.run.id));
    let (load, times) = (scan.fabric.load(phase.profile), keep::Count::new());
    let (with, without) = scan.fabric.addresses(&scan.nodes, &names, &scan.settings).await;
    let rails = match with.iter().map(|(_, addresses)| addresses.len()).max() {
        Some(count @ 2..) => (0..count).map(Some).collect(),
        _ => vec![None],
    };
    let extent = Extent::new(rounds.planned(), rails.len());
    let work = names.len() + extent.results().saturating_sub(earlier.len());
    let update = Update::Phase { index, step: &phase.step, nodes: names.len(), work, further: &[] };
    watchers.iter_mut().for_each(|watcher| watcher.see(&update));
    let limit = phase.limit.max(Duration::from_secs(24 * 3600));
    let mesh = Mesh::open(scan, &with, limit, watchers, cancel).await;
    let tally = Tally { dropped: without, ..Tally::default() };
    let mut pass = Pass {
        scan,
        load,
        topology,
        mesh,
        rails,
        extent,
        earlier,
        times,
        tally,
        visits: 0,
        gales: 0,
        missed: BTreeSet::new(),
        looks: 0,
        doubts: Vec::new(),
    };
    pass.leave_unable();
    let done = pass.all(&mut rounds, store, watchers, (lost, cancel)).await;
    let records = if done.is_ok() && !cancel.is_cancelled() { pass.members(&names) } else { Vec::new() };
    pass.mesh.close(watchers).await;
    done?;
    append(store, &records, watchers)?;
    Ok(pass.missed)
}

impl Pass<'_> {
    async fn all(
        &mut self,
        rounds: &mut Rounds,
        store: &mut dyn Store,
        watchers: &mut [&mut dyn Observer],
        (lost, cancel): (&mut BTreeSet<String>, &CancellationToken),
    ) -> Result<()> {
        let mut number = 0;
        let mut measured = 0;
        self.note_lost(store, watchers, lost)?;
        while let Some(pairs) = self.next(rounds, store)? {
            let mut all = Vec::new();
            for rail in self.rails.clone() {
                let (known, open) = self.split(&pairs, rail);
                all.extend(known);
                let more = Update::More(self.extent.more(open.len()));
                let (planned, dropped) = (self.extent.planned(), &self.tally.dropped);
                let round = Update::Round { number, planned, pairs: open.len(), measured, dropped };
                [more, round].iter().for_each(|update| watchers.iter_mut().for_each(|watcher| watcher.see(update)));
                if open.is_empty() {
                    continue;
                }
                let visited = self.round(&open, rail, watchers).await;
                if cancel.is_cancelled() {
                    return Ok(());
                }
                let records = self.records(number, &visited);
                append(store, &records, watchers)?;
                all.extend(records);
            }
            measured += pairs.len();
            rounds.visited(&self.topology, &all);
            for node in self.tally.hopeless() {
                log::warn!("{node}: {}; it is left out of the later rounds", self.tally.dropped[&node]);
                self.mesh.dismiss(&node);
            }
            self.note_lost(store, watchers, lost)?;
            number += 1;
        }
        Ok(())
    }

    /// One round on one `rail`; what failed while nodes or the network were gone is measured again.
    async fn round(
        &mut self,
        open: &[(String, String)],
        rail: Option<usize>,
        watchers: &mut [&mut dyn Observer],
    ) -> Vec<Visited> {
        let mut visited = self.visit(open, rail, watchers).await;
        for _ in 0..AGAIN {
            let again = self.again(&mut visited, watchers).await;
            if again.is_empty() || self.mesh.cancelled() {
                break;
            }
            visited.retain(|old| !again.iter().any(|(src, dst)| (&old.src, &old.dst) == (src, dst)));
            visited.extend(self.visit(&again, rail, watchers).await);
        }
        visited
    }

    async fn visit(
        &mut self,
        pairs: &[(String, String)],
        rail: Option<usize>,
        watchers: &mut [&mut dyn Observer],
    ) -> Vec<Visited> {
        let first = self.visits;
        self.visits += pairs.len() as u64;
        round::round(&mut self.mesh, pairs, &self.load, (first, rail), watchers).await
    }

    /// Pairs that did not succeed, and of which a node was gone or the whole network was, and is there again. What a node that is
    /// still gone left unsaid is no word on its pair.
    async fn again(&mut self, visited: &mut [Visited], watchers: &mut [&mut dyn Observer]) -> Vec<(String, String)> {
        let failed = |visit: &&mut Visited| visit.outcome() != Some(Outcome::Done);
        let count = visited.iter_mut().filter(failed).count();
        // Most pairs do not break at the same moment.
        let gale = visited.len() > 1 && 2 * count > visited.len() && self.gales < GALES;
        self.gales += usize::from(gale);
        let mut silent: BTreeSet<String> = visited.iter_mut().filter(failed).flat_map(|visit| visit.silent()).collect();
        if gale {
            let ends = visited.iter_mut().filter(failed).flat_map(|visit| [visit.src.clone(), visit.dst.clone()]);
            silent.extend(ends);
        }
        let now = back::wait(&mut self.mesh, &silent, &self.scan.nodes, watchers).await;
        let mut again = Vec::new();
        for visit in visited.iter_mut().filter(failed) {
            let ends = [&visit.src, &visit.dst];
            let silent = visit.silent().iter().any(|node| !now.there.contains(node));
            if !silent && (gale || ends.iter().any(|node| now.returned.contains(*node))) {
                again.push((visit.src.clone(), visit.dst.clone()));
            }
            visit.lost |= silent;
        }
        again
    }

    /// The next round of the scan, and then of what it left in doubt: a hiccup does not come back, a fault does.
    fn next(&mut self, rounds: &mut Rounds, store: &dyn Store) -> Result<Option<Vec<(u32, u32)>>> {
        if let Some(pairs) = rounds.next() {
            return Ok(Some(pairs));
        }
        if self.doubts.is_empty() && self.looks < LOOKS {
            self.looks += 1;
            let found = tokio::task::block_in_place(|| self.found(store))?;
            self.doubts = found.map_or_else(Vec::new, |found| look::rounds(&found, &self.topology, LOOK_ROUNDS));
            self.extent.add(&self.doubts);
        }
        Ok(self.doubts.pop())
    }

    /// What all visits kept so far point at.
    fn found(&self, store: &dyn Store) -> Result<Option<Found>> {
        let records = store.records(&self.scan.run.id).context("reading back the pairs of this run")?;
        let params = &self.scan.judging.terms.params;
        Ok(network(&self.scan.run, &records, Some(self.topology.clone()), params))
    }

    /// Leaves out the nodes that have not what the engine needs.
    fn leave_unable(&mut self) {
        if !matches!(self.load.engine, Engine::Perftest { .. }) {
            return;
        }
        for (node, lacks) in self.mesh.lacking(&[RDMA, PERFTEST]) {
            let why = if lacks == RDMA { "it has no RDMA device" } else { "ib_write_bw of perftest is not installed" };
            self.mesh.dismiss(&node);
            self.tally.dropped.insert(node, why.to_owned());
        }
    }

    /// Records of pairs that were measured before, and the names of those that can be measured now.
    fn split(&mut self, pairs: &[(u32, u32)], rail: Option<usize>) -> (Vec<Record>, Vec<(String, String)>) {
        let (mut known, mut open) = (Vec::new(), Vec::new());
        for &(a, b) in pairs {
            let name = |node: u32| self.topology.names()[node as usize].clone();
            let (src, dst) = (name(a), name(b));
            let visit = self.times.entry(ends(&keep::endpoint(&src, rail), &keep::endpoint(&dst, rail))).or_default();
            *visit += 1;
            let key = |from: &str, to: &str| (from.to_owned(), keep::work(&keep::endpoint(to, rail), *visit));
            let before = [self.earlier.get(&key(&src, &dst)), self.earlier.get(&key(&dst, &src))];
            match before {
                [Some(there), Some(back)] => known.extend([there.clone(), back.clone()]),
                _ if [&src, &dst].iter().all(|name| self.mesh.address(name, rail).is_some()) => open.push((src, dst)),
                _ => {}
            }
        }
        (known, open)
    }

    fn records(&mut self, number: usize, visited: &[Visited]) -> Vec<Record> {
        let mut records = Vec::new();
        for visit in visited {
            self.tally.count(visit);
            let [src, dst] = [&visit.src, &visit.dst].map(|name| keep::endpoint(name, visit.rail));
            let times = self.times.get(&ends(&src, &dst)).copied().unwrap_or(1);
            let up = |src: &str, dst: &str| self.scan.fabric.route(src, dst);
            records.extend(keep::records(&self.mesh, (&self.scan.run.id, number, self.load.engine), visit, times, up));
        }
        if self.looks > 0 {
            records.iter_mut().for_each(|record| record.facts.push(keep::number(keep::LOOK, self.looks as f64)));
        }
        records
    }

    /// Nodes whose link ended meanwhile are told, and leave the later phases.
    fn note_lost(
        &mut self,
        store: &mut dyn Store,
        watchers: &mut [&mut dyn Observer],
        lost: &mut BTreeSet<String>,
    ) -> Result<()> {
        let gone = std::mem::take(&mut self.mesh.lost);
        let mut records = Vec::new();
        for (node, failure) in gone {
            if self.tally.dropped.contains_key(&node) {
                continue;
            }
            records.extend(lost_records(&self.scan.run.id, &node, &failure));
            if self.mesh.is_missed(&node, &failure) {
                self.missed.insert(node.clone());
            }
            self.tally.dropped.insert(node.clone(), failure_line(&node, &failure));
            lost.insert(node);
        }
        append(store, &records, watchers)
    }

    /// What every node was for the whole scan.
    fn members(&self, names: &[String]) -> Vec<Record> {
        let member = |name: &String| {
            let outcome = match self.tally.dropped.get(name) {
                Some(why) => Outcome::Failed(why.clone()),
                None => Outcome::Done,
            };
            let rails = self.scan.fabric.rail_places(&self.scan.nodes, name, self.rails.len());
            let member = keep::member(&self.scan.run.id, name, outcome, place::told(&self.topology, name), &rails);
            if self.missed.contains(name) { keep::owed(member) } else { member }
        };
        names.iter().map(member).collect()
    }
}

fn ends(a: &str, b: &str) -> (String, String) {
    if a < b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

fn append(store: &mut dyn Store, records: &[Record], watchers: &mut [&mut dyn Observer]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    tokio::task::block_in_place(|| store.append_many(records)).context("scan stopped: could not record a result")?;
    for record in records {
        watchers.iter_mut().for_each(|watcher| watcher.see(&Update::Recorded(record)));
    }
    Ok(())
}

/// A number from a run's name (FNV-1a), so that a resumed run has the same rounds.
fn seed(run: &str) -> u64 {
    run.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
