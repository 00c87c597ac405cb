//! Settles how entries are read back from a log file, one after the other, with the buffers of the one before.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::entry::{Bare, Decoder, Entry, Names, Packed};
use crate::frame::{Span, read_at};
use crate::index::{IndexError, ResultRow};
use muster_run::Record;

/// An open log file.
pub(crate) struct Reader {
    file: File,
    bytes: Vec<u8>,
    decoder: Decoder,
    names: Names,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, bytes: Vec::new(), decoder: Decoder::new()?, names: Names::default() })
    }

    /// Reads the record of `run` that an index `row` points to.
    pub(crate) fn record(&mut self, run: &str, row: &ResultRow) -> Result<Record, IndexError> {
        let Self { file, bytes, decoder, names } = self;
        let of = |packed: &Packed<'_>| (packed.node.as_str(), packed.work.as_str()) == named(row);
        entry((&*file, bytes), decoder, (run, row), of)?.unpack(run, names).map_err(|why| damaged((run, row), &why))
    }

    /// The same without its series.
    pub(crate) fn facts(&mut self, run: &str, row: &ResultRow) -> Result<Record, IndexError> {
        let Self { file, bytes, decoder, .. } = self;
        let of = |bare: &Bare| (bare.node.as_str(), bare.work.as_str()) == named(row);
        Ok(entry((&*file, bytes), decoder, (run, row), of)?.unpack(run))
    }

    /// Whether the frame of a record of `run` is what was written.
    pub(crate) fn prove(&mut self, run: &str, row: &ResultRow) -> Result<(), IndexError> {
        read_at(&self.file, row.span(), &mut self.bytes).map_err(|why| damaged((run, row), &why)).map(drop)
    }

    /// The criterion called `name` at `span`.
    pub(crate) fn criterion(&mut self, name: &str, span: Span) -> Result<Vec<u8>, IndexError> {
        let damaged = |why: String| IndexError(format!("criterion {name} is damaged: {why}"));
        let payload = read_at(&self.file, span, &mut self.bytes).map_err(damaged)?;
        match self.decoder.decode(payload).map_err(damaged)? {
            Entry::<IgnoredAny>::Criterion { name: found, bytes, .. } if found == name => Ok(bytes.0),
            _ => Err(IndexError(format!("criterion {name} is not where the index says"))),
        }
    }
}

/// The record that an index row points to, if `is` it.
fn entry<'d, R: Deserialize<'d>>(
    (file, bytes): (&File, &mut Vec<u8>),
    decoder: &'d mut Decoder,
    at: (&str, &ResultRow),
    is: impl Fn(&R) -> bool,
) -> Result<R, IndexError> {
    let payload = read_at(file, at.1.span(), bytes).map_err(|why| damaged(at, &why))?;
    match decoder.decode(payload).map_err(|why| damaged(at, &why))? {
        Entry::Record(packed) if is(&packed) => Ok(packed),
        _ => Err(damaged(at, "another entry lies there")),
    }
}

fn named(row: &ResultRow) -> (&str, &str) {
    (&row.summary.node, &row.summary.work)
}

fn damaged((run, row): (&str, &ResultRow), why: &str) -> IndexError {
    let (node, work) = named(row);
    IndexError(format!("the record of {work} on {node} in run {run} is damaged: {why}"))
}
