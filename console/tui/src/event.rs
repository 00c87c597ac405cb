//! What can happen to the console.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One happening, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key went down or repeats.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse was used.
    Mouse(Mouse),
    /// The terminal has this size now.
    Resize {
        /// Cells.
        width: u16,
        /// Cells.
        height: u16,
    },
    /// The snapshot passed along is newer than the one before.
    Snapshot,
    /// Time passed since the snapshot passed along was made.
    Tick {
        /// Its age now.
        age_ms: u64,
    },
}

impl From<char> for Event {
    /// The key of a character goes down; `\r` is enter, `\x1b` escape.
    fn from(c: char) -> Self {
        let code = match c {
            '\r' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        Self::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }
}

/// What a mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    /// The left button went down.
    Click {
        /// Column, from 0.
        x: u16,
        /// Row, from 0.
        y: u16,
    },
    /// The wheel turned by one step.
    Wheel {
        /// Towards the user.
        down: bool,
    },
}
