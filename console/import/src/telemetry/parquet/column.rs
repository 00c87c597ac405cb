//! What does a column of a Parquet file hold, whatever the type it is written in?

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::schema::types::ColumnDescriptor;

use crate::Bad;

type Column<'a> = (ColumnReader, &'a ColumnDescriptor);

/// A column of numbers, in the unit that is wanted.
pub(super) struct Numbers {
    column: ColumnReader,
    full: i16,
    /// What one of its numbers is.
    unit: f64,
    /// Whether the bits are those of a number without a sign.
    unsigned: bool,
}

/// A column of strings.
pub(super) struct Names {
    column: ColumnReader,
    full: i16,
}

impl Numbers {
    /// Epoch seconds, from timestamps or numbers.
    pub(super) fn times((column, about): Column<'_>) -> Result<Self, Bad> {
        let unit = match (about.logical_type_ref(), about.converted_type()) {
            (Some(LogicalType::Timestamp(stamp)), _) => match stamp.unit {
                TimeUnit::MILLIS => 1e-3,
                TimeUnit::MICROS => 1e-6,
                TimeUnit::NANOS => 1e-9,
            },
            (_, ConvertedType::TIMESTAMP_MILLIS) => 1e-3,
            (_, ConvertedType::TIMESTAMP_MICROS) => 1e-6,
            _ => return Self::new((column, about), 1.0),
        };
        let full = flat(about)?;
        Ok(Self { column, full, unit, unsigned: false })
    }

    /// Numbers as they are.
    pub(super) fn values(column: Column<'_>) -> Result<Self, Bad> {
        Self::new(column, 1.0)
    }

    fn new((column, about): Column<'_>, unit: f64) -> Result<Self, Bad> {
        let unsigned = match about.logical_type_ref() {
            Some(LogicalType::Integer(int)) => !int.is_signed,
            None | Some(LogicalType::Unknown) => {
                matches!(about.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64)
            }
            Some(_) => return Err(strange(about, "a number")),
        };
        let is_number = matches!(
            column,
            ColumnReader::Int32ColumnReader(_)
                | ColumnReader::Int64ColumnReader(_)
                | ColumnReader::Int96ColumnReader(_)
                | ColumnReader::FloatColumnReader(_)
                | ColumnReader::DoubleColumnReader(_)
        );
        if !is_number || about.converted_type() == ConvertedType::DECIMAL {
            return Err(strange(about, "a number"));
        }
        let full = flat(about)?;
        Ok(Self { column, full, unit, unsigned })
    }

    /// The next `rows`, fewer at the end; NaN where there is none.
    pub(super) fn next(&mut self, rows: usize) -> Result<Vec<f64>, ParquetError> {
        let (full, unsigned, unit) = (self.full, self.unsigned, self.unit);
        let numbers: Vec<Option<f64>> = match &mut self.column {
            ColumnReader::Int32ColumnReader(column) => {
                mapped(next(column, rows, full)?, |n| if unsigned { f64::from(n as u32) } else { f64::from(n) })
            }
            ColumnReader::Int64ColumnReader(column) => {
                mapped(next(column, rows, full)?, |n| if unsigned { n as u64 as f64 } else { n as f64 })
            }
            ColumnReader::Int96ColumnReader(column) => mapped(next(column, rows, full)?, |n| {
                // Julian day and nanoseconds of the day, as Spark writes times.
                let [low, high, day] = n.data() else { return f64::NAN };
                let nanos = u64::from(*high) << 32 | u64::from(*low);
                (f64::from(*day) - 2_440_588.0) * 86_400.0 + nanos as f64 * 1e-9
            }),
            ColumnReader::FloatColumnReader(column) => mapped(next(column, rows, full)?, f64::from),
            ColumnReader::DoubleColumnReader(column) => next(column, rows, full)?,
            _ => Vec::new(),
        };
        Ok(numbers.into_iter().map(|number| number.map_or(f64::NAN, |number| number * unit)).collect())
    }
}

impl Names {
    /// Strings, plain or from a dictionary.
    pub(super) fn of((column, about): Column<'_>) -> Result<Self, Bad> {
        if !matches!(column, ColumnReader::ByteArrayColumnReader(_)) || about.converted_type() == ConvertedType::DECIMAL
        {
            return Err(strange(about, "a string"));
        }
        Ok(Self { column, full: flat(about)? })
    }

    /// The next `rows`, fewer at the end.
    pub(super) fn next(&mut self, rows: usize) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        match &mut self.column {
            ColumnReader::ByteArrayColumnReader(column) => next(column, rows, self.full),
            _ => Ok(Vec::new()),
        }
    }
}

/// The level at which a value is there; lists have none.
fn flat(about: &ColumnDescriptor) -> Result<i16, Bad> {
    if about.max_rep_level() > 0 { Err(strange(about, "one value a row")) } else { Ok(about.max_def_level()) }
}

fn strange(about: &ColumnDescriptor, wanted: &str) -> Bad {
    let (name, kind) = (about.name(), about.physical_type());
    let of = about.logical_type_ref().map_or(String::new(), |logical| format!(" ({logical:?})"));
    Bad::file(muster_wire::clean(&format!("column {name} must be {wanted}; it is {kind}{of}"), 200))
}

fn mapped<T>(values: Vec<Option<T>>, number: impl Fn(T) -> f64) -> Vec<Option<f64>> {
    values.into_iter().map(|value| value.map(&number)).collect()
}

/// The next `rows` of a column whose values are there at the level `full`.
fn next<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    full: i16,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let wants = (full > 0).then_some(&mut levels);
    column.read_records(rows, wants, None, &mut values)?;
    let mut values = values.into_iter();
    if full == 0 {
        return Ok(values.map(Some).collect());
    }
    Ok(levels.into_iter().map(|level| if level == full { values.next() } else { None }).collect())
}
