//! Raw samples as Parquet: one row a value, names as dictionaries.

use std::sync::Arc;

use anyhow::Result;
use muster_run::Record;
use muster_wire::Direction;
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

/// All values of `records`, in their order; `step` counts within a node's metric.
///
/// # Errors
/// When a row group cannot be encoded.
pub fn encode(records: &[Record]) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
    let mut rows = Rows::default();
    for record in records {
        let mut seen: Vec<(&muster_wire::MetricId, i64)> = Vec::new();
        for series in &record.series {
            let at = seen.iter().position(|(metric, _)| *metric == &series.metric).unwrap_or(seen.len());
            if at == seen.len() {
                seen.push((&series.metric, 0));
            }
            for value in &series.values {
                rows.push(record, series, (seen[at].1, *value));
                seen[at].1 += 1;
            }
        }
        if rows.value.len() >= ROWS {
            rows.write(writer.next_row_group()?)?;
        }
    }
    if !rows.value.is_empty() {
        rows.write(writer.next_row_group()?)?;
    }
    Ok(writer.into_inner()?)
}

impl Rows {
    fn push(&mut self, record: &Record, series: &muster_wire::Series, (step, value): (i64, f64)) {
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
        for (column, text) in self.texts.iter_mut().zip(texts) {
            // Equal neighbours share their bytes.
            match column.last() {
                Some(last) if last.data() == text.as_bytes() => column.push(last.clone()),
                _ => column.push(ByteArray::from(text)),
            }
        }
        self.at_ms.push(i64::try_from(record.at_ms).unwrap_or(i64::MAX));
        self.step.push(step);
        self.value.push(value);
    }

    /// Writes the rows as one group and forgets them.
    fn write(&mut self, mut group: SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<()> {
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
