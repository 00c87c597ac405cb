//! The node's lists that the database feeds: its passport, what was looked at and when, its incidents.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::judgement::State;
use crate::screens::node::coverage::{self, Covered};
use crate::screens::node::passport;
use crate::snapshot::{Focus, IncidentRow, NodeRow, Snapshot};
use crate::stale::Stale;
use crate::text::{age, cut, whole_age};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{put, put_right};

/// Cells of a passport's labels.
const LABELS: u16 = 14;

/// Draws the passport's line `row`.
pub(crate) fn passport(ui: &Ui, fields: &[passport::Field], row: usize, (buffer, line): (&mut Buffer, Rect)) {
    let (theme, Some(field)) = (&ui.theme, fields.get(row)) else { return };
    put(
        buffer,
        (line.x, line.y),
        LABELS - 1,
        &cut(&field.label, LABELS.into(), theme.is_ascii()),
        theme.style(Role::Dim),
    );
    let room = line.width.saturating_sub(LABELS);
    let role = if field.known { Role::Text } else { Role::Dim };
    put(buffer, (line.x + LABELS, line.y), room, &cut(&field.value, room.into(), theme.is_ascii()), theme.style(role));
}

/// Every benchmark and collector with its judgement and age.
pub(crate) fn covered(node: &NodeRow, focus: Option<&Focus>) -> Vec<Covered> {
    coverage::rows(node, focus)
}

/// Draws one line of the coverage.
pub(crate) fn coverage(ui: &Ui, snapshot: &Snapshot, covered: &Covered, (buffer, line): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let (state, role) = covered.cell(theme, Stale::now(ui, snapshot));
    put(buffer, (line.x, line.y), 10, &state, theme.style(role));
    let text = if covered.state == Some(State::NotRun) { Role::Dim } else { Role::Text };
    put(buffer, (line.x + 10, line.y), line.width.saturating_sub(17), &covered.work, theme.style(text));
    let seen = covered.at_ms.map_or(String::new(), |at| whole_age(ui.data_ms(snapshot).saturating_sub(at)));
    put_right(buffer, (line.right().saturating_sub(7), line.y), 7, &seen, theme.style(Role::Dim));
}

/// Draws one incident: when, how long, what broke.
pub(crate) fn incident(ui: &Ui, snapshot: &Snapshot, row: &IncidentRow, (buffer, line): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let now = ui.data_ms(snapshot);
    let ago = whole_age(now.saturating_sub(row.start_ms));
    put_right(buffer, (line.x, line.y), 7, &ago, theme.style(Role::Dim));
    let (text, role) = match row.end_ms {
        None => (format!("{} open", theme.pick("✗", "x")), Role::Act),
        Some(end) => (format!("for {}", age(end.saturating_sub(row.start_ms) / 1000 * 1000)), Role::Text),
    };
    put(buffer, (line.x + 8, line.y), 10, &text, theme.style(role));
    let room = line.width.saturating_sub(19);
    let what = format!("{}: {} ({})", row.category, row.reason, row.source);
    put(buffer, (line.x + 19, line.y), room, &cut(&what, room.into(), theme.is_ascii()), theme.style(Role::Text));
}

/// Bars of time, newest right: where the node was down in the last 90 days, a cell each `90 / width` days.
pub(crate) fn timeline(ui: &Ui, snapshot: &Snapshot, incidents: &[IncidentRow], width: usize) -> String {
    const SPAN_MS: u64 = 90 * 86_400_000;
    let now = ui.data_ms(snapshot);
    let start = now.saturating_sub(SPAN_MS);
    let width = width.max(1) as u64;
    let down = |cell: u64| {
        let (from, to) = (start + SPAN_MS * cell / width, start + SPAN_MS * (cell + 1) / width);
        incidents.iter().any(|i| i.start_ms < to && i.end_ms.unwrap_or(u64::MAX) > from)
    };
    let (bad, good) = (ui.theme.pick("▇", "#"), ui.theme.pick("▁", "_"));
    (0..width).map(|cell| if down(cell) { bad } else { good }).collect()
}
