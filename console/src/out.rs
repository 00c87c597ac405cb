//! Standard output, which is data: a closed pipe ends the program quietly.

use std::io::Write;

use crate::exit::{Code, IO, Problem};

/// Writes one line. A reader that went away ends the program as success, as `head` expects.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub fn line(text: &str) -> Result<(), Problem> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.code(IO),
    }
}

/// Writes a value as indented JSON.
///
/// # Errors
/// When standard output cannot be written.
pub fn json(value: &impl serde::Serialize) -> Result<(), Problem> {
    line(&serde_json::to_string_pretty(value).code(IO)?)
}

/// A table with left-aligned columns; the last one is not padded.
#[must_use]
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let format = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
    std::iter::once(format(&head)).chain(rows.iter().map(|r| format(r))).collect::<Vec<_>>().join("\n")
}
