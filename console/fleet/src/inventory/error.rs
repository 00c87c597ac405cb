//! What is said when an inventory or a selection cannot be read?

use std::path::{Path, PathBuf};

use crate::hostlist::HostListError;

/// An inventory file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", .file.display(), Place(*.line))]
pub struct InventoryError {
    /// The file.
    pub file: PathBuf,
    /// Line of the mistake, counted from 1; 0 when the file could not be read at all.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl InventoryError {
    /// An error at the byte offset `at` of the file's text.
    pub(super) fn at(file: &Path, text: &str, at: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

struct Place(usize);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, ":{}", self.0) }
    }
}

/// A selection (`-w`, `-x`) that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The host list itself is malformed.
    #[error(transparent)]
    List(#[from] HostListError),
    /// Names that the inventory does not have.
    #[error("not in the inventory: {names}{}", hint(.nearest))]
    Unknown {
        /// The names, folded.
        names: String,
        /// The inventory's name most like the first of them.
        nearest: Option<String>,
    },
    /// A group or label that no node has.
    #[error("no node is in {term}{}", hint(.nearest))]
    UnknownGroup {
        /// The term as it was written: `@group` or `@label=value`.
        term: String,
        /// What is most like it.
        nearest: Option<String>,
    },
    /// A `^file` that cannot be read or understood.
    #[error("{}{}: {message}", .file.display(), Place(*.line))]
    File {
        /// The file.
        file: PathBuf,
        /// Line of the mistake, counted from 1; 0 when the file could not be read.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A selection that means nothing where it was given.
    #[error("{0}")]
    Misplaced(String),
    /// Everything that was included was excluded again.
    #[error("the selection leaves no node")]
    Empty,
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}
