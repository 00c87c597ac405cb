//! How text gets into cells without leaving its room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use crate::text::{cut, width};
use crate::theme::{Role, Theme};

/// Writes `text` into at most `room` cells.
pub(crate) fn put(buffer: &mut Buffer, (x, y): (u16, u16), room: u16, text: &str, style: Style) {
    if buffer.area.contains((x, y).into()) {
        buffer.set_stringn(x, y, text, usize::from(room), style);
    }
}

/// Writes `text` so that it ends with the `room` cells.
pub(crate) fn put_right(buffer: &mut Buffer, (x, y): (u16, u16), room: u16, text: &str, style: Style) {
    let used = u16::try_from(width(text)).unwrap_or(room).min(room);
    put(buffer, (x + room - used, y), used, text, style);
}

/// Writes `spans` one after the other into at most `room` cells; gives the cells used.
pub(crate) fn put_spans(buffer: &mut Buffer, (x, y): (u16, u16), room: u16, spans: &[Span<'_>]) -> u16 {
    let mut used = 0;
    for span in spans {
        let left = room.saturating_sub(used);
        put(buffer, (x + used, y), left, &span.content, span.style);
        used += u16::try_from(span.width()).unwrap_or(left).min(left);
    }
    used
}

/// The border of a body with its title in the top line and a note at the right end of it.
pub(crate) fn block<'a>(theme: &Theme, area: Rect, title: &str, note: &str) -> Block<'a> {
    let ascii = theme.is_ascii();
    let room = usize::from(area.width.saturating_sub(6));
    let note_room = room.saturating_sub(width(title) + 2);
    let title = cut(title, room, ascii);
    // The border is dim, its title is not.
    let head = theme.style(Role::Head).remove_modifier(Modifier::DIM);
    let mut block = Block::bordered()
        .border_set(theme.border())
        .border_style(theme.style(Role::Dim))
        .title_top(Line::from(Span::styled(format!(" {title} "), head)));
    if !note.is_empty() && note_room > 3 {
        let note = format!(" {} ", cut(note, note_room, ascii));
        block = block.title_top(Line::from(Span::styled(note, theme.style(Role::Dim))).right_aligned());
    }
    block
}
