//! Settles what the index holds and how it is asked. It is a convenience: everything in it comes from the log files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::Span;
use crate::{EntrySeen, NodeSeen, Overview};
use muster_run::{Run, Summary};

/// Changes whenever a row's layout does; another number means a new index, never a migration.
const FORMAT: u64 = 1;
const FORMAT_KEY: &[u8] = b"format";
const CRITERIA_KEY: &[u8] = b"criteria";

/// The index cannot answer. The caller goes back to the log files.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct IndexError(pub(crate) String);

impl IndexError {
    /// Whether sled's own lock is held. sled gives it no kind of its own.
    pub(crate) fn busy(&self) -> bool {
        self.0.contains("could not acquire lock")
    }
}

/// How long threads of a closed sled may hold its lock.
const LINGER: Duration = Duration::from_secs(5);

type Answer<T> = Result<T, IndexError>;
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl From<sled::Error> for IndexError {
    fn from(e: sled::Error) -> Self {
        Self(e.to_string())
    }
}

/// An ordered map, in sled or in memory.
enum Tree {
    Sled(sled::Tree),
    Memory(BTreeMap<Vec<u8>, Vec<u8>>),
}

impl Tree {
    /// Whether the key is new.
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Answer<bool> {
        Ok(match self {
            Self::Sled(tree) => tree.insert(key, value)?.is_none(),
            Self::Memory(map) => map.insert(key.to_vec(), value).is_none(),
        })
    }

    fn get(&self, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        Ok(match self {
            Self::Sled(tree) => tree.get(key)?.map(|v| v.to_vec()),
            Self::Memory(map) => map.get(key).cloned(),
        })
    }

    fn remove(&mut self, key: &[u8]) -> Answer<()> {
        match self {
            Self::Sled(tree) => drop(tree.remove(key)?),
            Self::Memory(map) => drop(map.remove(key)),
        }
        Ok(())
    }

    fn scan(&self, prefix: &[u8]) -> Answer<Pairs> {
        match self {
            Self::Sled(tree) => {
                let rows = tree.scan_prefix(prefix);
                rows.map(|row| row.map(|(k, v)| (k.to_vec(), v.to_vec())).map_err(IndexError::from)).collect()
            }
            Self::Memory(map) => {
                let rows = map.range(prefix.to_vec()..).take_while(|(k, _)| k.starts_with(prefix));
                Ok(rows.map(|(k, v)| (k.clone(), v.clone())).collect())
            }
        }
    }
}

/// A run, and how much of its file is in the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRow {
    pub(crate) run: Run,
    /// Bytes of the file that were read into the index.
    pub(crate) upto: u64,
    /// Results the index must hold.
    pub(crate) records: u64,
}

/// A record's summary and place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultRow {
    pub(crate) summary: Summary,
    offset: u64,
    length: u64,
}

impl ResultRow {
    pub(crate) const fn new(summary: Summary, span: Span) -> Self {
        Self { summary, offset: span.offset, length: span.length }
    }

    pub(crate) const fn span(&self) -> Span {
        Span { offset: self.offset, length: self.length }
    }
}

#[derive(Serialize, Deserialize)]
struct CriterionRow {
    at_ms: u64,
    offset: u64,
    length: u64,
}

/// Rows of all kinds.
pub(crate) struct Index {
    sled: Option<sled::Db>,
    /// Whether the contents that lie beside run files may be taken for them.
    pub(crate) by_contents: bool,
    /// Runs that are known by their overview alone: their results are read when somebody asks for them.
    overviews: BTreeMap<String, Arc<Overview>>,
    /// Runs whose results somebody asked for.
    pub(crate) asked: BTreeSet<String>,
    /// How much of each run's file was read.
    upto: BTreeMap<String, u64>,
    runs: Tree,
    results: Tree,
    nodes: Tree,
    criteria: Tree,
    meta: Tree,
}

impl Index {
    /// An empty index that dies with the process, for one who only looks.
    pub(crate) fn reader() -> Self {
        Self { by_contents: true, ..Self::memory() }
    }

    /// An empty index that dies with the process, and is made of the log files alone.
    pub(crate) const fn memory() -> Self {
        const fn tree() -> Tree {
            Tree::Memory(BTreeMap::new())
        }
        Self {
            sled: None,
            by_contents: false,
            overviews: BTreeMap::new(),
            asked: BTreeSet::new(),
            upto: BTreeMap::new(),
            runs: tree(),
            results: tree(),
            nodes: tree(),
            criteria: tree(),
            meta: tree(),
        }
    }

    /// Opens or makes the index in `dir`. Damage that sled answers with a panic is an error like any other.
    /// The caller holds the database's lock, so whoever holds sled's is a closed handle whose threads are ending.
    pub(crate) fn open(dir: &Path, cache_bytes: u64) -> Answer<Self> {
        let start = Instant::now();
        loop {
            // Nothing of a half-opened index is used after a panic.
            let opened = catch_unwind(AssertUnwindSafe(|| Self::open_once(dir, cache_bytes)));
            match opened.unwrap_or_else(|_| Err(IndexError("sled panicked while opening it".to_owned()))) {
                Err(e) if e.busy() && start.elapsed() < LINGER => std::thread::sleep(Duration::from_millis(5)),
                other => return other,
            }
        }
    }

    fn open_once(dir: &Path, cache_bytes: u64) -> Answer<Self> {
        let db = sled::Config::new().path(dir).cache_capacity(cache_bytes).flush_every_ms(None).open()?;
        let tree = |name: &str| db.open_tree(name).map(Tree::Sled);
        let mut index = Self {
            runs: tree("runs")?,
            results: tree("results")?,
            nodes: tree("nodes")?,
            criteria: tree("criteria")?,
            meta: tree("meta")?,
            sled: Some(db),
            by_contents: false,
            overviews: BTreeMap::new(),
            asked: BTreeSet::new(),
            upto: BTreeMap::new(),
        };
        let rows = match index.number(FORMAT_KEY)? {
            Some(FORMAT) => index.run_rows()?,
            None if index.run_rows()?.is_empty() => {
                index.set_number(FORMAT_KEY, FORMAT)?;
                Vec::new()
            }
            other => return Err(IndexError(format!("its rows are of format {other:?}, not {FORMAT}"))),
        };
        index.upto = rows.into_iter().map(|row| (row.run.id, row.upto)).collect();
        Ok(index)
    }

    /// Whether it is kept on disk.
    pub(crate) const fn on_disk(&self) -> bool {
        self.sled.is_some()
    }

    pub(crate) fn flush(&self) -> Answer<()> {
        if let Some(db) = &self.sled {
            db.flush()?;
        }
        Ok(())
    }

    fn number(&self, key: &[u8]) -> Answer<Option<u64>> {
        self.meta.get(key)?.map(|bytes| unpack(&bytes)).transpose()
    }

    fn set_number(&mut self, key: &[u8], number: u64) -> Answer<()> {
        self.meta.put(key, pack(&number)?).map(drop)
    }

    pub(crate) fn run_rows(&self) -> Answer<Vec<RunRow>> {
        self.runs.scan(b"")?.iter().map(|(_, v)| unpack(v)).collect()
    }

    pub(crate) fn run_row(&self, id: &str) -> Answer<Option<RunRow>> {
        self.runs.get(id.as_bytes())?.map(|v| unpack(&v)).transpose()
    }

    /// Runs by id, each with how much of its file was read.
    pub(crate) const fn upto(&self) -> &BTreeMap<String, u64> {
        &self.upto
    }

    /// Puts in a run of which nobody has asked for the results yet.
    pub(crate) fn put_overview(&mut self, row: &RunRow, known: Arc<Overview>) -> Answer<()> {
        self.overviews.insert(row.run.id.clone(), known);
        self.put_run(row)
    }

    /// The overview of a run whose results are not read.
    pub(crate) fn overview(&self, id: &str) -> Option<&Arc<Overview>> {
        self.overviews.get(id)
    }

    pub(crate) fn put_run(&mut self, row: &RunRow) -> Answer<()> {
        self.upto.insert(row.run.id.clone(), row.upto);
        self.runs.put(row.run.id.as_bytes(), pack(row)?).map(drop)
    }

    /// Removes a run and all its results.
    pub(crate) fn forget_run(&mut self, id: &str) -> Answer<()> {
        self.overviews.remove(id);
        self.upto.remove(id);
        for (k, v) in self.results.scan(&key(&[id, ""]))? {
            let row: ResultRow = unpack(&v)?;
            self.nodes.remove(&key(&[&row.summary.node, id]))?;
            self.results.remove(&k)?;
        }
        self.runs.remove(id.as_bytes())
    }

    /// Whether the result is the first of its node and work.
    pub(crate) fn put_result(&mut self, run: &str, row: &ResultRow) -> Answer<bool> {
        let s = &row.summary;
        let seen = key(&[&s.node, run]);
        let last = self.nodes.get(&seen)?.map(|v| unpack::<u64>(&v)).transpose()?;
        if last.is_none_or(|last| last < s.at_ms) {
            self.nodes.put(&seen, pack(&s.at_ms)?)?;
        }
        self.results.put(&key(&[run, &s.node, &s.work]), pack(row)?)
    }

    /// Results of a run, or of one of its nodes, by node and work.
    pub(crate) fn results(&self, run: &str, node: Option<&str>) -> Answer<Vec<ResultRow>> {
        let prefix = node.map_or_else(|| key(&[run, ""]), |node| key(&[run, node, ""]));
        self.results.scan(&prefix)?.iter().map(|(_, v)| unpack(v)).collect()
    }

    pub(crate) fn nodes(&self) -> Answer<Vec<NodeSeen>> {
        let mut seen: HashMap<&str, (u64, u64)> = HashMap::new();
        for node in self.overviews.values().flat_map(|known| &known.nodes) {
            let (last_ms, runs) = seen.entry(&node.name).or_default();
            (*last_ms, *runs) = (node.last_ms.max(*last_ms), *runs + 1);
        }
        let read = self.nodes_read()?;
        for node in &read {
            let (last_ms, runs) = seen.entry(&node.name).or_default();
            (*last_ms, *runs) = (node.last_ms.max(*last_ms), *runs + node.runs);
        }
        let node = |(name, (last_ms, runs)): (&str, _)| NodeSeen { name: name.to_owned(), last_ms, runs };
        let mut nodes: Vec<NodeSeen> = seen.into_iter().map(node).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Nodes of the runs whose results are read.
    fn nodes_read(&self) -> Answer<Vec<NodeSeen>> {
        let mut nodes: Vec<NodeSeen> = Vec::new();
        for (k, v) in self.nodes.scan(b"")? {
            let name = k.split(|&b| b == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            let at: u64 = unpack(&v)?;
            match nodes.last_mut() {
                Some(node) if node.name == name => {
                    node.last_ms = node.last_ms.max(at);
                    node.runs += 1;
                }
                _ => nodes.push(NodeSeen { name, last_ms: at, runs: 1 }),
            }
        }
        Ok(nodes)
    }

    pub(crate) fn put_criterion(&mut self, name: &str, at_ms: u64, span: Span) -> Answer<()> {
        let row = CriterionRow { at_ms, offset: span.offset, length: span.length };
        self.criteria.put(name.as_bytes(), pack(&row)?).map(drop)
    }

    pub(crate) fn criterion(&self, name: &str) -> Answer<Option<Span>> {
        let row = self.criteria.get(name.as_bytes())?.map(|v| unpack::<CriterionRow>(&v)).transpose()?;
        Ok(row.map(|r| Span { offset: r.offset, length: r.length }))
    }

    pub(crate) fn criteria(&self) -> Answer<Vec<EntrySeen>> {
        let rows = self.criteria.scan(b"")?;
        rows.into_iter()
            .map(|(k, v)| {
                let row: CriterionRow = unpack(&v)?;
                Ok(EntrySeen { key: String::from_utf8_lossy(&k).into_owned(), at_ms: row.at_ms })
            })
            .collect()
    }

    pub(crate) fn forget_criteria(&mut self) -> Answer<()> {
        for (k, _) in self.criteria.scan(b"")? {
            self.criteria.remove(&k)?;
        }
        self.set_criteria_upto(0)
    }

    /// Bytes of the criteria file that were read into the index.
    pub(crate) fn criteria_upto(&self) -> Answer<u64> {
        Ok(self.number(CRITERIA_KEY)?.unwrap_or(0))
    }

    pub(crate) fn set_criteria_upto(&mut self, upto: u64) -> Answer<()> {
        self.set_number(CRITERIA_KEY, upto)
    }
}

/// Parts joined by a zero byte, which no name contains.
fn key(parts: &[&str]) -> Vec<u8> {
    parts.join("\0").into_bytes()
}

fn pack<T: Serialize>(value: &T) -> Answer<Vec<u8>> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|e| IndexError(e.to_string()))?;
    Ok(bytes)
}

fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    minicbor_serde::from_slice(bytes).map_err(|e| IndexError(format!("a row does not decode: {e}")))
}

#[cfg(test)]
mod tests {
    use muster_wire::Outcome;
    use proptest::prelude::*;

    use super::*;
    use crate::overview::NodeOverview;

    fn run_row(id: &str, upto: u64) -> RunRow {
        let run = crate::made::run(id);
        RunRow { run, upto, records: 0 }
    }

    fn result(node: &str, work: &str, at_ms: u64) -> ResultRow {
        let summary = Summary {
            node: node.to_owned(),
            work: work.to_owned(),
            outcome: Outcome::Done,
            at_ms,
            elapsed_ns: 1,
            series: 1,
            values: 2,
            facts: 3,
        };
        ResultRow::new(summary, Span { offset: at_ms, length: 9 })
    }

    /// What is done to an index, with the places of names in short lists.
    #[derive(Clone, Debug)]
    enum Step {
        Run(usize, u64),
        Result(usize, usize, usize, u64),
        Forget(usize),
        Criterion(usize, u64),
        ForgetCriteria,
    }

    const RUNS: [&str; 3] = ["r", "r-2", "r2"];
    const NODES: [&str; 3] = ["n1", "n10", "n2"];
    const WORKS: [&str; 2] = ["disk", "disk#2"];

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (0..3_usize, 0..99_u64).prop_map(|(run, upto)| Step::Run(run, upto)),
            8 => (0..3_usize, 0..3_usize, 0..2_usize, 0..99_u64).prop_map(|(a, b, c, at)| Step::Result(a, b, c, at)),
            1 => (0..3_usize).prop_map(Step::Forget),
            2 => (0..3_usize, 0..99_u64).prop_map(|(name, at)| Step::Criterion(name, at)),
            1 => Just(Step::ForgetCriteria),
        ]
    }

    /// The same, in maps.
    #[derive(Default)]
    struct Known {
        runs: BTreeMap<String, RunRow>,
        results: BTreeMap<(String, String, String), ResultRow>,
        /// Time of the newest result that a node ever had in a run.
        newest: BTreeMap<(String, String), u64>,
        criteria: BTreeMap<String, u64>,
    }

    impl Known {
        /// Does it, and says whether a result is the first of its node and work.
        fn take(&mut self, step: &Step) -> Option<bool> {
            match *step {
                Step::Run(run, upto) => drop(self.runs.insert(RUNS[run].to_owned(), run_row(RUNS[run], upto))),
                Step::Result(run, node, work, at) => {
                    let [run, node, work] = [RUNS[run], NODES[node], WORKS[work]].map(str::to_owned);
                    let newest = self.newest.entry((node.clone(), run.clone())).or_insert(at);
                    *newest = at.max(*newest);
                    let row = result(&node, &work, at);
                    return Some(self.results.insert((run, node, work), row).is_none());
                }
                Step::Forget(run) => {
                    self.runs.remove(RUNS[run]);
                    self.results.retain(|(of, ..), _| of != RUNS[run]);
                    self.newest.retain(|(_, of), _| of != RUNS[run]);
                }
                Step::Criterion(name, at) => drop(self.criteria.insert(NODES[name].to_owned(), at)),
                Step::ForgetCriteria => self.criteria.clear(),
            }
            None
        }

        fn nodes(&self) -> Vec<NodeSeen> {
            let mut nodes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for ((node, _), at) in &self.newest {
                let seen = nodes.entry(node).or_default();
                *seen = (seen.0.max(*at), seen.1 + 1);
            }
            let node = |(name, (last_ms, runs)): (&str, _)| NodeSeen { name: name.to_owned(), last_ms, runs };
            nodes.into_iter().map(node).collect()
        }

        /// Whether the index says the same.
        fn is_said_by(&self, index: &Index) {
            assert_eq!(index.run_rows().unwrap(), self.runs.values().cloned().collect::<Vec<_>>());
            assert_eq!(index.nodes().unwrap(), self.nodes());
            for run in RUNS {
                assert_eq!(index.run_row(run).unwrap().as_ref(), self.runs.get(run));
                assert_eq!(index.upto().get(run), self.runs.get(run).map(|row| &row.upto));
                let of = |node: Option<&str>| -> Vec<ResultRow> {
                    let own =
                        self.results.iter().filter(|((of, at, _), _)| of == run && node.is_none_or(|node| node == at));
                    own.map(|(_, row)| row.clone()).collect()
                };
                assert_eq!(index.results(run, None).unwrap(), of(None), "{run}");
                NODES.iter().for_each(|node| assert_eq!(index.results(run, Some(node)).unwrap(), of(Some(node))));
            }
            let seen = |(key, at_ms): (&String, &u64)| EntrySeen { key: key.clone(), at_ms: *at_ms };
            assert_eq!(index.criteria().unwrap(), self.criteria.iter().map(seen).collect::<Vec<_>>());
            for name in NODES {
                let span = self.criteria.get(name).map(|at| Span { offset: *at, length: 7 });
                assert_eq!(index.criterion(name).unwrap(), span);
            }
        }
    }

    fn take(index: &mut Index, step: &Step) -> Option<bool> {
        match *step {
            Step::Run(run, upto) => index.put_run(&run_row(RUNS[run], upto)).unwrap(),
            Step::Result(run, node, work, at) => {
                return Some(index.put_result(RUNS[run], &result(NODES[node], WORKS[work], at)).unwrap());
            }
            Step::Forget(run) => index.forget_run(RUNS[run]).unwrap(),
            Step::Criterion(name, at) => {
                index.put_criterion(NODES[name], at, Span { offset: at, length: 7 }).unwrap();
                index.set_criteria_upto(at).unwrap();
                assert_eq!(index.criteria_upto().unwrap(), at);
            }
            Step::ForgetCriteria => {
                index.forget_criteria().unwrap();
                assert_eq!(index.criteria_upto().unwrap(), 0);
            }
        }
        None
    }

    proptest! {
        #[test]
        fn an_index_in_memory_says_what_was_put_in(steps in proptest::collection::vec(step(), 0..60)) {
            let (mut index, mut known) = (Index::memory(), Known::default());
            for step in &steps {
                prop_assert_eq!(take(&mut index, step), known.take(step), "{:?}", step);
            }
            known.is_said_by(&index);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        #[test]
        fn an_index_on_disk_says_the_same_also_when_it_is_opened_again(steps in proptest::collection::vec(step(), 20..60)) {
            let dir = tempfile::tempdir().unwrap();
            let open = || Index::open(dir.path(), 1 << 20).unwrap();
            let (mut index, mut known) = (open(), Known::default());
            for (nr, step) in steps.iter().enumerate() {
                if nr == steps.len() / 2 {
                    index.flush().unwrap();
                    drop(index);
                    index = open();
                }
                prop_assert_eq!(take(&mut index, step), known.take(step), "{:?}", step);
            }
            known.is_said_by(&index);
            prop_assert!(index.on_disk() && !Index::memory().on_disk());
        }
    }

    #[test]
    fn an_index_of_another_format_or_with_rows_of_no_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Index::open(dir.path(), 1 << 20);
        let mut index = open().unwrap();
        index.put_run(&run_row("r", 5)).unwrap();
        index.set_number(FORMAT_KEY, FORMAT + 1).unwrap();
        drop(index);
        let why = open().err().unwrap().to_string();
        assert_eq!(why, "its rows are of format Some(2), not 1");
        let mut other = sled::open(dir.path()).unwrap().open_tree("meta").map(Tree::Sled).unwrap();
        other.remove(FORMAT_KEY).unwrap();
        drop(other);
        assert_eq!(open().err().unwrap().to_string(), "its rows are of format None, not 1");
    }

    #[test]
    fn a_node_is_counted_in_runs_of_which_only_the_overview_is_known_too() {
        let mut index = Index::reader();
        let node = |name: &str, last_ms| NodeOverview { name: name.to_owned(), last_ms, done: true };
        let overview = |nodes| Arc::new(Overview { nodes, works: Vec::new() });
        index.put_overview(&run_row("r1", 9), overview(vec![node("a", 50), node("b", 10)])).unwrap();
        index.put_overview(&run_row("r2", 9), overview(vec![node("a", 20)])).unwrap();
        index.put_result("r3", &result("a", "disk", 30)).unwrap();
        index.put_result("r3", &result("b", "disk", 40)).unwrap();
        index.put_result("r3", &result("c", "disk", 5)).unwrap();
        let seen: Vec<_> =
            index.nodes().unwrap().into_iter().map(|node| (node.name, node.last_ms, node.runs)).collect();
        assert_eq!(seen, [("a".to_owned(), 50, 3), ("b".to_owned(), 40, 2), ("c".to_owned(), 5, 1)]);
        index.forget_run("r1").unwrap();
        assert!(index.overview("r1").is_none() && index.overview("r2").is_some());
        assert_eq!(index.nodes().unwrap()[0].runs, 2);
    }
}
