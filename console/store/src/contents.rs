//! Settles how a reader learns what a run file holds without reading all of it: its contents are kept beside it when the run
//! ends.
//!
//! Like the index they are a convenience, made of the log file and thrown away at will. They are believed where the log
//! file still has, at the place of the last record, the frame that they were made of, and where all that lies between the records
//! is whole; the records are checked when they are read. Whatever was written behind is read.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::frame::{FrameHead, HEADER, Span, head_at, only_whole};
use crate::index::{ResultRow, RunRow};
use crate::place;

/// Changes whenever the layout of a row does; other contents are not read.
const FORMAT: u32 = 1;
const LEVEL: i32 = 3;
/// Largest contents before compression, bytes: ten million results.
const MOST: usize = 2 << 30;

/// What a run file holds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contents {
    format: u32,
    pub(crate) run: RunRow,
    pub(crate) rows: Vec<ResultRow>,
    /// Length and checksum of the frame of the last record.
    last: FrameHead,
}

impl Contents {
    /// Keeps what the file of run `row` holds. A reader does without them, so that nothing is lost where this fails.
    pub(crate) fn keep(dir: &Path, row: RunRow, rows: Vec<ResultRow>) -> io::Result<()> {
        let Some(last) = last(&rows) else { return Ok(()) };
        let last = head_at(&fs::File::open(place::run_file(dir, &row.run.id))?, last)?;
        let path = place::contents(dir, &row.run.id);
        let contents = Self { format: FORMAT, run: row, rows, last };
        let mut cbor = Vec::new();
        ciborium::into_writer(&contents, &mut cbor).map_err(io::Error::other)?;
        let packed = zstd::bulk::compress(&cbor, LEVEL)?;
        let new = path.with_extension("new");
        let written = fs::File::create(&new).and_then(|mut file| {
            file.write_all(&crc32fast::hash(&packed).to_le_bytes())?;
            file.write_all(&packed)
        });
        let kept = written.and_then(|()| fs::rename(&new, &path));
        if kept.is_err() {
            let _ = fs::remove_file(&new);
        }
        kept
    }

    /// The contents of the file of run `id`, of which there are `len` bytes; `None` where there are none that fit.
    pub(crate) fn of(dir: &Path, id: &str, len: u64) -> Option<Self> {
        let bytes = fs::read(place::contents(dir, id)).ok()?;
        let (crc, packed) = bytes.split_first_chunk()?;
        if crc32fast::hash(packed) != u32::from_le_bytes(*crc) {
            return None;
        }
        let size = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten()?;
        let size = usize::try_from(size).ok().filter(|size| *size <= MOST)?;
        let cbor = zstd::bulk::decompress(packed, size).ok()?;
        let contents: Self = minicbor_serde::from_slice(&cbor).ok()?;
        let file = fs::File::open(place::run_file(dir, id)).ok()?;
        let fits = contents.format == FORMAT
            && contents.run.run.id == id
            && contents.run.upto <= len
            && head_at(&file, last(&contents.rows)?).ok()? == contents.last
            && contents.whole_beside(&file).ok()?;
        fits.then_some(contents)
    }

    /// Whether what is no record of these is whole.
    fn whole_beside(&self, file: &fs::File) -> io::Result<bool> {
        let mut spans: Vec<Span> = self.rows.iter().map(ResultRow::span).collect();
        spans.sort_unstable_by_key(|span| span.offset);
        let mut at = HEADER;
        for span in spans {
            if span.offset < at || !only_whole(file, at, span.offset)? {
                return Ok(false);
            }
            at = span.offset + span.length;
        }
        only_whole(file, at, self.run.upto)
    }
}

/// Where the last record lies.
fn last(rows: &[ResultRow]) -> Option<u64> {
    rows.iter().map(|row| row.span().offset).max()
}
