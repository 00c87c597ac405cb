//! Raw samples as Parquet: one row a value, names as dictionaries.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use muster_run::Record;
use muster_wire::{Direction, MetricId, Series};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Columns, in the order they are written.
const SCHEMA: &str = "message samples {
    required binary run (STRING);
    required binary node (STRING);
    required binary benchmark (STRING);
    required binary metric (STRING);
    required binary engine (STRING);
    required binary unit (STRING);
    required binary direction (STRING);
    required int64 at_ms (TIMESTAMP(MILLIS, true));
    required int64 step;
    required double value;
}";
/// Rows of one group.
const ROWS: usize = 1 << 20;

/// Rows that are not written yet, column by column.
#[derive(Default)]
struct Rows {
    texts: [Vec<ByteArray>; 7],
    at_ms: Vec<i64>,
    step: Vec<i64>,
    value: Vec<f64>,
}

/// A file of samples that is being written: a group of rows is in memory, and no more.
pub struct Samples<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Rows,
    written: u64,
}

impl<W: Write + Send> Samples<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn to(file: W) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
        let writer = SerializedFileWriter::new(file, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
        Ok(Self { writer, rows: Rows::default(), written: 0 })
    }

    /// Adds all values of `records`, in their order; `step` counts within a record's metric.
    ///
    /// # Errors
    /// When a row group cannot be written.
    pub fn add(&mut self, records: &[Record]) -> Result<()> {
        for record in records {
            self.rows.add(record);
            if self.rows.value.len() >= ROWS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        self.written += self.rows.value.len() as u64;
        if self.rows.value.is_empty() { Ok(()) } else { self.rows.write(self.writer.next_row_group()?) }
    }

    /// Writes what is left and the footer; the number of rows in the file.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        self.end_group()?;
        self.writer.close()?;
        Ok(self.written)
    }
}

/// Adds `value` to a column; equal neighbours share their bytes.
pub(super) fn text(column: &mut Vec<ByteArray>, value: &str) {
    match column.last() {
        Some(last) if last.data() == value.as_bytes() => column.push(last.clone()),
        _ => column.push(ByteArray::from(value)),
    }
}

impl Rows {
    fn add(&mut self, record: &Record) {
        let mut seen: HashMap<&MetricId, i64> = HashMap::new();
        for series in &record.series {
            let step = seen.entry(&series.metric).or_default();
            for value in &series.values {
                self.push(record, series, (*step, *value));
                *step += 1;
            }
        }
    }

    fn push(&mut self, record: &Record, series: &Series, (step, value): (i64, f64)) {
        let direction = match series.direction {
            Direction::HigherIsBetter => "higher_is_better",
            Direction::LowerIsBetter => "lower_is_better",
        };
        let metric = &series.metric;
        let texts = [
            &record.run,
            &record.node,
            &metric.benchmark,
            &metric.name,
            &metric.engine,
            series.unit.symbol(),
            direction,
        ];
        self.texts.iter_mut().zip(texts).for_each(|(column, value)| text(column, value));
        self.at_ms.push(i64::try_from(record.at_ms).unwrap_or(i64::MAX));
        self.step.push(step);
        self.value.push(value);
    }

    /// Writes the rows as one group and forgets them.
    fn write<W: Write + Send>(&mut self, mut group: SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let rows = std::mem::take(self);
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let _written = match at {
                0..7 => column.typed::<ByteArrayType>().write_batch(&rows.texts[at], None, None)?,
                7 => column.typed::<Int64Type>().write_batch(&rows.at_ms, None, None)?,
                8 => column.typed::<Int64Type>().write_batch(&rows.step, None, None)?,
                _ => column.typed::<DoubleType>().write_batch(&rows.value, None, None)?,
            };
            column.close()?;
            at += 1;
        }
        group.close()?;
        Ok(())
    }
}
