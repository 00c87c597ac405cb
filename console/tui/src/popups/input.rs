//! A line of text being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_wire::clean;

/// Longest line, bytes.
const LIMIT: usize = 1000;

/// The line; typing is at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
}

impl Input {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: clean(text, LIMIT) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes a key; gives whether the text changed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Backspace => self.text.pop().is_some(),
            KeyCode::Char('u') if control => !std::mem::take(&mut self.text).is_empty(),
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.truncate(kept);
                true
            }
            KeyCode::Char(c) if !control => {
                self.paste(c.encode_utf8(&mut [0; 4]));
                true
            }
            _ => false,
        }
    }

    /// Adds pasted text, cleaned and bounded.
    pub(crate) fn paste(&mut self, text: &str) {
        self.text.push_str(&clean(text, LIMIT - self.text.len().min(LIMIT)));
    }
}
