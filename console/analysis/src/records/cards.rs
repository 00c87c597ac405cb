//! Which GPU cards sat where and how their multiprocessors lay to L2: what a run is held against what was seen of its cards before.

use std::collections::BTreeMap;

use muster_run::{Record, Run};
use muster_wire::{Component, Datum, fact_of};
use serde::{Deserialize, Serialize};

use crate::State;
use crate::findings::{Finding, Source};
use crate::gpu::Map;

/// The benchmark that looks.
const WORK: &str = "sm-sdc";
/// Looks that are kept of each place.
const KEPT: usize = 4;
/// Longest identity of a card.
const UUID: usize = 48;

/// A look at one card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    run: String,
    at_ms: u64,
    gpu: u32,
    uuid: String,
    map: Map,
}

/// Looks of all nodes, in the order they were kept.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cards(Vec<(String, Look)>);

/// Whether a run looks at cards at all.
#[must_use]
pub fn looked_at(run: &Run) -> bool {
    run.plan.iter().any(|work| work == WORK)
}

impl Cards {
    /// Adds what was kept of `node`.
    pub fn add(&mut self, node: &str, kept: Vec<Look>) {
        self.0.extend(kept.into_iter().map(|look| (node.to_owned(), look)));
    }

    /// Looks from before `run`.
    fn before<'a>(&'a self, run: &Run) -> impl Iterator<Item = &'a (String, Look)> {
        let (id, start) = (run.id.clone(), run.started_ms);
        self.0.iter().filter(move |(_, look)| look.run != id && look.at_ms < start)
    }

    /// What the records of `run` say against what is known; that a card is another one is only a remark.
    pub fn findings<'a>(&self, run: &Run, records: impl IntoIterator<Item = &'a Record>) -> Vec<Finding> {
        let mut said = Vec::new();
        for (node, look) in looks(run, records) {
            let (gpu, uuid) = (look.gpu, &look.uuid);
            let own: Vec<&Map> =
                self.before(run).filter(|(_, past)| past.uuid == *uuid).map(|(_, past)| &past.map).collect();
            if let Some(moved) = look.map.moved_since(&own) {
                let why = format!("{node}: {WORK}: GPU {gpu}: {moved} ({uuid})");
                said.push(finding(node, gpu, State::Warn, why));
            }
            let here =
                self.before(run).filter(|(at, past)| at == node && past.gpu == gpu).max_by_key(|(_, past)| past.at_ms);
            if let Some((_, past)) = here.filter(|(_, past)| past.uuid != *uuid) {
                let map = match look.map.moved_since(&[&past.map]) {
                    Some(moved) => format!("{} of {} SMs moved in the L2 latency map", moved.sms.len(), moved.of),
                    None => "with the same map, so that it may be the same card under another name".to_owned(),
                };
                let why = format!("{node}: GPU {gpu} is {uuid} now and was {} in run {}: {map}", past.uuid, past.run);
                said.push(finding(node, gpu, State::Pass, why));
            }
        }
        said
    }

    /// What is to be kept of the cards of a finished run, by node. A map that moved is not kept, or it would be what is usual next
    /// time.
    #[must_use]
    pub fn new_of(&self, run: &Run, records: &[Record]) -> BTreeMap<String, Vec<Look>> {
        let mut new: BTreeMap<String, Vec<Look>> = BTreeMap::new();
        for (node, look) in looks(run, records) {
            let own: Vec<&Map> =
                self.before(run).filter(|(_, past)| past.uuid == look.uuid).map(|(_, past)| &past.map).collect();
            if look.map.moved_since(&own).is_none() {
                new.entry(node.to_owned()).or_default().push(look);
            }
        }
        new
    }
}

/// The looks at the cards of one node that are kept once `new` ones of `run` are added: the last few of each place.
#[must_use]
pub fn kept_with(mut all: Vec<Look>, run: &Run, new: Vec<Look>) -> Vec<Look> {
    all.retain(|look| look.run != run.id);
    all.extend(new);
    let newer = |at: usize| all[at + 1..].iter().filter(|look| look.gpu == all[at].gpu).count();
    let last: Vec<bool> = (0..all.len()).map(|at| newer(at) < KEPT).collect();
    all.into_iter().zip(last).filter_map(|(look, last)| last.then_some(look)).collect()
}

fn finding(node: &str, gpu: u32, state: State, why: String) -> Finding {
    Finding::new(node, Component::Gpu(gpu), Source::GpuHistory, state, why)
}

/// One look per card of a run; none at cards that share an identity, which says nothing then.
fn looks<'a>(run: &Run, records: impl IntoIterator<Item = &'a Record>) -> Vec<(&'a str, Look)> {
    let mut found = Vec::new();
    for record in records.into_iter().filter(|record| record.benchmark() == WORK) {
        let (mut maps, mut uuids) = (BTreeMap::new(), BTreeMap::new());
        for fact in &record.facts {
            let Some(Datum::Text(text)) = fact.reading.value() else { continue };
            maps.extend(Map::parse(&fact.key, text));
            uuids.extend(uuid(&fact.key, text));
        }
        let look = |(gpu, map): (u32, Map)| {
            let uuid = uuids.get(&gpu)?.clone();
            Some((record.node.as_str(), Look { run: run.id.clone(), at_ms: record.at_ms, gpu, uuid, map }))
        };
        found.extend(maps.into_iter().filter_map(look));
    }
    // A later record of the same node replaces an earlier one.
    let places: BTreeMap<(&str, u32), Look> = found.into_iter().map(|(node, look)| ((node, look.gpu), look)).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    places.values().for_each(|look| *counts.entry(look.uuid.clone()).or_default() += 1);
    places.into_iter().filter(|(_, look)| counts[&look.uuid] == 1).map(|((node, _), look)| (node, look)).collect()
}

/// GPU and identity in `gpu.3.uuid`.
fn uuid(key: &str, text: &str) -> Option<(u32, String)> {
    let (Component::Gpu(gpu), "uuid") = fact_of(key)? else { return None };
    let sound = text.len() <= UUID && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (sound && !text.is_empty()).then(|| (gpu, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_that_is_too_long_or_no_text_is_none() {
        assert_eq!(uuid("gpu.0.uuid", "GPU-a"), Some((0, "GPU-a".to_owned())));
        assert_eq!(uuid("gpu.0.uuid", &"a".repeat(49)), None);
        assert_eq!(uuid("gpu.0.uuid", "GPU-\u{1b}[2J"), None);
    }
}
