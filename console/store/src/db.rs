//! Settles how a database is opened, and that every question is answered from the log files when the index fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::catchup::{self, Tail, Trouble, catch_up};
use crate::entry::Encoder;
use crate::error::failed;
use crate::expected::Expected;
use crate::index::{Index, IndexError, RunRow};
use crate::lock::{Lock, writer};
use crate::log::Log;
use crate::{StoreError, beside, ledger, place, repair, version};
use muster_run::{Run, RunState};

/// How to open.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory the index may use for its cache, bytes.
    pub cache_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20 }
    }
}

/// What opening had to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Repairs made and damage met, in words. Empty when all was well.
    pub repairs: Vec<String>,
}

/// A database in a directory of its own.
pub struct Db {
    pub(crate) dir: PathBuf,
    opened: Opened,
    state: Mutex<State>,
    pub(crate) pen: Option<Pen>,
    // Last, so that the lock outlives the index: fields are dropped in order.
    lock: Option<Lock>,
}

struct State {
    index: Index,
    notices: Vec<String>,
}

/// What only a writer has.
pub(crate) struct Pen {
    pub(crate) encoder: Encoder,
    pub(crate) logs: HashMap<PathBuf, Log>,
    /// Runs begun by this handle and not ended, as they are now. Their rows of the index lag until they end: a row names every node,
    /// and writing it anew with every result would cost more than the results.
    pub(crate) live: BTreeMap<String, RunRow>,
    /// Of those, the ones of whose file it wrote every byte.
    pub(crate) own: BTreeSet<String>,
    /// Log files as far as they were written.
    expected: Expected,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("dir", &self.dir).field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl Db {
    /// Opens the database in `dir` for reading and writing, making it when there is none. Cuts off what a crash left
    /// behind the last whole frame, and repairs or remakes the index; [`Db::opened`] says what was done.
    ///
    /// # Errors
    /// When another process writes to it, a newer muster wrote it, or the system refuses.
    pub fn open(dir: impl AsRef<Path>, options: &Options) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        version_first(dir)?;
        place::claim(dir)?;
        let lock = Lock::take(dir)?;
        let mut repairs: Vec<String> = version::bring_up(dir, version::STEPS)?.into_iter().collect();
        place::furnish(dir)?;
        beside::sweep(dir);
        let index = repair::open(dir, options, &mut repairs)?;
        ledger::repair(dir, &mut repairs)?;
        repairs.extend(missed(dir)?);
        let mut expected = Expected::load(dir).unwrap_or_default();
        expected.note_all(dir)?;
        expected.save(dir);
        let encoder = Encoder::new().map_err(failed("prepare compression for", dir))?;
        let pen = Pen { encoder, logs: HashMap::new(), live: BTreeMap::new(), own: BTreeSet::new(), expected };
        Ok(Self {
            dir: dir.to_owned(),
            state: Mutex::new(State { index, notices: repairs.clone() }),
            opened: Opened { repairs },
            pen: Some(pen),
            lock: Some(lock),
        })
    }

    /// Opens the database in `dir` for reading only, also while another process writes to it. Reads the log files,
    /// never the index, and changes nothing but what is kept beside them.
    ///
    /// # Errors
    /// When there is no database, a newer muster wrote it, or the system refuses.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        version_first(dir)?;
        if !dir.exists() {
            return Err(StoreError::Missing { path: dir.to_owned() });
        }
        if !dir.is_dir() {
            return Err(StoreError::NotADirectory { path: dir.to_owned() });
        }
        if !place::runs(dir).is_dir() {
            std::fs::read_dir(dir).map_err(failed("read", dir))?;
            return Err(StoreError::Missing { path: dir.to_owned() });
        }
        let mut notices: Vec<String> =
            version::read(dir, version::SCHEMA).err().iter().map(ToString::to_string).collect();
        notices.extend(missed(dir)?);
        let state = Mutex::new(State { index: Index::reader(), notices });
        let mut db = Self { dir: dir.to_owned(), opened: Opened::default(), state, pen: None, lock: None };
        db.ask(|_| Ok(()))?;
        let repairs = db.state().notices.clone();
        db.opened.repairs = repairs;
        Ok(db)
    }

    /// What opening had to do.
    #[must_use]
    pub const fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Whether this handle may write.
    #[must_use]
    pub const fn writable(&self) -> bool {
        self.lock.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notice(&self, said: Vec<String>) {
        self.state().notices.extend(said);
    }

    /// Takes note of what was added to the log file at `path`.
    pub(crate) fn expect(&mut self, path: &Path) {
        if let Some(pen) = &mut self.pen {
            pen.expected.note(&self.dir, path);
            pen.expected.save(&self.dir);
        }
    }

    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notices)
    }

    /// Asks the index; when it fails, makes one in memory from the log files and asks that.
    pub(crate) fn ask<T>(&self, question: impl FnMut(&mut Index) -> Result<T, IndexError>) -> Result<T, StoreError> {
        self.ask_after(Self::refresh, question)
    }

    /// The same about criteria, for which run files need not be looked at.
    pub(crate) fn ask_criteria<T>(
        &self,
        question: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<T, StoreError> {
        self.ask_after(Self::refresh_criteria, question)
    }

    fn ask_after<T>(
        &self,
        refresh: impl FnOnce(&Self, &mut Index, &mut Vec<String>) -> Result<(), Trouble>,
        mut question: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<T, StoreError> {
        let mut state = self.state();
        let State { index, notices } = &mut *state;
        let first = refresh(self, index, notices).and_then(|()| question(index).map_err(Trouble::from));
        let why = match first {
            Ok(answer) => return Ok(answer),
            Err(Trouble::Store(e)) => return Err(e),
            Err(Trouble::Index(e)) => e,
        };
        if index.on_disk() {
            notices.push(format!("the index failed ({why}): reading the run files; the next start makes a new index"));
            // Without the mark the next start meets the same failure and says so again; nothing is lost.
            let _ = std::fs::write(place::index_bad(&self.dir), format!("{why}\n"));
        }
        *index = Index::memory();
        let again = catch_up(index, &self.dir, self.tail(), notices).and_then(|()| Ok(question(index)?));
        again.map_err(|trouble| match trouble {
            Trouble::Store(e) => e,
            Trouble::Index(e) => StoreError::Damaged { path: self.dir.clone(), why: e.to_string() },
        })
    }

    /// A reader sees what was acknowledged until now.
    fn refresh(&self, index: &mut Index, notices: &mut Vec<String>) -> Result<(), Trouble> {
        if self.writable() { Ok(()) } else { catch_up(index, &self.dir, self.tail(), notices) }
    }

    fn refresh_criteria(&self, index: &mut Index, notices: &mut Vec<String>) -> Result<(), Trouble> {
        if self.writable() { Ok(()) } else { catchup::criteria(index, &self.dir, self.tail(), notices) }
    }

    /// Reads the results of run `id` where a reader knows its overview alone.
    pub(crate) fn load(&self, id: &str) -> Result<(), StoreError> {
        let mut state = self.state();
        let State { index, notices } = &mut *state;
        match catchup::load(index, &self.dir, id, self.tail(), notices) {
            Err(Trouble::Store(e)) => Err(e),
            // The next question meets the same and is answered from the run files.
            Err(Trouble::Index(_)) | Ok(()) => Ok(()),
        }
    }

    pub(crate) fn tail(&self) -> Tail {
        if self.writable() || writer(&self.dir).is_some() { Tail::Ignore } else { Tail::Tell }
    }

    /// The run as people should see it: without an end and without a console it was interrupted.
    pub(crate) fn shown(&self, row: RunRow) -> Run {
        let mut run = row.run;
        if run.state == RunState::Running && !self.alive(&run.id) {
            run.state = RunState::Interrupted;
        }
        run
    }

    fn alive(&self, id: &str) -> bool {
        self.pen.as_ref().map_or_else(|| writer(&self.dir).is_some(), |pen| pen.live.contains_key(id))
    }

    /// Writes the index's memory to disk. The log files do not need it.
    pub(crate) fn flush_index(&self) {
        let _ = self.ask(|index| index.flush());
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if self.writable() {
            let live = self.pen.as_mut().map(|pen| std::mem::take(&mut pen.live)).unwrap_or_default();
            // An index that lags is caught up with when it is opened.
            let _ = self.ask(|index| live.values().try_for_each(|row| index.put_run(row)));
            self.flush_index();
        }
    }
}

/// Log files that are gone, shorter than they were or replaced, in words.
fn missed(dir: &Path) -> Result<Vec<String>, StoreError> {
    let missed = match Expected::load(dir) {
        Ok(expected) => expected.missed(dir)?,
        Err(damage) => vec![(place::files(dir), damage)],
    };
    Ok(missed.into_iter().map(|(path, damage)| format!("{}: {damage}", path.display())).collect())
}

/// A directory of a newer layout is refused before anything in it is touched.
fn version_first(dir: &Path) -> Result<(), StoreError> {
    match version::read(dir, version::SCHEMA) {
        Err(e @ StoreError::Newer { .. }) => Err(e),
        _ => Ok(()),
    }
}
