//! A fleet's results in one file: `results-summary.jsonl`, one flat object per node and line.

use std::io::BufRead;

use muster_analysis::Table;

use super::scan::{Key, Scanner, Value, unescape};
use crate::lines::Lines;
use crate::{Bad, Limits};

/// Texts that stand for a result which is no number, in lower case.
const NO_NUMBERS: [&[u8]; 5] = [b"nan", b"inf", b"-inf", b"infinity", b"-infinity"];

/// What a summary holds.
#[derive(Debug, Default)]
pub struct Summary {
    /// Values in SuperBench's units, one row per line; a node that comes twice has two rows.
    pub table: Table,
    /// Members that are text and not `node`, over all lines; they are no measurements and left out.
    pub texts: usize,
    /// Cells that hold NaN, by row and column: a benchmark that went wrong. The table has no value there.
    pub nan: Vec<(usize, usize)>,
    /// Cells that hold `null`: not measured. The table has no value there either.
    pub null: Vec<(usize, usize)>,
}

impl From<Table> for Summary {
    fn from(table: Table) -> Self {
        Self { table, ..Self::default() }
    }
}

/// Reads `results-summary.jsonl`. About 60 ns a value.
///
/// # Errors
/// With the line: when it is not a flat JSON object with a `node`, or is more than `limits` allow.
pub fn read(input: impl BufRead, limits: Limits) -> Result<Summary, Bad> {
    let mut lines = Lines::of(input, limits);
    let mut out = Summary::default();
    let mut row = Row::default();
    while let Some((line, bytes)) = lines.next()? {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        row.read(bytes, &mut out).map_err(|why| Bad::format(line, why))?;
        if out.table.metrics().len() > limits.columns {
            return Err(Bad::TooMuch { line, limit: limits.columns, what: "metrics" });
        }
        let node = row.node.take().ok_or_else(|| Bad::format(line, "no \"node\""))?;
        out.table.row(node);
        row.values.drain(..).for_each(|(column, value)| out.table.put(column, value));
        row.tell_holes(&mut out);
    }
    Ok(out)
}

/// One line's values, until its node is known: it may come last.
#[derive(Default)]
struct Row {
    node: Option<String>,
    values: Vec<(usize, f64)>,
    /// Columns without a number, and whether they hold NaN.
    holes: Vec<(usize, bool)>,
}

impl Row {
    fn read(&mut self, bytes: &[u8], out: &mut Summary) -> Result<(), String> {
        let mut scanner = Scanner::new(bytes);
        let mut next = 0;
        loop {
            let guess = out.table.metrics().get(next).map_or("", String::as_str);
            let Some(key) = scanner.key(guess)? else { return Ok(()) };
            let column = match key {
                Key::Guessed => next,
                Key::Other(b"node") => {
                    self.node = Some(name(scanner.value()?)?);
                    continue;
                }
                Key::Other(text) => {
                    let key = unescape(text)?;
                    match result(scanner.value()?) {
                        Value::Text(_) => out.texts += 1,
                        value => {
                            next = out.table.column_of(&key);
                            self.put(next, value);
                            next += 1;
                        }
                    }
                    continue;
                }
            };
            match result(scanner.value()?) {
                Value::Text(_) => out.texts += 1,
                value => self.put(column, value),
            }
            next = column + 1;
        }
    }

    fn put(&mut self, column: usize, value: Value<'_>) {
        match value {
            Value::Number(number) => self.values.push((column, number)),
            // The last of several wins, also when it says that there is none.
            Value::Missing | Value::Nan => {
                self.values.push((column, f64::NAN));
                self.holes.push((column, value == Value::Nan));
            }
            Value::Text(_) => {}
        }
    }

    /// Keeps the cells of the last row that were named and have no number.
    fn tell_holes(&mut self, out: &mut Summary) {
        let at = out.table.nodes().len().saturating_sub(1);
        for (column, nan) in self.holes.drain(..) {
            if out.table.value(at, column).is_none() {
                let holes = if nan { &mut out.nan } else { &mut out.null };
                holes.push((at, column));
            }
        }
    }
}

/// A text that says NaN is one, as writers put it that know that JSON has none.
fn result(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) if NO_NUMBERS.iter().any(|known| known.eq_ignore_ascii_case(text)) => Value::Nan,
        value => value,
    }
}

/// Node names come from files: harmless text, never empty.
fn name(value: Value<'_>) -> Result<String, String> {
    let Value::Text(text) = value else { return Err("\"node\" is not text".to_owned()) };
    let name = muster_wire::clean(&unescape(text)?, 255);
    if name.is_empty() { Err("\"node\" is empty".to_owned()) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(text: &str) -> Table {
        read(text.as_bytes(), Limits::default()).unwrap().table
    }

    #[test]
    fn rows_keep_their_values_whatever_the_order_of_keys() {
        let text = "{\"node\":\"a\",\"x/m:0\":1,\"x/m:1\":2.5}\n\n{\"x/m:1\":null,\"y/n\":\"text\",\"x/m:0\":3,\"z/q\":4,\"node\":\"b\"}\n";
        let read = read(text.as_bytes(), Limits::default()).unwrap();
        assert_eq!((read.table.nodes(), read.texts), (&["a".to_owned(), "b".to_owned()][..], 1));
        let value = |row, metric| read.table.value(row, read.table.find(metric).unwrap());
        assert_eq!([value(0, "x/m:0"), value(0, "x/m:1"), value(0, "z/q")], [Some(1.0), Some(2.5), None]);
        assert_eq!([value(1, "x/m:0"), value(1, "x/m:1"), value(1, "z/q")], [Some(3.0), None, Some(4.0)]);
        assert_eq!(table("").nodes().len(), 0);
    }

    #[test]
    fn nan_is_a_result_null_is_none_and_neither_is_lost() {
        let text = "{\"node\":\"NaN\",\"x/m:0\":NaN,\"x/m:1\":\"nan\",\"x/m:2\":null,\"x/m:3\":null,\"x/m:3\":1}\n\
                    {\"node\":\"b\",\"x/m:0\":1,\"x/m:1\":\"text\",\"x/m:2\":2}\n";
        let read = read(text.as_bytes(), Limits::default()).unwrap();
        assert_eq!((read.nan, read.null, read.texts), (vec![(0, 0), (0, 1)], vec![(0, 2)], 1));
        assert_eq!(read.table.nodes()[0], "NaN");
        assert_eq!((0..4).map(|column| read.table.value(0, column)).collect::<Vec<_>>(), [None, None, None, Some(1.0)]);
    }

    #[test]
    fn errors_name_the_line() {
        let line = |text: &str| match read(text.as_bytes(), Limits::default()).unwrap_err() {
            Bad::Format { line, .. } => line,
            other => panic!("{other}"),
        };
        assert_eq!(line("{\"node\":\"a\"}\n{\"x/m\":1}"), 2);
        assert_eq!(line("{\"node\":3}"), 1);
        assert_eq!(line("\n\n{\"node\":\"a\",\"x\":{}}"), 3);
        let few = Limits { columns: 1, ..Limits::default() };
        assert!(matches!(read(&b"{\"node\":\"a\",\"x\":1,\"y\":2}"[..], few), Err(Bad::TooMuch { .. })));
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(text in "[a{}\"\\\\:,0-9nodeul. \n\\[-]{0,120}") {
            let _ = read(text.as_bytes(), Limits::default());
        }
    }
}
