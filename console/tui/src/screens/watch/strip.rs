//! The heat strip: a row a machine or group, a column a time, more ink the farther from its peers.

use muster_watch::{Alert, Look};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::screens::watch::layout::Layout;
use crate::screens::watch::rows::Row;
use crate::screens::watch::time::minute;
use crate::snapshot::Watching;
use crate::text::{elide, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right};

/// Glyphs by how far a machine is from its peers: below one standard deviation, then one more each.
const INK: [&str; 7] = ["·", "▁", "▂", "▄", "▅", "▆", "█"];
const ASCII: [&str; 7] = [".", "-", "+", "o", "*", "#", "@"];
/// Standard deviations past which a block is evidence.
const EVIDENCE: f32 = 3.0;
/// Columns that a time of day takes with its distance to the next.
const CLOCK: u16 = 16;

/// A score as it is written, and how it is drawn.
pub(crate) fn score(score: f32) -> (String, Role) {
    match score {
        score if score.is_nan() => (String::new(), Role::Dim),
        score if score.abs() < 0.05 => ("0.0".to_owned(), Role::Text),
        score if score.abs() < EVIDENCE => (format!("{score:+.1}"), Role::Text),
        score if score.abs() < 99.95 => (format!("{score:+.1}"), Role::Attention),
        score => (format!("{}99+", if score < 0.0 { '-' } else { '+' }), Role::Attention),
    }
}

/// Draws names, scores and the strip.
pub(crate) fn draw(ui: &Ui, watch: &Watching, buffer: &mut Buffer, layout: &Layout) {
    head(ui, watch, buffer, layout);
    let state = &ui.states.watch;
    let window = state.machines.window(state.rows.len(), layout.strip.height.into());
    for (y, at) in (layout.strip.y..layout.strip.bottom()).zip(window) {
        let row = &state.rows[at];
        gutter(ui, watch, buffer, (Rect { y, height: 1, ..layout.gutter }, row, at == state.machines.at));
        cells(ui, watch, buffer, (Rect { y, height: 1, ..layout.strip }, row));
    }
    cursor(ui, watch, buffer, layout);
}

/// Names of the columns, and times of day above the strip.
fn head(ui: &Ui, watch: &Watching, buffer: &mut Buffer, layout: &Layout) {
    let (theme, state) = (&ui.theme, &ui.states.watch);
    let y = layout.strip.y - 1;
    let (gutter, style) = (layout.gutter, ui.theme.style(Role::Head));
    let who = state.folded.map_or("machine", |label| label);
    put(buffer, (gutter.x, y), gutter.width, who, style);
    put_right(buffer, (gutter.right() - 16, y), 6, "score", style);
    put_right(buffer, (gutter.right() - 9, y), 8, "evidence", style);
    let mut free = 0;
    for x in 0..layout.strip.width {
        let Some(frame) = state.window.frames(&watch.frames, x).first() else { continue };
        if x >= free && x + 8 <= layout.strip.width {
            let text = format!("{}{}", theme.pick("╷", "|"), minute(frame.at_s));
            put(buffer, (layout.strip.x + x, y), 8, &text, theme.style(Role::Dim));
            free = x + CLOCK;
        }
    }
}

fn gutter(ui: &Ui, watch: &Watching, buffer: &mut Buffer, (area, row, chosen): (Rect, &Row, bool)) {
    let (theme, state) = (&ui.theme, &ui.states.watch);
    let Some(first) = row.nodes.first() else { return };
    let many = if row.folded { format!(" ({})", row.nodes.len()) } else { String::new() };
    let room = usize::from(area.width.saturating_sub(17));
    let marked = row.nodes.iter().any(|at| watch.nodes.get(*at).is_some_and(|node| ui.marks.contains(&node.name)));
    let mark = if marked { "*" } else { "" };
    let name = elide(&row.name, room.saturating_sub(width(&many) + mark.len()), theme.is_ascii());
    let style = theme.style(if chosen { Role::Selected } else { Role::Text });
    if chosen {
        put(buffer, (area.x, area.y), area.width - 1, &" ".repeat(area.width.into()), style);
    }
    put(buffer, (area.x, area.y), area.width, &format!("{mark}{name}{many}"), style);
    let look = state.frame(watch).map(|frame| frame.look(*first, state.metric));
    let (text, role) = look.map_or((String::new(), Role::Dim), |look| score(look.score));
    let text = if text.is_empty() { theme.absent().to_owned() } else { text };
    let paint = |role: Role| if chosen { style } else { theme.style(role) };
    put_right(buffer, (area.right() - 16, area.y), 6, &text, paint(role));
    if let Some(seconds) = look.map(|look| look.evidence.abs()).filter(|seconds| *seconds >= 0.5) {
        put_right(buffer, (area.right() - 9, area.y), 8, &format!("{seconds:.0} s"), paint(Role::Attention));
    }
}

fn cells(ui: &Ui, watch: &Watching, buffer: &mut Buffer, (area, row): (Rect, &Row)) {
    let state = &ui.states.watch;
    let named = |alert: &&Alert| row.nodes.iter().any(|at| watch.nodes.get(*at).is_some_and(|n| n.name == alert.node));
    let alerts: Vec<&Alert> = watch.alerts.iter().filter(named).collect();
    for x in 0..area.width {
        let frames = state.window.frames(&watch.frames, x);
        let looks = frames.iter().flat_map(|frame| row.nodes.iter().map(|node| frame.look(*node, state.metric)));
        let Some(look) = looks.reduce(farther) else { continue };
        let accused = frames.iter().any(|frame| {
            let odd =
                |alert: &&Alert| alert.since_s < frame.end_s() && alert.until_s.is_none_or(|until| until > frame.at_s);
            alerts.iter().any(odd)
        });
        let (glyph, style) = ink(&ui.theme, look, accused);
        put(buffer, (area.x + x, area.y), 1, glyph, style);
    }
}

/// The look that says more.
fn farther(a: Look, b: Look) -> Look {
    let known = |look: Look| (look.score.is_finite(), look.value.is_finite());
    match known(a).cmp(&known(b)) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Equal if b.score.abs() > a.score.abs() => b,
        _ => a,
    }
}

/// Glyph and style of a place: blank where nothing was told, a dash where nobody was compared.
fn ink(theme: &Theme, look: Look, accused: bool) -> (&'static str, Style) {
    if !look.value.is_finite() && !look.score.is_finite() {
        return (" ", Style::new());
    }
    if !look.score.is_finite() {
        return (theme.pick("╌", "~"), theme.style(Role::Dim));
    }
    let far = look.score.abs();
    // Six standard deviations and more are one.
    let rank = (far as usize).min(INK.len() - 1);
    let role = match () {
        () if far < 1.0 => Role::Dim,
        () if far < EVIDENCE => Role::Text,
        () if accused => Role::Act,
        () => Role::Attention,
    };
    (if theme.is_ascii() { ASCII[rank] } else { INK[rank] }, theme.style(role))
}

/// Marks the time that is looked at, where it was chosen.
fn cursor(ui: &Ui, watch: &Watching, buffer: &mut Buffer, layout: &Layout) {
    let state = &ui.states.watch;
    let Some(x) = state.seq.and(state.frame(watch)).and_then(|frame| state.window.column(frame.seq)) else { return };
    let at = layout.strip.x + x;
    put(buffer, (at, layout.strip.y - 1), 1, ui.theme.pick("▼", "v"), ui.theme.style(Role::Mode));
    for y in layout.strip.y..layout.strip.bottom() {
        if let Some(cell) = buffer.cell_mut((at, y)) {
            cell.set_style(ui.theme.style(Role::Selected));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ink_is_farther_and_a_gap_is_a_gap() {
        let theme = Theme::new(false, false);
        let look = |score: f32| Look { value: 1.0, score, evidence: 0.0 };
        let drawn = |score| ink(&theme, look(score), false).0;
        assert_eq!([0.2, -1.5, 2.9, -3.1, 99.0].map(drawn), ["·", "▁", "▂", "▄", "█"]);
        assert_eq!(drawn(f32::NAN), "╌", "told, but not compared");
        assert_eq!(ink(&theme, Look { value: f32::NAN, ..look(f32::NAN) }, true).0, " ");
    }

    #[test]
    fn of_several_looks_the_one_farthest_away_is_drawn() {
        let look = |score: f32| Look { value: 1.0, score, evidence: 0.0 };
        let none = Look { value: f32::NAN, ..look(f32::NAN) };
        assert_eq!(farther(look(1.0), look(-4.0)), look(-4.0));
        assert_eq!(farther(none, look(0.1)), look(0.1));
        assert!(farther(none, look(f32::NAN)).value.is_finite());
    }
}
