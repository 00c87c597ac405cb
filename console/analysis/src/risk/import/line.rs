//! What happens to a line that cannot be read? It is named, counted and left out; too many of them, or too much
//! text, end the reading.

use crate::risk::{Category, Incident};

/// One line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct LineError {
    /// Line in the text, from 1; 0 when the whole text is meant.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl LineError {
    pub(super) fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

/// How much a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text.
    pub bytes: usize,
    /// Incidents or rows.
    pub rows: usize,
    /// Unreadable lines that are listed; all are counted.
    pub errors: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 256 << 20, rows: 5_000_000, errors: 100 }
    }
}

impl Limits {
    pub(super) fn check(self, text: &str) -> Result<(), LineError> {
        if text.len() <= self.bytes {
            return Ok(());
        }
        Err(LineError::new(0, format!("{} bytes are more than the {} that are read", text.len(), self.bytes)))
    }
}

/// What a log held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Incidents in the order of the text.
    pub incidents: Vec<Incident>,
    /// The first unreadable lines.
    pub errors: Vec<LineError>,
    /// All lines left out, listed or not.
    pub refused: usize,
    /// Warnings about lines that were taken, the first of them.
    pub doubts: Vec<LineError>,
    /// How many lines were taken with a warning, listed or not.
    pub doubtful: usize,
}

impl Parsed {
    /// Keeps that the category of a line that was read is none of ours.
    pub(super) fn unknown_category(&mut self, line: usize, word: &str, limits: Limits) {
        let names = Category::ALL.map(Category::name).join(", ");
        let why = format!("the category {word:?} is none of {names}; taken as unknown");
        self.doubt(LineError::new(line, why), limits);
    }

    /// Keeps a warning about a line that was taken.
    fn doubt(&mut self, doubt: LineError, limits: Limits) {
        self.doubtful += 1;
        if self.doubts.len() < limits.errors {
            self.doubts.push(doubt);
        }
    }

    /// Keeps `found` within `limits`; false when the reader should stop.
    pub(super) fn take(&mut self, found: Result<Incident, LineError>, limits: Limits) -> bool {
        match found {
            Ok(incident) if self.incidents.len() < limits.rows => self.incidents.push(incident),
            Ok(_) => {
                self.errors.push(LineError::new(0, format!("only the first {} incidents were read", limits.rows)));
                self.refused += 1;
                return false;
            }
            Err(error) => {
                self.refused += 1;
                if self.errors.len() < limits.errors {
                    self.errors.push(error);
                }
            }
        }
        true
    }
}
