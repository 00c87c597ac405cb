//! The selected node: its reason in the message line, and all about it beside the table where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::judgement::{PROVISIONAL_ABOUT, State};
use crate::screens::node::{changes, head};
use crate::snapshot::{NodeRow, Snapshot};
use crate::stale::{self, Stale};
use crate::text::{elide, width, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{block, put};

/// Cells of a name that every table has room for.
const NAME: usize = 14;

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let Some((_, node)) = ui.selected_row(snapshot) else { return };
    let room = usize::from(area.width.saturating_sub(6));
    let block = block(&ui.theme, area, &elide(&node.name, room, ui.theme.is_ascii()), "");
    let inner = block.inner(area);
    block.render(area, buffer);
    for (y, (text, role)) in (inner.y..inner.bottom()).zip(lines(ui, snapshot, node, usize::from(inner.width) - 2)) {
        put(buffer, (inner.x + 1, y), inner.width - 2, &text, ui.theme.style(role));
    }
}

fn lines(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, room: usize) -> Vec<(String, Role)> {
    let known = || Stale::now(ui, snapshot).state(node.state, node.result_ms);
    let state = snapshot.awaited(node.state).map_or_else(known, str::to_owned);
    let mut lines = vec![(format!("{} {state}", ui.theme.glyph(node.state)), Theme::state_role(node.state))];
    if node.provisional {
        lines.extend(wrap(PROVISIONAL_ABOUT, room).into_iter().map(|l| (l, Role::Dim)));
    }
    if let Some((changed, role)) = changes(&node.verdicts) {
        lines.extend(wrap(&changed, room).into_iter().map(|l| (l, role)));
    }
    for (said, role) in head(node) {
        lines.extend(wrap(&said, room).into_iter().map(|l| (l, role)));
    }
    for reason in node.reasons.iter() {
        lines.extend(wrap(reason, room).into_iter().map(|l| (l, Role::Text)));
    }
    lines.push((String::new(), Role::Text));
    let places = [("rack", node.rack.clone()), ("leaf", node.leaf.clone())];
    for (label, value) in
        places.into_iter().chain([("groups", node.groups.join(", ")), ("link", node.link.text.clone())])
    {
        if !value.is_empty() {
            lines.extend(wrap(&format!("{label}: {value}"), room).into_iter().map(|l| (l, Role::Dim)));
        }
    }
    if let Some(work) = &node.work {
        lines.push((format!("now: {} {}", work.name, work.note), Role::Text));
    }
    lines.push((String::new(), Role::Text));
    for fact in node.facts.iter().filter(|f| f.known) {
        lines.push((
            elide(&format!("{} {}: {}", fact.collector, fact.key, fact.value), room, ui.theme.is_ascii()),
            Role::Dim,
        ));
    }
    lines
}

/// Why the node under the cursor is not a pass, or what the mark behind its state means; else its name, where the table has no room for
/// all of it.
pub(crate) fn reason(ui: &Ui, snapshot: &Snapshot) -> (String, Role) {
    let node = ui.selected_row(snapshot).map(|(_, node)| node);
    if let Some(node) = node.filter(|node| node.provisional && node.state == State::Pass) {
        return (format!("{}: pass, {PROVISIONAL_ABOUT}", node.name), Role::Text);
    }
    let said = node.and_then(|node| {
        let stale = Stale::now(ui, snapshot);
        if stale::hides(node.state) && stale.is(node.result_ms) || node.state == State::Pass {
            return stale.sentence(node);
        }
        let why = node.reasons.first().or(node.worst.as_ref().map(|worst| &worst.sentence))?;
        Some(stale.words(node.result_ms).map_or_else(|| why.clone(), |stale| format!("{stale}; {why}")))
    });
    let hands = || node.and_then(|node| Some(format!("{}: {}", node.name, head(node).into_iter().next()?.0)));
    let long = || node.map(|node| node.name.clone()).filter(|name| width(name) > NAME);
    (said.or_else(hands).or_else(long).unwrap_or_default(), Role::Text)
}
