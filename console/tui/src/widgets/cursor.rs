//! Where the cursor of a list is, and which rows are in view.

use std::ops::Range;

use crate::keymap::Motion;

/// A cursor over rows that are drawn elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The row under it.
    pub(crate) at: usize,
    top: usize,
}

impl Cursor {
    /// Moves within `len` rows of which `page` are in view.
    pub(crate) fn go(&mut self, motion: Motion, len: usize, page: usize) {
        let page = page.max(1);
        self.at = match motion {
            Motion::Up => self.at.saturating_sub(1),
            Motion::Down => self.at + 1,
            Motion::PageUp => self.at.saturating_sub(page),
            Motion::PageDown => self.at + page,
            Motion::Home => 0,
            Motion::End => len,
            Motion::Left | Motion::Right => self.at,
        };
        self.put(self.at, len, page);
    }

    /// Puts it on row `at` and scrolls as little as that needs.
    pub(crate) fn put(&mut self, at: usize, len: usize, page: usize) {
        self.at = at.min(len.saturating_sub(1));
        self.top = self.window(len, page).start;
    }

    /// The rows in view.
    pub(crate) fn window(&self, len: usize, page: usize) -> Range<usize> {
        let page = page.max(1);
        let at = self.at.min(len.saturating_sub(1));
        let lowest = (at + 1).saturating_sub(page);
        let top = self.top.clamp(lowest, at.max(lowest)).min(len.saturating_sub(page.min(len)));
        top..len.min(top + page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_always_in_view() {
        let mut cursor = Cursor::default();
        for (motion, at, window) in [
            (Motion::Down, 1, 0..4),
            (Motion::PageDown, 5, 2..6),
            (Motion::End, 9, 6..10),
            (Motion::Up, 8, 6..10),
            (Motion::PageUp, 4, 4..8),
            (Motion::Home, 0, 0..4),
            (Motion::Up, 0, 0..4),
        ] {
            cursor.go(motion, 10, 4);
            assert_eq!((cursor.at, cursor.window(10, 4)), (at, window), "{motion:?}");
        }
    }

    #[test]
    fn a_list_that_shrank_is_still_shown() {
        let mut cursor = Cursor::default();
        cursor.go(Motion::End, 100, 10);
        assert_eq!(cursor.window(3, 10), 0..3);
        assert_eq!(cursor.window(0, 10), 0..0);
    }
}
