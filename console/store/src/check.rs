//! Settles what `db check` and `db rebuild` do: read every frame, compare the index, make it new.

use std::fs;
use std::path::{Path, PathBuf};

use crate::catchup::{Tail, Trouble, catch_up};
use crate::entry::Entry;
use crate::error::failed;
use crate::expected::Expected;
use crate::frame::{Damage, Piece, Start, scan, start};
use crate::index::Index;
use crate::lock::{Lock, writer};
use crate::{Db, Options, StoreError, place, quarantine, repair, version};

/// One log file, read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Whole frames.
    pub frames: u64,
    /// Records among them.
    pub records: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// What cannot be read.
    pub damage: Vec<Damage>,
}

/// State of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Every run file, by id, then those of criteria, incidents and models where they exist; then what else is damaged or gone.
    pub files: Vec<FileReport>,
    /// Where the index says something else than the log files, or cannot be read.
    pub index: Vec<String>,
    /// What else is worth knowing: a writer at work, a file of a newer format, repairs made.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether nothing is damaged and the index agrees.
    #[must_use]
    pub fn sound(&self) -> bool {
        self.index.is_empty() && self.files.iter().all(|f| f.damage.is_empty())
    }

    fn damage(&mut self, path: PathBuf, damage: Damage) {
        match self.files.iter_mut().find(|file| file.path == path) {
            // What is damaged within it says more than that it is not what it was.
            Some(file) if !file.damage.is_empty() => {}
            Some(file) => file.damage.push(damage),
            None => self.files.push(FileReport { path, frames: 0, records: 0, bytes: 0, damage: vec![damage] }),
        }
    }
}

/// Reads every frame of every log file and compares the index. Changes nothing in the log files.
///
/// # Errors
/// When there is no database or it cannot be read.
pub fn check(dir: impl AsRef<Path>) -> Result<Report, StoreError> {
    let dir = dir.as_ref();
    drop(Db::open_read_only(dir)?);
    let mut report = files(dir)?;
    let lock = match Lock::take(dir) {
        Ok(lock) => lock,
        Err(StoreError::Locked { pid, .. }) => {
            let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            report.notes.push(format!("the index was not compared: {who} is writing"));
            return Ok(report);
        }
        Err(e) => {
            report.notes.push(format!("the index was not compared: {e}"));
            return Ok(report);
        }
    };
    compare(dir, &mut report)?;
    drop(lock);
    Ok(report)
}

/// Moves what is damaged in the log files to `damaged/`, makes the version and the index new, and checks the result. Files that are
/// gone are told for ever after, unless they are to be `forgotten`.
///
/// # Errors
/// When another process writes to the database, or it cannot be read or written.
pub fn rebuild(dir: impl AsRef<Path>, forgotten: bool) -> Result<Report, StoreError> {
    let dir = dir.as_ref();
    drop(Db::open_read_only(dir)?);
    let lock = Lock::take(dir)?;
    let mut notes = Vec::new();
    if version::heal(dir)? {
        notes.push("the version of the database could not be read: written anew".to_owned());
    }
    quarantine::move_aside(dir, &mut notes)?;
    let path = place::index(dir);
    repair::remove(&path).and_then(|()| repair::remove(&place::index_bad(dir))).map_err(failed("remove", &path))?;
    drop(lock);
    let db = Db::open(dir, &Options::default())?;
    notes.extend(db.opened().repairs.clone());
    let mut expected = Expected::load(dir).unwrap_or_default();
    expected.renew(dir, forgotten)?;
    expected.save(dir);
    drop(db);
    let mut report = check(dir)?;
    report.notes.splice(0..0, notes);
    Ok(report)
}

fn files(dir: &Path) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let busy = writer(dir).is_some();
    for path in &place::logs(dir)? {
        let file = fs::File::open(path).map_err(failed("open", path))?;
        if let Start::Newer(format) = start(&file).map_err(failed("read", path))? {
            report.notes.push(format!("{} is of format {format}, which only a newer muster reads", path.display()));
            continue;
        }
        let bytes = file.metadata().map_err(failed("look at", path))?.len();
        let mut one = FileReport { path: path.clone(), frames: 0, records: 0, bytes, damage: Vec::new() };
        scan(path, 0, &mut |piece| match piece {
            Piece::Entry(_, entry) => {
                one.frames += 1;
                one.records += u64::from(matches!(entry, Entry::Record(_)));
            }
            Piece::Damage(damage) if damage.tail && busy => {}
            Piece::Damage(damage) => one.damage.push(damage),
        })
        .map_err(failed("read", path))?;
        report.files.push(one);
    }
    beside(dir, &mut report)?;
    Ok(report)
}

/// What is wrong with the version, with the list of files, and with files that are in the list.
fn beside(dir: &Path, report: &mut Report) -> Result<(), StoreError> {
    match version::read(dir, version::SCHEMA) {
        Err(StoreError::Damaged { path, why }) => report.damage(path, Damage::of_file(why)),
        other => drop(other?),
    }
    match Expected::load(dir) {
        Ok(expected) => expected.missed(dir)?.into_iter().for_each(|(path, damage)| report.damage(path, damage)),
        Err(damage) => report.damage(place::files(dir), damage),
    }
    Ok(())
}

/// Compares the index on disk with one made from the files. Needs the lock.
fn compare(dir: &Path, report: &mut Report) -> Result<(), StoreError> {
    if !place::index(dir).exists() {
        report.index.push("there is no index: the next start makes it".to_owned());
        return Ok(());
    }
    let mut fresh = Index::memory();
    let mut said = Vec::new();
    match catch_up(&mut fresh, dir, Tail::Ignore, &mut said) {
        Err(Trouble::Store(e)) => return Err(e),
        Err(Trouble::Index(e)) => report.index.push(e.to_string()),
        Ok(()) => {}
    }
    let differ = Index::open(&place::index(dir), Options::default().cache_bytes)
        .and_then(|old| differences(&old, &fresh))
        .unwrap_or_else(|e| vec![format!("the index cannot be read: {e}")]);
    report.index.extend(differ);
    Ok(())
}

fn differences(old: &Index, fresh: &Index) -> Result<Vec<String>, crate::index::IndexError> {
    let mut said = Vec::new();
    for row in old.run_rows()? {
        if fresh.run_row(&row.run.id)?.is_none() {
            said.push(format!("run {} is in the index and has no file", row.run.id));
        }
    }
    for want in fresh.run_rows()? {
        let id = &want.run.id;
        let Some(have) = old.run_row(id)? else {
            said.push(format!("run {id} is not in the index"));
            continue;
        };
        if have.upto < want.upto {
            let behind = want.upto - have.upto;
            said.push(format!("run {id}: the index is {behind} bytes behind its file; the next start catches up"));
        } else if have != want {
            said.push(format!("run {id}: the index describes it differently"));
        }
        let (have, want) = (old.results(id, None)?, fresh.results(id, None)?);
        let wrong = want.iter().filter(|row| !have.contains(row)).count();
        if wrong > 0 || have.len() != want.len() {
            let n = want.len();
            said.push(format!("run {id}: {wrong} of {n} results are missing or wrong, {} rows in all", have.len()));
        }
    }
    if old.criteria()? != fresh.criteria()? {
        said.push("the index lists other criteria than their file".to_owned());
    }
    if old.nodes()? != fresh.nodes()? {
        said.push("the index lists other nodes than the run files".to_owned());
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_within_a_file_is_told_and_not_beside_it_that_it_is_shorter() {
        let path = PathBuf::from("runs/r1.log");
        let damage = |why: &str| Damage::of_file(why.to_owned());
        let mut report = Report::default();
        report.damage(path.clone(), damage("gone"));
        assert_eq!(report.files[0].damage, [damage("gone")], "a file that is not there is told");
        report.damage(path.clone(), damage("shorter"));
        assert_eq!((report.files.len(), report.files[0].damage.len()), (1, 1));
        report.files[0].damage.clear();
        assert!(report.sound());
        report.damage(path, damage("shorter"));
        assert_eq!(report.files[0].damage, [damage("shorter")]);
        assert!(!report.sound());
    }

    #[test]
    fn a_database_is_sound_where_neither_its_files_nor_its_index_are_at_fault() {
        let file = |damage| FileReport { path: "r.log".into(), frames: 1, records: 0, bytes: 9, damage };
        let damage = || vec![Damage::of_file("gone".to_owned())];
        for (damage, index, sound) in [
            (vec![], vec![], true),
            (vec![], vec!["behind".to_owned()], false),
            (damage(), vec![], false),
            (damage(), vec!["behind".to_owned()], false),
        ] {
            let report = Report { files: vec![file(damage)], index, notes: vec!["a note".to_owned()] };
            assert_eq!(report.sound(), sound, "{report:?}");
        }
    }

    /// An index with one run of so many results, up to so many bytes.
    fn indexed(results: u64, upto: u64) -> Index {
        use muster_run::Summary;
        let mut index = Index::memory();
        let run = crate::made::run("r");
        index.put_run(&crate::index::RunRow { run, upto, records: results }).unwrap();
        for at in 0..results {
            let summary = Summary {
                node: format!("n{at}"),
                work: "disk".into(),
                outcome: muster_wire::Outcome::Done,
                at_ms: at,
                elapsed_ns: 1,
                series: 1,
                values: 1,
                facts: 0,
            };
            let span = crate::frame::Span { offset: 16 + 10 * at, length: 10 };
            index.put_result("r", &crate::index::ResultRow::new(summary, span)).unwrap();
        }
        index
    }

    #[test]
    fn whatever_an_index_says_otherwise_than_the_files_is_told() {
        let said = |old: &Index, fresh: &Index| differences(old, fresh).unwrap();
        let none: [&str; 0] = [];
        assert_eq!(said(&indexed(3, 90), &indexed(3, 90)), none);
        assert_eq!(said(&Index::memory(), &Index::memory()), none);
        assert_eq!(
            said(&indexed(3, 80), &indexed(3, 90)),
            ["run r: the index is 10 bytes behind its file; the next start catches up"]
        );
        assert_eq!(said(&indexed(3, 95), &indexed(3, 90)), ["run r: the index describes it differently"]);
        assert_eq!(
            said(&indexed(2, 90), &indexed(3, 90)),
            [
                "run r: the index describes it differently",
                "run r: 1 of 3 results are missing or wrong, 2 rows in all",
                "the index lists other nodes than the run files"
            ]
        );
        assert_eq!(
            said(&indexed(3, 90), &indexed(2, 90))[1],
            "run r: 0 of 2 results are missing or wrong, 3 rows in all"
        );
        assert_eq!(said(&indexed(0, 90), &Index::memory()), ["run r is in the index and has no file"]);
        assert_eq!(said(&Index::memory(), &indexed(0, 90)), ["run r is not in the index"]);
        let mut other = indexed(3, 90);
        other.put_criterion("disk", 5, crate::frame::Span { offset: 16, length: 9 }).unwrap();
        assert_eq!(said(&other, &indexed(3, 90)), ["the index lists other criteria than their file"]);
    }
}
