//! Files on their way to the console, within what the order allows.

use muster_wire::limits::{CHUNK_BYTES, JOB_BYTES};
use muster_wire::{Collected, FileChunk, Frame, Outcome, PROCESSES_BYTES};

/// What is sent, and what may still be.
pub(super) struct Send<'a> {
    say: &'a mut dyn FnMut(Frame),
    left: u64,
    /// Of that, what no file but the last may take: without it, nothing tells whose the others are.
    kept: u64,
    files: u32,
    bytes: u64,
    /// Files that there was no room for.
    pub(super) left_out: Vec<String>,
}

impl<'a> Send<'a> {
    /// At most `most` bytes.
    pub(super) fn new(most: u32, say: &'a mut dyn FnMut(Frame)) -> Self {
        let left = u64::from(most.min(JOB_BYTES));
        Self { say, left, kept: (left / 4).min(PROCESSES_BYTES as u64), files: 0, bytes: 0, left_out: Vec::new() }
    }

    /// Bytes that files may still have.
    pub(super) const fn room(&self) -> u64 {
        self.left.saturating_sub(self.kept)
    }

    /// The last file follows, which may take all that is left.
    pub(super) const fn last(&mut self) {
        self.kept = 0;
    }

    /// Sends a file in pieces; one that there is no room for is left out and named.
    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) {
        if bytes.len() as u64 > self.room() {
            return self.left_out.push(name.to_owned());
        }
        self.left -= bytes.len() as u64;
        self.bytes += bytes.len() as u64;
        self.files += 1;
        let mut rest = bytes;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(CHUNK_BYTES));
            rest = after;
            let last = rest.is_empty();
            (self.say)(Frame::Chunk(FileChunk { name: name.to_owned(), bytes: piece.to_vec(), last }));
            if last {
                return;
            }
        }
    }

    /// Says that this was all.
    pub(super) fn end(self, outcome: Outcome) {
        (self.say)(Frame::Collected(Collected { outcome, files: self.files, bytes: self.bytes }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_pieces_never_more_than_allowed_and_leave_room_for_the_last() {
        let mut frames = Vec::new();
        let mut say = |frame| frames.push(frame);
        let mut send = Send::new(200_000, &mut say);
        send.file("a", &[1; 140_000]);
        send.file("b", &[2; 20_000]);
        send.file("empty", &[]);
        assert_eq!((send.room(), send.left_out.as_slice()), (10_000, &["b".to_owned()][..]));
        send.last();
        assert_eq!(send.room(), 60_000);
        send.end(Outcome::Done);
        let sizes: Vec<(usize, bool)> = frames
            .iter()
            .filter_map(
                |frame| if let Frame::Chunk(chunk) = frame { Some((chunk.bytes.len(), chunk.last)) } else { None },
            )
            .collect();
        assert_eq!(sizes, [(CHUNK_BYTES, false), (CHUNK_BYTES, false), (140_000 - 2 * CHUNK_BYTES, true), (0, true)]);
        assert!(matches!(&frames[4], Frame::Collected(Collected { files: 2, bytes: 140_000, .. })));
    }
}
