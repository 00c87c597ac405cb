//! A replay file of a triage case: its bundle as one tar.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use muster_store::portable::Kind;

use super::{Unpacked, of_file};
use crate::cases;
use crate::exit::{Code, IO, Problem};

/// How the name of its part begins.
const PART: &str = "case.tar";

/// Writes the bundle at `from`: a folder, or a tar of one.
///
/// # Errors
/// When it cannot be read, or is no bundle.
pub fn write(from: &Path, to: &mut dyn Write) -> anyhow::Result<()> {
    let name = cases::name_of(from);
    if !from.is_dir() {
        let ending = if name.ends_with(".gz") || name.ends_with(".tgz") { ".gz" } else { "" };
        return super::write(to, (Kind::Case, &name), vec![of_file(format!("{PART}{ending}"), from)?]);
    }
    let mut packed = tempfile::NamedTempFile::new()?;
    let mut tar = tar::Builder::new(packed.as_file_mut());
    tar.follow_symlinks(false);
    tar.append_dir_all("case", from).with_context(|| from.display().to_string())?;
    tar.into_inner()?.rewind()?;
    if packed.as_file().metadata()?.len() == 0 {
        return Err(anyhow!("{}: it holds nothing", from.display()));
    }
    super::write(to, (Kind::Case, &name), vec![of_file(PART.to_owned(), packed.path())?])
}

/// The bundle out of a replay file, by the name that it had: a screen shows that.
///
/// # Errors
/// Where the file has none.
pub fn of(file: &Unpacked) -> Result<PathBuf, Problem> {
    let packed = file.part(PART)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = file.head.name.chars().map(plain).collect();
    let name = name.trim_start_matches('.');
    let to = file.dir().join("case").join(if name.is_empty() { PART } else { name });
    std::fs::create_dir(file.dir().join("case")).and_then(|()| std::fs::rename(packed, &to)).code(IO)?;
    Ok(to)
}
