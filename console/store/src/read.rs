//! Settles how entries are read back from a log file, one after the other, with the buffers of the one before.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::entry::{Decoder, Entry, Names, Packed};
use crate::frame::{Span, read_at};
use crate::index::{IndexError, ResultRow};
use muster_run::{Record, Summary};

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
        let Summary { node, work, .. } = &row.summary;
        let damaged =
            |why: String| IndexError(format!("the record of {work} on {node} in run {run} is damaged: {why}"));
        let payload = read_at(&self.file, row.span(), &mut self.bytes).map_err(damaged)?;
        match self.decoder.decode::<Packed<'_>>(payload).map_err(damaged)? {
            Entry::Record(packed) if packed.node == *node && packed.work == *work => {
                packed.unpack(run, &mut self.names).map_err(damaged)
            }
            _ => Err(damaged("another entry lies there".to_owned())),
        }
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
