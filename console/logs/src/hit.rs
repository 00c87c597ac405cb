//! One line that one rule knows.

use std::borrow::Cow;

use super::{Fields, Origin, Rule};
use crate::stamp::Stamp;

/// One line that one rule knows. A line may be known to several.
#[derive(Clone, Debug)]
pub struct Hit<'a> {
    /// What it means.
    pub rule: &'a Rule,
    /// Line of the log, from 1.
    pub row: u64,
    /// The line: harmless to a terminal, at most [`super::LONGEST_LINE`] bytes of it looked at.
    pub text: Cow<'a, str>,
    /// What was read out of it.
    pub fields: Fields<'a>,
    /// When it was written, as it says itself.
    pub stamp: Option<Stamp>,
}

impl Hit<'_> {
    /// Who wrote it, as it says itself. Read anew at each call: most lines are steps, of which nobody asks it.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::of(&self.text)
    }
}
