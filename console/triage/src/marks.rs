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

#[cfg(test)]
mod tests {
    use super::super::report::Kind;
    use super::*;

    fn rank(rank: u32) -> Subject {
        Subject { kind: Kind::Rank, node: Some("n1".to_owned()), rank: Some(rank), gpu: None, element: None }
    }

    #[test]
    fn a_subject_is_marked_once_and_the_mark_can_be_taken_away() {
        let mut marks = Marks::default();
        for (of, wrong) in [(1, true), (2, true), (1, true), (2, false), (3, false)] {
            marks.set_wrong(rank(of), wrong);
        }
        marks.confirm(rank(4));
        marks.confirm(rank(4));
        assert_eq!((&marks.wrong, &marks.confirmed), (&vec![rank(1)], &vec![rank(4)]));
        assert_eq!(Marks::parse(&serde_json::to_vec(&marks).unwrap()).unwrap(), marks);
    }

    #[test]
    fn so_many_marks_are_kept_and_read_and_no_more() {
        let mut marks = Marks::default();
        (0..=MARKS as u32).for_each(|nr| marks.set_wrong(rank(nr), true));
        (0..=MARKS as u32).for_each(|nr| marks.confirm(rank(nr)));
        assert_eq!((marks.wrong.len(), marks.confirmed.len()), (MARKS, MARKS));
        let read = |marks: &Marks| Marks::parse(&serde_json::to_vec(marks).unwrap()).map_err(|why| why.to_string());
        assert_eq!(read(&marks).as_ref(), Ok(&marks));
        let more = |wrong: bool| {
            let mut marks = marks.clone();
            let list = if wrong { &mut marks.wrong } else { &mut marks.confirmed };
            list.push(rank(MARKS as u32));
            read(&marks)
        };
        let refused = || Err("more than 1000 marks".to_owned());
        assert_eq!((more(true), more(false)), (refused(), refused()));
    }

    #[test]
    fn a_document_that_is_none_of_marks_says_why() {
        let text = serde_json::to_string(&Marks::default()).unwrap();
        let why = |text: &str| Marks::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(why(&text.replace("\"version\":1", "\"version\":2")), "muster.triage-marks version 2 is not known");
        assert_eq!(why(&text.replace("-marks", "")), "muster.triage version 1 is not known");
        assert!(why(&text.replace("wrong", "false")).starts_with("unknown field `false`"));
        let full = format!("{text}{}", " ".repeat(BYTES - text.len()));
        assert!(Marks::parse(full.as_bytes()).is_ok());
        assert_eq!(why(&format!("{full} ")), "larger than 1048576 bytes");
    }
}
