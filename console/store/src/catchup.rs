//! Settles how the index learns what the log files hold: from where it stopped reading, or from the beginning.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use muster_wire::Profile;

use crate::contents::Contents;
use crate::entry::{Entry, Head};
use crate::error::failed;
use crate::frame::{Damage, HEADER, Piece, Span, Start, scan, start};
use crate::index::{Index, IndexError, ResultRow, RunRow};
use crate::log::sync_dir;
use crate::overview::{self, Overview};
use crate::{StoreError, place};
use muster_run::{Run, RunState};

/// Why catching up stopped.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The index cannot take it; the files are as they were.
    Index(IndexError),
    /// The files cannot be read.
    Store(StoreError),
}

impl From<IndexError> for Trouble {
    fn from(e: IndexError) -> Self {
        Self::Index(e)
    }
}

impl From<StoreError> for Trouble {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

/// What to do with bytes behind the last whole frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// A writer is opening: nobody else writes, so a crash left them. Keep a copy aside and cut them off.
    Cut,
    /// Nobody writes; say that they are there.
    Tell,
    /// A writer is alive and may be in the middle of them.
    Ignore,
}

/// Reads what is new in every log file into `index`; says in `said` what it met.
pub(crate) fn catch_up(index: &mut Index, dir: &Path, tail: Tail, said: &mut Vec<String>) -> Result<(), Trouble> {
    let ids = place::run_ids(dir)?;
    let gone = index.upto().keys().filter(|id| ids.binary_search(id).is_err());
    for id in gone.cloned().collect::<Vec<_>>() {
        said.push(format!("the file of run {id} is gone: the run is no longer listed"));
        index.forget_run(&id)?;
    }
    for id in &ids {
        run(index, dir, id, tail, said)?;
    }
    criteria(index, dir, tail, said)
}

/// Reads the results of run `id` into `index` if only its overview is there.
pub(crate) fn load(index: &mut Index, dir: &Path, id: &str, tail: Tail, said: &mut Vec<String>) -> Result<(), Trouble> {
    if index.overview(id).is_none() {
        return Ok(());
    }
    index.asked.insert(id.to_owned());
    index.forget_run(id)?;
    run(index, dir, id, tail, said)
}

fn run(index: &mut Index, dir: &Path, id: &str, tail: Tail, said: &mut Vec<String>) -> Result<(), Trouble> {
    let path = place::run_file(dir, id);
    let Some(len) = length(&path)? else { return Ok(()) };
    if len > 0 && index.upto().get(id) == Some(&len) {
        return Ok(());
    }
    if index.overview(id).is_some() {
        // It went on: what is new is added to results, of which there are none yet.
        index.forget_run(id)?;
    }
    let mut row = index.run_row(id)?;
    if row.as_ref().is_some_and(|r| r.upto > len) {
        said.push(format!("{} is shorter than it was: read again from its beginning", path.display()));
        index.forget_run(id)?;
        row = None;
    }
    if row.is_none() && index.by_contents {
        if !index.asked.contains(id) && by_overview(index, dir, id, len)? {
            return Ok(());
        }
        row = by_contents(index, dir, id, len)?;
    }
    let from = row.as_ref().map_or(0, |r| r.upto);
    if len == 0 && tail == Tail::Cut {
        cut(&path, 0).map_err(failed("remove", &path))?;
        return Ok(());
    }
    if from == len || newer(&path, from, said)? {
        return Ok(());
    }
    let (mut trouble, mut damaged) = (Ok(()), Vec::new());
    let mut end = scan(&path, from, &mut |piece| match piece {
        Piece::Damage(damage) => damaged.push(damage),
        Piece::Entry(span, entry) => {
            if trouble.is_ok() {
                trouble = take(index, id, &mut row, span, entry);
            }
        }
    })
    .map_err(failed("read", &path))?;
    trouble?;
    if from == 0 && damaged.first().is_some_and(|d| d.offset + d.bytes > HEADER && d.offset <= HEADER && !d.tail) {
        said.push(format!(
            "the beginning of run {id} is damaged: its playbook and plan are not known (muster db check)"
        ));
        damaged[0].frames = damaged[0].frames.saturating_sub(1);
    }
    tell(&path, &damaged, ("record", &format!("run {id}")), tail, said);
    if let Some(mut row) = row {
        row.upto = end;
        // Counted, not added up: rows may be there from a time before a crash.
        let rows = index.results(id, None)?;
        row.records = rows.len() as u64;
        index.put_run(&row)?;
        if index.by_contents && damaged.is_empty() && end == len {
            // What is read in vain this time is not read the next time.
            let _ = overview::keep(dir, &row, &rows, &Overview::of(&rows));
        }
    } else if end == HEADER {
        // A crash came before the run was begun: the file goes, so that the run can be begun again.
        end = 0;
    }
    settle(&path, dir, end, tail, said)
}

/// Takes the overview for the run until somebody asks for its results, if it has one or its contents give one.
fn by_overview(index: &mut Index, dir: &Path, id: &str, len: u64) -> Result<bool, IndexError> {
    if let Some((row, known)) = overview::kept(dir, id, len) {
        return index.put_overview(&row, known).map(|()| true);
    }
    let Some(contents) = Contents::of(dir, id, len) else { return Ok(false) };
    if contents.run.upto != len || contents.run.run.state == RunState::Running {
        return Ok(false);
    }
    let known = Overview::of(&contents.rows);
    let _ = overview::keep(dir, &contents.run, &contents.rows, &known);
    index.put_overview(&contents.run, Arc::new(known)).map(|()| true)
}

/// Takes what lies beside the file for what is in it.
fn by_contents(index: &mut Index, dir: &Path, id: &str, len: u64) -> Result<Option<RunRow>, IndexError> {
    let Some(contents) = Contents::of(dir, id, len) else { return Ok(None) };
    for row in &contents.rows {
        index.put_result(id, row)?;
    }
    index.put_run(&contents.run)?;
    Ok(Some(contents.run))
}

fn take(index: &mut Index, id: &str, row: &mut Option<RunRow>, span: Span, entry: Entry) -> Result<(), IndexError> {
    match entry {
        Entry::Begin(run) => *row = Some(begun(row.take(), Run { id: id.to_owned(), ..run })),
        Entry::Record(Head(summary)) => {
            let row = row.get_or_insert_with(|| headless(id, summary.at_ms));
            if row.run.playbook.is_empty() && !row.run.nodes.contains(&summary.node) {
                row.run.nodes.push(summary.node.clone());
            }
            index.put_result(id, &ResultRow::new(summary, span))?;
        }
        Entry::End { state, at_ms } => {
            let row = row.get_or_insert_with(|| headless(id, at_ms));
            row.run.state = state;
            row.run.ended_ms = Some(at_ms);
        }
        Entry::Criterion { .. } | Entry::Incidents(_) | Entry::Model { .. } => {}
    }
    Ok(())
}

/// The row after a `Begin`: the newest plan, the first start.
pub(crate) fn begun(old: Option<RunRow>, run: Run) -> RunRow {
    let started_ms = old.as_ref().map_or(run.started_ms, |r| r.run.started_ms);
    let records = old.map_or(0, |r| r.records);
    RunRow { run: Run { started_ms, ended_ms: None, state: RunState::Running, ..run }, upto: 0, records }
}

/// A run whose first frame is damaged: its records still count.
fn headless(id: &str, at_ms: u64) -> RunRow {
    let run = Run {
        id: id.to_owned(),
        playbook: String::new(),
        profile: Profile::Smoke,
        started_ms: at_ms,
        ended_ms: None,
        nodes: Vec::new(),
        plan: Vec::new(),
        state: RunState::Running,
    };
    RunRow { run, upto: 0, records: 0 }
}

pub(crate) fn criteria(index: &mut Index, dir: &Path, tail: Tail, said: &mut Vec<String>) -> Result<(), Trouble> {
    let path = place::criteria_file(dir);
    let len = length(&path)?.unwrap_or(0);
    let mut from = index.criteria_upto()?;
    if from > len {
        said.push(format!("{} is shorter than it was: read again from its beginning", path.display()));
        index.forget_criteria()?;
        from = 0;
    }
    if from == len || newer(&path, from, said)? {
        return Ok(());
    }
    let (mut trouble, mut damaged) = (Ok(()), Vec::new());
    let end = scan(&path, from, &mut |piece| match piece {
        Piece::Damage(damage) => damaged.push(damage),
        Piece::Entry(span, Entry::Criterion { name, at_ms, .. }) if trouble.is_ok() => {
            trouble = index.put_criterion(&name, at_ms, span);
        }
        Piece::Entry(..) => {}
    })
    .map_err(failed("read", &path))?;
    trouble?;
    tell(&path, &damaged, ("frame", "criteria.log"), tail, said);
    index.set_criteria_upto(end)?;
    settle(&path, dir, end, tail, said)
}

fn length(path: &Path) -> Result<Option<u64>, StoreError> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.len())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed("look at", path)(e)),
    }
}

/// Whether the file is of a format that only a newer muster reads.
fn newer(path: &Path, from: u64, said: &mut Vec<String>) -> Result<bool, StoreError> {
    if from > 0 {
        return Ok(false);
    }
    let file = fs::File::open(path).map_err(failed("open", path))?;
    let Start::Newer(format) = start(&file).map_err(failed("read", path))? else { return Ok(false) };
    said.push(format!("{} was written by a newer muster (format {format}): left as it is, not listed", path.display()));
    Ok(true)
}

/// Says what of a log file is left out; `unit` is one of its entries, and `whole` what it holds, such as `run x`.
pub(crate) fn tell(path: &Path, damaged: &[Damage], (unit, whole): (&str, &str), tail: Tail, said: &mut Vec<String>) {
    let (ends, inside): (Vec<&Damage>, Vec<&Damage>) = damaged.iter().partition(|damage| damage.tail);
    match inside.iter().map(|damage| damage.frames).sum() {
        0 => said.extend(inside.iter().map(|damage| format!("{}: {damage}", path.display()))),
        1 => said.push(format!("1 {unit} of {whole} is damaged and left out (muster db check)")),
        n => said.push(format!("{n} {unit}s of {whole} are damaged and left out (muster db check)")),
    }
    if tail == Tail::Tell {
        said.extend(ends.iter().map(|damage| format!("{}: {damage} (muster db check)", path.display())));
    }
}

/// Cuts off what a crash left behind the last whole frame, keeping a copy.
pub(crate) fn settle(path: &Path, dir: &Path, end: u64, tail: Tail, said: &mut Vec<String>) -> Result<(), Trouble> {
    let len = length(path)?.unwrap_or(0);
    if tail != Tail::Cut || end >= len {
        return Ok(());
    }
    let copy = place::quarantine(dir, path, end);
    let kept = match keep(path, end, &copy) {
        Ok(()) => format!("a copy is {}", copy.display()),
        Err(e) => format!("no copy could be kept: {e}"),
    };
    cut(path, end).map_err(failed("cut back", path))?;
    let lost = len - end;
    let place = path.display();
    said.push(format!(
        "{place}: {lost} bytes at its end were no whole frame, as a crash leaves them: cut off ({kept})"
    ));
    Ok(())
}

fn keep(path: &Path, from: u64, copy: &Path) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};
    fs::create_dir_all(copy.parent().unwrap_or(copy))?;
    let mut source = fs::File::open(path)?;
    source.seek(SeekFrom::Start(from))?;
    let done = fs::File::create(copy).and_then(|mut to| io::copy(&mut source, &mut to));
    if done.is_err() {
        // A half copy on a full disk helps nobody.
        let _ = fs::remove_file(copy);
    }
    done.map(drop)
}

fn cut(path: &Path, end: u64) -> io::Result<()> {
    if end == 0 {
        fs::remove_file(path)?;
        return path.parent().map_or(Ok(()), sync_dir);
    }
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.set_len(end)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(frames: u64, tail: bool) -> Damage {
        Damage { offset: 16, bytes: 9, why: "it rotted".to_owned(), tail, frames }
    }

    #[test]
    fn damage_within_a_file_is_counted_and_that_at_its_end_is_told_where_nobody_writes() {
        let told = |damaged: &[Damage], tail| {
            let mut said = Vec::new();
            tell(Path::new("r.log"), damaged, ("record", "run r"), tail, &mut said);
            said
        };
        let none: [&str; 0] = [];
        let one = "1 record of run r is damaged and left out (muster db check)";
        let three = "3 records of run r are damaged and left out (muster db check)";
        let header = "r.log: 9 bytes at offset 16 are damaged: it rotted (what follows is readable)";
        let end = "r.log: 9 bytes at offset 16 are damaged: it rotted (nothing whole follows) (muster db check)";
        for tail in [Tail::Cut, Tail::Tell, Tail::Ignore] {
            assert_eq!(told(&[], tail), none);
            assert_eq!(told(&[damage(1, false)], tail), [one]);
            assert_eq!(told(&[damage(1, false), damage(2, false)], tail), [three]);
            assert_eq!(told(&[damage(0, false)], tail), [header], "no entry is lost with a header");
        }
        let both = [damage(1, false), damage(5, true)];
        assert_eq!(told(&both, Tail::Tell), [one, end]);
        assert_eq!((told(&both, Tail::Cut), told(&both, Tail::Ignore)), (vec![one.to_owned()], vec![one.to_owned()]));
    }

    #[test]
    fn what_a_crash_left_is_cut_off_by_who_opens_for_writing_and_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("incidents.log");
        let bytes = b"sixteen bytes ofand some more".to_vec();
        let settled = |end: u64, tail| {
            fs::write(&path, &bytes).unwrap();
            let mut said = Vec::new();
            settle(&path, dir.path(), end, tail, &mut said).unwrap();
            (fs::read(&path).ok(), said)
        };
        let whole = bytes.len() as u64;
        for (end, tail) in [(16, Tail::Tell), (16, Tail::Ignore), (whole, Tail::Cut), (whole + 1, Tail::Cut)] {
            assert_eq!(settled(end, tail), (Some(bytes.clone()), vec![]), "{end}");
        }
        let (left, said) = settled(16, Tail::Cut);
        assert_eq!((left, said.len()), (Some(bytes[..16].to_vec()), 1));
        let copy = place::quarantine(dir.path(), &path, 16);
        assert_eq!(fs::read(&copy).unwrap(), bytes[16..]);
        assert!(
            said[0].contains(": 13 bytes at its end were no whole frame, as a crash leaves them: cut off"),
            "{said:?}"
        );
        assert!(said[0].ends_with(&format!("(a copy is {})", copy.display())), "{said:?}");
        assert_eq!(settled(0, Tail::Cut).0, None, "a file without a whole frame goes");
    }

    #[test]
    fn a_run_that_begins_again_keeps_its_first_start_and_its_records_and_goes_on() {
        let ended = Run { state: RunState::Finished, ended_ms: Some(9), ..headless("r", 5).run };
        let old = RunRow { run: ended.clone(), upto: 70, records: 3 };
        let again = Run { started_ms: 50, nodes: vec!["n2".to_owned()], ..ended };
        let row = begun(Some(old), again.clone());
        assert_eq!((row.run.started_ms, row.run.ended_ms, row.run.state), (5, None, RunState::Running));
        assert_eq!((row.run.nodes, row.records, row.upto), (vec!["n2".to_owned()], 3, 0));
        assert_eq!((begun(None, again.clone()).run.started_ms, begun(None, again).records), (50, 0));
    }
}
