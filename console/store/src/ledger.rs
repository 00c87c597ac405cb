//! Settles how incidents and models are kept: append-only files without an index, read whole when asked.
//!
//! Both are small (a fleet of thousands has some ten thousand incidents a year), so that one pass over the file is
//! cheaper than keeping an index of it true.

use std::collections::BTreeMap;
use std::path::Path;

use crate::catchup::{Tail, Trouble, settle, tell};
use crate::db::Db;
use crate::entry::{Entry, EntryRef, Raw};
use crate::error::failed;
use crate::frame::{Piece, scan};
use crate::keep::now_ms;
use crate::{Incident, ModelSeen, StoreError, limits, place};

/// Incidents per frame.
const BATCH: usize = 1000;

/// Cuts off what a crash left in either file. Needs the writer's lock.
pub(crate) fn repair(dir: &Path, said: &mut Vec<String>) -> Result<(), StoreError> {
    for path in [place::incidents_file(dir), place::models_file(dir)] {
        if !path.exists() {
            continue;
        }
        let end = scan(&path, 0, &mut |_| {}).map_err(failed("read", &path))?;
        match settle(&path, dir, end, Tail::Cut, said) {
            Ok(()) => {}
            Err(Trouble::Store(e)) => return Err(e),
            Err(Trouble::Index(e)) => return Err(StoreError::Damaged { path, why: e.to_string() }),
        }
    }
    Ok(())
}

impl Db {
    /// Gives every entry of `path` to `take`; damage is told.
    fn each_entry(&self, path: &Path, take: &mut dyn FnMut(Entry)) -> Result<(), StoreError> {
        if !path.exists() {
            return Ok(());
        }
        let (mut damaged, mut said) = (Vec::new(), Vec::new());
        scan(path, 0, &mut |piece| match piece {
            Piece::Entry(_, entry) => take(entry),
            Piece::Damage(damage) => damaged.push(damage),
        })
        .map_err(failed("read", path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        tell(path, &damaged, ("frame", &name), self.tail(), &mut said);
        self.notice(said);
        Ok(())
    }

    fn extend<'a>(
        &mut self,
        path: &Path,
        kept: u64,
        entries: impl Iterator<Item = EntryRef<'a>>,
    ) -> Result<(), StoreError> {
        // Opening cut the file behind its last whole frame, and only we write.
        let upto = std::fs::metadata(path).map_or(0, |meta| meta.len());
        self.pen("append to a ledger")?.write(path, (upto, kept), entries)?;
        self.expect(path);
        Ok(())
    }

    pub(crate) fn read_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        let mut newest = BTreeMap::new();
        self.each_entry(&place::incidents_file(&self.dir), &mut |entry| {
            if let Entry::Incidents(all) = entry {
                newest.extend(all.into_iter().map(|i| ((i.node.clone(), i.start_ms, i.source.clone()), i)));
            }
        })?;
        Ok(newest.into_values().collect())
    }

    pub(crate) fn write_incidents(&mut self, incidents: &[Incident]) -> Result<usize, StoreError> {
        self.pen("record an incident")?;
        incidents.iter().try_for_each(limits::incident)?;
        let known = self.read_incidents()?;
        let same = |i: &&Incident| known.binary_search_by(|k| key(k).cmp(&key(i))).is_ok_and(|at| known[at] == **i);
        let new: Vec<&Incident> = incidents.iter().filter(|i| !same(i)).collect();
        if new.is_empty() {
            return Ok(0);
        }
        let path = place::incidents_file(&self.dir);
        self.extend(&path, known.len() as u64, new.chunks(BATCH).map(EntryRef::Incidents))?;
        Ok(new.len())
    }

    pub(crate) fn read_models(&self) -> Result<Vec<(ModelSeen, Vec<u8>)>, StoreError> {
        let mut found = Vec::new();
        self.each_entry(&place::models_file(&self.dir), &mut |entry| {
            if let Entry::Model { version, at_ms, bytes } = entry {
                found.push((ModelSeen { version, at_ms, bytes: bytes.0.len() }, bytes.0));
            }
        })?;
        Ok(found)
    }

    pub(crate) fn write_model(&mut self, bytes: &[u8]) -> Result<u64, StoreError> {
        limits::model(bytes)?;
        let known = self.read_models()?;
        let version = known.last().map_or(0, |(seen, _)| seen.version) + 1;
        let entry = EntryRef::Model { version, at_ms: now_ms(), bytes: Raw(bytes) };
        self.extend(&place::models_file(&self.dir), known.len() as u64, std::iter::once(entry))?;
        Ok(version)
    }
}

/// What makes two lines of the log tell of one incident.
fn key(incident: &Incident) -> (&str, u64, &str) {
    (&incident.node, incident.start_ms, &incident.source)
}
