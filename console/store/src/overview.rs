//! Settles what can be said of a run in short without its records: which nodes it has, when each was last heard of, how long its
//! works took. A list of runs and the Selector ask for no more.
//!
//! Kept beside the run file, made of it and thrown away at will. It is believed where that file is exactly as long as it was, has at
//! the place of the last record the frame it had, and is whole wherever no record lies; everybody else reads the file, and keeps it
//! anew. What damage there is in records is told when they are read.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use muster_run::{PAIRS, RunState, visit_of};
use muster_wire::Outcome;
use serde::{Deserialize, Serialize};

use crate::entry::{Bytes, Raw};
use crate::frame::{FrameHead, HEADER, Span, head_at, only_whole};
use crate::index::{ResultRow, RunRow};
use crate::packed::{pack, read, unpack, write};
use crate::place;

/// Changes whenever the layout does; others are not read.
const FORMAT: u32 = 1;
const LEVEL: i32 = 1;
/// Largest before compression, bytes.
const MOST: usize = 1 << 30;

/// A run in short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Every node with a record, by name.
    pub nodes: Vec<NodeOverview>,
    /// Every benchmark or collector that was done on some node, by name, but for pairs of nodes.
    pub works: Vec<WorkOverview>,
}

/// A node in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOverview {
    /// Its name.
    pub name: String,
    /// Time of its newest record, milliseconds since 1970 UTC.
    pub last_ms: u64,
    /// Whether any of its work was done.
    pub done: bool,
}

/// A benchmark or collector in a run, over all nodes and visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkOverview {
    /// Its name, without the number of the visit.
    pub work: String,
    /// Time of the newest result, milliseconds since 1970 UTC.
    pub last_ms: u64,
    /// How long it took on each node, nanoseconds, shortest first.
    pub elapsed_ns: Vec<u64>,
}

impl Overview {
    pub(crate) fn of(rows: &[ResultRow]) -> Self {
        let mut nodes: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
        let mut works: BTreeMap<&str, (u64, Vec<u64>)> = BTreeMap::new();
        for one in rows.iter().map(|row| &row.summary) {
            let done = one.outcome == Outcome::Done;
            let node = nodes.entry(&one.node).or_default();
            *node = (node.0.max(one.at_ms), node.1 || done);
            let work = visit_of(&one.work).0;
            // Work of pairs is named by its receiver: as many names as nodes.
            if done && !work.strip_prefix(PAIRS).is_some_and(|to| to.starts_with('/')) {
                let known = works.entry(work).or_default();
                known.0 = known.0.max(one.at_ms);
                known.1.push(one.elapsed_ns);
            }
        }
        let node = |(name, (last_ms, done)): (&str, _)| NodeOverview { name: name.to_owned(), last_ms, done };
        let work = |(work, (last_ms, mut elapsed_ns)): (&str, (_, Vec<u64>))| {
            elapsed_ns.sort_unstable();
            WorkOverview { work: work.to_owned(), last_ms, elapsed_ns }
        };
        Self { nodes: nodes.into_iter().map(node).collect(), works: works.into_iter().map(work).collect() }
    }
}

/// What lies in the file; nodes and times as columns.
#[derive(Serialize, Deserialize)]
struct Packed<B> {
    format: u32,
    run: RunRow,
    /// Names of nodes; empty where they are the run's, in its order.
    names: Vec<String>,
    at_ms: B,
    done: B,
    works: Vec<PackedWork<B>>,
    /// Where the last record begins, with length and checksum of its frame.
    last: Option<(u64, FrameHead)>,
    /// From where to where there is no record.
    gaps: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
struct PackedWork<B> {
    work: String,
    last_ms: u64,
    elapsed_ns: B,
}

/// Keeps the overview of the whole file of run `row` beside it, if that run has ended. Whoever asks does without where this fails.
pub(crate) fn keep(dir: &Path, row: &RunRow, rows: &[ResultRow], known: &Overview) -> io::Result<()> {
    let file = fs::File::open(place::run_file(dir, &row.run.id))?;
    if row.run.state == RunState::Running || file.metadata()?.len() != row.upto {
        return Ok(());
    }
    let mut spans: Vec<Span> = rows.iter().map(ResultRow::span).collect();
    spans.sort_unstable_by_key(|span| span.offset);
    let last = spans.last().map(|span| Ok::<_, io::Error>((span.offset, head_at(&file, span.offset)?))).transpose()?;
    let bytes = packed(known, row, last, gaps(&spans, row.upto))?;
    write(&place::overview(dir, &row.run.id), "overview", &[&bytes])
}

fn packed(
    known: &Overview,
    row: &RunRow,
    last: Option<(u64, FrameHead)>,
    gaps: Vec<(u64, u64)>,
) -> io::Result<Vec<u8>> {
    let same = known.nodes.iter().map(|node| &node.name).eq(&row.run.nodes);
    let name = |node: &NodeOverview| node.name.clone();
    let names = if same { Vec::new() } else { known.nodes.iter().map(name).collect() };
    let at_ms = numbers(known.nodes.iter().map(|node| node.last_ms));
    let done: Vec<u8> = known.nodes.iter().map(|node| u8::from(node.done)).collect();
    let elapsed: Vec<Vec<u8>> = known.works.iter().map(|work| numbers(work.elapsed_ns.iter().copied())).collect();
    let work = |(work, elapsed): (&WorkOverview, _)| PackedWork {
        work: work.work.clone(),
        last_ms: work.last_ms,
        elapsed_ns: Raw(elapsed),
    };
    let works = known.works.iter().zip(elapsed.iter().map(Vec::as_slice)).map(work).collect();
    let run = row.clone();
    let (at_ms, done) = (Raw(&at_ms), Raw(&done));
    pack(&Packed { format: FORMAT, run, names, at_ms, done, works, last, gaps }, LEVEL)
}

/// The overview of run `id`, whose file has `len` bytes, and its row; `None` where there is none that fits.
pub(crate) fn kept(dir: &Path, id: &str, len: u64) -> Option<(RunRow, Arc<Overview>)> {
    let packed: Packed<Bytes> = unpack(&read(&place::overview(dir, id))?, MOST)?;
    let fits = packed.format == FORMAT && packed.run.run.id == id && packed.run.upto == len;
    if !fits || !packed.holds(&fs::File::open(place::run_file(dir, id)).ok()?).ok()? {
        return None;
    }
    packed.unpack().map(|(row, known)| (row, Arc::new(known)))
}

impl Packed<Bytes> {
    /// Whether the run file has what it had, as far as that is seen without reading its records.
    fn holds(&self, file: &fs::File) -> io::Result<bool> {
        if let Some((at, head)) = self.last
            && head_at(file, at)? != head
        {
            return Ok(false);
        }
        for (from, to) in &self.gaps {
            if !only_whole(file, *from, *to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn unpack(self) -> Option<(RunRow, Overview)> {
        let names = if self.names.is_empty() { self.run.run.nodes.clone() } else { self.names };
        let times = times(&self.at_ms)?;
        if (names.len(), names.len()) != (times.len(), self.done.0.len()) {
            return None;
        }
        let node = |((name, last_ms), done): ((String, u64), &u8)| NodeOverview { name, last_ms, done: *done != 0 };
        let nodes = names.into_iter().zip(times).zip(&self.done.0).map(node).collect();
        let work = |PackedWork { work, last_ms, elapsed_ns }| {
            Some(WorkOverview { work, last_ms, elapsed_ns: self::times(&elapsed_ns)? })
        };
        let works = self.works.into_iter().map(work).collect::<Option<_>>()?;
        Some((self.run, Overview { nodes, works }))
    }
}

/// From where to where up to `end` none of `spans` lies, which are sorted.
fn gaps(spans: &[Span], end: u64) -> Vec<(u64, u64)> {
    let (mut gaps, mut at) = (Vec::new(), HEADER);
    for span in spans {
        if span.offset > at {
            gaps.push((at, span.offset));
        }
        at = span.offset + span.length;
    }
    if end > at {
        gaps.push((at, end));
    }
    gaps
}

fn numbers(all: impl Iterator<Item = u64>) -> Vec<u8> {
    all.flat_map(u64::to_le_bytes).collect()
}

fn times(bytes: &Bytes) -> Option<Vec<u64>> {
    let (all, rest) = bytes.0.as_chunks();
    rest.is_empty().then(|| all.iter().map(|one| u64::from_le_bytes(*one)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_before_between_and_behind_spans_and_not_where_they_touch() {
        let span = |offset: u64, length: u64| Span { offset, length };
        let (a, b) = (HEADER, HEADER + 10);
        assert_eq!(gaps(&[span(a, 10), span(b, 5)], b + 5), []);
        assert_eq!(gaps(&[span(a + 2, 8), span(b + 1, 4)], b + 9), [(a, a + 2), (b, b + 1), (b + 5, b + 9)]);
        assert_eq!((gaps(&[], HEADER), gaps(&[], b)), (vec![], vec![(a, b)]));
    }

    fn run_row(nodes: &[&str]) -> RunRow {
        use muster_run::Run;
        let run = Run {
            id: "r".to_owned(),
            playbook: "p".to_owned(),
            profile: muster_wire::Profile::Smoke,
            started_ms: 1,
            ended_ms: Some(2),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            plan: Vec::new(),
            state: RunState::Finished,
        };
        RunRow { run, upto: 99, records: 2 }
    }

    fn known() -> Overview {
        let node = |name: &str, last_ms, done| NodeOverview { name: name.to_owned(), last_ms, done };
        let work = WorkOverview { work: "disk".to_owned(), last_ms: 7, elapsed_ns: vec![3, u64::MAX] };
        Overview { nodes: vec![node("n1", 7, true), node("n2", u64::MAX, false)], works: vec![work] }
    }

    fn again(bytes: &[u8]) -> Packed<Bytes> {
        unpack(bytes, MOST).unwrap()
    }

    #[test]
    fn an_overview_comes_back_whether_its_nodes_are_those_of_the_run_or_others() {
        for (nodes, are_kept) in [(&["n1", "n2"][..], 0), (&["n1"], 2), (&["n2", "n1"], 2), (&["n1", "n2", "n3"], 2)] {
            let row = run_row(nodes);
            let bytes = packed(&known(), &row, Some((16, [7; 8])), vec![(16, 20)]).unwrap();
            let packed = again(&bytes);
            assert_eq!(packed.names.len(), are_kept, "{nodes:?}");
            assert_eq!((packed.last, &packed.gaps), (Some((16, [7; 8])), &vec![(16, 20)]));
            assert_eq!(packed.unpack(), Some((row, known())));
        }
    }

    #[test]
    fn columns_of_different_lengths_are_no_overview() {
        let bytes = packed(&known(), &run_row(&["n1", "n2"]), None, vec![]).unwrap();
        let with = |change: &dyn Fn(&mut Packed<Bytes>)| {
            let mut packed = again(&bytes);
            change(&mut packed);
            packed.unpack().is_some()
        };
        assert!(with(&|_| ()));
        assert!(!with(&|packed| packed.at_ms.0.truncate(8)), "one time for two nodes");
        assert!(!with(&|packed| packed.at_ms.0.truncate(15)), "a time of seven bytes");
        assert!(!with(&|packed| packed.done.0.truncate(1)));
        assert!(!with(&|packed| packed.run.run.nodes.truncate(1)));
        assert!(!with(&|packed| packed.works[0].elapsed_ns.0.truncate(9)));
    }

    #[test]
    fn an_overview_holds_for_a_file_with_the_same_last_record_and_whole_gaps() {
        use std::os::unix::fs::FileExt;
        let mut bytes = crate::frame::header();
        let payload = zstd::bulk::compress(b"a payload", 1).unwrap();
        let spans: Vec<Span> = (0..3).map(|_| crate::frame::frame(&payload, &mut bytes).unwrap()).collect();
        let file = tempfile::tempfile().unwrap();
        let holds = |bytes: &[u8], last: Option<(u64, FrameHead)>, gaps: &[(u64, u64)]| {
            file.set_len(0).unwrap();
            file.write_all_at(bytes, 0).unwrap();
            let packed = packed(&known(), &run_row(&[]), last, gaps.to_vec()).unwrap();
            again(&packed).holds(&file).unwrap()
        };
        let head: FrameHead = bytes[spans[1].offset as usize..][..8].try_into().unwrap();
        let last = Some((spans[1].offset, head));
        let gaps = [(spans[0].offset, spans[1].offset), (spans[2].offset, bytes.len() as u64)];
        assert!(holds(&bytes, last, &gaps) && holds(&bytes, None, &[]));
        assert!(!holds(&bytes, Some((spans[1].offset, [7; 8])), &gaps), "another record lies there");
        for rotten in [spans[0], spans[2]] {
            let mut other = bytes.clone();
            other[rotten.offset as usize + 12] ^= 1;
            assert!(!holds(&other, last, &gaps), "{rotten:?}");
        }
    }
}
