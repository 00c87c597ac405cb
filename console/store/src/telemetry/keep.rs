//! Which recordings there are, and which go to make room.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::StoreError;
use crate::error::failed;
use crate::place;

/// A recording in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// When it was last written.
    pub written: SystemTime,
}

/// The recordings in the database at `dir`, the oldest first.
///
/// # Errors
/// When they cannot be listed.
pub fn recordings(dir: &Path) -> Result<Vec<Kept>, StoreError> {
    let folder = place::telemetry(dir);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("read", &folder))?,
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let id = path.file_name().and_then(|name| name.to_str()?.strip_suffix(place::RECORDING).map(str::to_owned));
        // One that is removed meanwhile is none.
        if let (Some(id), Ok(about)) = (id, entry.metadata()) {
            let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(Kept { id, path, bytes: about.len(), written });
        }
    }
    found.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    Ok(found)
}

/// Removes recordings older than `age`, and the oldest of the others until all have at most `bytes`. Gives the ids of those that went.
///
/// # Errors
/// When one cannot be removed.
pub fn thin_out(dir: &Path, bytes: u64, age: Duration) -> Result<Vec<String>, StoreError> {
    let (all, now) = (recordings(dir)?, SystemTime::now());
    let mut left: u64 = all.iter().map(|kept| kept.bytes).sum();
    let mut gone = Vec::new();
    for kept in all {
        let old = now.duration_since(kept.written).is_ok_and(|since| since >= age);
        if old || left > bytes {
            fs::remove_file(&kept.path).map_err(failed("remove", &kept.path))?;
            left = left.saturating_sub(kept.bytes);
            gone.push(kept.id);
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of `bytes` that was last written `age` ago.
    fn kept(dir: &Path, id: &str, bytes: usize, age: Duration) -> PathBuf {
        let path = place::recording(dir, id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![0; bytes]).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    }

    #[test]
    fn what_is_just_within_age_and_size_stays_and_what_is_just_past_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
        let old = kept(dir.path(), "old", 100, 30 * day + minute);
        let young = kept(dir.path(), "young", 100, 30 * day - minute);
        let newest = kept(dir.path(), "newest", 100, day);
        assert_eq!(thin_out(dir.path(), u64::MAX, 30 * day).unwrap(), ["old"]);
        assert!(!old.exists() && young.exists());
        assert_eq!(thin_out(dir.path(), 200, 30 * day).unwrap(), Vec::<String>::new());
        assert_eq!(thin_out(dir.path(), 199, 30 * day).unwrap(), ["young"]);
        assert!(newest.exists());
        assert_eq!(recordings(dir.path()).unwrap().len(), 1);
    }

    #[test]
    fn recordings_are_listed_the_oldest_first_and_of_equal_age_by_name() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(recordings(dir.path()).unwrap(), []);
        let now = SystemTime::now();
        let hour = Duration::from_secs(3_600);
        for (id, bytes, age) in [("b", 20, hour), ("a", 10, hour), ("young", 5, Duration::ZERO), ("old", 7, 2 * hour)] {
            let path = kept(dir.path(), id, bytes, age);
            fs::OpenOptions::new().write(true).open(path).unwrap().set_modified(now - age).unwrap();
        }
        fs::write(place::telemetry(dir.path()).join("b.gains.json"), b"{}").unwrap();
        let found: Vec<(String, u64)> =
            recordings(dir.path()).unwrap().into_iter().map(|kept| (kept.id, kept.bytes)).collect();
        let expected = [("old", 7), ("a", 10), ("b", 20), ("young", 5)].map(|(id, bytes)| (id.to_owned(), bytes));
        assert_eq!(found, expected);
        assert_eq!(
            thin_out(dir.path(), 24, 9 * hour).unwrap(),
            ["old", "a", "b"],
            "42 bytes are too many, and 25 still are"
        );
    }
}
