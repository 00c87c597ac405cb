//! A bundle's files, opened and read side by side.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, anyhow};
use flate2::bufread::MultiGzDecoder;
use muster_import::Bad;
use muster_import::bundle::{gather, part};
use muster_import::telemetry::unpacked;
use muster_logs::Rules;
use muster_triage::case::Case;
use muster_wire::clean;

use crate::exit::{Code, IO, Problem, USAGE};

/// Most files of a bundle.
const FILES: usize = 200_000;
/// Deepest folder that is looked into.
const DEEP: usize = 6;
const BUFFER: usize = 1 << 18;
/// Longest reason why a tar cannot be read, bytes.
const REASON: usize = 200;

/// Is told how many files are read, and of how many where that is known; whether reading goes on is what it answers.
pub type Tell<'a> = &'a (dyn Fn(usize, Option<usize>) -> bool + Sync);

/// A file's path within the bundle, and what was made of it.
type Named<T> = (String, Result<T, Bad>);

/// Reads one file by its path within the bundle.
type Reader<'a, T> = &'a (dyn Fn(&str, &mut dyn BufRead) -> T + Sync);

/// Everything a bundle says. A bundle without any part of one is no case.
///
/// # Errors
/// When it cannot be opened, is none, or was given up; a file in it that cannot be read is damage of the case.
pub fn read(from: &Path, rules: &Rules, tell: Tell<'_>) -> Result<Case, Problem> {
    let parse = |name: &str, input: &mut dyn BufRead| part(name, input, rules);
    let parts = each(from, &parse, tell)?.into_iter().map(|(name, read)| (name, read.and_then(|part| part)));
    let case = gather(parts);
    if case.is_empty() {
        let error = anyhow!("{}: no part of a bundle in it; see muster triage --help", from.display());
        return Err(Problem { code: USAGE, error });
    }
    Ok(case)
}

/// What `parse` makes of each file of a bundle, by its path within; in the order of the paths where it is a folder.
///
/// # Errors
/// When the bundle cannot be opened, or was given up.
pub fn each<T: Send>(from: &Path, parse: Reader<'_, T>, tell: Tell<'_>) -> Result<Vec<Named<T>>, Problem> {
    if from.is_dir() { folder(from, parse, tell).code(IO) } else { archive(from, parse, tell).code(IO) }
}

fn folder<T: Send>(from: &Path, parse: Reader<'_, T>, tell: Tell<'_>) -> anyhow::Result<Vec<Named<T>>> {
    let mut files = Vec::new();
    list(from, from, 0, &mut files)?;
    files.sort_unstable();
    let read = side_by_side(&files, |name, file: &PathBuf| one(name, file, parse), tell);
    read.ok_or_else(|| anyhow!("{}: given up", from.display()))
}

/// Everything that files in memory say, by their paths within the bundle.
#[must_use]
pub fn held(files: &[(String, Vec<u8>)], rules: &Rules) -> Case {
    let read = |name: &str, bytes: &Vec<u8>| part(name, &mut bytes.as_slice(), rules);
    gather(side_by_side(files, read, &|_, _| true).unwrap_or_default())
}

/// Reads all, on all cores, and gives what they say in the order of their paths; nothing if it was given up.
fn side_by_side<F: Sync, T: Send>(
    files: &[(String, F)],
    read: impl Fn(&str, &F) -> T + Sync,
    tell: Tell<'_>,
) -> Option<Vec<(String, T)>> {
    let (next, parts) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(files.len())));
    let given_up = AtomicBool::new(false);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let read = (name.clone(), read(name, file));
                    let mut parts = parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    parts.push(read);
                    if given_up.load(Ordering::Relaxed) || !tell(parts.len(), Some(files.len())) {
                        given_up.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
    if given_up.into_inner() {
        return None;
    }
    let mut parts = parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // The same verdict whoever was faster.
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    Some(parts)
}

/// The files below a folder, by their path within the bundle.
fn list(root: &Path, folder: &Path, depth: usize, files: &mut Vec<(String, PathBuf)>) -> anyhow::Result<()> {
    let name = || folder.display().to_string();
    for entry in std::fs::read_dir(folder).with_context(name)? {
        let entry = entry.with_context(name)?;
        let kind = entry.file_type().with_context(name)?;
        let path = entry.path();
        if kind.is_dir() && depth < DEEP {
            list(root, &path, depth + 1, files)?;
        } else if kind.is_file() {
            // Links may lead out of the bundle, and pipes never end.
            let within = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push((within, path));
        }
        if files.len() > FILES {
            return Err(anyhow!("{}: more than {FILES} files", root.display()));
        }
    }
    Ok(())
}

fn one<T>(name: &str, file: &Path, parse: Reader<'_, T>) -> Result<T, Bad> {
    let broken = |source| Bad::Io { line: 1, source };
    let input = BufReader::with_capacity(BUFFER, File::open(file).map_err(broken)?);
    Ok(parse(name, &mut unpacked(input).map_err(broken)?))
}

/// A tar of a bundle, packed or not, read in one pass.
fn archive<T>(from: &Path, parse: Reader<'_, T>, tell: Tell<'_>) -> anyhow::Result<Vec<Named<T>>> {
    let name = || from.display().to_string();
    let mut input = BufReader::with_capacity(BUFFER, File::open(from).with_context(name)?);
    let packed = std::io::BufRead::fill_buf(&mut input).with_context(name)?.starts_with(&[0x1f, 0x8b]);
    let input: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
    let mut parts = Vec::new();
    let mut archive = tar::Archive::new(input);
    for (at, entry) in archive.entries().with_context(name)?.enumerate() {
        if at >= FILES {
            return Err(anyhow!("{}: more than {FILES} files", from.display()));
        }
        let torn = || format!("{}: not a tar of a bundle, or torn", from.display());
        let entry = entry.map_err(|why| harmless(&why)).with_context(torn)?;
        if entry.header().entry_type().is_file() {
            let path = entry.path_bytes();
            let path = String::from_utf8_lossy(&path).into_owned();
            let read = unpacked(BufReader::with_capacity(BUFFER, entry)).map_err(|source| Bad::Io { line: 1, source });
            parts.push((path.clone(), read.map(|mut input| parse(&path, &mut input))));
            if !tell(parts.len(), None) {
                return Err(anyhow!("{}: given up", from.display()));
            }
        }
    }
    Ok(parts)
}

/// The same in words that a terminal can be given: it repeats what the file has where it should have a number or a name.
fn harmless(why: &std::io::Error) -> std::io::Error {
    std::io::Error::new(why.kind(), clean(&why.to_string(), REASON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_that_is_no_tar_has_in_place_of_a_header_reaches_no_terminal() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("job.tar");
        std::fs::write(&file, "\x1b]0;owned\x07\x1b[31mred".repeat(100)).unwrap();
        let read = each(&file, &|_: &str, _: &mut dyn BufRead| (), &|_, _| true);
        let problem = read.map(|parts| parts.len()).unwrap_err();
        let said = format!("{:#}", problem.error);
        assert!(problem.code == IO && said.contains("not a tar of a bundle, or torn: "), "{said}");
        assert!(!said.chars().any(char::is_control) && said.len() < 400, "{said:?}");
    }
}
