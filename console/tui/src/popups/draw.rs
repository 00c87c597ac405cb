//! How the boxes look.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Clear, Widget};

use crate::popups::export::FORMATS;
use crate::popups::{Confirm, ExportBox, HelpBox, Palette, Popup, entries, help, palette};
use crate::snapshot::Snapshot;
use crate::text::{cut, elide, width, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put};

/// Draws the boxes over `body`, the topmost last. The filter is typed in the message line, not in a box.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, body: Rect) {
    for popup in &ui.popups {
        match popup {
            Popup::Help(help) => draw_help(ui, *help, buffer, body),
            Popup::Palette(palette) => draw_palette(ui, palette, snapshot, buffer, body),
            Popup::Confirm(confirm) => draw_confirm(ui, confirm, buffer, body),
            Popup::Export(export) => draw_export(ui, export, buffer, body),
            Popup::Filter(_) => {}
        }
    }
}

/// An empty box in the middle of `body` with `rows` lines of `width` cells inside; gives its inside.
fn frame(
    ui: &Ui,
    (buffer, body): (&mut Buffer, Rect),
    (width, rows): (u16, usize),
    (title, note): (&str, &str),
) -> Rect {
    let width = (width + 4).min(body.width);
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(body.height);
    let area = Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 3, width, height };
    Clear.render(area, buffer);
    let block = block(&ui.theme, area, title, note).border_style(ui.theme.style(Role::Text));
    let inner = block.inner(area);
    block.render(area, buffer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

fn draw_help(ui: &Ui, help: HelpBox, buffer: &mut Buffer, body: Rect) {
    let lines = help::lines(help, ui.screen);
    let view = lines.len().min(usize::from(body.height.saturating_sub(2)));
    let note = if view < lines.len() {
        format!("{view} of {}, down for more, esc closes", lines.len())
    } else {
        "esc closes".to_owned()
    };
    let inner = frame(ui, (buffer, body), (74, lines.len()), ("Keys", &note));
    let top = help.top.min(lines.len().saturating_sub(view));
    for (y, (keys, text)) in (inner.y..inner.bottom()).zip(lines.iter().skip(top)) {
        if keys.is_empty() {
            put(buffer, (inner.x, y), inner.width, text, ui.theme.style(Role::Head));
        } else {
            put(buffer, (inner.x, y), 8, keys, ui.theme.style(Role::Key));
            let room = inner.width.saturating_sub(9);
            put(
                buffer,
                (inner.x + 9, y),
                room,
                &cut(text, room.into(), ui.theme.is_ascii()),
                ui.theme.style(Role::Text),
            );
        }
    }
}

fn draw_palette(ui: &Ui, palette: &Palette, snapshot: &Snapshot, buffer: &mut Buffer, body: Rect) {
    let found = entries(ui, snapshot, palette.input.text());
    let rows = palette::ROWS;
    let inner = frame(ui, (buffer, body), (70, rows + 1), ("Commands", &format!("{} found", found.len())));
    let theme = &ui.theme;
    let cursor = theme.pick("▏", "_");
    // Of a path that is longer than the box, its end is what is being typed.
    let typed = end(palette.input.text(), usize::from(inner.width.saturating_sub(2)));
    put(buffer, (inner.x, inner.y), inner.width, &format!(":{typed}{cursor}"), theme.style(Role::Key));
    if found.is_empty() {
        let why = format!("no command matches `{}`; esc closes", palette.input.text());
        put(buffer, (inner.x, inner.y + 1), inner.width, &why, theme.style(Role::Text));
    }
    let window = palette.cursor.window(found.len(), rows);
    // Names of runs and metrics are longer than those of commands.
    let longest = found[window.clone()].iter().map(|entry| width(&entry.name)).max().unwrap_or(0);
    let names = u16::try_from(longest.clamp(22, 36)).unwrap_or(22).min(inner.width);
    for (row, y) in window.zip(inner.y + 1..inner.bottom()) {
        let entry = &found[row];
        let name = elide(&entry.name, names.into(), theme.is_ascii());
        put(buffer, (inner.x, y), names, &name, theme.style(Role::Text));
        let room = inner.width.saturating_sub(names + 1);
        let about = cut(&entry.about, room.into(), theme.is_ascii());
        put(buffer, (inner.x + names + 1, y), room, &about, theme.style(Role::Dim));
        if row == palette.cursor.at {
            buffer.set_style(Rect { y, height: 1, ..inner }, theme.style(Role::Selected));
        }
    }
}

/// The end of `text` in at most `room` cells.
fn end(text: &str, room: usize) -> &str {
    let mut starts = text.char_indices().map(|(at, _)| at);
    starts.find(|at| width(&text[*at..]) <= room).map_or("", |at| &text[at..])
}

fn draw_export(ui: &Ui, export: &ExportBox, buffer: &mut Buffer, body: Rect) {
    let theme = &ui.theme;
    let inner = frame(ui, (buffer, body), (48, FORMATS.len() + 2), ("Export", "esc writes nothing"));
    put(buffer, (inner.x, inner.y), inner.width, &export.question(), theme.style(Role::Head));
    for (row, (y, (key, _, about))) in (inner.y + 2..inner.bottom()).zip(FORMATS).enumerate() {
        put(buffer, (inner.x, y), 2, &key.to_string(), theme.style(Role::Key));
        put(buffer, (inner.x + 3, y), inner.width.saturating_sub(3), about, theme.style(Role::Text));
        if row == export.at {
            buffer.set_style(Rect { y, height: 1, ..inner }, theme.style(Role::Selected));
        }
    }
}

fn draw_confirm(ui: &Ui, confirm: &Confirm, buffer: &mut Buffer, body: Rect) {
    let theme = &ui.theme;
    let width = 64.min(body.width.saturating_sub(4));
    let mut lines = wrap(&confirm.question, width.into());
    let head = lines.len();
    if !confirm.names.is_empty() {
        lines.extend(wrap(&confirm.names, width.into()));
    }
    lines.extend(wrap(&confirm.about, width.into()));
    lines.push(String::new());
    let inner = frame(ui, (buffer, body), (width, lines.len() + 1), ("Confirm", "esc is no"));
    for (i, (y, line)) in (inner.y..inner.bottom()).zip(&lines).enumerate() {
        put(buffer, (inner.x, y), inner.width, line, theme.style(if i < head { Role::Head } else { Role::Text }));
    }
    let y = inner.bottom().saturating_sub(1);
    if let Some(count) = confirm.needs {
        let text = format!("type {count} and enter: {}{}", confirm.typed.text(), theme.pick("▏", "_"));
        put(buffer, (inner.x, y), inner.width, &text, theme.style(Role::Key));
    } else {
        let (no, yes) = if confirm.yes { (Role::Text, Role::Selected) } else { (Role::Selected, Role::Text) };
        put(buffer, (inner.x, y), 6, "  No  ", theme.style(no));
        put(buffer, (inner.x + 7, y), 7, "  Yes  ", theme.style(yes));
        put(buffer, (inner.x + 16, y), inner.width.saturating_sub(16), "y / n", theme.style(Role::Dim));
    }
}
