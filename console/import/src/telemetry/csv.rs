//! Which values do the rows of a CSV file hold?

use std::io::{BufReader, Read};

use muster_wire::{clean, limits};

use super::{COLUMNS, Recording, SHOWN};
use crate::lines::Lines;
use crate::{Bad, Limits};

impl Recording {
    /// Adds the rows of one file.
    ///
    /// # Errors
    /// With the line, when a row is none or there are more rows than a recording may have; and when no row has an epoch second as its time.
    pub fn add_csv(&mut self, input: impl Read) -> Result<(), Bad> {
        let limits = Limits { line: limits::TEXT_BYTES, rows: usize::MAX, ..Limits::default() };
        let mut lines = Lines::of(BufReader::with_capacity(1 << 18, input), limits);
        let Some((line, header)) = lines.next()? else { return Err(Bad::format(1, "the file is empty")) };
        let places = Places::of(header).ok_or_else(|| {
            let found = clean(&String::from_utf8_lossy(header), SHOWN);
            Bad::format(line, format!("the columns are {}; found '{found}'", COLUMNS.join(",")))
        })?;
        let (before, bad_times) = (self.rows.len(), self.not_times);
        while let Some((line, row)) = lines.next()? {
            let row = row.trim_ascii();
            if !row.is_empty() {
                self.row(row, places, line)?;
            }
        }
        self.times_are_seconds(before, bad_times)
    }

    fn row(&mut self, row: &[u8], places: Places, line: usize) -> Result<(), Bad> {
        let [time, node, metric, value] = places.fields(row).ok_or_else(|| {
            Bad::format(line, format!("{} columns are needed: {}", places.columns, COLUMNS.join(",")))
        })?;
        if node.is_empty() || metric.is_empty() {
            return Err(Bad::format(line, "node and metric must not be empty"));
        }
        let time_s = number(time).ok_or_else(|| bad_number("time", time, line))?;
        let value =
            if value.is_empty() { f64::NAN } else { number(value).ok_or_else(|| bad_number("value", value, line))? };
        self.keep((node, metric), (time_s, value), line)
    }
}

/// Where the columns stand.
#[derive(Clone, Copy, Debug)]
struct Places {
    at: [usize; 4],
    /// Columns that a row must at least have.
    columns: usize,
}

impl Places {
    fn of(header: &[u8]) -> Option<Self> {
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
        let names: Vec<&[u8]> = header.split(|byte| *byte == b',').map(unquoted).collect();
        let place = |column: &str| names.iter().position(|name| name.eq_ignore_ascii_case(column.as_bytes()));
        let at = [place(COLUMNS[0])?, place(COLUMNS[1])?, place(COLUMNS[2])?, place(COLUMNS[3])?];
        Some(Self { at, columns: 1 + at.iter().copied().max()? })
    }

    /// Time, node, metric and value of a row.
    fn fields(self, row: &[u8]) -> Option<[&[u8]; 4]> {
        let mut fields: [Option<&[u8]>; 4] = [None; 4];
        for (column, field) in row.split(|byte| *byte == b',').enumerate().take(self.columns) {
            if let Some(place) = self.at.iter().position(|at| *at == column) {
                fields[place] = Some(unquoted(field));
            }
        }
        let [Some(time), Some(node), Some(metric), Some(value)] = fields else { return None };
        Some([time, node, metric, value])
    }
}

/// Without blanks and quotes around it.
fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(field)
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn bad_number(what: &str, field: &[u8], line: usize) -> Bad {
    Bad::format(line, format!("the {what} '{}' is not a number", clean(&String::from_utf8_lossy(field), SHOWN)))
}
