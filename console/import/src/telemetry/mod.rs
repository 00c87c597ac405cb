//! Recorded telemetry, in whatever form it comes: which values, of which node and metric, and when.
//!
//! Rows are kept in 16 bytes each and put in order of time at the end, since exporters write one series after the other, or block
//! by block. What is no number is counted and left out; what is no row is refused with its line.
//!
//! | file | settles |
//! |---|---|
//! | `files` | which format a file has, by its first bytes |
//! | `packed` | what lies in a gzip file, and when it is too much |
//! | `csv` | the rows of a CSV file |
//! | `parquet` | the rows of a Parquet file |
//! | `prometheus` | which series of a `query_range` answer are which metrics of which node |
//! | `hold` | what is known between two samples of a slow exporter |

mod csv;
mod files;
mod hold;
mod packed;
mod parquet;
mod prometheus;

use std::collections::{BTreeMap, HashMap};

use muster_watch::{CELLS, METRICS, NODES};
use muster_wire::{clean, limits};

use crate::Bad;

pub use files::Files;
pub use packed::unpacked;
pub use prometheus::{Left, Prometheus};

/// Columns that a recording must have.
const COLUMNS: [&str; 4] = ["time_s", "node", "metric", "value"];
/// Epoch seconds past which a time is taken for milliseconds or nonsense.
const LATEST: f64 = 1e11;
/// Largest value that is kept: past it a sensor is broken.
const LARGEST: f64 = 1e30;
/// Bytes of a file's name or value repeated in a message.
const SHOWN: usize = 60;
/// Rows of all files together: half a gigabyte.
pub const ROWS: usize = 32 << 20;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Epoch seconds.
    pub time_s: f64,
    /// In single precision: no sensor has more digits.
    pub value: f32,
    cell: u32,
}

/// Everything that some files recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Names of the nodes, in the order they came.
    pub nodes: Vec<String>,
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// Values that are missing or no number.
    pub not_numbers: u64,
    /// Times that are no epoch seconds.
    pub not_times: u64,
    /// Rows past the limits of nodes, metrics and cells.
    pub too_many_names: u64,
    /// Metrics whose samples lie too far apart to be compared, each with the seconds between two of them.
    pub coarse: BTreeMap<String, f64>,
    /// Longest time between two samples, seconds, for which a value was held; zero where none was.
    pub held_s: f64,
    rows: Vec<Row>,
    node_at: HashMap<String, u32>,
    metric_at: HashMap<String, u32>,
    cell_at: HashMap<(u32, u32), u32>,
    cells: Vec<(u32, u32)>,
    /// The cell of the last row: most files write many rows of one after the other.
    last: Option<Last>,
}

#[derive(Clone, Debug)]
struct Last {
    node: Vec<u8>,
    metric: Vec<u8>,
    cell: u32,
}

impl Recording {
    /// Adds one value that is no row of a file.
    ///
    /// # Errors
    /// When there are more than [`ROWS`].
    pub fn push(&mut self, node: &str, metric: &str, time_s: f64, value: f32) -> Result<(), Bad> {
        self.keep((node.as_bytes(), metric.as_bytes()), (time_s, f64::from(value)), 0)
    }

    /// Refuses a file none of whose times is one, as all of them are then of another unit. `before` rows and `bad_times` were there already.
    fn times_are_seconds(&self, before: usize, bad_times: u64) -> Result<(), Bad> {
        if self.rows.len() == before && self.not_times > bad_times {
            return Err(Bad::file("no time_s is in epoch seconds (milliseconds have to be divided by 1000)"));
        }
        Ok(())
    }

    fn keep(&mut self, (node, metric): (&[u8], &[u8]), (time_s, value): (f64, f64), line: usize) -> Result<(), Bad> {
        let Some(cell) = self.cell(node, metric) else {
            self.too_many_names += 1;
            return Ok(());
        };
        if !(0.0..=LATEST).contains(&time_s) {
            self.not_times += 1;
        } else if value.is_nan() || value.abs() > LARGEST {
            self.not_numbers += 1;
        } else if self.rows.len() >= ROWS {
            return Err(Bad::TooMuch { line, limit: ROWS, what: "rows" });
        } else {
            self.rows.push(Row { time_s, value: value as f32, cell });
        }
        Ok(())
    }

    /// Which cell a row is of; `None` past the limits.
    fn cell(&mut self, node: &[u8], metric: &[u8]) -> Option<u32> {
        if let Some(last) = &self.last
            && last.node == node
            && last.metric == metric
        {
            return Some(last.cell);
        }
        let room = NODES.min(CELLS / self.metrics.len().max(1));
        let node_at = known(&mut self.node_at, &mut self.nodes, node, room)?;
        let room = METRICS.min(CELLS / self.nodes.len());
        let metric_at = known(&mut self.metric_at, &mut self.metrics, metric, room)?;
        let next = self.cells.len();
        let cell = *self.cell_at.entry((node_at, metric_at)).or_insert(next as u32);
        if cell as usize == next {
            self.cells.push((node_at, metric_at));
        }
        self.last = Some(Last { node: node.to_vec(), metric: metric.to_vec(), cell });
        Some(cell)
    }

    /// Puts the rows in order of time; of equal times, in the order of the files.
    pub fn sort(&mut self) {
        self.rows.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    }

    /// Rows that were kept.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Places of a row's node and metric in [`Recording::nodes`] and [`Recording::metrics`].
    #[must_use]
    pub fn of(&self, row: &Row) -> (usize, usize) {
        let (node, metric) = self.cells[row.cell as usize];
        (node as usize, metric as usize)
    }
}

/// Where `name` stands among `names`; a new one is added unless there are `most`.
fn known(at: &mut HashMap<String, u32>, names: &mut Vec<String>, name: &[u8], most: usize) -> Option<u32> {
    let name = clean(&String::from_utf8_lossy(name), limits::NAME_BYTES);
    if let Some(&place) = at.get(&name) {
        return Some(place);
    }
    let place = names.len();
    if place >= most {
        return None;
    }
    names.push(name.clone());
    at.insert(name, place as u32);
    Some(place as u32)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Recording, Bad> {
        let mut recording = Recording::default();
        recording.add_csv(text.as_bytes())?;
        recording.sort();
        Ok(recording)
    }

    fn rows(recording: &Recording) -> Vec<(f64, &str, &str, f32)> {
        let of = |row: &Row| {
            let (node, metric) = recording.of(row);
            (row.time_s, recording.nodes[node].as_str(), recording.metrics[metric].as_str(), row.value)
        };
        recording.rows().iter().map(of).collect()
    }

    #[test]
    fn rows_come_in_order_of_time_whatever_the_order_of_rows_and_columns() {
        let recording = read("node,time_s,extra,value,metric\nb,2.5,x,1,m\na,1.5,y,2,m\n\"b\",0,,3,k\n").unwrap();
        assert_eq!(rows(&recording), [(0.0, "b", "k", 3.0), (1.5, "a", "m", 2.0), (2.5, "b", "m", 1.0)]);
    }

    #[test]
    fn what_is_no_number_is_counted_and_what_is_no_row_is_refused_with_its_line() {
        let recording =
            read("time_s,node,metric,value\n1,a,m,NaN\n1,a,m,\n1,a,m,inf\n1,a,m,1e308\nNaN,a,m,1\n2,a,m,1\n").unwrap();
        assert_eq!((recording.not_numbers, recording.not_times, recording.rows().len()), (4, 1, 1));
        for (text, said) in [
            ("", "line 1: the file is empty"),
            ("node,metric,value\n", "line 1: the columns are time_s,node,metric,value; found 'node,metric,value'"),
            ("time_s,node,metric,value\n1,a,m\n", "line 2: 4 columns are needed"),
            ("time_s,node,metric,value\n1,a,m,2\n1,a,m,x\n", "line 3: the value 'x' is not a number"),
            ("time_s,node,metric,value\nnoon,a,m,2\n", "line 2: the time 'noon' is not a number"),
            ("time_s,node,metric,value\n1,,m,2\n", "line 2: node and metric must not be empty"),
            ("time_s,node,metric,value\n1760000000000,a,m,2\n", "milliseconds"),
        ] {
            let why = read(text).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn a_packed_file_reads_like_a_plain_one_and_a_torn_one_is_an_error() {
        let text = "time_s,node,metric,value\n1,a,m,2\n";
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        let packed = gz.finish().unwrap();
        let mut recording = Recording::default();
        recording.add_csv(unpacked(&packed[..]).unwrap()).unwrap();
        recording.add_csv(unpacked(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(recording.rows().len(), 2);
        assert!(Recording::default().add_csv(unpacked(&packed[..packed.len() - 9]).unwrap()).is_err());
    }

    #[test]
    fn a_million_names_are_bounded_and_counted() {
        let mut text = "time_s,node,metric,value\n".to_owned();
        (0..40_000).for_each(|n| text += &format!("1,n{n},m,1\n"));
        let recording = read(&text).unwrap();
        assert_eq!(recording.nodes.len(), NODES);
        assert_eq!(recording.too_many_names, 40_000 - NODES as u64);
        (0..100).for_each(|n| text += &format!("1,n0,m{n},1\n"));
        let both = read(&text).unwrap();
        assert_eq!((both.nodes.len() * both.metrics.len(), both.rows().len()), (CELLS, NODES + CELLS / NODES - 1));
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(text in "(time_s,node,metric,value\n)?([0-9,.\"aNn-]{0,12}\n){0,5}") {
            let _ = read(&text);
        }
    }
}
