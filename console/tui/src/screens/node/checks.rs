//! What the checks say of a node, worst first: the answer, what was seen against what is usual, and what to do next.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::judgement::{State, word};
use crate::screens::node::Pane;
use crate::screens::node::panes::select;
use crate::snapshot::{CheckRow, NodeRow};
use crate::text::{cut, elide, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::put;

/// Rows below the list: one or two of what was seen, the others of what to do.
pub(super) const EXTRA: u16 = 4;
/// Cells of the state and the area, which has its own column where there is room.
const STATE: u16 = 10;
const AREA: u16 = 12;
const ROOM_FOR_AREA: u16 = 76;

/// Draws the list and the chosen check in full.
pub(super) fn draw(ui: &Ui, node: &NodeRow, (buffer, inner): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let cursor = ui.states.node.cursor(Pane::Checks);
    let height = inner.height.saturating_sub(EXTRA);
    let ids = node.checks.iter().map(|check| check.id.len() + 1).max().unwrap_or(0);
    let ids = u16::try_from(ids).unwrap_or(u16::MAX).min(inner.width / 2);
    for (y, row) in (inner.y..inner.y + height).zip(cursor.window(node.checks.len(), height.into())) {
        let line = Rect { y, height: 1, ..inner };
        check(ui, &node.checks[row], ids, (buffer, line));
        select(ui, Pane::Checks, cursor, row, (buffer, line));
    }
    let Some(chosen) = node.checks.get(cursor.at) else { return };
    let below = Rect { y: inner.y + height, height: inner.height - height, ..inner };
    let said = wrap(&chosen.said, inner.width.into()).into_iter().take(2).map(|line| (line, Role::Text));
    let next = format!("next: {}", chosen.next);
    let to_do = matches!(chosen.state, State::Fail | State::Warn | State::Unknown);
    let next = wrap(&next, inner.width.into()).into_iter().filter(|_| to_do);
    for (y, (line, role)) in (below.y..below.bottom()).zip(said.chain(next.map(|line| (line, Role::Head)))) {
        put(buffer, (inner.x, y), inner.width, &line, theme.style(role));
    }
}

/// One line of the list; the name of a check gets `ids` cells.
fn check(ui: &Ui, row: &CheckRow, ids: u16, (buffer, line): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let text = theme.style(Role::Text);
    let state = format!("{} {}", theme.glyph(row.state), word(row.state));
    put(buffer, (line.x, line.y), STATE, &state, theme.style(Theme::state_role(row.state)));
    let mut x = line.x + STATE;
    if line.width >= ROOM_FOR_AREA {
        put(buffer, (x, line.y), AREA, row.area, theme.style(Role::Dim));
        x += AREA;
    }
    let room = ids.min(line.right().saturating_sub(x));
    put(buffer, (x, line.y), room, &elide(row.id, usize::from(room).saturating_sub(1), theme.is_ascii()), text);
    x += room;
    let room = line.right().saturating_sub(x);
    put(buffer, (x, line.y), room, &cut(&row.said, room.into(), theme.is_ascii()), theme.style(Role::Dim));
}
