//! Settles what happens when sled does not open: snapshots aside, then the whole index aside, then do without.

use std::fs;
use std::io;
use std::path::Path;

use crate::catchup::{Tail, Trouble, catch_up};
use crate::index::{Index, IndexError};
use crate::{Options, StoreError, place};

/// An index that holds everything the log files hold. Needs the writer's lock.
pub(crate) fn open(dir: &Path, options: &Options, said: &mut Vec<String>) -> Result<Index, StoreError> {
    if place::index_bad(dir).exists() {
        said.push("the index failed while it was last used: it is made anew".to_owned());
        set_aside(dir, said);
    }
    let mut index = open_sled(dir, options, said);
    loop {
        match catch_up(&mut index, dir, Tail::Cut, said) {
            Ok(()) => return Ok(index),
            Err(Trouble::Store(e)) => return Err(e),
            Err(Trouble::Index(e)) if index.on_disk() => {
                said.push(format!("the index does not take what the run files hold ({e}): it is made anew"));
                drop(index);
                index = if set_aside(dir, said) { open_sled(dir, options, said) } else { Index::memory() };
                if let Err(Trouble::Index(e)) = catch_up(&mut index, dir, Tail::Cut, said) {
                    said.push(format!("a new index fails too ({e}): working without one"));
                    index = Index::memory();
                }
            }
            Err(Trouble::Index(e)) => return Err(StoreError::Damaged { path: place::index(dir), why: e.to_string() }),
        }
    }
}

fn open_sled(dir: &Path, options: &Options, said: &mut Vec<String>) -> Index {
    let path = place::index(dir);
    let try_open = || Index::open(&path, options.cache_bytes);
    let first = match try_open() {
        Ok(index) => return index,
        Err(e) if e.busy() => {
            said.push(format!("the index is in use ({e}): working without one, which is slower"));
            return Index::memory();
        }
        Err(e) => e,
    };
    let second = match snapshots_aside(dir) {
        Ok(0) => first,
        Ok(moved) => match try_open() {
            Ok(index) => {
                said.push(format!("the index did not open ({first}): {moved} snapshot files moved to damaged/"));
                return index;
            }
            Err(e) => e,
        },
        Err(e) => IndexError(format!("{first}; its snapshots cannot be moved away: {e}")),
    };
    said.push(format!("the index did not open ({second}): it is made anew from the run files"));
    if !set_aside(dir, said) {
        return Index::memory();
    }
    try_open().unwrap_or_else(|e| {
        said.push(format!("no new index can be made ({e}): working without one, which is slower"));
        Index::memory()
    })
}

fn snapshots_aside(dir: &Path) -> io::Result<usize> {
    let mut moved = 0;
    for entry in fs::read_dir(place::index(dir))? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with("snap.") {
            fs::create_dir_all(place::damaged(dir))?;
            fs::rename(place::index(dir).join(&name), place::damaged(dir).join(&name))?;
            moved += 1;
        }
    }
    Ok(moved)
}

/// Moves the whole index to `damaged/`, over the one moved there before. Whether the place is free now.
fn set_aside(dir: &Path, said: &mut Vec<String>) -> bool {
    let (from, to) = (place::index(dir), place::damaged(dir).join("index"));
    let gone = || -> io::Result<()> {
        if from.exists() {
            fs::create_dir_all(place::damaged(dir))?;
            remove(&to)?;
            fs::rename(&from, &to)?;
        }
        remove(&place::index_bad(dir))
    };
    gone().map_err(|e| said.push(format!("{} cannot be moved away: {e}", from.display()))).is_ok()
}

/// Removes a file or a folder that may not be there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let done = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
