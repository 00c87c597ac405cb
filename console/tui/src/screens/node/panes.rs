//! The node's lists in their borders: facts, its log, and those that have files of their own.

use muster_wire::Level;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

use crate::screens::node::{Pane, changes, checks, gpus, more, passport, service, verdicts};
use crate::snapshot::{Focus, IncidentRow, NodeRow, Reading, Snapshot};
use crate::text::{cut, elide, whole_age, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Cursor, block, put, put_right};

/// Rows of a pane that are not lines of its list.
pub(crate) const fn extra(pane: Pane) -> u16 {
    match pane {
        Pane::Verdicts => verdicts::EXTRA,
        Pane::Checks => checks::EXTRA,
        Pane::Gpus => gpus::EXTRA,
        Pane::Service => service::EXTRA,
        // The timeline.
        Pane::Incidents => 1,
        _ => 0,
    }
}

pub(super) fn focus_of<'s>(snapshot: &'s Snapshot, node: &NodeRow) -> Option<&'s Focus> {
    snapshot.focus.as_deref().filter(|f| f.node == node.name)
}

/// Lines of a pane's list.
pub(crate) fn len(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, pane: Pane) -> usize {
    let focus = focus_of(snapshot, node);
    match pane {
        Pane::Verdicts => changes::listed(ui, node).len(),
        Pane::Passport => passport::fields(node).len(),
        Pane::Checks => node.checks.len(),
        Pane::Gpus => node.gpus.len(),
        Pane::Service => service::fields(ui, snapshot, node, focus).len(),
        Pane::Coverage => more::covered(node, focus).len(),
        Pane::Incidents => incidents(focus).len(),
        Pane::Facts => node.facts.len(),
        Pane::Log => focus.map_or(0, |f| f.log.len()),
    }
}

/// Draws one pane.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, pane: Pane, (buffer, area): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let here = ui.states.node.pane == pane;
    let focus = focus_of(snapshot, node);
    let (cursor, len) = (ui.states.node.cursor(pane), len(ui, snapshot, node, pane));
    let note = if len == 0 { String::new() } else { format!("{}/{len}", cursor.at.min(len - 1) + 1) };
    let title = title(ui, node, pane);
    let title = if here { format!("{} {title}", theme.pick("▸", ">")) } else { title };
    let block = block(theme, area, &title, &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if len == 0 {
        let reading = snapshot.reading.as_ref().filter(|_| snapshot.awaited(node.state).is_some());
        let why = reading.map_or_else(|| nothing(snapshot, node, pane, focus).to_owned(), Reading::words);
        let why = wrap(&why, inner.width.into());
        for (y, line) in (inner.y..inner.bottom()).zip(why) {
            put(buffer, (inner.x, y), inner.width, &line, theme.style(Role::Dim));
        }
        return;
    }
    match pane {
        Pane::Verdicts => verdicts::draw(ui, snapshot, node, focus, (buffer, inner)),
        Pane::Facts => facts(ui, node, (buffer, inner)),
        Pane::Checks => checks::draw(ui, node, (buffer, inner)),
        Pane::Service => service::draw(ui, snapshot, node, focus, (buffer, inner)),
        Pane::Gpus => gpus::draw(ui, snapshot, node, (buffer, inner)),
        Pane::Passport | Pane::Coverage | Pane::Incidents => lines(ui, snapshot, node, pane, (buffer, inner)),
        Pane::Log => log(ui, snapshot, focus, (buffer, inner)),
    }
}

/// What the pane holds, and of verdicts how many changed.
fn title(ui: &Ui, node: &NodeRow, pane: Pane) -> String {
    let name = pane.title();
    if pane != Pane::Verdicts {
        return name.to_owned();
    }
    if ui.states.node.changed {
        return format!("{name}, changed only");
    }
    match node.verdicts.iter().filter(|verdict| changes::has_changed(verdict)).count() {
        0 => name.to_owned(),
        changed => format!("{name}, {changed} changed"),
    }
}

fn nothing(snapshot: &Snapshot, node: &NodeRow, pane: Pane, focus: Option<&Focus>) -> &'static str {
    match (pane, focus) {
        (Pane::Verdicts, _) if node.verdicts.iter().any(|verdict| verdict.before.is_some()) => {
            "No metric changed since the run before; d shows all."
        }
        (Pane::Verdicts, _) if snapshot.looking_back && !node.verdicts.is_empty() => {
            "Reading earlier runs; d shows all."
        }
        (Pane::Verdicts, _) if !node.verdicts.is_empty() => "No earlier run has these metrics; d shows all.",
        (Pane::Verdicts, _) => "Nothing was measured here yet; R runs a playbook.",
        (Pane::Facts | Pane::Passport, _) => "No collector has reported yet; R runs a playbook.",
        (Pane::Checks, _) => "No check was asked for; R runs a playbook that does, such as cbd.",
        (Pane::Service, _) => "It is in service.",
        (Pane::Gpus, _) => "It has no GPU that is known.",
        (Pane::Coverage, _) => "There is nothing to cover.",
        (Pane::Incidents, Some(focus)) if focus.past.is_some() => "It has had no incident that is known.",
        (Pane::Incidents, _) => "Reading its past.",
        (Pane::Log, Some(_)) => "It has said nothing yet.",
        (Pane::Log, None) => "Reading its log.",
    }
}

pub(super) fn select(ui: &Ui, pane: Pane, cursor: Cursor, row: usize, (buffer, line): (&mut Buffer, Rect)) {
    if ui.states.node.pane == pane && row == cursor.at {
        // One colour in the selected row is enough: the state's, in the first ten cells.
        let rest = Rect { x: line.x + 10, width: line.width.saturating_sub(10), ..line };
        buffer.set_style(rest, Style::new().fg(Color::Reset));
        buffer.set_style(line, ui.theme.style(Role::Selected));
    }
}

fn incidents(focus: Option<&Focus>) -> &[IncidentRow] {
    focus.and_then(|f| f.past.as_deref()).map_or(&[], |p| &p.incidents)
}

/// The lists that have one kind of line each.
fn lines(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, pane: Pane, (buffer, inner): (&mut Buffer, Rect)) {
    let focus = focus_of(snapshot, node);
    let (fields, covered) = (passport::fields(node), more::covered(node, focus));
    let incidents = incidents(focus);
    let cursor = ui.states.node.cursor(pane);
    let height = inner.height.saturating_sub(extra(pane));
    for (y, row) in (inner.y..inner.y + height).zip(cursor.window(len(ui, snapshot, node, pane), height.into())) {
        let line = Rect { y, height: 1, ..inner };
        match pane {
            Pane::Passport => more::passport(ui, &fields, row, (buffer, line)),
            Pane::Coverage => more::coverage(ui, snapshot, &covered[row], (buffer, line)),
            _ => more::incident(ui, snapshot, &incidents[row], (buffer, line)),
        }
        select(ui, pane, cursor, row, (buffer, line));
    }
    if pane == Pane::Incidents {
        let bars = more::timeline(ui, snapshot, incidents, usize::from(inner.width).saturating_sub(9));
        put(buffer, (inner.x, inner.bottom() - 1), inner.width, &format!("90 days {bars}"), ui.theme.style(Role::Dim));
    }
}

fn facts(ui: &Ui, node: &NodeRow, (buffer, inner): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let keys = (inner.width / 2).min(32);
    let window = ui.states.node.cursor(Pane::Facts).window(node.facts.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let fact = &node.facts[row];
        let key = elide(&format!("{} {}", fact.collector, fact.key), keys.into(), theme.is_ascii());
        put(buffer, (inner.x, y), keys, &key, theme.style(Role::Dim));
        let room = inner.width.saturating_sub(keys + 1);
        let role = if fact.known { Role::Text } else { Role::Dim };
        put(buffer, (inner.x + keys + 1, y), room, &cut(&fact.value, room.into(), theme.is_ascii()), theme.style(role));
        select(ui, Pane::Facts, ui.states.node.cursor(Pane::Facts), row, (buffer, Rect { y, height: 1, ..inner }));
    }
}

fn log(ui: &Ui, snapshot: &Snapshot, focus: Option<&Focus>, (buffer, inner): (&mut Buffer, Rect)) {
    let Some(focus) = focus else { return };
    let theme = &ui.theme;
    // Newest first: what a node said last is what one asks for.
    let window = ui.states.node.cursor(Pane::Log).window(focus.log.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let line = &focus.log[focus.log.len() - 1 - row];
        let (word, role) = match line.level {
            Level::Error => ("error", Role::Act),
            Level::Warn => ("warn", Role::Attention),
            Level::Info => ("info", Role::Text),
            Level::Debug => ("debug", Role::Dim),
        };
        let age = whole_age(ui.data_ms(snapshot).saturating_sub(line.at_ms));
        put_right(buffer, (inner.x, y), 6, &age, theme.style(Role::Dim));
        put(buffer, (inner.x + 7, y), 5, word, theme.style(role));
        let room = inner.width.saturating_sub(13);
        put(buffer, (inner.x + 13, y), room, &cut(&line.text, room.into(), theme.is_ascii()), theme.style(Role::Text));
        select(ui, Pane::Log, ui.states.node.cursor(Pane::Log), row, (buffer, Rect { y, height: 1, ..inner }));
    }
}
