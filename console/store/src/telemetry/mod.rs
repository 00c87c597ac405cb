//! Telemetry of a watched job: what nodes told of themselves, in chunks of columns, one file for each watch.
//!
//! `telemetry/<id>.tel` in the database's directory: magic, format, then frames as in log files (`[length][checksum][zstd]`), each
//! of which can be read without the others. A chunk is durable once [`Recorder::push`] or [`Recorder::commit`] that wrote it has
//! returned; a crash costs what came since, at most half a minute. Values are kept to twelve binary digits, one part in 8,192.

mod chunk;
mod keep;
mod learned;
mod read;
mod write;

pub use keep::{Kept, recordings, thin_out};
pub use learned::{keep_learned, learned};
pub use read::{Told, is_recording, replay};
pub use write::Recorder;

/// First bytes of every recording.
const MAGIC: [u8; 12] = *b"MUSTERTEL\r\n\0";
/// Newest format of recordings.
const FORMAT: u32 = 1;
/// Magic and format.
const HEADER: usize = 16;

/// Magic and format of a new file.
fn header() -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(&FORMAT.to_le_bytes());
    bytes
}
