//! What is said about lines of an SSH configuration that are wrong, or that are not followed?

use std::path::PathBuf;

/// An SSH configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", .file.display())]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; of the `Include` for a file that cannot be read, 0 for a top file.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

/// A line that was read and not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The keyword, in lower case.
    pub keyword: String,
    /// Why it is not followed.
    pub reason: String,
}
