//! Settles how the store says what went wrong: every message names the file, and the node where there is one.

use std::io;
use std::path::{Path, PathBuf};

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process writes to this database.
    #[error(
        "the database {} is in use by {}: only one muster may write to it at a time (looking into it still works)",
        path.display(), holder(*pid)
    )]
    Locked {
        /// Directory of the database.
        path: PathBuf,
        /// Process that holds the lock, when it left its number.
        pid: Option<u32>,
    },
    /// A newer muster wrote this.
    #[error(
        "{} was written by a newer muster (format {found}; this one knows up to {known}): use that muster, nothing was changed",
        path.display()
    )]
    Newer {
        /// File that names the format.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Newest format this program knows.
        known: u32,
    },
    /// The path is a file, or something else that is no directory.
    #[error("{} is not a directory: a database is a directory of its own", path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// There is no database to read.
    #[error("no database at {}: it is made by the first run", path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// This user may not.
    #[error("no permission to {doing} {}: {source}", path.display())]
    Denied {
        /// Operation, such as `write`.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No space, quota or size left. Nothing that was acknowledged is lost.
    #[error(
        "no space left to {doing} {}: the {kept} records acknowledged before are kept and readable, what was being \
         added is not stored; free some space and resume ({source})",
        path.display()
    )]
    Full {
        /// Operation.
        doing: &'static str,
        /// File that could not grow.
        path: PathBuf,
        /// Records of that file that stay.
        kept: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The database was opened for reading.
    #[error("cannot {doing}: the database {} was opened for reading only", path.display())]
    ReadOnly {
        /// Operation.
        doing: &'static str,
        /// Directory of the database.
        path: PathBuf,
    },
    /// No such run.
    #[error("cannot {doing}: there is no run '{run}' in the database")]
    NoRun {
        /// Operation.
        doing: &'static str,
        /// The run asked for.
        run: String,
    },
    /// A name that cannot be stored.
    #[error("{what} {name:?} cannot be stored: {why}")]
    BadName {
        /// What is named, such as `run`.
        what: &'static str,
        /// The name, shortened.
        name: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// A record over the limits of the contract.
    #[error("the record of {work} on {node} is not stored: {what}")]
    TooLarge {
        /// Node it came from.
        node: String,
        /// Benchmark or collector.
        work: String,
        /// Which limit.
        what: String,
    },
    /// An incident that cannot be one.
    #[error("the incident of {node} is not recorded: {why}")]
    BadIncident {
        /// Its node.
        node: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In words.
        why: String,
    },
    /// Anything else the system said.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// Operation.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl StoreError {
    /// Sorts a system error into the words above. `kept` is the number of records of the file that stay.
    pub(crate) fn io(doing: &'static str, path: &Path, kept: u64, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { doing, path, kept, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { doing, path, source },
            _ => Self::Io { doing, path, source },
        }
    }
}

/// Shorthand for `map_err` where no records are at stake.
pub(crate) fn failed<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::io(doing, path, 0, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_is_told_by_what_it_means_for_the_records() {
        let said = |kind: io::ErrorKind| StoreError::io("append to", Path::new("r.log"), 7, kind.into()).to_string();
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            let said = said(kind);
            assert!(said.starts_with("no space left to append to r.log: the 7 records acknowledged before"), "{said}");
        }
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let said = said(kind);
            assert!(said.starts_with("no permission to append to r.log: "), "{said}");
        }
        let said = said(io::ErrorKind::TimedOut);
        assert!(said.starts_with("cannot append to r.log: "), "{said}");
    }

    #[test]
    fn a_database_in_use_is_told_with_the_process_where_that_is_known() {
        let said = |pid| StoreError::Locked { path: "db".into(), pid }.to_string();
        assert!(said(Some(17)).starts_with("the database db is in use by process 17: "));
        assert!(said(None).starts_with("the database db is in use by another process: "));
    }
}
