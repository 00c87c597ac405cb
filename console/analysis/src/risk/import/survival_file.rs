//! Which rows does a plain survival file hold? Any CSV of numbers with a duration, an event and perhaps a fold.

use super::line::{Limits, LineError};
use crate::risk::Table;

/// Which columns mean what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Time watched.
    pub duration: String,
    /// 1 when the watch ended in an event, 0 when it was cut off.
    pub event: String,
    /// Small whole number that assigns the row to a fold; rows go round in five folds when there is none.
    pub fold: Option<String>,
    /// Columns that are no features.
    pub ignore: Vec<String>,
    /// Whether features are sizes to be taken as `ln(1 + value)`.
    pub log1p: bool,
}

/// A survival file read.
#[derive(Clone, Debug, PartialEq)]
pub struct SurvivalFile {
    /// Its rows.
    pub table: Table,
    /// Fold of each row, from 0.
    pub fold: Vec<usize>,
    /// Values of the ignored columns, row by row, in the order asked for; those that are no numbers are NaN.
    pub ignored: Vec<Vec<f64>>,
}

/// Reads a CSV text with a header.
///
/// # Errors
/// The first line that lacks a number, a column that is missing, or a text beyond `limits`.
pub fn survival_file(text: &str, columns: &Columns, limits: Limits) -> Result<SurvivalFile, LineError> {
    limits.check(text)?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| LineError::new(1, e.to_string()))?.clone();
    let plan = Places::of(&header, columns)?;
    let mut rows = Rows::default();
    for record in reader.records() {
        let record =
            record.map_err(|e| LineError::new(e.position().map_or(0, |p| p.line() as usize), e.to_string()))?;
        if rows.duration.len() >= limits.rows {
            return Err(LineError::new(0, format!("more than {} rows", limits.rows)));
        }
        rows.push(&record, &plan)?;
    }
    let names = plan.features.iter().map(|&at| header[at].to_owned()).collect();
    let table =
        Table::new(names, rows.values, rows.duration, rows.event).map_err(|e| LineError::new(0, e.to_string()))?;
    Ok(SurvivalFile { table, fold: rows.fold, ignored: rows.ignored })
}

struct Places {
    duration: usize,
    event: usize,
    fold: Option<usize>,
    ignored: Vec<usize>,
    features: Vec<usize>,
    log1p: bool,
}

impl Places {
    fn of(header: &csv::StringRecord, columns: &Columns) -> Result<Self, LineError> {
        let at = |name: &String| {
            let found = header.iter().position(|h| h == name);
            found.ok_or_else(|| LineError::new(1, format!("there is no column {name:?}")))
        };
        let (duration, event) = (at(&columns.duration)?, at(&columns.event)?);
        let fold = columns.fold.as_ref().map(at).transpose()?;
        let ignored = columns.ignore.iter().map(at).collect::<Result<Vec<_>, _>>()?;
        let taken = |k: &usize| *k != duration && *k != event && Some(*k) != fold && !ignored.contains(k);
        let features = (0..header.len()).filter(taken).collect();
        Ok(Self { duration, event, fold, ignored, features, log1p: columns.log1p })
    }
}

#[derive(Default)]
struct Rows {
    values: Vec<f64>,
    duration: Vec<f64>,
    event: Vec<bool>,
    fold: Vec<usize>,
    ignored: Vec<Vec<f64>>,
}

impl Rows {
    fn push(&mut self, record: &csv::StringRecord, places: &Places) -> Result<(), LineError> {
        let line = record.position().map_or(0, |p| p.line() as usize);
        let number = |at: usize| {
            let text = record.get(at).unwrap_or_default();
            let value = text.parse::<f64>().ok().filter(|v| v.is_finite());
            value.ok_or_else(|| LineError::new(line, format!("{text:?} is not a number")))
        };
        let duration = number(places.duration)?;
        if duration < 0.0 {
            return Err(LineError::new(line, "a duration cannot be negative"));
        }
        for &at in &places.features {
            let value = number(at)?;
            self.values.push(if places.log1p { value.max(0.0).ln_1p() } else { value });
        }
        let fold = match places.fold {
            None => self.duration.len() % 5,
            Some(at) => {
                let fold = number(at)?;
                if !(0.0..=1000.0).contains(&fold) || fold.fract() != 0.0 {
                    return Err(LineError::new(line, "a fold is a whole number from 0 to 1000"));
                }
                fold as usize
            }
        };
        self.fold.push(fold);
        self.duration.push(duration);
        self.event.push(number(places.event)? != 0.0);
        self.ignored.push(places.ignored.iter().map(|&at| number(at).unwrap_or(f64::NAN)).collect());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let text = |s: &str| s.to_owned();
        Columns { duration: text("t"), event: text("e"), fold: Some(text("f")), ignore: vec![text("id")], log1p: false }
    }

    #[test]
    fn columns_are_told_apart() {
        let file = survival_file("id,x,t,e,f,y\na,1,5,1,0,2\n7,3,6,0,1,4\n", &columns(), Limits::default()).unwrap();
        assert_eq!(file.table.names(), ["x", "y"]);
        assert_eq!(file.table.values(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((file.table.event(), file.fold.as_slice()), ([true, false].as_slice(), [0, 1].as_slice()));
        assert!(file.ignored[0][0].is_nan() && file.ignored[1][0] == 7.0);
    }

    #[test]
    fn what_is_no_number_is_named_by_line() {
        let read = |text: &str| survival_file(text, &columns(), Limits::default()).unwrap_err();
        assert_eq!(read("id,x,t,e,f\na,1,5,1,0\na,?,5,1,0\n").line, 3);
        assert_eq!(read("id,x,t,e,f\na,1,-5,1,0\n").line, 2);
        assert_eq!(read("id,x,t,e,f\na,1,5,1,0.5\n").line, 2);
        assert_eq!(read("id,x,t,e\na,1,5,1\n").line, 1);
    }
}
