//! What NCCL's RAS answers, in any of its dialects from 2.24 to 2.30: JSON, also where a comma is missing, or text.

mod json;
mod repair;
mod text;

use muster_triage::case::Poll;

use super::last_number;
use crate::Bad;

/// Most communicators, and ranks of one, that are kept.
const COMMS: usize = 65_536;
/// Largest rank that is one: larger are memory that was never written (nccl#1762).
const RANK: u32 = 1 << 22;

/// Reads one answer by its file's name, which ends in the number of the poll.
///
/// # Errors
/// When it is neither.
pub fn read(file: &str, text: &str) -> Result<Poll, Bad> {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let trimmed = text.trim_start();
    let mut poll = if trimmed.starts_with('{') { json::read(trimmed)? } else { self::text::read(text)? };
    (poll.name, poll.number) = (muster_wire::clean(file, 120), last_number(stem).unwrap_or(0));
    Ok(poll)
}
