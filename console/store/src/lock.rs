//! Settles who may write: one process, by a file lock that the system drops when the process dies.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;
use crate::error::failed;

const FILE: &str = "lock";
/// A reader holds the lock for an instant to see whether a writer lives; a writer outwaits it.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Held as long as the database is open for writing.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed("open", &path))?;
        for attempt in 0.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if attempt < TRIES => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {
                    return Err(StoreError::Locked { path: dir.to_owned(), pid: holder(&mut file) });
                }
                Err(e) => return Err(failed("lock", &path)(e.into())),
            }
        }
        // The number is a courtesy to the next one: a full disk must not keep anybody from reading.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Whether a process has the database open for writing, and which.
pub(crate) fn writer(dir: &Path) -> Option<Option<u32>> {
    let mut file = File::open(dir.join(FILE)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(holder(&mut file)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_outwaits_a_reader_and_not_another_writer() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        drop(Lock::take(dir).unwrap());
        assert_eq!(writer(dir), None);
        let reader = File::open(dir.join(FILE)).unwrap();
        flock(&reader, FlockOperation::LockShared).unwrap();
        let looks = std::thread::spawn(move || {
            std::thread::sleep(5 * PAUSE);
            drop(reader);
        });
        let lock = Lock::take(dir).unwrap();
        looks.join().unwrap();
        assert_eq!(writer(dir), Some(Some(std::process::id())));
        assert!(matches!(Lock::take(dir), Err(StoreError::Locked { pid, .. }) if pid == Some(std::process::id())));
        drop(lock);
        assert_eq!(writer(dir), None);
    }
}
