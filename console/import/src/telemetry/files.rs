//! Which format does each file have, and what do all of them hold together?

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};

use bytes::Bytes;

use super::packed::Capped;
use super::prometheus::{Left, Prometheus, is_answer};
use super::{Recording, parquet, unpacked};
use crate::Bad;

/// Bytes by which a format is told.
const START: u64 = 4_096;
/// Most bytes that a Parquet file may have that was packed with gzip: it is read with jumps, so it lies in memory.
const IN_MEMORY: u64 = 512 << 20;

/// All files of a recording.
#[derive(Debug, Default)]
pub struct Files {
    recording: Recording,
    prometheus: Prometheus,
}

/// What a file is.
enum Format {
    Csv,
    Parquet,
    Json,
}

fn format(start: &[u8]) -> Format {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match text.first() {
        _ if start.starts_with(parquet::MAGIC) => Format::Parquet,
        Some(b'{' | b'[') => Format::Json,
        _ => Format::Csv,
    }
}

impl Files {
    /// Adds a file: CSV, Parquet or an answer of Prometheus, packed with gzip or not, by its first bytes. False where it is JSON of another
    /// kind, of which nothing was taken.
    ///
    /// # Errors
    /// When it cannot be read to its end; the message names the line where there are lines.
    pub fn add(&mut self, mut file: File) -> Result<bool, Bad> {
        let mut magic = Vec::new();
        let broken = |source| Bad::Io { line: 1, source };
        file.by_ref().take(START).read_to_end(&mut magic).map_err(broken)?;
        if let Format::Parquet = format(&magic) {
            return self.recording.add_parquet(file).map(|()| true);
        }
        file.rewind().map_err(broken)?;
        self.add_stream(BufReader::with_capacity(1 << 18, file))
    }

    /// The same for what cannot be read with jumps.
    ///
    /// # Errors
    /// As for [`Files::add`].
    pub fn add_stream(&mut self, input: impl BufRead) -> Result<bool, Bad> {
        let broken = |source| Bad::Io { line: 1, source };
        let mut input = unpacked(input).map_err(broken)?;
        let mut start = Vec::new();
        input.by_ref().take(START).read_to_end(&mut start).map_err(broken)?;
        match format(&start) {
            Format::Parquet => {
                let mut whole = Vec::new();
                let mut rest = Capped { inner: Cursor::new(start).chain(input), left: IN_MEMORY };
                rest.read_to_end(&mut whole).map_err(broken)?;
                self.recording.add_parquet(Bytes::from(whole))?;
            }
            Format::Json if !is_answer(&start) => return Ok(false),
            Format::Json => self.prometheus.add(BufReader::new(Cursor::new(start).chain(input)))?,
            Format::Csv => self.recording.add_csv(Cursor::new(start).chain(input))?,
        }
        Ok(true)
    }

    /// What rows that are in no file are added to.
    pub const fn recording(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Everything, in order of time, and what of Prometheus' answers could not be used.
    ///
    /// # Errors
    /// When there are more rows than are kept.
    pub fn finish(self) -> Result<(Recording, Left), Bad> {
        let Self { mut recording, prometheus } = self;
        let left = prometheus.into_recording(&mut recording)?;
        recording.sort();
        recording.hold()?;
        Ok((recording, left))
    }
}
