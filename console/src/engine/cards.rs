//! Which GPU cards sat where and how their multiprocessors lay to L2, kept by the identity of the card: what later runs are held
//! against.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_analysis::State;
use muster_analysis::findings::{Finding, Source};
use muster_analysis::gpu::Map;
use muster_run::{Record, Run};
use muster_store::Store;
use muster_wire::{Component, Datum, fact_of};
use serde::{Deserialize, Serialize};

/// Names of such entries begin so; the node's name follows.
const CARDS: &str = "cards ";
/// The benchmark that looks.
const WORK: &str = "sm-sdc";
/// Looks that are kept of each place.
const KEPT: usize = 4;
/// Longest identity of a card.
const UUID: usize = 48;

/// A look at one card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Look {
    run: String,
    at_ms: u64,
    gpu: u32,
    uuid: String,
    map: Map,
}

/// Looks of all nodes, in the order they were kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Cards(Vec<(String, Look)>);

impl Cards {
    /// Everything that is known, if `run` looks at cards at all.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) fn known(store: &dyn Store, run: &Run) -> Result<Self> {
        let mut cards = Self::default();
        if !run.plan.iter().any(|work| work == WORK) {
            return Ok(cards);
        }
        for seen in store.criteria()? {
            let Some(node) = seen.name.strip_prefix(CARDS) else { continue };
            cards.0.extend(kept(store, node)?.into_iter().map(|look| (node.to_owned(), look)));
        }
        Ok(cards)
    }

    /// Looks from before `run`.
    fn before<'a>(&'a self, run: &Run) -> impl Iterator<Item = &'a (String, Look)> {
        let (id, start) = (run.id.clone(), run.started_ms);
        self.0.iter().filter(move |(_, look)| look.run != id && look.at_ms < start)
    }

    /// What the records of `run` say against what is known; that a card is another one is only a remark.
    pub(super) fn findings<'a>(&self, run: &Run, records: impl IntoIterator<Item = &'a Record>) -> Vec<Finding> {
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
}

fn finding(node: &str, gpu: u32, state: State, why: String) -> Finding {
    Finding::new(node, Component::Gpu(gpu), Source::GpuHistory, state, why)
}

/// Keeps how the cards of a finished run lay. A map that moved is not kept, or it would be what is usual next time.
///
/// # Errors
/// When the store cannot keep it.
pub fn keep_cards(store: &mut dyn Store, run: &Run) -> Result<()> {
    let known = Cards::known(&*store, run)?;
    if !run.plan.iter().any(|work| work == WORK) {
        return Ok(());
    }
    let mut new: BTreeMap<String, Vec<Look>> = BTreeMap::new();
    let records = store.records(&run.id)?;
    for (node, look) in looks(run, &records) {
        let own: Vec<&Map> =
            known.before(run).filter(|(_, past)| past.uuid == look.uuid).map(|(_, past)| &past.map).collect();
        if look.map.moved_since(&own).is_none() {
            new.entry(node.to_owned()).or_default().push(look);
        }
    }
    for (node, looks) in new {
        let mut all = kept(&*store, &node)?;
        all.retain(|look| look.run != run.id);
        all.extend(looks);
        let newer = |at: usize| all[at + 1..].iter().filter(|look| look.gpu == all[at].gpu).count();
        let last: Vec<&Look> = (0..all.len()).filter(|at| newer(*at) < KEPT).map(|at| &all[at]).collect();
        store.put_criterion(&format!("{CARDS}{node}"), &serde_json::to_vec(&last)?)?;
    }
    Ok(())
}

fn kept(store: &dyn Store, node: &str) -> Result<Vec<Look>> {
    let Some(bytes) = store.criterion(&format!("{CARDS}{node}"))? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).with_context(|| format!("GPU history of {node} is corrupt (run: muster db check)"))
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
    use muster_run::RunState;
    use muster_store::{Db, Options};
    use muster_wire::{Fact, Profile, Reading};

    use super::super::health::noted;
    use super::*;

    fn run(number: u64) -> Run {
        Run {
            id: format!("r{number}"),
            playbook: "p".into(),
            profile: Profile::Smoke,
            started_ms: number * 1000,
            ended_ms: None,
            nodes: vec!["n1".into(), "n2".into()],
            plan: vec![WORK.into()],
            state: RunState::Running,
        }
    }

    /// A run in which GPU 0 of `n1` is the card `uuid`, and one multiprocessor takes `cycles`.
    fn ran(store: &mut Db, number: u64, uuid: &str, cycles: f64) -> Vec<Finding> {
        let run = run(number);
        let text =
            |key: &str, text: String| Fact { key: key.into(), reading: Reading::Value(Datum::Text(text)), unit: None };
        let facts =
            vec![text("gpu.0.uuid", uuid.into()), text("gpu.0.distance", format!("0:220 1:300 2:{cycles} 3:250"))];
        store.begin(&run).unwrap();
        store.append(&noted(&run.id, "n1", WORK, facts, number * 1000 + 500)).unwrap();
        let said = Cards::known(store, &run).unwrap().findings(&run, &store.records(&run.id).unwrap());
        keep_cards(store, &run).unwrap();
        said
    }

    #[test]
    fn a_card_is_held_against_its_own_past_and_another_card_is_a_notice() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let quiet = |said: Vec<Finding>| said.is_empty();
        assert!(quiet(ran(&mut store, 1, "GPU-a", 260.0)), "nothing is known yet");
        assert!(quiet(ran(&mut store, 2, "GPU-a", 260.5)));
        // What moved stays moved: it is not what is usual next time.
        for number in [3, 4] {
            let said = ran(&mut store, number, "GPU-a", 290.0);
            let why = &said[0].sentence;
            assert_eq!((said[0].state, &said[0].component), (State::Warn, &Component::Gpu(0)));
            let told = "1 of 4 multiprocessors is not as far from L2 as in 2 earlier runs of this card: 2 by ";
            assert!(why.starts_with("n1: sm-sdc: GPU 0: ") && why.contains(told) && why.ends_with("(GPU-a)"), "{why}");
        }
        let said = ran(&mut store, 5, "GPU-b", 330.0);
        let why = "n1: GPU 0 is GPU-b now and was GPU-a in run r2: 1 of 4 SMs moved in the L2 latency map";
        assert_eq!((said.len(), said[0].state, said[0].sentence.as_str()), (1, State::Pass, why));
        assert!(quiet(ran(&mut store, 6, "GPU-b", 330.0)), "told once");
        assert!(ran(&mut store, 7, "GPU-c", 330.0)[0].sentence.ends_with("under another name"));
        // What an earlier run said does not change because of later ones.
        let early = run(2);
        let again = Cards::known(&store, &early).unwrap().findings(&early, &store.records("r2").unwrap());
        assert!(quiet(again));
    }

    #[test]
    fn cards_that_share_an_identity_and_hostile_identities_are_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        assert!(ran(&mut store, 1, "GPU-\u{1b}[2J", 260.0).is_empty());
        assert!(Cards::known(&store, &run(9)).unwrap().0.is_empty());
        assert_eq!(uuid("gpu.0.uuid", &"a".repeat(49)), None);
    }
}
