//! Settles how records get in and out: the `Store` trait over log files and index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::catchup::begun;
use crate::contents::Contents;
use crate::db::{Db, Pen};
use crate::entry::{EntryRef, Raw};
use crate::error::failed;
use crate::frame::{Span, frame};
use crate::index::{IndexError, ResultRow, RunRow};
use crate::log::{Log, sync_dir};
use crate::overview::{self, Overview};
use crate::read::Reader;
use crate::{EntrySeen, Incident, ModelSeen, NodeSeen, Store, StoreError, Table, beside, limits, place};
use muster_run::{Record, Run, RunState, Summary};

/// Frames are handed to the system in pieces of this size, so that a large batch needs little memory.
const PIECE: usize = 4 << 20;

impl Pen {
    /// The log at `path`, open behind its first `upto` bytes.
    fn log(&mut self, path: &Path, upto: u64) -> Result<&mut Log, StoreError> {
        if !self.logs.contains_key(path) {
            let log = Log::open(path, upto).map_err(failed("open", path))?;
            if upto == 0 {
                path.parent().map_or(Ok(()), sync_dir).map_err(failed("sync", path))?;
            }
            self.logs.insert(path.to_owned(), log);
        }
        self.logs.get_mut(path).ok_or_else(|| failed("open", path)(io::ErrorKind::NotFound.into()))
    }

    /// Writes `entries` and syncs once. On error the file is as it was.
    pub(crate) fn write<'a>(
        &mut self,
        path: &Path,
        (upto, kept): (u64, u64),
        entries: impl Iterator<Item = EntryRef<'a>>,
    ) -> Result<(Vec<Span>, u64), StoreError> {
        self.log(path, upto)?;
        let Self { encoder, logs, .. } = self;
        let Some(log) = logs.get_mut(path) else { return Err(failed("open", path)(io::ErrorKind::NotFound.into())) };
        let put = || -> io::Result<Vec<Span>> {
            let (mut spans, mut piece) = (Vec::new(), Vec::new());
            for entry in entries {
                let span = frame(&encoder.encode(&entry)?, &mut piece)?;
                spans.push(Span { offset: log.end() + span.offset, ..span });
                if piece.len() >= PIECE {
                    log.write(&piece)?;
                    piece.clear();
                }
            }
            log.write(&piece)?;
            log.commit()?;
            Ok(spans)
        };
        match put() {
            Ok(spans) => Ok((spans, log.end())),
            Err(e) => {
                log.rollback();
                Err(StoreError::io("append to", path, kept, e))
            }
        }
    }
}

impl Db {
    pub(crate) fn pen(&mut self, doing: &'static str) -> Result<&mut Pen, StoreError> {
        let path = &self.dir;
        self.pen.as_mut().ok_or_else(|| StoreError::ReadOnly { doing, path: path.clone() })
    }

    fn row(&self, id: &str) -> Result<Option<RunRow>, StoreError> {
        if let Some(row) = self.pen.as_ref().and_then(|pen| pen.live.get(id)) {
            return Ok(Some(row.clone()));
        }
        self.ask(|index| index.run_row(id))
    }

    /// The row of a run of which the results are asked for.
    fn loaded(&self, run: &str) -> Result<RunRow, StoreError> {
        self.load(run)?;
        self.known("read the records", run)
    }

    fn known(&self, doing: &'static str, id: &str) -> Result<RunRow, StoreError> {
        self.row(id)?.ok_or_else(|| StoreError::NoRun { doing, run: id.to_owned() })
    }

    fn append_to(&mut self, run: &str, records: &[&Record]) -> Result<(), StoreError> {
        self.pen("append a record")?;
        let live = self.pen.as_ref().and_then(|pen| pen.live.get(run)).map(|row| (row.upto, row.records));
        let (from, kept) = match live {
            Some(at) => at,
            None => self.known("append a record", run).map(|row| (row.upto, row.records))?,
        };
        let path = place::run_file(&self.dir, run);
        let entries = records.iter().map(|r| EntryRef::from(*r));
        let (spans, upto) = self.pen("append a record")?.write(&path, (from, kept), entries)?;
        // Durable from here on. If the index fails now, it is made anew from the file just written.
        let new = self.ask(|index| {
            let rows = records.iter().zip(&spans).map(|(record, span)| ResultRow::new(summary(record), *span));
            rows.map(|row| index.put_result(run, &row).map(u64::from)).sum::<Result<u64, IndexError>>()
        })?;
        if let Some(row) = self.pen.as_mut().and_then(|pen| pen.live.get_mut(run)) {
            (row.upto, row.records) = (upto, row.records + new);
            return Ok(());
        }
        let row = RunRow { upto, records: kept + new, ..self.known("append a record", run)? };
        self.ask(|index| index.put_run(&row))
    }

    fn rows(&self, run: &str, node: Option<&str>) -> Result<Vec<ResultRow>, StoreError> {
        let row = self.loaded(run)?;
        self.ask(|index| whole(index.results(run, node)?, node.is_none().then_some(row.records)))
    }

    fn read(&self, run: &str, node: Option<&str>) -> Result<Vec<Record>, StoreError> {
        self.read_with(run, node, Reader::record)
    }

    fn read_with(
        &self,
        run: &str,
        node: Option<&str>,
        one: impl Fn(&mut Reader, &str, &ResultRow) -> Result<Record, IndexError> + Sync,
    ) -> Result<Vec<Record>, StoreError> {
        let row = self.loaded(run)?;
        let path = place::run_file(&self.dir, run);
        File::open(&path).map_err(failed("open", &path))?;
        self.ask(|index| {
            // An index made in memory a moment ago may hold fewer: what rotted is not in it, and was told.
            let expected = (node.is_none() && index.on_disk()).then_some(row.records);
            let rows = whole(index.results(run, node)?, expected)?;
            on_all_cores(&rows, |rows| {
                let mut reader = Reader::open(&path).map_err(|why| IndexError(why.to_string()))?;
                rows.iter().map(|row| one(&mut reader, run, row)).collect()
            })
        })
    }
}

/// Rows that one thread reads sooner than several are started.
const FEW: usize = 2_000;

/// What `read` makes of all rows, in their order; many are shared out among all cores.
fn on_all_cores<T: Send>(
    rows: &[ResultRow],
    read: impl Fn(&[ResultRow]) -> Result<Vec<T>, IndexError> + Sync,
) -> Result<Vec<T>, IndexError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = rows.len().div_ceil(cores).max(FEW);
    if rows.len() <= share {
        return read(rows);
    }
    std::thread::scope(|scope| {
        let read = &read;
        let shares: Vec<_> = rows.chunks(share).map(|some| scope.spawn(move || read(some))).collect();
        let mut all = Vec::with_capacity(rows.len());
        for share in shares {
            all.extend(share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Refuses an answer with fewer rows than were put in.
fn whole(rows: Vec<ResultRow>, expected: Option<u64>) -> Result<Vec<ResultRow>, IndexError> {
    match expected {
        Some(n) if (rows.len() as u64) < n => Err(IndexError(format!("it holds {} of {n} results", rows.len()))),
        _ => Ok(rows),
    }
}

fn summary(record: &Record) -> Summary {
    Summary {
        node: record.node.clone(),
        work: record.work.clone(),
        outcome: record.outcome.clone(),
        at_ms: record.at_ms,
        elapsed_ns: record.elapsed_ns,
        series: record.series.len() as u64,
        values: record.series.iter().map(|s| s.values.len() as u64).sum(),
        facts: record.facts.len() as u64,
    }
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

impl Store for Db {
    fn begin(&mut self, run: &Run) -> Result<(), StoreError> {
        self.pen("begin a run")?;
        limits::run(run)?;
        let old = self.row(&run.id)?;
        let (path, at) = (place::run_file(&self.dir, &run.id), old.as_ref().map_or((0, 0), |r| (r.upto, r.records)));
        if old.is_none() && path.exists() {
            let why = "it holds nothing this program can read, and is not overwritten".to_owned();
            return Err(StoreError::Damaged { path, why });
        }
        let pen = self.pen("begin a run")?;
        let written = pen.write(&path, at, std::iter::once(EntryRef::Begin(run)));
        if written.is_err() && old.is_none() {
            // Nothing was acknowledged: an empty file would only puzzle.
            pen.logs.remove(&path);
            let _ = std::fs::remove_file(&path);
        }
        let (_, upto) = written?;
        if old.is_none() {
            pen.own.insert(run.id.clone());
        }
        self.expect(&path);
        let row = RunRow { upto, ..begun(old, run.clone()) };
        self.ask(|index| index.put_run(&row))?;
        self.pen("begin a run")?.live.insert(run.id.clone(), row);
        Ok(())
    }

    fn append_many(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.pen("append a record")?;
        let mut by_run: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for record in records {
            limits::record(record)?;
            by_run.entry(&record.run).or_default().push(record);
        }
        by_run.iter().try_for_each(|(run, records)| self.append_to(run, records))
    }

    fn end(&mut self, run: &str, state: RunState, at_ms: u64) -> Result<(), StoreError> {
        self.pen("end a run")?;
        let mut row = self.known("end a run", run)?;
        let path = place::run_file(&self.dir, run);
        let entry = std::iter::once(EntryRef::End { state, at_ms });
        let pen = self.pen("end a run")?;
        let (_, upto) = pen.write(&path, (row.upto, row.records), entry)?;
        pen.live.remove(run);
        pen.logs.remove(&path);
        let own = pen.own.remove(run);
        self.expect(&path);
        row.upto = upto;
        (row.run.state, row.run.ended_ms) = (state, Some(at_ms));
        self.ask(|index| index.put_run(&row))?;
        self.flush_index();
        // What was damaged before this handle came is told by reading the file, and not here.
        if own {
            let rows = self.rows(run, None)?;
            let _ = overview::keep(&self.dir, &row, &rows, &Overview::of(&rows));
            let _ = Contents::keep(&self.dir, row, rows);
        }
        Ok(())
    }

    fn runs(&self) -> Result<Vec<Run>, StoreError> {
        let rows = self.ask(|index| index.run_rows())?;
        let mut runs: Vec<Run> = rows.into_iter().map(|row| self.shown(row)).collect();
        runs.sort_by(|a, b| (b.started_ms, &b.id).cmp(&(a.started_ms, &a.id)));
        Ok(runs)
    }

    fn run(&self, id: &str) -> Result<Option<Run>, StoreError> {
        Ok(self.row(id)?.map(|row| self.shown(row)))
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, StoreError> {
        self.read(run, None)
    }

    fn records_of(&self, run: &str, node: &str) -> Result<Vec<Record>, StoreError> {
        self.read(run, Some(node))
    }

    fn summaries(&self, run: &str) -> Result<Vec<Summary>, StoreError> {
        Ok(self.rows(run, None)?.into_iter().map(|row| row.summary).collect())
    }

    fn summaries_of(&self, run: &str, nodes: &[&str]) -> Result<Vec<Summary>, StoreError> {
        self.loaded(run)?;
        self.ask(|index| {
            let rows = nodes.iter().map(|node| index.results(run, Some(node)));
            Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(|row| row.summary).collect())
        })
    }

    fn overview(&self, run: &str) -> Result<Arc<Overview>, StoreError> {
        if let Some(known) = self.ask(|index| Ok(index.overview(run).cloned()))? {
            return Ok(known);
        }
        let row = self.known("read the overview", run)?;
        let kept = if row.run.state == RunState::Running { None } else { overview::kept(&self.dir, run, row.upto) };
        if let Some((_, known)) = kept {
            return Ok(known);
        }
        Ok(Arc::new(Overview::of(&self.rows(run, None)?)))
    }

    fn facts(&self, run: &str) -> Result<Vec<Record>, StoreError> {
        self.read_with(run, None, Reader::facts)
    }

    fn beside(&self, run: &str) -> Option<Vec<u8>> {
        place::run_id(run).ok()?;
        beside::kept(&self.dir, run)
    }

    fn keep_beside(&self, run: &str, bytes: &[u8]) {
        if place::run_id(run).is_ok() {
            let _ = beside::keep(&self.dir, run, bytes);
        }
    }

    fn done(&self, run: &str) -> Result<BTreeSet<(String, String)>, StoreError> {
        let row = self.loaded(run)?;
        let path = place::run_file(&self.dir, run);
        let mut reader = Reader::open(&path).map_err(failed("open", &path))?;
        let rows = self.ask(|index| {
            let rows = whole(index.results(run, None)?, index.on_disk().then_some(row.records))?;
            rows.iter().try_for_each(|row| reader.prove(run, row))?;
            Ok(rows)
        })?;
        Ok(rows.into_iter().map(|row| (row.summary.node, row.summary.work)).collect())
    }

    fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        self.ask(|index| index.nodes())
    }

    fn put(&mut self, table: Table, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let name = &table.name(key);
        place::name("criterion", name)?;
        limits::criterion(name, bytes)?;
        self.pen("keep a criterion")?;
        let (upto, kept) = self.ask(|index| Ok((index.criteria_upto()?, index.criteria()?.len() as u64)))?;
        let (path, at_ms) = (place::criteria_file(&self.dir), now_ms());
        let entry = EntryRef::Criterion { name, at_ms, bytes: Raw(bytes) };
        let (spans, upto) = self.pen("keep a criterion")?.write(&path, (upto, kept), std::iter::once(entry))?;
        self.expect(&path);
        self.ask(|index| {
            for span in &spans {
                index.put_criterion(name, at_ms, *span)?;
            }
            index.set_criteria_upto(upto)
        })
    }

    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let name = &table.name(key);
        let path = place::criteria_file(&self.dir);
        self.ask_criteria(|index| {
            let Some(span) = index.criterion(name)? else { return Ok(None) };
            let mut reader = Reader::open(&path).map_err(|e| IndexError(e.to_string()))?;
            reader.criterion(name, span).map(Some)
        })
    }

    fn list(&self, table: Table) -> Result<Vec<EntrySeen>, StoreError> {
        let all = self.ask_criteria(|index| index.criteria())?;
        let own = |seen: EntrySeen| Some(EntrySeen { key: table.key(&seen.key)?.to_owned(), ..seen });
        Ok(all.into_iter().filter_map(own).collect())
    }

    fn record_incidents(&mut self, incidents: &[Incident]) -> Result<usize, StoreError> {
        self.write_incidents(incidents)
    }

    fn incidents(&self) -> Result<Vec<Incident>, StoreError> {
        self.read_incidents()
    }

    fn put_model(&mut self, bytes: &[u8]) -> Result<u64, StoreError> {
        self.write_model(bytes)
    }

    fn model(&self, version: Option<u64>) -> Result<Option<Vec<u8>>, StoreError> {
        let wanted = |seen: &ModelSeen| version.is_none_or(|v| v == seen.version);
        Ok(self.read_models()?.into_iter().rfind(|(seen, _)| wanted(seen)).map(|(_, bytes)| bytes))
    }

    fn models(&self) -> Result<Vec<ModelSeen>, StoreError> {
        Ok(self.read_models()?.into_iter().map(|(seen, _)| seen).collect())
    }

    fn notices(&self) -> Vec<String> {
        self.take_notices()
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Direction, Fact, MetricId, Outcome, Reading, Series, Unit};

    use super::*;

    fn record(node: &str, values: &[usize]) -> Record {
        let series = |(nr, values): (usize, &usize)| Series {
            metric: MetricId::new("disk", format!("m{nr}"), "own"),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
            values: vec![1.5; *values],
            warmup: 0,
            started_ns: 0,
        };
        let fact = Fact { key: "k".to_owned(), reading: Reading::Value(Datum::Number(1.0)), unit: None };
        Record {
            run: "r".to_owned(),
            node: node.to_owned(),
            work: "disk".to_owned(),
            outcome: Outcome::Denied("no".to_owned()),
            at_ms: 5,
            elapsed_ns: 6,
            series: values.iter().enumerate().map(series).collect(),
            facts: vec![fact; 3],
        }
    }

    fn row(nr: usize) -> ResultRow {
        ResultRow::new(summary(&record(&format!("n{nr}"), &[])), Span { offset: nr as u64, length: 9 })
    }

    #[test]
    fn a_summary_counts_what_is_in_a_record() {
        let found = summary(&record("n1", &[4, 0, 7]));
        assert_eq!((found.node.as_str(), found.work.as_str(), found.at_ms, found.elapsed_ns), ("n1", "disk", 5, 6));
        assert_eq!((found.outcome, found.series, found.values, found.facts), (Outcome::Denied("no".into()), 3, 11, 3));
    }

    #[test]
    fn an_answer_with_fewer_rows_than_were_put_in_is_refused() {
        let rows = |count| (0..count).map(row).collect::<Vec<_>>();
        for (have, expected, is_whole) in
            [(2, None, true), (2, Some(2), true), (3, Some(2), true), (1, Some(2), false), (0, Some(1), false)]
        {
            let found = whole(rows(have), expected).map_err(|e| e.to_string());
            let refused = format!("it holds {have} of {} results", expected.unwrap_or_default());
            assert_eq!(found, if is_whole { Ok(rows(have)) } else { Err(refused) });
        }
    }

    #[test]
    fn summaries_of_some_nodes_are_theirs_in_the_order_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &crate::Options::default()).unwrap();
        db.begin(&crate::made::run("r")).unwrap();
        db.append_many(&["n1", "n10", "n2"].map(|node| record(node, &[4]))).unwrap();
        db.end("r", RunState::Finished, 9).unwrap();
        let reader = Db::open_read_only(dir.path()).unwrap();
        for store in [&db, &reader] {
            let all = store.summaries("r").unwrap();
            let some = store.summaries_of("r", &["n2", "nobody", "n1"]).unwrap();
            assert_eq!(some, [all[2].clone(), all[0].clone()]);
            assert!(store.summaries_of("r", &[]).unwrap().is_empty());
            assert!(store.summaries_of("other", &["n1"]).is_err());
        }
    }

    #[test]
    fn many_rows_are_shared_out_and_come_back_in_their_order() {
        for count in [0, 1, FEW, 2 * FEW + 1, 5 * FEW + 3] {
            let rows: Vec<ResultRow> = (0..count).map(row).collect();
            let shares = std::sync::Mutex::new(Vec::new());
            let read = |some: &[ResultRow]| {
                shares.lock().unwrap().push(some.len());
                Ok(some.iter().map(|row| row.span().offset as usize).collect())
            };
            assert_eq!(on_all_cores(&rows, read).unwrap(), (0..count).collect::<Vec<_>>());
            let mut shares = shares.into_inner().unwrap();
            shares.sort_unstable();
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            assert!(shares.len() <= cores && (count <= FEW || cores == 1 || shares.len() > 1), "{count}: {shares:?}");
            assert!(
                shares.len() == 1 || shares[1..].iter().all(|share| *share >= FEW),
                "too few are not worth a thread"
            );
        }
        let fails = |_: &[ResultRow]| Err::<Vec<()>, _>(IndexError("no".to_owned()));
        let rows: Vec<ResultRow> = (0..3 * FEW).map(row).collect();
        assert_eq!(on_all_cores(&rows, fails).unwrap_err().to_string(), "no");
    }

    #[test]
    fn now_is_some_time_after_this_was_written() {
        assert!((1_764_000_000_000..10_000_000_000_000).contains(&now_ms()));
    }
}
