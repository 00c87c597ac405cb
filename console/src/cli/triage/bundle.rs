//! A bundle's files, opened and read side by side.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow};
use flate2::bufread::MultiGzDecoder;
use muster_analysis::triage::case::Case;
use muster_analysis::triage::rules::Rules;
use muster_import::Bad;
use muster_import::bundle::{Part, gather, part};
use muster_import::telemetry::unpacked;

use crate::exit::{Code, IO, Problem};

/// Most files of a bundle.
const FILES: usize = 200_000;
/// Deepest folder that is looked into.
const DEEP: usize = 6;
const BUFFER: usize = 1 << 18;

type Read1 = (String, Result<Part, Bad>);

/// Everything a bundle says.
///
/// # Errors
/// When it cannot be opened; a file in it that cannot be read is damage of the case.
pub(super) fn read(from: &Path, rules: &Rules) -> Result<Case, Problem> {
    let parts = if from.is_dir() { folder(from, rules) } else { archive(from, rules) };
    Ok(gather(parts.code(IO)?))
}

fn folder(from: &Path, rules: &Rules) -> anyhow::Result<Vec<Read1>> {
    let mut files = Vec::new();
    list(from, from, 0, &mut files)?;
    files.sort_unstable();
    Ok(side_by_side(&files, |name, file| one(name, file, rules)))
}

/// The same of files that lie in memory, by their paths within the bundle.
pub(super) fn held(files: &[(String, Vec<u8>)], rules: &Rules) -> Case {
    gather(side_by_side(files, |name, bytes| part(name, bytes.as_slice(), rules)))
}

/// Reads all, on all cores, and gives what they say in the order of their paths.
fn side_by_side<T: Sync>(files: &[(String, T)], read: impl Fn(&str, &T) -> Result<Part, Bad> + Sync) -> Vec<Read1> {
    let (next, parts) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(files.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let read = (name.clone(), read(name, file));
                    parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(read);
                }
            });
        }
    });
    let mut parts = parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // The same verdict whoever was faster.
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts
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

fn one(name: &str, file: &PathBuf, rules: &Rules) -> Result<Part, Bad> {
    let broken = |source| Bad::Io { line: 1, source };
    let input = BufReader::with_capacity(BUFFER, File::open(file).map_err(broken)?);
    part(name, unpacked(input).map_err(broken)?, rules)
}

/// A tar of a bundle, packed or not, read in one pass.
fn archive(from: &Path, rules: &Rules) -> anyhow::Result<Vec<Read1>> {
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
        let entry = entry.with_context(|| format!("{}: not a tar of a bundle, or torn", from.display()))?;
        if entry.header().entry_type().is_file() {
            let path = entry.path_bytes();
            let path = String::from_utf8_lossy(&path).into_owned();
            let read = unpacked(BufReader::with_capacity(BUFFER, entry)).map_err(|source| Bad::Io { line: 1, source });
            parts.push((path.clone(), read.and_then(|input| part(&path, input, rules))));
        }
    }
    Ok(parts)
}
