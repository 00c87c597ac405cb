//! Verdicts as Parquet: one row a node and metric, names as dictionaries.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use muster_playbook::report::{NodeFindings, NodeReport};
use muster_run::Run;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::parquet::text;

/// Columns, in the order they are written. A node of which no metric was judged has one row without what is optional.
const SCHEMA: &str = "message verdicts {
    required binary run (STRING);
    required binary playbook (STRING);
    required binary profile (STRING);
    required binary node (STRING);
    required binary node_state (STRING);
    required int64 at_ms (TIMESTAMP(MILLIS, true));
    optional binary benchmark (STRING);
    optional binary metric (STRING);
    optional binary engine (STRING);
    optional binary unit (STRING);
    optional binary state (STRING);
    optional binary criterion (STRING);
    optional binary reason (STRING);
    optional double value;
    optional double similarity;
    optional double alpha;
}";
/// Rows of one group.
const ROWS: usize = 1 << 18;

/// A file of verdicts that is being written: a group of rows is in memory, and no more.
pub(super) struct Verdicts<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Rows,
    written: u64,
}

/// Rows that are not written yet, column by column.
#[derive(Default)]
struct Rows {
    texts: [Vec<ByteArray>; 5],
    at_ms: Vec<i64>,
    names: [Optional<ByteArray>; 7],
    numbers: [Optional<f64>; 3],
}

/// A column in which values may be missing: those that are there, and for every row whether it has one.
#[derive(Default)]
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<W: Write + Send> Verdicts<W> {
    pub(super) fn to(file: W) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
        let writer = SerializedFileWriter::new(file, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
        Ok(Self { writer, rows: Rows::default(), written: 0 })
    }

    /// Adds what `run`, which ended at `at_ms`, says of a node.
    pub(super) fn add(&mut self, (run, at_ms): (&Run, u64), said: &NodeFindings, node: &NodeReport) -> Result<()> {
        let of_all: [&str; 5] = [&run.id, &run.playbook, run.profile.name(), &said.node, node.state.name()];
        let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
        if said.verdicts.is_empty() {
            self.rows.push(of_all, at_ms, ([None; 7], [None; 3]));
        }
        for (verdict, told) in said.verdicts.iter().zip(&node.verdicts) {
            let (id, of) = (&verdict.metric, &told.of);
            let reason = Some(verdict.reason.as_str()).filter(|reason| !reason.is_empty());
            let names = [
                Some(id.benchmark.as_str()),
                Some(id.name.as_str()),
                Some(id.engine.as_str()),
                of.unit.map(|unit| unit.symbol()),
                Some(told.state.name()),
                of.criterion.as_ref().map(|criterion| criterion.id.as_str()),
                reason,
            ];
            self.rows.push(of_all, at_ms, (names, [told.value, told.similarity, of.alpha]));
        }
        if self.rows.at_ms.len() >= ROWS { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<()> {
        self.written += self.rows.at_ms.len() as u64;
        if self.rows.at_ms.is_empty() { Ok(()) } else { self.rows.write(self.writer.next_row_group()?) }
    }

    /// Writes what is left and the footer; the number of rows in the file.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.end_group()?;
        self.writer.close()?;
        Ok(self.written)
    }
}

impl Rows {
    fn push(&mut self, texts: [&str; 5], at_ms: i64, (names, numbers): ([Option<&str>; 7], [Option<f64>; 3])) {
        self.texts.iter_mut().zip(texts).for_each(|(column, value)| text(column, value));
        self.at_ms.push(at_ms);
        for (column, name) in self.names.iter_mut().zip(names) {
            column.levels.push(i16::from(name.is_some()));
            name.into_iter().for_each(|name| text(&mut column.values, name));
        }
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.levels.push(i16::from(number.is_some()));
            column.values.extend(number);
        }
    }

    /// Writes the rows as one group and forgets them.
    fn write<W: Write + Send>(&mut self, mut group: SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let rows = std::mem::take(self);
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let _written = match at {
                0..5 => column.typed::<ByteArrayType>().write_batch(&rows.texts[at], None, None)?,
                5 => column.typed::<Int64Type>().write_batch(&rows.at_ms, None, None)?,
                6..13 => {
                    let Optional { values, levels } = &rows.names[at - 6];
                    column.typed::<ByteArrayType>().write_batch(values, Some(levels), None)?
                }
                _ => {
                    let Optional { values, levels } = &rows.numbers[at - 13];
                    column.typed::<DoubleType>().write_batch(values, Some(levels), None)?
                }
            };
            column.close()?;
            at += 1;
        }
        group.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use muster_analysis::{NodeVerdict, State};
    use muster_playbook::report::NodeReports;
    use muster_run::RunState;
    use muster_wire::{MetricId, Profile};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn run() -> Run {
        Run {
            id: "r1".into(),
            playbook: "cbd".into(),
            profile: Profile::Quick,
            started_ms: 1,
            ended_ms: Some(2_000),
            nodes: Vec::new(),
            plan: Vec::new(),
            state: RunState::Finished,
        }
    }

    #[test]
    fn every_verdict_is_a_row_and_a_node_without_any_is_one_with_gaps() {
        let verdict = |name: &str, state, value: Option<f64>, reason: &str| NodeVerdict {
            node: "n1".into(),
            metric: MetricId::new("a/b", name, "own"),
            state,
            similarity: None,
            value,
            reason: reason.to_owned(),
        };
        let verdicts =
            vec![verdict("copy", State::Pass, Some(1.5), ""), verdict("triad", State::Fail, None, "too slow")];
        let nodes = [
            NodeFindings { node: "n1".into(), verdicts, ..NodeFindings::default() },
            NodeFindings { node: "n2".into(), ..NodeFindings::default() },
        ];
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut rows = Verdicts::to(file.reopen().unwrap()).unwrap();
        let (reports, run) = (NodeReports::of(&[]), run());
        for node in &nodes {
            rows.add((&run, 2_000), node, &reports.report(node)).unwrap();
        }
        assert_eq!(rows.finish().unwrap(), 3);
        let reader = SerializedFileReader::new(File::open(file.path()).unwrap()).unwrap();
        let read: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let texts = |row: usize, columns: &[usize]| {
            let text = |at: &usize| match &read[row][*at] {
                Field::Str(text) => text.clone(),
                other => format!("{other}"),
            };
            columns.iter().map(text).collect::<Vec<_>>()
        };
        let names = [0, 1, 3, 6, 7, 8, 10, 12];
        assert_eq!(texts(0, &names), ["r1", "cbd", "n1", "a/b", "copy", "own", "pass", "null"]);
        assert_eq!(texts(1, &names), ["r1", "cbd", "n1", "a/b", "triad", "own", "fail", "too slow"]);
        assert_eq!(texts(2, &names), ["r1", "cbd", "n2", "null", "null", "null", "null", "null"]);
        assert_eq!((&read[0][13], &read[1][13]), (&Field::Double(1.5), &Field::Null));
        assert_eq!(read[0][5], Field::TimestampMillis(2_000));
    }
}
