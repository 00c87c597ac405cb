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

#[cfg(test)]
mod tests {
    use muster_run::Summary;
    use muster_wire::Outcome;

    use super::*;
    use crate::entry::{Encoder, EntryRef, Raw};
    use crate::frame::{frame, header};

    fn record(node: &str) -> Record {
        let (run, node, work) = ("r".to_owned(), node.to_owned(), "disk".to_owned());
        let (series, facts) = (Vec::new(), Vec::new());
        Record { run, node, work, outcome: Outcome::Done, at_ms: 1, elapsed_ns: 2, series, facts }
    }

    fn row(node: &str, work: &str, span: Span) -> ResultRow {
        let (node, work) = (node.to_owned(), work.to_owned());
        let outcome = Outcome::Done;
        ResultRow::new(Summary { node, work, outcome, at_ms: 1, elapsed_ns: 2, series: 0, values: 0, facts: 0 }, span)
    }

    #[test]
    fn an_entry_is_read_only_where_the_index_says_that_it_lies() {
        let mut encoder = Encoder::new().unwrap();
        let mut bytes = header();
        let mut add = |entry: &EntryRef<'_>| frame(&encoder.encode(entry).unwrap(), &mut bytes).unwrap();
        let (first, second) = (record("n1"), record("n2"));
        let spans = [add(&EntryRef::from(&first)), add(&EntryRef::from(&second))];
        let criterion = add(&EntryRef::Criterion { name: "disk", at_ms: 1, bytes: Raw(b"sample") });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let mut reader = Reader::open(file.path()).unwrap();
        assert_eq!(reader.record("r", &row("n1", "disk", spans[0])).unwrap(), first);
        assert_eq!(reader.facts("r", &row("n2", "disk", spans[1])).unwrap(), second);
        let other = "the record of disk on n2 in run r is damaged: another entry lies there";
        assert_eq!(reader.record("r", &row("n2", "disk", spans[0])).unwrap_err().to_string(), other);
        assert_eq!(reader.facts("r", &row("n2", "disk", spans[0])).unwrap_err().to_string(), other);
        assert!(reader.record("r", &row("n1", "cpu", spans[0])).is_err(), "another work of the same node");
        assert!(reader.record("r", &row("n1", "disk", criterion)).is_err());
        assert_eq!(reader.criterion("disk", criterion).unwrap(), b"sample");
        let other = "criterion cpu is not where the index says";
        assert_eq!(reader.criterion("cpu", criterion).unwrap_err().to_string(), other);
        assert!(reader.criterion("disk", spans[0]).is_err());
        let torn = Span { length: spans[0].length - 1, ..spans[0] };
        assert!(reader.prove("r", &row("n1", "disk", spans[0])).is_ok());
        let said = reader.prove("r", &row("n1", "disk", torn)).unwrap_err().to_string();
        assert_eq!(said, "the record of disk on n1 in run r is damaged: its checksum is wrong");
    }
}
