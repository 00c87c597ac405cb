//! What can be wrong with a replay file, in words that name the file and the place.

use std::io;
use std::path::PathBuf;

/// Why a replay file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PortableError {
    /// The system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// Operation, such as `read`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else.
    #[error("{}: not a muster replay file", path.display())]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// A newer muster wrote it.
    #[error("{}: written by a newer muster (format {found}; this one knows up to {known})", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Newest format this program knows.
        known: u32,
    },
    /// Its end is missing.
    #[error("{}: cut off at byte {at}: {why}", path.display())]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Its length.
        at: u64,
        /// What is missing.
        why: String,
    },
    /// Bytes are not what was written.
    #[error("{}: damaged at byte {at}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where what is damaged begins.
        at: u64,
        /// What is wrong.
        why: String,
    },
}
