//! Where does a replay keep what it unpacks, and what becomes of that when it is killed?

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// How the names of such folders begin.
const PREFIX: &str = "muster-replay-";
/// A folder that is younger may be one whose owner is about to lock it.
const AGE: Duration = Duration::from_secs(60);

/// A folder of its own, which goes with this. That of a replay that was killed goes when the next one begins.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    /// Locked as long as this process lives, however it ends.
    _lock: File,
}

impl Home {
    /// A new one.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn new() -> std::io::Result<Self> {
        sweep(&std::env::temp_dir(), AGE);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(dir.path())?;
        match lock.try_lock() {
            // Where there are no locks nobody takes it for left behind, either.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { dir, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(std::io::ErrorKind::ResourceBusy.into()),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the folders in `dir` that no process has locked, where they are at least so old. What cannot be removed, as that of another
/// user, stays.
fn sweep(dir: &Path, age: Duration) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_dir = || entry.file_type().is_ok_and(|kind| kind.is_dir());
        let changed = || entry.metadata().and_then(|about| about.modified());
        let old = || changed().is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age));
        if ours && is_dir() && old() && File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_of_a_replay_that_is_dead_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.join("db")).unwrap();
            path
        };
        let [dead, alive] = ["muster-replay-dead", "muster-replay-alive"].map(folder);
        let other = folder("other");
        let lock = File::open(&alive).unwrap();
        lock.lock().unwrap();
        sweep(root.path(), AGE);
        assert!(dead.exists(), "it is a moment old");
        sweep(root.path(), Duration::ZERO);
        assert_eq!([&dead, &alive, &other].map(|path| path.exists()), [false, true, true]);
        drop(lock);
        sweep(root.path(), Duration::ZERO);
        assert!(!alive.exists());
    }

    #[test]
    fn a_home_is_locked_while_it_is_used_and_goes_with_its_replay() {
        let home = Home::new().unwrap();
        let path = home.path().to_owned();
        assert!(File::open(&path).unwrap().try_lock().is_err());
        drop(home);
        assert!(!path.exists());
    }
}
