//! What people said of a case: which suspects are wrong, which root cause is confirmed. The document `muster.triage-marks`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::report::Subject;

/// Largest document of marks, bytes.
pub const BYTES: usize = 1 << 20;
/// Most marks of either kind.
const MARKS: usize = 1_000;
const SCHEMA: &str = "muster.triage-marks";

/// The marks of one case, `assets/schemas/muster.triage-marks.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    schema: String,
    version: u32,
    /// Suspects that a person says are wrong.
    pub wrong: Vec<Subject>,
    /// Root causes that a person confirmed.
    pub confirmed: Vec<Subject>,
}

/// Why a document is none of marks.
#[derive(Debug, Error)]
pub enum BadMarks {
    /// It is too long.
    #[error("larger than {BYTES} bytes")]
    TooLong,
    /// It is no such document.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is another document, or a later version.
    #[error("{schema} version {version} is not known")]
    Other {
        /// Its schema, made harmless.
        schema: String,
        /// Its version.
        version: u32,
    },
    /// It has more marks than anybody makes.
    #[error("more than {MARKS} marks")]
    TooMany,
}

impl Default for Marks {
    fn default() -> Self {
        Self { schema: SCHEMA.to_owned(), version: 1, wrong: Vec::new(), confirmed: Vec::new() }
    }
}

impl Marks {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is none of marks.
    pub fn parse(text: &[u8]) -> Result<Self, BadMarks> {
        if text.len() > BYTES {
            return Err(BadMarks::TooLong);
        }
        let marks: Self = serde_json::from_slice(text)?;
        if marks.schema != SCHEMA || marks.version != 1 {
            return Err(BadMarks::Other { schema: muster_wire::clean(&marks.schema, 80), version: marks.version });
        }
        if marks.wrong.len() > MARKS || marks.confirmed.len() > MARKS {
            return Err(BadMarks::TooMany);
        }
        Ok(marks)
    }

    /// Marks `subject` as wrong, or takes the mark away.
    pub fn set_wrong(&mut self, subject: Subject, wrong: bool) {
        self.wrong.retain(|known| *known != subject);
        if wrong && self.wrong.len() < MARKS {
            self.wrong.push(subject);
        }
    }

    /// Remembers that `subject` was confirmed.
    pub fn confirm(&mut self, subject: Subject) {
        if !self.confirmed.contains(&subject) && self.confirmed.len() < MARKS {
            self.confirmed.push(subject);
        }
    }
}
