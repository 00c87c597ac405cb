//! Entries of several lines, one below the other: which lines are in view, and how they are drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::keymap::Motion;
use crate::text::{cut, width, wrap};
use crate::theme::{Role, Theme};
use crate::widgets::put;

/// One entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its first line, one piece after the other.
    pub(crate) head: Vec<(String, Role)>,
    /// Sentences below it.
    pub(crate) body: Vec<(String, Role)>,
}

impl Entry {
    /// Its text as one line, to take along.
    pub(crate) fn plain(&self) -> String {
        let head: String = self.head.iter().map(|(text, _)| text.as_str()).collect();
        let body = self.body.iter().map(|(text, _)| text.as_str());
        std::iter::once(head.trim()).chain(body).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Its lines in `room` cells: the first goes on in the next where it is too long, two cells further in.
    fn lines(&self, room: usize) -> Vec<Vec<(String, Role)>> {
        let mut lines: Vec<Vec<(String, Role)>> = vec![Vec::new()];
        let mut used = 0;
        for (text, role) in &self.head {
            let (first, rest) = parted(text, room.saturating_sub(used), room.saturating_sub(2));
            used += width(&first);
            lines.last_mut().into_iter().for_each(|line| line.push((first.clone(), *role)));
            for line in rest {
                used = 2 + width(&line);
                lines.push(vec![(format!("  {line}"), *role)]);
            }
        }
        for (text, role) in &self.body {
            lines.extend(wrap(text, room.saturating_sub(2)).into_iter().map(|line| vec![(format!("  {line}"), *role)]));
        }
        lines.retain(|line| line.iter().any(|(text, _)| !text.is_empty()));
        lines
    }
}

/// What of `text` fits into `first` cells, and the rest in lines of `room`.
fn parted(text: &str, first: usize, room: usize) -> (String, Vec<String>) {
    if width(text) <= first {
        return (text.to_owned(), Vec::new());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let lead = if text.starts_with(' ') { " " } else { "" };
    let fits = (0..=words.len()).rev().find(|n| width(lead) + width(&words[..*n].join(" ")) <= first).unwrap_or(0);
    let begin = if fits == 0 { String::new() } else { format!("{lead}{}", words[..fits].join(" ")) };
    (begin, wrap(&words[fits..].join(" "), room))
}

/// Where a reader of entries is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reader {
    /// The entry under the cursor.
    pub(crate) at: usize,
    /// Lines of it that are above the view, where it is longer than that.
    skip: usize,
    /// The first entry in view.
    top: usize,
}

impl Reader {
    /// Moves over entries of these heights in a view of `page` lines. An entry longer than the view is read to its end first.
    pub(crate) fn go(&mut self, motion: Motion, heights: &[usize], page: usize) {
        let page = page.max(1);
        let height = |at: usize| heights.get(at).copied().unwrap_or(1);
        let last = heights.len().saturating_sub(1);
        match motion {
            Motion::Down if self.skip + page < height(self.at) => self.skip += 1,
            Motion::Up if self.skip > 0 => self.skip -= 1,
            Motion::Down if self.at < last => (self.at, self.skip) = (self.at + 1, 0),
            Motion::Up if self.at > 0 => {
                self.at -= 1;
                self.skip = height(self.at).saturating_sub(page);
            }
            Motion::PageDown | Motion::PageUp => {
                let motion = if motion == Motion::PageDown { Motion::Down } else { Motion::Up };
                (0..page).for_each(|_| self.go(motion, heights, page));
            }
            Motion::Home => (self.at, self.skip) = (0, 0),
            Motion::End => {
                self.at = last;
                self.skip = height(last).saturating_sub(page);
            }
            _ => {}
        }
        self.put(heights, page);
    }

    /// Keeps the cursor on an entry that is there, and in view.
    pub(crate) fn put(&mut self, heights: &[usize], page: usize) {
        let page = page.max(1);
        self.at = self.at.min(heights.len().saturating_sub(1));
        self.skip = self.skip.min(heights.get(self.at).copied().unwrap_or(1).saturating_sub(page));
        self.top = self.top.min(self.at);
        while self.top < self.at && heights[self.top..=self.at].iter().sum::<usize>() > page {
            self.top += 1;
        }
        // Where what follows ends early, what is before it has room.
        while self.top > 0 && heights[self.top - 1..].iter().sum::<usize>() <= page {
            self.top -= 1;
        }
    }

    /// The first entry in view, and how many of its lines are above the view.
    const fn begin(&self) -> (usize, usize) {
        (self.top, if self.top == self.at { self.skip } else { 0 })
    }

    /// Shows entry `at` from its beginning.
    pub(crate) const fn seek(&mut self, at: usize) {
        (self.at, self.skip) = (at, 0);
    }

    /// The entry in the line `y` of the view, from 0.
    pub(crate) fn entry_at(&self, heights: &[usize], y: usize) -> Option<usize> {
        let (first, skip) = self.begin();
        let mut end = 0;
        (first..heights.len()).find(|at| {
            end += heights[*at] - if *at == first { skip.min(heights[*at]) } else { 0 };
            y < end
        })
    }
}

/// Lines that each entry takes in `room` cells.
pub(crate) fn heights(entries: &[Entry], room: u16) -> Vec<usize> {
    entries.iter().map(|entry| entry.lines(room.into()).len().max(1)).collect()
}

/// Draws what is in view; the entry under the cursor is marked where the list has the keys.
pub(crate) fn draw(
    theme: &Theme,
    (buffer, area): (&mut Buffer, Rect),
    reader: &Reader,
    (entries, has_keys): (&[Entry], bool),
) {
    let (first, skip) = reader.begin();
    let mut y = area.y;
    for (at, entry) in entries.iter().enumerate().skip(first) {
        let chosen = has_keys && at == reader.at;
        let lines = entry.lines(area.width.into());
        for line in lines.iter().skip(if at == first { skip } else { 0 }) {
            if y >= area.bottom() {
                return;
            }
            let mut x = area.x;
            for (text, role) in line {
                let style = theme.style(if chosen && *role == Role::Head { Role::Selected } else { *role });
                put(buffer, (x, y), area.right().saturating_sub(x), text, style);
                x += u16::try_from(Span::raw(text.as_str()).width()).unwrap_or(0);
            }
            y += 1;
        }
    }
}

/// A line of pieces in `room` cells; the last piece is cut to what is left.
pub(crate) fn fitted(pieces: Vec<(String, Role)>, room: usize, ascii: bool) -> Vec<(String, Role)> {
    let mut left = room;
    let mut out = Vec::with_capacity(pieces.len());
    for (text, role) in pieces {
        let text = cut(&text, left, ascii);
        left = left.saturating_sub(width(&text));
        out.push((text, role));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_long_entry_can_be_read() {
        let heights = [2, 9, 3];
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push((reader.at, reader.skip));
            reader.go(Motion::Down, &heights, 4);
        }
        assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 0)]);
        reader.go(Motion::Up, &heights, 4);
        assert_eq!((reader.at, reader.skip), (1, 5), "back to its end");
    }

    #[test]
    fn what_fits_is_shown_whole_and_the_entry_under_the_cursor_is_in_view() {
        let heights = [2, 2, 2, 2];
        let mut reader = Reader::default();
        reader.go(Motion::End, &heights, 5);
        assert_eq!((reader.at, reader.begin()), (3, (2, 0)));
        reader.put(&heights, 20);
        assert_eq!(reader.begin(), (0, 0));
        assert_eq!([0, 1, 2, 7, 8].map(|y| reader.entry_at(&heights, y)), [Some(0), Some(0), Some(1), Some(3), None]);
        reader.put(&[], 5);
        assert_eq!(reader.at, 0);
    }

    #[test]
    fn a_head_that_is_too_long_is_wrapped_and_loses_no_word() {
        let head = vec![("one ".to_owned(), Role::Head), ("two three four five".to_owned(), Role::Text)];
        let entry = Entry { head, body: vec![("six".to_owned(), Role::Text)] };
        let text: String = entry.lines(10).iter().flatten().map(|(text, _)| format!("{text}|")).collect();
        assert_eq!(text, "one |two|  three|  four|  five|  six|");
        assert_eq!(entry.plain(), "one two three four five six");
    }
}
