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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Db;

    #[test]
    fn an_index_that_somebody_uses_is_waited_for_and_then_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        drop(Db::open(dir, &Options::default()).unwrap());
        let held = Index::open(&place::index(dir), 1 << 20).unwrap();
        let (begun, mut said) = (Instant::now(), Vec::new());
        let index = open(dir, &Options::default(), &mut said).unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(5), "a handle that closes may take so long");
        assert!(!index.on_disk() && said.len() == 1, "{said:?}");
        assert!(
            said[0].starts_with("the index is in use (")
                && said[0].ends_with("): working without one, which is slower")
        );
        assert!(place::index(dir).exists() && !place::damaged(dir).exists());
        let closes = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        let mut said = Vec::new();
        let index = open(dir, &Options::default(), &mut said).unwrap();
        closes.join().unwrap();
        assert!(index.on_disk() && said.is_empty(), "{said:?}");
    }

    #[test]
    fn an_index_that_failed_is_set_aside_over_the_one_set_aside_before() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        drop(Db::open(dir, &Options::default()).unwrap());
        for round in 0..2 {
            fs::write(place::index_bad(dir), b"why").unwrap();
            fs::write(place::index(dir).join("round"), [round]).unwrap();
            let mut said = Vec::new();
            assert!(open(dir, &Options::default(), &mut said).unwrap().on_disk());
            assert_eq!(said, ["the index failed while it was last used: it is made anew"]);
            assert_eq!(fs::read(place::damaged(dir).join("index/round")).unwrap(), [round]);
            assert!(!place::index_bad(dir).exists() && !place::index(dir).join("round").exists());
        }
    }

    #[test]
    fn what_is_not_there_is_removed_already_and_what_cannot_be_removed_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let (file, folder) = (home.path().join("file"), home.path().join("folder"));
        fs::create_dir_all(folder.join("deeper")).unwrap();
        fs::write(&file, b"").unwrap();
        assert!(remove(&file.join("below")).is_err(), "a file has nothing below it");
        for path in [&file, &folder, &file, &folder] {
            remove(path).unwrap();
            assert!(!path.exists());
        }
    }

    #[test]
    fn snapshots_are_moved_and_counted_and_other_files_stay() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        assert!(snapshots_aside(dir).is_err(), "there is no index");
        fs::create_dir(place::index(dir)).unwrap();
        assert_eq!(snapshots_aside(dir).unwrap(), 0);
        for name in ["snap.1", "snap.2", "snap", "db"] {
            fs::write(place::index(dir).join(name), name).unwrap();
        }
        assert_eq!(snapshots_aside(dir).unwrap(), 2);
        assert!(place::damaged(dir).join("snap.2").exists() && place::index(dir).join("snap").exists());
        assert_eq!(fs::read_dir(place::index(dir)).unwrap().count(), 2);
    }
}
