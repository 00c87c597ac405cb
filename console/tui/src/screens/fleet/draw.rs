//! The fleet's table.
//!
//! ```text
//! ┌ Nodes 412 ─ sorted by state ──────────────── 1-17/412 ┐
//!   node       state    worst metric       vs peers   seen
//! ▸ rack3-17   ✗ fail   cpu-stream/triad      -39 %     2s
//! └───────────────────────────────────────────────────────┘
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::draw::body;
use crate::screens::fleet::columns::{COLUMNS, Column, Placed, cell, fit, telling};
use crate::screens::fleet::{detail, map};
use crate::snapshot::{LinkKind, Load, NodeRow, Snapshot};
use crate::stale::Stale;
use crate::text::{self, cut, elide, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_right};

/// From this width on the selected node is described beside the table.
const WITH_DETAIL: u16 = 160;
const DETAIL: u16 = 54;

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let has = !snapshot.nodes.is_empty();
    let instead = instead(ui, snapshot, (&snapshot.load, has), empty).or_else(|| nothing_kept(ui));
    if let Some(instead) = instead {
        return framed_panel(buffer, area, &ui.theme, ("Nodes", &instead));
    }
    let list = list(ui, area);
    if list.width < area.width {
        detail::draw(ui, snapshot, buffer, Rect { x: list.right(), width: area.width - list.width, ..area });
    }
    match ui.states.fleet.map.shown {
        true => map::draw(ui, snapshot, buffer, list),
        false => table(ui, snapshot, buffer, list),
    }
}

/// Where the table or the map is: in all of `area`, or beside the selected node.
pub(crate) const fn list(ui: &Ui, area: Rect) -> Rect {
    let width = if area.width >= WITH_DETAIL && !ui.wide { area.width - DETAIL } else { area.width };
    Rect { width, ..area }
}

fn empty() -> Panel {
    Panel::empty(
        "The inventory has no node.",
        "Add nodes to it and start again, or start `muster demo` for a local fleet.",
    )
}

fn nothing_kept(ui: &Ui) -> Option<Panel> {
    let why = || format!("No node matches `{}`.", ui.filter.text());
    ui.states.fleet.rows().is_empty().then(|| Panel::empty(why(), "esc clears the filter, / changes it."))
}

fn table(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let rows = ui.states.fleet.rows();
    let page = usize::from(area.height.saturating_sub(3));
    let window = ui.states.fleet.cursor.window(rows.len(), page);
    let note = format!("{}-{}/{}", window.start + 1, window.end, rows.len());
    let room = usize::from(area.width.saturating_sub(8)).saturating_sub(width(&note));
    let block = block(&ui.theme, area, &title(ui, snapshot, room), &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let columns = fit(telling(snapshot), inner.width.saturating_sub(2));
    header(ui, buffer, inner, &columns);
    for (y, row) in (inner.y + 1..inner.bottom()).zip(window) {
        if let Some(node) = snapshot.nodes.get(rows[row]) {
            let line = Rect { y, height: 1, ..inner };
            let selected = row == ui.states.fleet.cursor.at;
            draw_row(ui, snapshot, (buffer, line, selected), &columns, node);
            draw_trouble(ui, (buffer, line, selected), &columns, node);
            if selected {
                put(buffer, (inner.x, y), 1, ui.theme.pick("▸", ">"), ui.theme.style(Role::Head));
                buffer
                    .set_style(Rect { x: inner.x + 1, width: inner.width - 1, ..line }, ui.theme.style(Role::Selected));
            }
        }
    }
}

/// What lies under a cell of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A row of the table, counted over the whole list.
    Row(usize),
    /// The title of a column.
    Title(Column),
}

/// What the table shows at this cell; `None` outside it.
pub(crate) fn at(ui: &Ui, snapshot: &Snapshot, (x, y): (u16, u16)) -> Option<Place> {
    let area = list(ui, body(ui.size));
    let inner = Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 };
    if !inner.contains((x, y).into()) {
        return None;
    }
    if y == inner.y {
        let own = |placed: &Placed| (placed.x..placed.x + placed.width).contains(&x.saturating_sub(inner.x + 2));
        let columns = fit(telling(snapshot), inner.width.saturating_sub(2));
        return columns.iter().find(|p| own(p)).map(|p| Place::Title(p.spec.column));
    }
    let len = ui.states.fleet.rows().len();
    let window = ui.states.fleet.cursor.window(len, usize::from(area.height.saturating_sub(3)));
    let row = window.start + usize::from(y - inner.y - 1);
    window.contains(&row).then_some(Place::Row(row))
}

/// How many nodes there are, by which filter, also in other hands where `room` cells hold that, and what they are sorted by.
fn title(ui: &Ui, snapshot: &Snapshot, room: usize) -> String {
    let sorted = COLUMNS.iter().find(|s| s.column == ui.states.fleet.sort).map_or("", |s| s.title);
    let order = match (ui.states.fleet.held(), ui.states.fleet.reversed) {
        (true, _) => ", held",
        (false, true) => ", reversed",
        (false, false) => "",
    };
    let line = ui.theme.pick("─", "-");
    let nodes = nodes(ui, snapshot, room);
    let hands: Vec<String> = snapshot.hands.iter().map(|(state, n)| format!("{n} {}", state.title())).collect();
    let whole = format!("{nodes} {line} {} {line} by {sorted}{order}", hands.join(", "));
    let fits = !hands.is_empty() && width(&whole) <= room;
    if fits { whole } else { format!("{nodes} {line} by {sorted}{order}") }
}

/// `Nodes 24`, or, under a filter, `Nodes 3 of 24 /state:fail`.
fn nodes(ui: &Ui, snapshot: &Snapshot, room: usize) -> String {
    let (kept, all) = (ui.states.fleet.rows().len(), snapshot.nodes.len());
    if ui.filter.is_empty() {
        return format!("Nodes {all}");
    }
    format!("Nodes {kept} of {all} {}", filter(ui, room / 2))
}

/// The filter as it is typed, in at most `room` cells.
pub(crate) fn filter(ui: &Ui, room: usize) -> String {
    cut(&format!("/{}", ui.filter.text()), room, ui.theme.is_ascii())
}

fn header(ui: &Ui, buffer: &mut Buffer, inner: Rect, columns: &[Placed]) {
    for Placed { spec, x, width } in columns {
        let (at, width) = ((inner.x + 2 + x, inner.y), *width);
        let sorted = spec.column == ui.states.fleet.sort;
        let arrow = match (sorted, ui.states.fleet.reversed) {
            (false, _) => "",
            (true, false) => ui.theme.pick("▾", "v"),
            (true, true) => ui.theme.pick("▴", "^"),
        };
        let style = ui.theme.style(if sorted { Role::Key } else { Role::Head });
        let room = usize::from(width);
        let (title, marked) = (cut(spec.title, room, ui.theme.is_ascii()), arrow.chars().count());
        if spec.right && text::width(&title) + marked > room {
            // The title takes all of the column, which leaves the arrow the cell before it.
            put(buffer, (at.0 - 1, at.1), width + 1, &format!("{arrow}{title}"), style);
        } else if spec.right {
            put_right(buffer, at, width, &format!("{title}{arrow}"), style);
        } else {
            let title = cut(&title, room - marked, ui.theme.is_ascii());
            put(buffer, at, width, &format!("{title}{arrow}"), style);
        }
    }
}

fn draw_row(
    ui: &Ui,
    snapshot: &Snapshot,
    (buffer, line, selected): (&mut Buffer, Rect, bool),
    columns: &[Placed],
    node: &NodeRow,
) {
    let theme = &ui.theme;
    let old = matches!(snapshot.load, Load::Failed { .. })
        || node.link.kind == LinkKind::Failed
        || Stale::now(ui, snapshot).is(node.result_ms);
    if ui.marks.contains(&node.name) {
        put(buffer, (line.x + 1, line.y), 1, "*", theme.style(Role::Key));
    }
    let trouble = trouble(node);
    for Placed { spec, x, width } in columns {
        if trouble.is_some() && TROUBLE_SPANS.contains(&spec.column) {
            continue;
        }
        let (text, role) = cell(spec.column, node, snapshot, ui);
        let style = theme.style(match spec.column {
            Column::State => role,
            // One colour in the selected row is enough, and dim in reverse is hard to read.
            _ if selected => Role::Text,
            // What is old is dim, except who it is and the reason why it is old.
            Column::Link | Column::Node => role,
            _ if old => Role::Dim,
            _ => role,
        });
        let (at, room) = ((line.x + 2 + x, line.y), usize::from(*width));
        match spec.column {
            Column::Work if node.work.is_some() => draw_work(ui, buffer, (at, *width), node),
            _ if spec.right => put_right(buffer, at, *width, &text, style),
            Column::Node => {
                put(buffer, at, *width, &ui.states.fleet.names().short(&text, room, theme.is_ascii()), style);
            }
            Column::Link => put(buffer, at, *width, &cut(&text, room, theme.is_ascii()), style),
            _ => put(buffer, at, *width, &elide(&text, room, theme.is_ascii()), style),
        }
    }
}

/// Columns that have nothing to say of a node that was not reached; the reason stands there instead.
const TROUBLE_SPANS: [Column; 4] = [Column::Worst, Column::Similarity, Column::Deviation, Column::Work];

/// Why there is no verdict, if the connection is the reason.
fn trouble(node: &NodeRow) -> Option<&str> {
    let troubled = matches!(node.link.kind, LinkKind::Failed | LinkKind::Waiting | LinkKind::Connecting);
    (troubled && node.worst.is_none() && node.work.is_none()).then_some(node.link.text.as_str())
}

fn draw_trouble(ui: &Ui, (buffer, line, selected): (&mut Buffer, Rect, bool), columns: &[Placed], node: &NodeRow) {
    let Some(text) = trouble(node) else { return };
    let mut spanned = columns.iter().filter(|p| TROUBLE_SPANS.contains(&p.spec.column));
    let Some(first) = spanned.next() else { return };
    let last = spanned.next_back().unwrap_or(first);
    let room = last.x + last.width - first.x;
    let text = cut(text, room.into(), ui.theme.is_ascii());
    let role = if selected { Role::Text } else { Theme::link_role(node.link.kind) };
    put(buffer, (line.x + 2 + first.x, line.y), room, &text, ui.theme.style(role));
}

fn draw_work(ui: &Ui, buffer: &mut Buffer, (at, width): ((u16, u16), u16), node: &NodeRow) {
    let Some(work) = &node.work else { return };
    let share = format!("{:.0} %", work.done * 100.0);
    let room = usize::from(width).saturating_sub(share.len() + 1);
    put(buffer, at, width, &elide(&work.name, room, ui.theme.is_ascii()), ui.theme.style(Role::Text));
    put_right(buffer, at, width, &share, ui.theme.style(Role::Text));
}
