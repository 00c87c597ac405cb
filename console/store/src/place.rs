//! Settles the layout of the directory, and which names may stand in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use muster_wire::clean;
use muster_wire::limits::NAME_BYTES;

use crate::StoreError;
use crate::error::failed;
use crate::log::sync_dir;

/// Longest node, work or criterion name, bytes: a full host name fits.
const LONG_NAME_BYTES: usize = 512;

pub(crate) fn runs(dir: &Path) -> PathBuf {
    dir.join("runs")
}

pub(crate) fn run_file(dir: &Path, id: &str) -> PathBuf {
    runs(dir).join(format!("{id}.log"))
}

/// What a run file holds, for readers.
pub(crate) fn contents(dir: &Path, id: &str) -> PathBuf {
    runs(dir).join(format!("{id}.contents"))
}

/// A run in short.
pub(crate) fn overview(dir: &Path, id: &str) -> PathBuf {
    runs(dir).join(format!("{id}.overview"))
}

/// What was made of a whole run file.
pub(crate) fn beside(dir: &Path, id: &str) -> PathBuf {
    runs(dir).join(format!("{id}.judged"))
}

pub(crate) fn telemetry(dir: &Path) -> PathBuf {
    dir.join("telemetry")
}

/// How the name of a recording ends.
pub(crate) const RECORDING: &str = ".tel";

pub(crate) fn recording(dir: &Path, id: &str) -> PathBuf {
    telemetry(dir).join(format!("{id}{RECORDING}"))
}

pub(crate) fn criteria_file(dir: &Path) -> PathBuf {
    dir.join("criteria").join("criteria.log")
}

pub(crate) fn incidents_file(dir: &Path) -> PathBuf {
    dir.join("incidents.log")
}

pub(crate) fn models_file(dir: &Path) -> PathBuf {
    dir.join("models.log")
}

pub(crate) fn index(dir: &Path) -> PathBuf {
    dir.join("index")
}

/// Stands where an index failed in the middle of its life; the next writer makes a new one.
pub(crate) fn index_bad(dir: &Path) -> PathBuf {
    dir.join("index.bad")
}

/// What repairs moved away: cut-off bytes, sled snapshots, whole indexes.
pub(crate) fn damaged(dir: &Path) -> PathBuf {
    dir.join("damaged")
}

/// Which log files there must be, and how long each was.
pub(crate) fn files(dir: &Path) -> PathBuf {
    dir.join("files")
}

/// Where the bytes of the log file `path` go that are damaged at `offset`.
pub(crate) fn quarantine(dir: &Path, path: &Path, offset: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    damaged(dir).join(format!("{name}.{offset}"))
}

/// Every log file there is: those of runs, by id, then those of criteria, incidents and models.
pub(crate) fn logs(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut paths: Vec<PathBuf> = run_ids(dir)?.iter().map(|id| run_file(dir, id)).collect();
    let others = [criteria_file(dir), incidents_file(dir), models_file(dir)];
    paths.extend(others.into_iter().filter(|path| path.exists()));
    Ok(paths)
}

/// Refuses what is no directory, and a directory that belongs to something else.
pub(crate) fn claim(dir: &Path) -> Result<(), StoreError> {
    match fs::metadata(dir) {
        Ok(meta) if !meta.is_dir() => return Err(StoreError::NotADirectory { path: dir.to_owned() }),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
            return Err(StoreError::NotADirectory { path: dir.to_owned() });
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).map_err(failed("create", dir))?;
        }
        Err(e) => return Err(failed("look at", dir)(e)),
    }
    if dir.join("version").exists() || runs(dir).exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(failed("read", dir))? {
        let name = entry.map_err(failed("read", dir))?.file_name();
        if !["lock", "version.new", "files.new", "telemetry", "lost+found"].iter().any(|ours| name == *ours) {
            let why = format!("it holds {name:?} and no database of ours: give an empty or a new directory");
            return Err(StoreError::Damaged { path: dir.to_owned(), why });
        }
    }
    Ok(())
}

/// Makes the folders inside the directory.
pub(crate) fn furnish(dir: &Path) -> Result<(), StoreError> {
    for folder in [runs(dir), dir.join("criteria")] {
        if !folder.is_dir() {
            fs::create_dir(&folder).map_err(failed("create", &folder))?;
        }
    }
    sync_dir(dir).map_err(failed("sync", dir))
}

/// Ids of the runs that have a file, sorted.
pub(crate) fn run_ids(dir: &Path) -> Result<Vec<String>, StoreError> {
    let folder = runs(dir);
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("read", &folder))?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed("read", &folder))?.file_name();
        let id = name.to_str().and_then(|n| n.strip_suffix(".log"));
        ids.extend(id.filter(|id| run_id(id).is_ok()).map(str::to_owned));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Whether `id` may name a file.
pub(crate) fn run_id(id: &str) -> Result<(), StoreError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let why = "1 to 96 letters, digits, '-', '_' or '.', not beginning with '.'";
    let good = !id.is_empty() && id.len() <= NAME_BYTES && !id.starts_with('.') && id.chars().all(plain);
    if good { Ok(()) } else { Err(bad("run", id, why)) }
}

/// Whether `name` may stand in a key.
pub(crate) fn name(what: &'static str, name: &str) -> Result<(), StoreError> {
    if name.is_empty() || name.len() > LONG_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(bad(what, name, "1 to 512 bytes without control characters"));
    }
    Ok(())
}

fn bad(what: &'static str, name: &str, why: &'static str) -> StoreError {
    StoreError::BadName { what, name: clean(name, 80), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_where_there_is_none_and_what_cannot_be_looked_at_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        claim(&home.path().join("new/db")).unwrap();
        assert!(home.path().join("new/db").is_dir());
        let error = claim(Path::new("a\0b")).unwrap_err().to_string();
        assert!(error.contains("look at"), "{error}");
        std::fs::write(home.path().join("file"), b"").unwrap();
        assert!(matches!(claim(&home.path().join("file")), Err(StoreError::NotADirectory { .. })));
        assert!(matches!(claim(&home.path().join("file/db")), Err(StoreError::NotADirectory { .. })));
    }

    #[test]
    fn a_folder_of_ours_or_with_nothing_of_others_is_taken_and_any_other_is_refused() {
        let claimed = |files: &[&str]| {
            let home = tempfile::tempdir().unwrap();
            files.iter().for_each(|file| fs::create_dir(home.path().join(file)).unwrap());
            claim(home.path()).map_err(|e| e.to_string())
        };
        for files in [&[][..], &["lock", "version.new", "files.new", "telemetry", "lost+found"]] {
            assert_eq!(claimed(files), Ok(()), "{files:?}");
        }
        for files in [&["version", "notes.txt"], &["runs", "notes.txt"]] {
            assert_eq!(claimed(files), Ok(()), "it is ours: {files:?}");
        }
        let why = claimed(&["lock", "notes.txt"]).unwrap_err();
        assert!(why.contains("it holds \"notes.txt\" and no database of ours"), "{why}");
    }

    #[test]
    fn log_files_are_those_of_runs_by_id_and_then_the_others_that_are_there() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        assert_eq!(logs(dir).unwrap(), Vec::<PathBuf>::new());
        furnish(dir).unwrap();
        furnish(dir).unwrap();
        for file in ["b.log", "a.log", "a.contents", ".log", "..log", "x y.log", "a.log.new"] {
            fs::write(runs(dir).join(file), b"").unwrap();
        }
        assert_eq!(run_ids(dir).unwrap(), ["a", "b"]);
        fs::write(models_file(dir), b"").unwrap();
        assert_eq!(logs(dir).unwrap(), [run_file(dir, "a"), run_file(dir, "b"), models_file(dir)]);
        assert_eq!(quarantine(dir, &models_file(dir), 16), dir.join("damaged/models.log.16"));
    }

    #[test]
    fn names_are_taken_up_to_their_length_and_without_control_characters() {
        let long = |bytes: usize| "n".repeat(bytes);
        for (id, good) in [
            ("A-b_c.9", true),
            (&*long(NAME_BYTES), true),
            (&long(NAME_BYTES + 1), false),
            ("", false),
            (".a", false),
            ("a/b", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(run_id(id).is_ok(), good, "{id}");
        }
        for (node, good) in
            [("node 1 (rack ä)", true), (&*long(512), true), (&long(513), false), ("", false), ("a\nb", false)]
        {
            assert_eq!(name("node", node).is_ok(), good, "{node}");
        }
    }
}
