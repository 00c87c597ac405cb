//! Which values do the rows of a Parquet file hold?
//!
//! Row groups are read one after the other, some thousand rows of each column at a time. The library believes what a file says of the sizes
//! of its pages, so these are looked at first (`pages`).

mod column;
mod pages;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use muster_wire::clean;

use self::column::{Names, Numbers};
use self::pages::Shared;
use super::{COLUMNS, Recording, SHOWN};
use crate::Bad;

/// First and last bytes of every Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Rows read at a time.
const BATCH: usize = 8_192;
/// Bytes of a reason that are repeated.
const REASON: usize = 200;

impl Recording {
    /// Adds the rows of a Parquet file with the columns `time_s`, `node`, `metric` and `value`, and others.
    ///
    /// Times are timestamps of any unit, or numbers in epoch seconds; values are numbers; node and metric are strings.
    ///
    /// # Errors
    /// When it is no such file, is torn, or unpacks to more than is read.
    pub fn add_parquet<R: ChunkReader + 'static>(&mut self, file: R) -> Result<(), Bad> {
        let (before, bad_times) = (self.rows.len(), self.not_times);
        // The library promises no panic for foreign bytes, and had some.
        let read = catch_unwind(AssertUnwindSafe(|| self.groups(Shared(Arc::new(file)))));
        read.unwrap_or_else(|_| Err(Bad::torn("it is damaged")))?;
        self.times_are_seconds(before, bad_times)
    }

    fn groups<R: ChunkReader + 'static>(&mut self, file: Shared<R>) -> Result<(), Bad> {
        pages::footer(&file)?;
        let reader = SerializedFileReader::new(file.clone()).map_err(|why| damaged(&why))?;
        let metadata = reader.metadata();
        let places = places(metadata)?;
        for group in 0..reader.num_row_groups() {
            places.iter().try_for_each(|&place| pages::chunk(&file, metadata.row_group(group).column(place)))?;
            let columns = reader.get_row_group(group).map_err(|why| damaged(&why))?;
            self.group(&*columns, metadata.row_group(group), places)?;
        }
        Ok(())
    }

    fn group(&mut self, group: &dyn RowGroupReader, about: &RowGroupMetaData, places: [usize; 4]) -> Result<(), Bad> {
        let of = |place: usize| Ok((group.get_column_reader(place)?, about.column(place).column_descr()));
        let open = |place| of(place).map_err(|why: ParquetError| damaged(&why));
        let [time, node, metric, value] = places;
        let (mut times, mut values) = (Numbers::times(open(time)?)?, Numbers::values(open(value)?)?);
        let (mut nodes, mut metrics) = (Names::of(open(node)?)?, Names::of(open(metric)?)?);
        loop {
            let times = times.next(BATCH).map_err(|why| damaged(&why))?;
            let rows = times.len();
            let (nodes, metrics) = (nodes.next(BATCH), metrics.next(BATCH));
            let (nodes, metrics) = (nodes.map_err(|why| damaged(&why))?, metrics.map_err(|why| damaged(&why))?);
            let values = values.next(BATCH).map_err(|why| damaged(&why))?;
            if [nodes.len(), metrics.len(), values.len()] != [rows; 3] {
                return Err(Bad::torn("its columns have different numbers of rows"));
            }
            if rows == 0 {
                return Ok(());
            }
            for row in 0..rows {
                let (Some(node), Some(metric)) = (&nodes[row], &metrics[row]) else {
                    return Err(Bad::file("a row has no node or no metric"));
                };
                if node.is_empty() || metric.is_empty() {
                    return Err(Bad::file("a row has no node or no metric"));
                }
                self.keep((node.data(), metric.data()), (times[row], values[row]), 0)?;
            }
        }
    }
}

/// Where the columns stand.
fn places(metadata: &ParquetMetaData) -> Result<[usize; 4], Bad> {
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let place = |column: &str| names.iter().position(|name| name.eq_ignore_ascii_case(column));
    let [time, node, metric, value] = COLUMNS.map(place);
    let (Some(time), Some(node), Some(metric), Some(value)) = (time, node, metric, value) else {
        let found = clean(&names.join(","), SHOWN);
        return Err(Bad::file(format!("the columns are {}; found '{found}'", COLUMNS.join(","))));
    };
    Ok([time, node, metric, value])
}

fn damaged(why: &ParquetError) -> Bad {
    Bad::torn(clean(&why.to_string(), REASON))
}

#[cfg(test)]
mod tests;
