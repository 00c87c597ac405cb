//! What nodes told, kept as a bundle in a folder for its owner only.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::out;

/// Makes the folder, for its owner only.
///
/// # Errors
/// When it cannot be made, or holds anything already.
pub fn make_room(dir: &Path) -> anyhow::Result<()> {
    let name = || dir.display().to_string();
    let is_empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return folder(dir).with_context(name),
        Err(why) => return Err(why).with_context(name),
    };
    if is_empty { Ok(()) } else { Err(anyhow!("{}: not empty; a bundle is not mixed with other files", name())) }
}

fn folder(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes the files of a bundle, for their owner only.
///
/// # Errors
/// When one cannot be written, or is there already.
pub fn keep(dir: &Path, files: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    for (path, bytes) in files {
        let file = dir.join(path);
        let name = || file.display().to_string();
        if let Some(parent) = file.parent() {
            folder(parent).with_context(name)?;
        }
        let opened = OpenOptions::new().write(true).create_new(true).mode(out::PRIVATE).open(&file);
        opened.and_then(|mut file| file.write_all(bytes)).with_context(name)?;
    }
    Ok(())
}

/// The first of `dir-2`, `dir-3` … that is not there.
#[must_use]
pub fn next_to(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut beside = (2_u32..).map(|number| dir.with_file_name(format!("{name}-{number}")));
    beside.find(|path| !path.exists()).unwrap_or_else(|| dir.to_owned())
}

/// Whether `path` is `dir` or one that [`next_to`] put beside it.
#[must_use]
pub fn is_of(dir: &Path, path: &Path) -> bool {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = name(path).strip_prefix(&name(dir)).and_then(|rest| rest.strip_prefix('-')?.parse::<u32>().ok());
    path == dir || (path.parent() == dir.parent() && number.is_some())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_bundle_is_kept_for_its_owner_only_and_never_mixed_with_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("a/job");
        make_room(&into).unwrap();
        keep(&into, &[("logs/rank_0.log".to_owned(), b"x".to_vec())]).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&into), mode(&into.join("logs")), mode(&into.join("logs/rank_0.log"))), (0o700, 0o700, 0o600));
        assert!(make_room(&into).unwrap_err().to_string().contains("not empty"));
    }

    #[test]
    fn another_answer_is_kept_beside_the_earlier_ones() {
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("job-4711");
        assert_eq!(next_to(&first), dir.path().join("job-4711-2"));
        make_room(&dir.path().join("job-4711-2")).unwrap();
        let third = next_to(&first);
        assert_eq!(third, dir.path().join("job-4711-3"));
        assert!(is_of(&first, &first) && is_of(&first, &third));
        for other in ["job-4711-x", "job-47-2", "other/job-4711-2"] {
            assert!(!is_of(&first, &dir.path().join(other)), "{other}");
        }
    }
}
