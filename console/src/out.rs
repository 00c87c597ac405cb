//! Standard output, which is data, and standard error, which tells how it goes. A reader that goes away stops what is printed and nothing
//! else: what was begun is finished, and the exit code is that of the work.

use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::{BufRead, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::exit::{Code, IO, Problem};

/// Whether the reader of standard output has gone.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output has gone away, as far as was seen: nobody hears what work without an end has to say.
#[must_use]
pub fn left() -> bool {
    LEFT.load(Ordering::Relaxed)
}

/// Writes one line. It is dropped where the reader has gone away, as `head` does.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub fn line(text: &str) -> Result<(), Problem> {
    written(writeln!(std::io::stdout().lock(), "{text}").map_err(anyhow::Error::from))
}

/// What came of writing: that nobody reads is no error.
fn written(result: anyhow::Result<()>) -> Result<(), Problem> {
    match result {
        Err(why) if why.downcast_ref::<std::io::Error>().is_some_and(gone) => {
            LEFT.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other.code(IO),
    }
}

/// Writes one line to standard error. Where nobody reads it, it is dropped: `eprintln!` would end the program in the middle of its work.
pub fn note(what: impl Display) {
    part(format_args!("{what}\n"));
}

/// The same without the end of a line.
pub fn part(what: impl Display) {
    let mut to = std::io::stderr().lock();
    let _ = write!(to, "{what}").and_then(|()| to.flush());
}

/// A published document that is one list: its schema, version 1, and the rows under `name`.
struct List<'a, T> {
    schema: &'static str,
    name: &'static str,
    rows: &'a [T],
}

impl<T: Serialize> Serialize for List<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("schema", self.schema)?;
        map.serialize_entry("version", &1)?;
        map.serialize_entry(self.name, self.rows)?;
        map.end()
    }
}

/// Writes `rows` as the document `schema`, under `name`.
///
/// # Errors
/// When standard output cannot be written.
pub fn list(schema: &'static str, name: &'static str, rows: &[impl Serialize]) -> Result<(), Problem> {
    json(&List { schema, name, rows })
}

/// Writes a value as indented JSON, piece by piece.
///
/// # Errors
/// When standard output cannot be written.
pub fn json(value: &impl Serialize) -> Result<(), Problem> {
    by(|to| {
        serde_json::to_writer_pretty(&mut *to, value).map_err(std::io::Error::from)?;
        Ok(to.write_all(b"\n")?)
    })
}

/// Writes what `fill` gives, piece by piece; the rest is dropped where the reader has gone away, and `fill` may be ended early.
///
/// # Errors
/// When standard output cannot be written for another reason, or `fill` fails.
pub fn by(fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> Result<(), Problem> {
    let mut to = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    written(fill(&mut to).and_then(|()| Ok(to.flush()?)))
}

/// What the writer below said: the conversion that `csv` has hides of which kind it is.
#[must_use]
pub fn of_csv(why: csv::Error) -> std::io::Error {
    match why.into_kind() {
        csv::ErrorKind::Io(why) => why,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

fn gone(why: &std::io::Error) -> bool {
    why.kind() == std::io::ErrorKind::BrokenPipe
}

/// Permissions of a file that only its owner reads, and of one that everybody does.
pub const PRIVATE: u32 = 0o600;
/// See [`PRIVATE`].
pub const PUBLIC: u32 = 0o644;

/// Replaces `file` as a whole or not at all: readers see the old content or the new one, never a part. It gets the permissions
/// `mode`.
///
/// # Errors
/// When it cannot be written; the old file is then as it was.
pub fn replace(file: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    replace_by(file, mode, |new| Ok(new.write_all(bytes)?))
}

/// The same with what `fill` writes, piece by piece.
///
/// # Errors
/// When it cannot be written, or `fill` fails; the old file is then as it was.
pub fn replace_by(file: &Path, mode: u32, fill: impl FnOnce(&mut File) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut new = tempfile::Builder::new().prefix(".muster-").tempfile_in(dir).map_err(unnamed)?;
        fill(new.as_file_mut())?;
        new.as_file().set_permissions(Permissions::from_mode(mode))?;
        new.as_file().sync_all()?;
        new.persist(file)?;
        anyhow::Ok(())
    };
    write().with_context(|| file.display().to_string())
}

/// The error without the name of a temporary file, which nobody asked to be written.
fn unnamed(why: std::io::Error) -> std::io::Error {
    let text = why.to_string();
    let bare = text.split_once(" at path ").map(|(bare, _)| bare.to_owned());
    match bare {
        Some(bare) => std::io::Error::new(why.kind(), bare),
        None => why,
    }
}

/// Whether the person at the terminal says yes to `question`.
#[must_use]
pub fn confirmed(question: &str) -> bool {
    part(format_args!("{question} [y/N] "));
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

/// `1 node`, `16 nodes`.
#[must_use]
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Rows that are held back to see how wide columns are.
const HELD: usize = 10_000;

/// A table with left-aligned columns, of which the last is not padded, whose rows come one after another. The first ones are held back
/// until they tell how wide its columns are; a wider cell behind them moves what follows.
#[derive(Debug)]
pub struct Rows<const N: usize> {
    header: [&'static str; N],
    widths: [usize; N],
    /// `None` once they are written.
    held: Option<Vec<[String; N]>>,
    line: String,
}

impl<const N: usize> Rows<N> {
    /// Of a table with this header, which is written where a row is.
    #[must_use]
    pub fn below(header: [&'static str; N]) -> Self {
        Self { header, widths: header.map(|cell| cell.chars().count()), held: Some(Vec::new()), line: String::new() }
    }

    /// Writes a row, sooner or later.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, cells: [&str; N], to: &mut dyn Write) -> std::io::Result<()> {
        let own = cells.map(|cell| cell.chars().count());
        for (width, own) in self.widths.iter_mut().zip(own) {
            *width = (*width).max(own);
        }
        let Some(held) = &mut self.held else { return self.write((cells, own), to) };
        held.push(cells.map(str::to_owned));
        if held.len() < HELD { Ok(()) } else { self.end(to) }
    }

    /// Writes what is held back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, to: &mut dyn Write) -> std::io::Result<()> {
        let held = self.held.take().unwrap_or_default();
        let measured = |cells: [&'_ str; N]| cells.map(|cell| cell.chars().count());
        if !held.is_empty() {
            self.write((self.header, measured(self.header)), to)?;
        }
        for cells in &held {
            let cells = cells.each_ref().map(String::as_str);
            self.write((cells, measured(cells)), to)?;
        }
        Ok(())
    }

    /// Writes cells, each so many characters wide.
    fn write(&mut self, (cells, own): ([&str; N], [usize; N]), to: &mut dyn Write) -> std::io::Result<()> {
        const SPACES: &str = "                                                                ";
        self.line.clear();
        for (width, (cell, own)) in self.widths.iter().zip(cells.into_iter().zip(own)) {
            self.line.push_str(cell);
            let mut pad = width.saturating_sub(own) + 2;
            while pad > 0 {
                let some = pad.min(SPACES.len());
                self.line.push_str(&SPACES[..some]);
                pad -= some;
            }
        }
        self.line.truncate(self.line.trim_end().len());
        self.line.push('\n');
        to.write_all(self.line.as_bytes())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_everything_else_is() {
        let pipe = || anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(written(Ok(())).is_ok() && !left());
        assert_eq!(written(Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())).unwrap_err().code, IO);
        assert!(written(Err(pipe())).is_ok() && left());
    }

    #[test]
    fn what_cannot_be_written_is_named_as_it_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("none").join("x.json");
        let why = format!("{:#}", replace(&file, b"{}", PRIVATE).unwrap_err());
        assert!(why.starts_with(&format!("{}: No such file", file.display())), "{why}");
        assert!(!why.contains(".muster-") && !why.contains("at path"), "{why}");
    }

    fn row_by_row<const N: usize>(header: [&'static str; N], rows: &[[&str; N]]) -> String {
        let (mut table, mut text) = (Rows::below(header), Vec::new());
        rows.iter().for_each(|row| table.add(*row, &mut text).unwrap());
        table.end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_table_written_row_by_row_is_that_written_at_once() {
        let header = ["node", "metric", ""];
        let rows = [["n1", "a longer one", "x"], ["n1000", "µ", ""], ["", "", ""]];
        let owned: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(row_by_row(header, &rows), format!("{}\n", table(&header, &owned)));
        assert_eq!(row_by_row(header, &[]), "", "no header without a row");
    }

    #[test]
    fn of_a_long_table_no_row_is_lost_and_a_wider_cell_moves_what_follows() {
        let mut rows = vec![["n1", "x"]; HELD];
        rows.extend([["wider", "x"], ["n1", "x"]]);
        let text = row_by_row(["a", ""], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1], lines[HELD]), (HELD + 3, "a", "n1  x", "n1  x"));
        assert_eq!(lines[HELD + 1..], ["wider  x", "n1     x"]);
    }
}
