//! One line after the other, none longer than allowed.

use std::io::{BufRead, Read};

use crate::Bad;

/// What a reader may hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line, and of a document that is read whole.
    pub line: usize,
    /// Rows of a table: nodes, or lines of a tool's output.
    pub rows: usize,
    /// Columns of a table, and metrics of a tool's output.
    pub columns: usize,
}

impl Default for Limits {
    /// 64 MiB a line, a million rows, a million columns: past any fleet, short of any machine's memory.
    fn default() -> Self {
        Self { line: 64 << 20, rows: 1_000_000, columns: 1_000_000 }
    }
}

/// Lines of a stream, without their ends.
pub(crate) struct Lines<R> {
    input: R,
    limits: Limits,
    line: usize,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn of(input: R, limits: Limits) -> Self {
        Self { input, limits, line: 0, buffer: Vec::new() }
    }

    /// The next line and its number, `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &[u8])>, Bad> {
        self.line += 1;
        let line = self.line;
        self.buffer.clear();
        let allowed = self.limits.line as u64 + 1;
        let read = self.input.by_ref().take(allowed).read_until(b'\n', &mut self.buffer);
        match read.map_err(|source| Bad::Io { line, source })? {
            0 => return Ok(None),
            _ if self.buffer.last() == Some(&b'\n') => {
                self.buffer.pop();
            }
            n if n as u64 == allowed => {
                return Err(Bad::TooMuch { line, limit: self.limits.line, what: "bytes in a line" });
            }
            _ => {}
        }
        if line > self.limits.rows {
            return Err(Bad::TooMuch { line, limit: self.limits.rows, what: "lines" });
        }
        Ok(Some((line, &self.buffer)))
    }
}

/// The whole of a document, no longer than a line may be.
pub(crate) fn whole(mut input: impl BufRead, limits: Limits) -> Result<String, Bad> {
    let mut text = String::new();
    let read = input.by_ref().take(limits.line as u64 + 1).read_to_string(&mut text);
    let read = read.map_err(|source| Bad::Io { line: 1 + text.matches('\n').count(), source })?;
    if read > limits.line {
        return Err(Bad::TooMuch { line: 1, limit: limits.line, what: "bytes in a document" });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_long_ones_are_refused() {
        let limits = Limits { line: 4, rows: 3, ..Limits::default() };
        let mut lines = Lines::of(&b"ab\n\ncdef"[..], limits);
        assert_eq!(lines.next().unwrap(), Some((1, &b"ab"[..])));
        assert_eq!(lines.next().unwrap(), Some((2, &b""[..])));
        assert_eq!(lines.next().unwrap(), Some((3, &b"cdef"[..])));
        assert!(lines.next().unwrap().is_none());
        assert!(matches!(Lines::of(&b"abcde\n"[..], limits).next(), Err(Bad::TooMuch { line: 1, .. })));
        let mut many = Lines::of(&b"\n\n\n\n"[..], limits);
        for _ in 0..3 {
            assert!(many.next().is_ok());
        }
        assert!(matches!(many.next(), Err(Bad::TooMuch { line: 4, .. })));
        assert!(whole(&b"12345"[..], limits).is_err() && whole(&b"1234"[..], limits).is_ok());
    }
}
