//! What happens to a line that cannot be read? It is named, counted and left out; too many of them, or too much
//! text, end the reading.

use crate::risk::Incident;

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
}

impl Parsed {
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
