//! The heat map: two places in a cell where colour may tell them apart, else a glyph each; names around it, and the
//! profiles of the cursor's row and column at its edges.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use crate::screens::network::draw::judged;
use crate::screens::network::layout::{BARS, Layout};
use crate::screens::network::names;
use crate::screens::network::view::Step;
use crate::snapshot::Network;
use crate::text::{elide, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::usual;
use crate::widgets::{put, put_right};

/// Cells that a percentage needs so that two never touch.
const NUMBER: usize = 4;

/// Draws the map with its margins.
pub(crate) fn draw(ui: &Ui, network: &Network, buffer: &mut Buffer, layout: &Layout) {
    let half = ui.theme.has_half_cells();
    let (view, map) = (&ui.states.network.view, layout.map);
    for y in 0..map.height {
        for x in 0..map.width {
            let Some(column) = place(x.into(), view.columns.scale, view.columns.count) else { continue };
            let at = (map.x + x, map.y + y);
            if half {
                let rows = [0, 1].map(|i| place(usize::from(y) * 2 + i, view.rows.scale, view.rows.count));
                half_cell(buffer, at, rows.map(|r| r.and_then(|r| ink(ui, r, column))));
            } else if let Some(row) = place(y.into(), view.rows.scale, view.rows.count) {
                glyph(ui, buffer, at, (row, column));
            }
        }
    }
    if view.columns.scale >= NUMBER && view.rows.scale >= if half { 3 } else { 1 } {
        numbers(ui, network, buffer, map);
    }
    rows(ui, network, buffer, layout);
    columns(ui, network, buffer, map);
    profiles(ui, network, buffer, layout);
}

fn place(pixel: usize, scale: usize, count: usize) -> Option<usize> {
    Some(pixel / scale).filter(|p| *p < count)
}

fn is_cursor(ui: &Ui, row: usize, column: usize) -> bool {
    let (view, state) = (&ui.states.network.view, &ui.states.network);
    view.rows.place(state.src) == Some(row) && view.columns.place(state.dst) == Some(column)
}

fn rank(share: f32) -> usize {
    Step::of(share) as usize
}

/// The colour of a block; `None` where nothing was measured.
fn ink(ui: &Ui, row: usize, column: usize) -> Option<Color> {
    // Where there is room for its number, the number shows the cursor.
    let (view, theme) = (&ui.states.network.view, &ui.theme);
    let large = view.columns.scale >= NUMBER && view.rows.scale >= 3;
    if is_cursor(ui, row, column) && !large {
        return theme.style(Role::Focus).fg;
    }
    let share = view.share(row, column);
    (!share.is_nan()).then(|| theme.heat(rank(share)))
}

fn half_cell(buffer: &mut Buffer, at: (u16, u16), inks: [Option<Color>; 2]) {
    let (symbol, style) = match inks {
        [Some(upper), Some(lower)] => ('▀', Style::new().fg(upper).bg(lower)),
        [Some(upper), None] => ('▀', Style::new().fg(upper)),
        [None, Some(lower)] => ('▄', Style::new().fg(lower)),
        [None, None] => return,
    };
    if let Some(cell) = buffer.cell_mut(at) {
        cell.set_char(symbol).set_style(style);
    }
}

fn glyph(ui: &Ui, buffer: &mut Buffer, at: (u16, u16), (row, column): (usize, usize)) {
    let theme = &ui.theme;
    let share = ui.states.network.view.share(row, column);
    let selected = is_cursor(ui, row, column);
    let style = if selected { theme.style(Role::Selected) } else { Style::new().fg(theme.heat(rank(share))) };
    put(buffer, at, 1, theme.heat_glyph(rank(share)), style);
}

/// Percentages of the usual in the middle of blocks that have room for them.
fn numbers(ui: &Ui, network: &Network, buffer: &mut Buffer, map: Rect) {
    let (view, theme) = (&ui.states.network.view, &ui.theme);
    let halves = if theme.has_half_cells() { 2 } else { 1 };
    for row in 0..view.rows.count {
        let y = map.y + ((row * view.rows.scale + view.rows.scale / 2) / halves) as u16;
        for column in 0..view.columns.count {
            let share = view.share(row, column);
            let x = map.x + (column * view.columns.scale) as u16;
            let room = view.columns.scale as u16;
            let cursor = is_cursor(ui, row, column);
            let text = match Step::of(share) {
                Step::None if cursor => theme.absent().to_owned(),
                Step::None => continue,
                Step::Failed => "X".to_owned(),
                _ => usual::number(share, network.direction),
            };
            let style = number_style(theme, share, cursor);
            let used = u16::try_from(width(&text)).unwrap_or(room).min(room);
            let text = if cursor && used + 2 <= room { format!("[{text}]") } else { text };
            let used = u16::try_from(width(&text)).unwrap_or(room).min(room);
            put(buffer, (x + (room - used) / 2, y), used, &text, style);
        }
    }
}

fn number_style(theme: &Theme, share: f32, cursor: bool) -> Style {
    if !theme.has_half_cells() || share.is_nan() {
        return theme.style(if cursor { Role::Selected } else { Role::Text });
    }
    let rank = rank(share);
    // Bright places take dark letters.
    let letters = if rank < 5 { Color::Indexed(16) } else { Color::Indexed(255) };
    let style = Style::new().fg(letters).bg(theme.heat(rank));
    if cursor { style.patch(theme.style(Role::Head)) } else { style }
}

/// Names of endpoints where each has a line, else of the leaf that begins in it.
fn rows(ui: &Ui, network: &Network, buffer: &mut Buffer, layout: &Layout) {
    let (view, theme) = (&ui.states.network.view, &ui.theme);
    let halves = if theme.has_half_cells() { 2 } else { 1 };
    let (gutter, n) = (layout.gutter, network.endpoints.len());
    let own_line = view.rows.block == 1 && view.rows.scale >= halves;
    let room = gutter.width.saturating_sub(2);
    let names = names(network);
    let mut leaf = None;
    let mut last = None;
    for row in 0..view.rows.count {
        let y = gutter.y + ((row * view.rows.scale + if own_line { view.rows.scale / 2 } else { 0 }) / halves) as u16;
        let at = view.rows.endpoints(row, n).start;
        let new = network.endpoints.get(at).and_then(|e| e.leaf);
        let begins = new.filter(|_| new != leaf);
        leaf = new;
        let name = if own_line {
            network.endpoints.get(at).map(|e| names.short(&e.name, room.into(), theme.is_ascii()))
        } else {
            begins.and_then(|l| network.leaves.get(l)).map(|leaf| elide(leaf, room.into(), theme.is_ascii()))
        };
        if let Some(name) = name.filter(|_| last != Some(y)) {
            put(buffer, (gutter.x, y), room, &name, theme.style(Role::Dim));
            last = Some(y);
        }
    }
    if let Some(row) = view.rows.place(ui.states.network.src) {
        let y = gutter.y + ((row * view.rows.scale + if own_line { view.rows.scale / 2 } else { 0 }) / halves) as u16;
        put(buffer, (gutter.right() - 2, y), 1, theme.pick("▸", ">"), theme.style(Role::Focus));
    }
}

/// Names above the columns, as far as they fit, and the cursor's mark; a name that the mark would cover is the mark.
fn columns(ui: &Ui, network: &Network, buffer: &mut Buffer, map: Rect) {
    let (view, theme) = (&ui.states.network.view, &ui.theme);
    let (y, n) = (map.y - 1, network.endpoints.len());
    let own = view.columns.scale >= NUMBER;
    let names = names(network);
    let cursor = view.columns.place(ui.states.network.dst);
    let mut mark = cursor.map(|column| map.x + (column * view.columns.scale + view.columns.scale / 2) as u16);
    let mut leaf = None;
    let mut free = map.x;
    for column in 0..view.columns.count {
        let x = map.x + (column * view.columns.scale) as u16;
        let Some(end) = network.endpoints.get(view.columns.endpoints(column, n).start) else { continue };
        let begins = end.leaf.filter(|_| end.leaf != leaf);
        leaf = end.leaf;
        if own {
            // Names of nodes end in what tells them apart, but for a domain.
            let (room, name) = (view.columns.scale - 1, names.stem(&end.name));
            let tail: String = name.chars().skip(name.chars().count().saturating_sub(room)).collect();
            let here = cursor == Some(column);
            put(buffer, (x, y), room as u16, &tail, theme.style(if here { Role::Selected } else { Role::Dim }));
            mark = mark.filter(|_| !here);
        } else if let Some(name) = begins.and_then(|l| network.leaves.get(l)).filter(|_| x >= free) {
            let used = u16::try_from(width(name)).unwrap_or(u16::MAX);
            if x + used <= map.right() {
                let here = mark.is_some_and(|mark| (x..x + used).contains(&mark));
                put(buffer, (x, y), used, name, theme.style(if here { Role::Selected } else { Role::Dim }));
                mark = mark.filter(|_| !here);
                free = x + used + 1;
            }
        }
    }
    if let Some(x) = mark {
        put(buffer, (x, y), 1, theme.pick("▾", "v"), theme.style(Role::Focus));
    }
    put_right(buffer, (right(ui, map), y), BARS + 1, "recv", theme.style(Role::Dim));
}

/// The column right of the last block.
fn right(ui: &Ui, map: Rect) -> u16 {
    let columns = ui.states.network.view.columns;
    map.x + ((columns.count * columns.scale) as u16).min(map.width)
}

/// The line below the last block.
fn bottom(ui: &Ui, map: Rect) -> u16 {
    let (rows, halves) = (ui.states.network.view.rows, if ui.theme.has_half_cells() { 2 } else { 1 });
    map.y + ((rows.count * rows.scale).div_ceil(halves) as u16).min(map.height)
}

/// What the cursor's column receives, in per cent, right of the map; what its row sends, as bars, below it.
fn profiles(ui: &Ui, network: &Network, buffer: &mut Buffer, layout: &Layout) {
    let (view, theme, map) = (&ui.states.network.view, &ui.theme, layout.map);
    let (right, bottom) = (right(ui, map), bottom(ui, map));
    let halves = if theme.has_half_cells() { 2 } else { 1 };
    for y in 0..map.height {
        let rows = (0..halves).filter_map(|h| place(usize::from(y) * halves + h, view.rows.scale, view.rows.count));
        let share = rows.filter_map(|r| view.receives.get(r)).copied().fold(f32::INFINITY, f32::min);
        // A block as high as several lines is written once, in its middle.
        let middle = usize::from(y) * halves % view.rows.scale / halves == (view.rows.scale / 2) / halves;
        if share.is_finite() && (view.rows.scale <= halves || middle) {
            let text = usual::number(share, network.direction);
            let role = if judged(share) == Role::Text { Role::Dim } else { judged(share) };
            put_right(buffer, (right, map.y + y), BARS + 1, &text, theme.style(role));
        }
    }
    put(buffer, (layout.gutter.x, bottom), layout.gutter.width, "sends", theme.style(Role::Dim));
    for x in 0..map.width {
        let Some(column) = place(x.into(), view.columns.scale, view.columns.count) else { continue };
        let Some(share) = view.sends.get(column).filter(|s| !s.is_nan()) else { continue };
        let role = if judged(*share) == Role::Text { Role::Dim } else { judged(*share) };
        put(buffer, (map.x + x, bottom), 1, bar(theme, *share), theme.style(role));
    }
}

/// One cell of height: eighths, or tenths as a digit.
fn bar(theme: &Theme, share: f32) -> &'static str {
    const EIGHTHS: [&str; 9] = ["_", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    const TENTHS: [&str; 11] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "="];
    // Within 0..=1, so the product is a small non-negative number.
    let share = share.clamp(0.0, 1.0);
    if theme.is_ascii() { TENTHS[(share * 10.0) as usize] } else { EIGHTHS[(share * 8.0).round() as usize] }
}
