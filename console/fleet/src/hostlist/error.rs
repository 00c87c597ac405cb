//! How is a mistake in a host list shown, so that the eye lands on the character?

use std::fmt;

/// Columns shown on each side of the mistake; lists can be thousands of characters long.
const WINDOW: usize = 36;

/// A host list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostListError {
    /// What is wrong and what was expected.
    pub message: String,
    /// The whole list as it was given.
    pub list: String,
    /// Character of the list that is at fault, counted from 1; one past the end when something is missing there.
    pub column: usize,
}

impl std::error::Error for HostListError {}

impl HostListError {
    /// An error at the byte offset `at` of `list`.
    pub(crate) fn at(list: &str, at: usize, message: impl Into<String>) -> Self {
        let column = list.char_indices().take_while(|(offset, _)| *offset < at).count() + 1;
        Self { message: message.into(), list: list.to_owned(), column }
    }

    /// The part of the list around the mistake, and a caret line under it.
    pub fn caret(&self) -> String {
        let shown: Vec<char> = self.list.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let fault = (self.column - 1).min(shown.len());
        let from = fault.saturating_sub(WINDOW);
        let to = (fault + WINDOW).min(shown.len());
        let lead = if from > 0 { "..." } else { "" };
        let tail = if to < shown.len() { "..." } else { "" };
        let text: String = shown[from..to].iter().collect();
        format!("  {lead}{text}{tail}\n  {}^", " ".repeat(lead.len() + fault - from))
    }
}

impl fmt::Display for HostListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host list, column {}: {}\n{}", self.column, self.message, self.caret())
    }
}
