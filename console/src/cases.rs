//! What was said of a case later: by people, which suspects are wrong and which root cause is confirmed; by its nodes, what they
//! showed without the job. Kept in files beside the bundle.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use muster_triage::case::Case;
use muster_triage::marks::{self, Marks};
use muster_triage::offline::{OFFLINE_BYTES, Offline};

use crate::out;

/// The marks in `file`; none where there is no such file.
///
/// # Errors
/// When it cannot be read, or is none of marks.
pub fn read(file: &Path) -> anyhow::Result<Marks> {
    let name = || file.display().to_string();
    let text = match read_at_most(file, marks::BYTES) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Marks::default()),
        other => other.with_context(name)?,
    };
    Marks::parse(&text).with_context(name)
}

/// Replaces `file` by these marks.
///
/// # Errors
/// When it cannot be written.
pub fn write(marks: &Marks, file: &Path) -> anyhow::Result<()> {
    out::replace(file, &serde_json::to_vec_pretty(marks)?, out::PRIVATE)
}

/// What a bundle is called.
#[must_use]
pub fn name_of(bundle: &Path) -> String {
    let whole = std::path::absolute(bundle).unwrap_or_else(|_| bundle.to_owned());
    let name =
        whole.file_name().map_or_else(|| bundle.display().to_string(), |name| name.to_string_lossy().into_owned());
    muster_wire::clean(&name, 80)
}

/// The file of marks beside a bundle: `job-4711.triage.json` beside `job-4711/`, `job-4711.tar.gz.triage.json` beside that file.
#[must_use]
pub fn marks_of(bundle: &Path) -> PathBuf {
    beside(bundle, ".triage.json")
}

fn beside(bundle: &Path, ending: &str) -> PathBuf {
    let whole = bundle.canonicalize().or_else(|_| std::path::absolute(bundle)).unwrap_or_else(|_| bundle.to_owned());
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    whole.with_file_name(name)
}

/// What the nodes of a case showed without the job, kept beside its bundle: `job-4711.offline.json`.
#[must_use]
pub fn tested_of(bundle: &Path) -> PathBuf {
    beside(bundle, ".offline.json")
}

/// Keeps what the nodes of a case showed without the job, in the published form.
///
/// # Errors
/// When it cannot be written.
pub fn keep_tested(tested: &Offline, bundle: &Path) -> anyhow::Result<()> {
    out::replace(&tested_of(bundle), &serde_json::to_vec_pretty(tested)?, out::PRIVATE)
}

/// Adds to a case what its nodes showed without the job; what cannot be read is told with what else could not.
pub fn take_tested(case: &mut Case, bundle: &Path) {
    let file = tested_of(bundle);
    let read = || -> Result<Option<Offline>, String> {
        match read_at_most(&file, OFFLINE_BYTES) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why.to_string()),
            Ok(text) => Offline::parse(&text).map(Some),
        }
    };
    match read() {
        Ok(None) => {}
        Ok(tested) => case.tested = tested,
        Err(why) => case.damage.push(format!("{}: {why}", muster_wire::clean(&file.display().to_string(), 200))),
    }
}

/// One byte more than `bytes` at most, so that what is too long is seen to be.
fn read_at_most(file: &Path, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(file)?.take(bytes as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use muster_triage::report::{Kind, Subject};

    use super::*;

    fn subject(rank: u32) -> Subject {
        Subject { kind: Kind::Rank, node: Some("n1".into()), rank: Some(rank), gpu: None, element: None }
    }

    #[test]
    fn marks_are_read_back_and_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let bundle = dir.path().join("job-7");
        std::fs::create_dir(&bundle).unwrap();
        let file = marks_of(&bundle);
        assert_eq!(file, dir.path().canonicalize().unwrap().join("job-7.triage.json"));
        assert_eq!(read(&file).unwrap(), Marks::default());
        let mut marks = Marks::default();
        marks.set_wrong(subject(3), true);
        marks.set_wrong(subject(3), true);
        marks.confirm(subject(4));
        write(&marks, &file).unwrap();
        let mut kept = read(&file).unwrap();
        assert_eq!((kept.wrong.len(), &kept), (1, &marks));
        kept.set_wrong(subject(3), false);
        assert!(kept.wrong.is_empty());
    }

    #[test]
    fn what_nodes_showed_without_the_job_is_read_with_the_bundle_and_a_broken_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let bundle = dir.path().join("job-7");
        std::fs::create_dir(&bundle).unwrap();
        let mut case = Case::default();
        take_tested(&mut case, &bundle);
        assert!(case.tested.is_none() && case.damage.is_empty());
        std::fs::write(tested_of(&bundle), "{}").unwrap();
        take_tested(&mut case, &bundle);
        assert!(case.tested.is_none() && case.damage[0].contains("job-7.offline.json: missing field"));
    }

    #[test]
    fn a_file_that_is_none_of_marks_is_said_and_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.triage.json");
        let other = r#"{"schema": "muster.run", "version": 1, "wrong": [], "confirmed": []}"#;
        for text in ["", "{}", "[1]", other, &"[".repeat(2_000_000)] {
            std::fs::write(&file, text).unwrap();
            assert!(read(&file).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }
}
