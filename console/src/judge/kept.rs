//! What was said of a run, kept beside its file for whoever asks again: judging millions of values anew takes seconds and a
//! gigabyte.
//!
//! It is believed for the run file it was made from, to the byte, for the same terms, and by this very program; everybody else
//! judges anew.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result};
use muster_analysis::checks::CheckResult;
use muster_analysis::findings::{ComponentState, Finding};
use muster_analysis::{Criterion, NodeVerdict, State};
use muster_playbook::report::{Dropped, NodeFindings, PairsReport};
use muster_run::{Run, RunState};
use muster_store::{Store, pack, unpack};
use muster_wire::MetricId;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::{Assessment, Chart, Judging, assess, on_all_cores};
use muster_analysis::assess::{Basis, Judged};

/// What is said of a stored run: as it was kept, or else from its records, and then kept.
///
/// # Errors
/// When the store cannot be read.
pub fn stored(store: &dyn Store, run: &Run, judging: &Judging) -> Result<Assessment> {
    if let Some(known) = Kept::of(store, run, judging).and_then(Kept::assessment) {
        return Ok(known);
    }
    let said = assess(run, &store.records(&run.id)?, judging);
    keep_assessment(store, run, judging, &said);
    Ok(said)
}

/// Keeps what is said of a run that has ended and is stored so. Where that fails, it is judged anew next time.
pub fn keep_assessment(store: &dyn Store, run: &Run, judging: &Judging, said: &Assessment) {
    let ended = || run.state != RunState::Running && matches!(store.run(&run.id), Ok(Some(stored)) if stored == *run);
    if let Some(bytes) = ended().then(|| written(run, judging, said)).flatten() {
        store.keep_beside(&run.id, &bytes);
    }
}

/// Nodes that are unpacked side by side.
const AT_ONCE: usize = 64;

/// An assessment in pieces, so that that of one node is quickly found.
pub struct Kept {
    head: Head,
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    key: u64,
    metrics: Vec<MetricId>,
    /// Groups of nodes, each with the places of its nodes.
    groups: Vec<(String, Vec<usize>)>,
    judged: Vec<KeptJudged>,
    network: Option<PairsReport>,
    rejudged: Option<String>,
    dropped: Vec<Dropped>,
    /// In the run's order, each with the end of its piece.
    nodes: Vec<(Arc<str>, usize)>,
}

#[derive(Serialize, Deserialize)]
struct KeptJudged {
    criterion: Criterion,
    group: usize,
    frozen: bool,
    chart: Chart,
}

/// What is said of one node; its verdicts as columns, metrics by their places.
#[derive(Default, Serialize, Deserialize)]
struct KeptNode {
    findings: Vec<Finding>,
    measured: Vec<ComponentState>,
    checks: Vec<CheckResult>,
    metrics: Vec<u32>,
    states: Vec<State>,
    similarities: Vec<Option<f64>>,
    values: Vec<Option<f64>>,
    /// Of the verdicts that have one, by place.
    reasons: Vec<(usize, String)>,
}

impl Kept {
    /// What was kept of `run`; `None` where there is nothing that holds.
    #[must_use]
    pub fn of(store: &dyn Store, run: &Run, judging: &Judging) -> Option<Self> {
        let mut bytes = store.beside(&run.id)?;
        let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        let end = length.checked_add(size_of::<u64>()).filter(|end| *end <= bytes.len())?;
        let head: Head = unpack(&bytes[size_of::<u64>()..end])?;
        bytes.drain(..end);
        (head.key == key(run, judging)?).then_some(Self { head, bytes })
    }

    /// Everything.
    #[must_use]
    pub fn assessment(self) -> Option<Assessment> {
        let all: Vec<usize> = (0..self.head.nodes.len()).collect();
        let nodes = on_all_cores(&all, |at| self.node(*at)).into_iter().collect::<Option<_>>()?;
        self.with(nodes)
    }

    /// All that is said of no single node, and the pieces of those that are `picked`.
    pub(super) fn apart(mut self, picked: impl Fn(&str) -> bool) -> Option<(Assessment, Pieces)> {
        let at = (0..self.head.nodes.len()).filter(|at| picked(&self.head.nodes[*at].0)).collect();
        let (bytes, metrics) = (std::mem::take(&mut self.bytes), self.head.metrics.clone());
        let nodes = self.head.nodes.clone();
        let whole = nodes.last().is_none_or(|(_, end)| *end == bytes.len());
        whole.then(|| self.with(Vec::new())).flatten().map(|rest| (rest, Pieces { at, nodes, metrics, bytes }))
    }

    fn node(&self, at: usize) -> Option<NodeFindings> {
        node((&self.head.nodes, &self.head.metrics, &self.bytes), at)
    }

    fn with(self, nodes: Vec<NodeFindings>) -> Option<Assessment> {
        let Head { groups, mut judged, network, rejudged, dropped, nodes: names, metrics, .. } = self.head;
        // One identity for all that speak of a metric: they are compared millions of times.
        let shared: HashSet<MetricId> = metrics.into_iter().collect();
        for KeptJudged { criterion, .. } in &mut judged {
            if let Some(known) = shared.get(&criterion.metric) {
                criterion.metric = known.clone();
            }
        }
        let group = |(name, places): (String, Vec<usize>)| {
            let nodes = places.into_iter().map(|at| Some(names.get(at)?.0.clone())).collect::<Option<BTreeSet<_>>>()?;
            Some((name, Arc::new(nodes)))
        };
        let groups = groups.into_iter().map(group).collect::<Option<Vec<_>>>()?;
        let one = |KeptJudged { criterion, group, frozen, chart }| {
            let (group, nodes) = groups.get(group)?.clone();
            Some(Judged { criterion, basis: Basis { group, frozen, nodes }, chart })
        };
        let judged = judged.into_iter().map(one).collect::<Option<_>>()?;
        Some(Assessment { judged, nodes, network, rejudged, dropped })
    }
}

/// What was kept of some nodes, each in a piece of its own.
pub(super) struct Pieces {
    at: Vec<usize>,
    nodes: Vec<(Arc<str>, usize)>,
    metrics: Vec<MetricId>,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Gives what is said of every node to `each`, in the run's order; what does not decode is an error.
    pub(super) fn each(&self, each: &mut dyn FnMut(&NodeFindings) -> Result<()>) -> Result<()> {
        for some in self.at.chunks(AT_ONCE) {
            for found in on_all_cores(some, |at| node((&self.nodes, &self.metrics, &self.bytes), *at)) {
                each(&found.context("what was kept of a judged run does not decode: remove its file .judged")?)?;
            }
        }
        Ok(())
    }
}

/// Nodes by name, each with the end of its piece.
type Ends = [(Arc<str>, usize)];

/// The node whose place is `at`.
fn node((nodes, metrics, bytes): (&Ends, &[MetricId], &[u8]), at: usize) -> Option<NodeFindings> {
    let name = &nodes[at].0;
    let piece = at.checked_sub(1).map_or(0, |before| nodes[before].1)..nodes[at].1;
    let mut own: KeptNode = unpack(bytes.get(piece)?)?;
    let mut reasons = own.reasons.iter_mut().peekable();
    let mut reason = |place: usize| {
        let own = reasons.next_if(|(of, _)| *of == place);
        own.map_or_else(String::new, |(_, reason)| std::mem::take(reason))
    };
    let columns = own.metrics.iter().zip(&own.states).zip(own.similarities.iter().zip(&own.values)).enumerate();
    let mut verdicts = Vec::with_capacity(own.metrics.len());
    for (place, ((metric, state), (similarity, value))) in columns {
        let metric = metrics.get(usize::try_from(*metric).ok()?)?.clone();
        let (node, state, similarity, value, reason) = (name.clone(), *state, *similarity, *value, reason(place));
        verdicts.push(NodeVerdict { node, metric, state, similarity, value, reason });
    }
    Some(NodeFindings {
        node: name.to_string(),
        findings: own.findings,
        measured: own.measured,
        verdicts,
        checks: own.checks,
    })
}

fn written(run: &Run, judging: &Judging, said: &Assessment) -> Option<Vec<u8>> {
    let places: HashMap<&str, usize> = said.nodes.iter().enumerate().map(|(at, of)| (of.node.as_str(), at)).collect();
    let (mut metrics, mut numbers) = (Vec::new(), HashMap::new());
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let mut judged = Vec::new();
    for Judged { criterion, basis, chart } in &said.judged {
        numbers.entry(&criterion.metric).or_insert_with(|| {
            metrics.push(criterion.metric.clone());
            metrics.len() - 1
        });
        let nodes = || basis.nodes.iter().map(|node| places.get(&**node).copied()).collect::<Option<_>>();
        let group = match groups.iter().position(|(name, _)| *name == basis.group) {
            Some(known) => known,
            None => {
                groups.push((basis.group.clone(), nodes()?));
                groups.len() - 1
            }
        };
        judged.push(KeptJudged { criterion: criterion.clone(), group, frozen: basis.frozen, chart: chart.clone() });
    }
    let pieces = on_all_cores(&said.nodes, |of| pack(&kept_node(of, &numbers)?).ok());
    let (mut bytes, mut nodes) = (Vec::new(), Vec::new());
    for (of, piece) in said.nodes.iter().zip(pieces) {
        bytes.extend(piece?);
        nodes.push((of.node.as_str().into(), bytes.len()));
    }
    let (network, rejudged, dropped) = (said.network.clone(), said.rejudged.clone(), said.dropped.clone());
    let key = key(run, judging)?;
    let head = pack(&Head { key, metrics, groups, judged, network, rejudged, dropped, nodes }).ok()?;
    Some([&(head.len() as u64).to_le_bytes()[..], &head, &bytes].concat())
}

fn kept_node(of: &NodeFindings, numbers: &HashMap<&MetricId, usize>) -> Option<KeptNode> {
    let (findings, measured, checks) = (of.findings.clone(), of.measured.clone(), of.checks.clone());
    let mut own = KeptNode { findings, measured, checks, ..KeptNode::default() };
    for (place, verdict) in of.verdicts.iter().enumerate() {
        own.metrics.push(u32::try_from(*numbers.get(&verdict.metric)?).ok()?);
        own.states.push(verdict.state);
        own.similarities.push(verdict.similarity);
        own.values.push(verdict.value);
        if !verdict.reason.is_empty() {
            own.reasons.push((place, verdict.reason.clone()));
        }
    }
    Some(own)
}

/// What an assessment of `run` depends on beside the run file: terms, cards that were seen, and the program.
fn key(run: &Run, judging: &Judging) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    (*PROGRAM)?.hash(&mut hasher);
    run.id.hash(&mut hasher);
    serde_json::to_string(&(&judging.terms, &judging.rejudged, &judging.context.cards)).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// This program, byte for byte: what another one said may not be what this one says.
static PROGRAM: LazyLock<Option<u64>> = LazyLock::new(|| {
    let (mut program, mut hasher) =
        (BufReader::with_capacity(1 << 16, File::open("/proc/self/exe").ok()?), XxHash3_64::new());
    loop {
        let some = program.fill_buf().ok()?;
        if some.is_empty() {
            return Some(hasher.finish());
        }
        hasher.write(some);
        let read = some.len();
        program.consume(read);
    }
});

/// Reads this program aside, so that nobody waits for that when verdicts are to be kept.
pub fn prepare() {
    std::thread::spawn(|| LazyLock::force(&PROGRAM));
}

#[cfg(test)]
mod tests {
    use muster_analysis::Params;
    use muster_run::{Record, noted};
    use muster_store::{Db, Options, Table};
    use muster_wire::{Direction, Outcome, Profile, Series, Unit};

    use super::*;
    use crate::judge::report;

    fn id(name: &str) -> MetricId {
        MetricId::new("disk", name, "own")
    }

    /// Nine nodes of which n3 is slow, n4 was lost and n5 has one metric less, in two groups where `apart`.
    fn stored(dir: &std::path::Path, apart: bool) -> (Db, Run) {
        let mut db = Db::open(dir, &Options::default()).unwrap();
        let run = Run {
            id: "r1".into(),
            playbook: "cbd".into(),
            profile: Profile::Smoke,
            started_ms: 1,
            ended_ms: None,
            nodes: (1..=9).map(|n| format!("n{n}")).collect(),
            plan: vec!["disk".into()],
            state: RunState::Running,
        };
        db.begin(&run).unwrap();
        let series = |name: &str, level: f64| Series {
            metric: id(name),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..32).map(|step| level * (1.0 + 1e-3 * f64::from(step % 7))).collect(),
            warmup: 0,
            started_ns: 0,
        };
        let record = |node: &String| {
            let level = if node == "n3" { 40.0 } else { 100.0 };
            let all = vec![series("read", level), series("write", 2.0 * level)];
            let series = if node == "n5" { all[..1].to_vec() } else { all };
            match node.as_str() {
                "n4" => Record {
                    outcome: Outcome::Failed("no route to host".into()),
                    ..noted("r1", node, "link", vec![], 2)
                },
                _ => Record { outcome: Outcome::Done, series, ..noted("r1", node, "disk", vec![], 2) },
            }
        };
        db.append_many(&run.nodes.iter().map(record).collect::<Vec<_>>()).unwrap();
        if apart {
            let groups = run.nodes.iter().enumerate().map(|(at, node)| (node.clone(), format!("sku={}", at % 2)));
            Judging::now(&db, Params::default(), groups.collect()).unwrap().keep(&mut db, "r1").unwrap();
        }
        db.end("r1", RunState::Finished, 3).unwrap();
        let run = db.run("r1").unwrap().unwrap();
        (db, run)
    }

    fn judging(db: &Db, run: &Run) -> Judging {
        Judging::of(db, run, Params::default()).unwrap()
    }

    #[test]
    fn what_is_kept_is_what_is_said_anew_as_a_whole_and_of_one_node() {
        for apart in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (db, run) = stored(dir.path(), apart);
            let judging = judging(&db, &run);
            assert!(Kept::of(&db, &run, &judging).is_none());
            let anew = super::stored(&db, &run, &judging).unwrap();
            assert_eq!(anew.nodes[2].state().state, State::Fail, "{:?}", anew.nodes[2]);
            let kept = || Kept::of(&db, &run, &judging).unwrap();
            let known = kept().assessment().unwrap();
            assert_eq!(report(&run, &known), report(&run, &anew));
            assert_eq!(format!("{:?}", known.nodes), format!("{:?}", anew.nodes));
            let of = |said: &Assessment| {
                said.judged
                    .iter()
                    .map(|of| (of.criterion.clone(), of.basis.clone(), of.chart.clone()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&known), of(&anew));
            let (rest, pieces) = kept().apart(|node| node == "n3").unwrap();
            let mut nodes = Vec::new();
            let add = &mut |node: &NodeFindings| {
                nodes.push(node.clone());
                Ok(())
            };
            pieces.each(add).unwrap();
            let only = Assessment { nodes, ..rest };
            assert_eq!((only.nodes.len(), &only.nodes[0].verdicts), (1, &anew.nodes[2].verdicts));
            assert_eq!(report(&run, &only).nodes[0].reasons, report(&run, &anew).nodes[2].reasons);
        }
    }

    #[test]
    fn other_terms_a_run_that_goes_on_and_rotten_bytes_are_judged_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (mut db, run) = stored(dir.path(), false);
        let own = judging(&db, &run);
        let said = super::stored(&db, &run, &own).unwrap();
        assert!(Kept::of(&db, &run, &own).is_some());
        let other = Judging::of(&db, &run, Params { alpha: 0.9, ..Params::default() }).unwrap();
        assert!(Kept::of(&db, &run, &other).is_none());
        let terms = serde_json::json!({ "params": Params::default(), "groups": { "n1": "sku=a" } });
        db.put(Table::Terms, "r1", &serde_json::to_vec(&terms).unwrap()).unwrap();
        assert!(Kept::of(&db, &run, &judging(&db, &run)).is_none());
        let mut bytes = written(&run, &own, &said).unwrap();
        db.keep_beside("r1", &bytes[..bytes.len() - 9]);
        assert!(Kept::of(&db, &run, &own).is_some_and(|kept| kept.assessment().is_none()));
        bytes[..8].fill(0xff);
        db.keep_beside("r1", &bytes);
        assert!(Kept::of(&db, &run, &own).is_none());
        db.begin(&run).unwrap();
        keep_assessment(&db, &Run { state: RunState::Running, ..run.clone() }, &own, &said);
        assert!(db.beside("r1").is_none());
    }
}
