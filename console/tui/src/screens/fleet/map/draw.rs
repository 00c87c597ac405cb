//! How the map looks: a glyph a cell, the names of racks and leaves, and a line of words for what is under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::judgement::{BY_SEVERITY, State, word};
use crate::screens::fleet::draw::filter;
use crate::screens::fleet::map::cells::{Tally, cell_of, tally};
use crate::screens::fleet::map::groups::is_known;
use crate::screens::fleet::map::keys::kept;
use crate::screens::fleet::map::layout::{Cell, Layout};
use crate::screens::fleet::map::state::room;
use crate::snapshot::{NodeRow, Snapshot};
use crate::text::{counted, cut, elide};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, put, put_spans};

/// Draws the map.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    if !is_known(&snapshot.nodes) {
        return framed_panel(buffer, area, theme, ("Racks", &nowhere()));
    }
    let (layout, room, kept) = (&ui.states.fleet.map.layout, room(ui), kept(ui, snapshot));
    let title = title(ui, layout, usize::from(area.width) / 3);
    block(theme, area, &title, &note(ui, snapshot)).render(area, buffer);
    for label in &layout.labels {
        let text = elide(&label.text, label.width.into(), theme.is_ascii());
        let role = if label.heading { Role::Head } else { Role::Dim };
        put(buffer, (room.x + label.x, room.y + label.y), label.width, &text, theme.style(role));
    }
    let here = ui.selected_row(snapshot).and_then(|(node, _)| cell_of(layout, node));
    for (at, cell) in layout.cells.iter().enumerate() {
        let Some(tally) = tally(layout, cell, &snapshot.nodes, &kept) else { continue };
        let (text, mut style) = look(theme, &tally, layout.fold);
        if ui.marks.contains(&snapshot.nodes[tally.node].name) {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        let style = if here == Some(at) { theme.style(Role::Selected) } else { style };
        put(buffer, (room.x + cell.x, room.y + cell.y), cell.width, &text, style);
    }
    let Some(cell) = here.and_then(|at| layout.cells.get(at)) else { return };
    let words = whole(words(ui, snapshot, (layout, cell), &kept), room.width.saturating_sub(2).into());
    put_spans(buffer, (room.x + 1, room.bottom()), room.width.saturating_sub(2), &words);
}

/// As many of `words` as fit in `room`, none of them cut.
fn whole(words: Vec<Span<'static>>, room: usize) -> Vec<Span<'static>> {
    let mut used = 0;
    let fits = |span: &Span<'_>| {
        used += span.width();
        used <= room
    };
    words.into_iter().take_while(fits).collect()
}

/// Nobody has a rack, and how that is changed.
fn nowhere() -> Panel {
    let mut panel = Panel::empty(
        "No node in the inventory has a rack.",
        "Write `rack = \"r1\"` beside the nodes in the inventory, and `labels = { leaf = \"leaf1\" }` for the switch.",
    );
    panel.lines.push("m shows the table again.".to_owned());
    panel
}

/// What a cell is, and the filter in at most `room` cells.
fn title(ui: &Ui, layout: &Layout, room: usize) -> String {
    let line = ui.theme.pick("─", "-");
    let racks = if ui.filter.is_empty() { "Racks".to_owned() } else { format!("Racks {}", filter(ui, room)) };
    match layout.fold {
        1 => format!("{racks} {line} a cell is a node"),
        fold => format!("{racks} {line} a cell is up to {fold} nodes: the worst state and how many have it"),
    }
}

/// How many nodes there are, and how many of them are shown.
fn note(ui: &Ui, snapshot: &Snapshot) -> String {
    let all = counted(snapshot.nodes.len(), "node", "nodes");
    if ui.filter.is_empty() { all } else { format!("{} of {all}", ui.states.fleet.rows().len()) }
}

fn look(theme: &Theme, tally: &Tally, fold: usize) -> (String, Style) {
    let glyph = glyph(theme, tally.state, tally.measuring);
    let text = if fold == 1 { glyph.to_owned() } else { format!("{glyph}{}", tally.count) };
    (text, theme.style(Theme::state_role(tally.state)))
}

/// As in the table, a node that is being measured for the first time has no state yet.
const fn glyph(theme: &Theme, state: State, measuring: bool) -> &'static str {
    if measuring { "o" } else { theme.glyph(state) }
}

/// What is under the cursor: who, where and in which state; of several how many are in which.
fn words(ui: &Ui, snapshot: &Snapshot, (layout, cell): (&Layout, &Cell), kept: &[bool]) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let Some((_, node)) = ui.selected_row(snapshot) else { return Vec::new() };
    let mut spans = vec![Span::styled(elide(&node.name, 48, theme.is_ascii()), theme.style(Role::Focus))];
    if ui.marks.contains(&node.name) {
        spans.push(Span::styled(" marked", theme.style(Role::Key)));
    }
    spans.push(Span::raw("  "));
    spans.push(Span::styled(state(theme, snapshot, node), theme.style(Theme::state_role(node.state))));
    let place = [("rack ", &node.rack), ("", &node.leaf)];
    let place: Vec<String> =
        place.iter().filter(|(_, name)| !name.is_empty()).map(|(what, name)| format!("{what}{name}")).collect();
    let place = format!("  {}", cut(&place.join(", "), 32, theme.is_ascii()));
    spans.push(Span::styled(place, theme.style(Role::Dim)));
    if layout.fold > 1 {
        spans.push(Span::styled("  one of ", theme.style(Role::Dim)));
        let own: Vec<&NodeRow> = layout.order[cell.nodes.clone()]
            .iter()
            .filter(|at| kept.get(**at) == Some(&true))
            .filter_map(|at| snapshot.nodes.get(*at).map(AsRef::as_ref))
            .collect();
        spans.push(Span::raw(counted(own.len(), "node", "nodes")));
        for state in BY_SEVERITY {
            let count = own.iter().filter(|row| row.state == state).count();
            if count > 0 {
                let text = format!("  {} {count} {}", theme.glyph(state), word(state));
                spans.push(Span::styled(text, theme.style(Theme::state_role(state))));
            }
        }
    }
    spans
}

fn state(theme: &Theme, snapshot: &Snapshot, node: &NodeRow) -> String {
    let measuring = node.state == State::NotRun && node.work.is_some();
    let awaited = snapshot.awaited(node.state).unwrap_or_else(|| word(node.state));
    let said = if measuring { "measuring" } else { awaited };
    let mark = if node.provisional { ", provisional" } else { "" };
    format!("{} {said}{mark}", glyph(theme, node.state, measuring))
}
