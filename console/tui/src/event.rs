//! What can happen to the console.

use crossterm::event::KeyEvent;

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
