//! How is a CSV text taken apart, so that every mistake can name its line?

use std::borrow::Cow;

/// Lines that hold a row, with their number from 1; empty ones and those that start with `#` hold none.
pub(super) fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let held = |(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(held)
}

/// Fields of one row without the white space around them. A quoted field must end on its line.
pub(super) fn fields(row: &str) -> Result<Vec<Cow<'_, str>>, String> {
    if !row.contains('"') {
        return Ok(row.split(',').map(|field| Cow::Borrowed(field.trim())).collect());
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(row.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => Ok(record.iter().map(|field| Cow::Owned(field.to_owned())).collect()),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_plain_rows_have_the_same_fields() {
        assert_eq!(fields("a , b,,c").unwrap(), ["a", "b", "", "c"]);
        assert_eq!(fields("\"a,x\",b").unwrap(), ["a,x", "b"]);
        let lines: Vec<usize> = rows("a\n\n# x\r\nb\r\n").map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 4]);
    }
}
