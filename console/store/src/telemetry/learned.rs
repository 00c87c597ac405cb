//! What was made of a watch, beside its recording: what its nodes usually showed, for later watches of the same nodes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::error::failed;
use crate::place;

/// How the files end.
const ENDING: &str = "gains.json";
/// Files that are kept, and bytes past which one is none of ours.
const KEPT: usize = 32;
const LARGEST: u64 = 64 << 20;

/// Keeps `bytes` beside a recording, in place of what lies there, and removes the oldest of such files.
///
/// # Errors
/// When the disk does not take them; what lay there is then as it was.
pub fn keep_learned(recording: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let path = recording.with_extension(ENDING);
    // Half a file is worth nothing.
    let new = recording.with_extension("gains.new");
    let kept = fs::write(&new, bytes).and_then(|()| fs::rename(&new, &path));
    if kept.is_err() {
        let _ = fs::remove_file(&new);
    }
    kept.map_err(failed("write", &path))?;
    let mut all = files(path.parent().unwrap_or(Path::new(".")));
    let old = all.len().saturating_sub(KEPT);
    all.drain(..old).try_for_each(|old| fs::remove_file(&old).map_err(failed("remove", &old)))
}

/// What is kept in the database at `dir`, the oldest first; the path alone of a file that cannot be read.
#[must_use]
pub fn learned(dir: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let read = |path: PathBuf| {
        let small = fs::metadata(&path).is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
        let bytes = small.then(|| fs::read(&path).ok()).flatten();
        (path, bytes)
    };
    files(&place::telemetry(dir)).into_iter().map(read).collect()
}

/// Such files in `folder`, the oldest first: their names begin with the time.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(&format!(".{ENDING}")));
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_what_is_there_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = place::telemetry(dir.path());
        fs::create_dir(&folder).unwrap();
        for nr in 0..40 {
            keep_learned(&folder.join(format!("2026-{nr:02}.tel")), &[nr]).unwrap();
        }
        let left = learned(dir.path());
        assert!(left.len() == KEPT && left[0].0.ends_with("2026-08.gains.json") && left[0].1 == Some(vec![8]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), KEPT, "nothing else is left");
        keep_learned(&folder.join("2026-39.tel"), b"new").unwrap();
        assert_eq!(learned(dir.path()).pop().unwrap().1, Some(b"new".to_vec()));
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_and_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(keep_learned(&place::recording(dir.path(), "r"), b"x").is_err());
        assert!(learned(dir.path()).is_empty());
    }

    #[test]
    fn a_file_that_is_too_large_or_none_at_all_is_named_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = place::telemetry(dir.path());
        fs::create_dir_all(folder.join("c.gains.json")).unwrap();
        for (name, bytes) in [("a", 64 << 20), ("b", (64 << 20) + 1)] {
            fs::File::create(folder.join(format!("{name}.gains.json"))).unwrap().set_len(bytes).unwrap();
        }
        fs::write(folder.join("a.tel"), b"a recording").unwrap();
        let found: Vec<(String, Option<usize>)> = learned(dir.path())
            .into_iter()
            .map(|(path, bytes)| (path.file_name().unwrap().to_string_lossy().into_owned(), bytes.map(|all| all.len())))
            .collect();
        let expected = [("a", Some(64 << 20)), ("b", None), ("c", None)];
        assert_eq!(found, expected.map(|(name, bytes)| (format!("{name}.gains.json"), bytes)));
    }
}
