//! One file that holds all that a replay needs: a run, a recording of a watch or a triage case, for another machine.
//!
//! Magic, format, then frames `[length u32][crc32 u32][bytes]`, all integers little-endian. The first frame is the head (CBOR): what the
//! file holds, who wrote it, and name and length of every part. The parts follow one after another, each in frames of at most 64 KiB.
//! A checksum also covers which part and which frame of it this is, so that frames cannot change places; the file ends with its last
//! part. What reads it believes no length before the file itself bears it out, and keeps one frame in memory.

mod error;
mod read;
mod write;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use error::PortableError;
pub use read::{Portable, is_portable};
pub use write::{Source, write};

use crate::StoreError;
use crate::error::failed;
use crate::place;

/// First bytes of every such file.
const MAGIC: [u8; 12] = *b"MUSTERRPL\r\n\0";
/// Newest format.
const FORMAT: u32 = 1;
/// Magic and format.
const HEADER: usize = 16;
/// Length and checksum before the bytes of a frame.
const FRAME: usize = 8;
/// Bytes of a frame at most.
const CHUNK: usize = 64 << 10;
/// Parts of a file at most.
const PARTS: usize = 16;
/// Bytes of a text in the head at most.
const TEXT: usize = 256;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A run.
    Run,
    /// What a watch recorded.
    Watch,
    /// The bundle of a failed job.
    Case,
}

impl Kind {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Watch => "watch recording",
            Self::Case => "triage case",
        }
    }
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// What it holds.
    pub kind: Kind,
    /// Name of the run, the recording or the bundle.
    pub name: String,
    /// Version of the muster that wrote it.
    pub writer: String,
    /// When, milliseconds since 1970 UTC.
    pub written_ms: u64,
    /// In the order they follow.
    pub parts: Vec<Part>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// File name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Length in bytes, without frames.
    pub bytes: u64,
}

/// The checksum of frame number `frame` of part number `part`; the head is part 0.
fn checksum((part, frame): (u32, u64), bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&part.to_le_bytes());
    crc.update(&frame.to_le_bytes());
    crc.update(&(bytes.len() as u64).to_le_bytes());
    crc.update(bytes);
    crc.finalize()
}

/// The file of the run `id` in the database at `dir`.
#[must_use]
pub fn file_of(dir: &Path, id: &str) -> PathBuf {
    place::run_file(dir, id)
}

/// Moves `file` to where the database at `dir`, which nobody has open, keeps the run `id`.
///
/// # Errors
/// When `id` may not name a file, or the system refuses.
pub fn take_in(dir: &Path, id: &str, file: &Path) -> Result<(), StoreError> {
    place::run_id(id)?;
    let to = place::run_file(dir, id);
    fs::rename(file, &to).map_err(failed("create", &to))
}

#[cfg(test)]
mod tests;
