//! What a watch recorded, as CSV or Parquet with the columns that `muster watch --from` reads.
//!
//! Chunk by chunk, so that a recording of some gigabytes takes no more memory than a small one.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use anyhow::{Context, anyhow};
use muster_store::telemetry::{self, Told};

use super::{Format, Options};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, USAGE};
use crate::{out, recordings};

/// Columns, in the order they are written.
const SCHEMA: &str = "message telemetry {
    required double time_s;
    required binary node (STRING);
    required binary metric (STRING);
    required float value;
}";
/// Rows of one group.
const ROWS: usize = 1 << 20;

/// Writes the recording.
pub(super) fn run(word: &Path, options: &Options, config: &Config) -> Ended {
    let file = recordings::find(word, config)?;
    if !telemetry::is_recording(&file) {
        let error = anyhow!("{}: it is not what `muster watch --record` keeps", file.display());
        return Err(Problem { code: CONFIG, error });
    }
    match (options.format.unwrap_or(Format::Csv), &options.output) {
        (Format::Csv, None) => csv(&file, &mut std::io::stdout().lock()).or_else(quiet).code(IO)?,
        (Format::Csv, Some(output)) => out::replace_by(output, out::PRIVATE, |new| csv(&file, new)).code(IO)?,
        (Format::Parquet, Some(output)) => out::replace_by(output, out::PRIVATE, |new| parquet(&file, new)).code(IO)?,
        (Format::Parquet, None) => return Err(anyhow!("Parquet is no text: --output names its file")).code(USAGE),
        _ => return Err(anyhow!("a recording is exported with --format csv or --format parquet")).code(USAGE),
    }
    Ok(PASS)
}

/// A reader that went away has what it wanted.
fn quiet(why: anyhow::Error) -> anyhow::Result<()> {
    let closed = why.downcast_ref::<std::io::Error>().is_some_and(|why| why.kind() == std::io::ErrorKind::BrokenPipe);
    if closed { Ok(()) } else { Err(why) }
}

/// Gives every value to `each` until it fails; what is damaged is said.
fn replay(file: &Path, each: &mut dyn FnMut(&Told<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut done = Ok(());
    let damages = telemetry::replay(file, &mut |told| {
        if done.is_ok() {
            done = each(&told);
        }
    })?;
    damages.iter().for_each(|damage| out::note(format_args!("{}: {damage}", file.display())));
    done
}

fn csv(file: &Path, to: &mut dyn Write) -> anyhow::Result<()> {
    let mut to = csv::WriterBuilder::new().buffer_capacity(1 << 18).from_writer(to);
    let mut row = |cells: [&str; 4]| Ok(to.write_record(cells).map_err(crate::out::of_csv)?);
    row(["time_s", "node", "metric", "value"])?;
    replay(file, &mut |told| row([&format!("{:.3}", told.time_s), told.node, told.metric, &told.value.to_string()]))?;
    Ok(to.flush()?)
}

/// Rows that are not written yet, column by column.
#[derive(Default)]
struct Rows {
    times: Vec<f64>,
    names: [Vec<ByteArray>; 2],
    values: Vec<f32>,
}

fn parquet(file: &Path, to: &mut (impl Write + Send)) -> anyhow::Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
    let mut writer = SerializedFileWriter::new(to, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
    let mut rows = Rows::default();
    replay(file, &mut |told| {
        rows.push(told);
        if rows.values.len() >= ROWS { rows.write(&mut writer) } else { Ok(()) }
    })?;
    rows.write(&mut writer)?;
    writer.close().map(drop).context("the footer")
}

impl Rows {
    fn push(&mut self, told: &Told<'_>) {
        self.times.push(told.time_s);
        for (column, name) in self.names.iter_mut().zip([told.node, told.metric]) {
            // Equal neighbours share their bytes.
            match column.last() {
                Some(last) if last.data() == name.as_bytes() => column.push(last.clone()),
                _ => column.push(ByteArray::from(name)),
            }
        }
        self.values.push(told.value);
    }

    /// Writes the rows as one group and forgets them.
    fn write(&mut self, writer: &mut SerializedFileWriter<impl Write + Send>) -> anyhow::Result<()> {
        let Self { times, names: [nodes, metrics], values } = std::mem::take(self);
        if values.is_empty() {
            return Ok(());
        }
        let mut group = writer.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let _written = match at {
                0 => column.typed::<DoubleType>().write_batch(&times, None, None)?,
                1 => column.typed::<ByteArrayType>().write_batch(&nodes, None, None)?,
                2 => column.typed::<ByteArrayType>().write_batch(&metrics, None, None)?,
                _ => column.typed::<FloatType>().write_batch(&values, None, None)?,
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

    use muster_import::telemetry::{Files, Recording};
    use muster_store::telemetry::Recorder;
    use muster_watch::{Alert, Settings, Watch};

    use super::*;

    /// Twelve minutes of eight nodes, of which n5 loses a third of its power after half of it.
    fn recorded(dir: &Path) -> std::path::PathBuf {
        let mut recorder = Recorder::create(dir, "job", (0..8).map(|n| format!("n{n}")).collect(), u64::MAX).unwrap();
        for (second, node) in (0..720_u32).flat_map(|second| (0..8_u32).map(move |node| (second, node))) {
            let noise = 1.0 + 0.02 * f64::from((second * 7 + node * 13) % 11) / 11.0;
            let share = if node == 5 && second >= 360 { 0.66 } else { 1.0 };
            let values = [("gpu_power_w", 500.0 * share * noise), ("tensor_active", 0.6 * noise)];
            recorder.push(node, 1.76e9 + f64::from(second) + 0.123, &values).unwrap();
            if second % 100 == 99 && node == 7 {
                recorder.commit().unwrap();
            }
        }
        recorder.commit().unwrap();
        recorder.path().to_owned()
    }

    fn rows(recording: &Recording) -> Vec<(f64, String, String, f32)> {
        let row = |row: &muster_import::telemetry::Row| {
            let (node, metric) = recording.of(row);
            (row.time_s, recording.nodes[node].clone(), recording.metrics[metric].clone(), row.value)
        };
        recording.rows().iter().map(row).collect()
    }

    fn alerts(recording: &Recording) -> Vec<Alert> {
        let mut watch = Watch::new(Settings::default());
        let nodes: Vec<_> = recording.nodes.iter().map(|name| watch.node(name).unwrap()).collect();
        let metrics: Vec<_> = recording.metrics.iter().map(|name| watch.metric(name).unwrap()).collect();
        for row in recording.rows() {
            let (node, metric) = recording.of(row);
            watch.push(row.time_s, nodes[node], metrics[metric], f64::from(row.value));
        }
        watch.finish();
        watch.alerts().to_vec()
    }

    #[test]
    fn a_recording_that_was_exported_gives_the_same_rows_and_verdicts() {
        let dir = tempfile::tempdir().unwrap();
        let file = recorded(dir.path());
        let mut own = Files::default();
        telemetry::replay(&file, &mut |told| {
            own.recording().push(told.node, told.metric, told.time_s, told.value).unwrap();
        })
        .unwrap();
        let (own, _) = own.finish().unwrap();
        let named: Vec<String> = alerts(&own).into_iter().map(|alert| alert.node).collect();
        assert_eq!(named, ["n5"]);
        let paths = [dir.path().join("job.csv"), dir.path().join("job.parquet")];
        csv(&file, &mut File::create(&paths[0]).unwrap()).unwrap();
        parquet(&file, &mut File::create(&paths[1]).unwrap()).unwrap();
        for path in paths {
            let mut files = Files::default();
            assert!(files.add(File::open(&path).unwrap()).unwrap());
            let (again, _) = files.finish().unwrap();
            assert_eq!(rows(&again), rows(&own), "{}", path.display());
            assert_eq!(alerts(&again), alerts(&own), "{}", path.display());
        }
    }
}
