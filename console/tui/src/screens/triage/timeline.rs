//! Events of all nodes on one clock. What lies within the errors of two clocks is joined by a bracket: nothing tells its order.

use muster_logs::Kind;
use muster_triage::overview::{Moment, Overview};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::filter::Filter;
use crate::screens::triage::lanes;
use crate::screens::triage::reader::{self, Entry, fitted};
use crate::screens::triage::state::Pane;
use crate::screens::triage::words;
use crate::snapshot::Triaged;
use crate::text::{elide, width, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::put;

/// Rows of a pane from which nodes are drawn over time above the list.
const LANES: u16 = 13;
/// Cells below which a line of the list has no columns.
const NARROW: usize = 76;
/// Cells for the name of a node in the list.
const NODE: usize = 12;

/// The places of the events that the filter keeps.
pub(crate) fn kept(overview: &Overview, filter: &Filter) -> Vec<usize> {
    let keeps = |(_, moment): &(usize, &Moment)| {
        let text = format!("{} {} {}", moment.rule, moment.meaning, moment.text);
        filter.keeps_line(moment.node.as_deref().unwrap_or_default(), &text)
    };
    overview.moments.iter().enumerate().filter(keeps).map(|(at, _)| at).collect()
}

/// Glyph and ink of an event, by how much it says about the cause.
pub(crate) const fn glyph(theme: &Theme, kind: Kind) -> (&'static str, Role) {
    match kind {
        Kind::Critical => (theme.pick("✗", "x"), Role::Act),
        Kind::Error => ("!", Role::Attention),
        Kind::Distributed => ("~", Role::Attention),
        Kind::Notice => ("i", Role::Text),
        Kind::Consequence | Kind::Benign | Kind::Progress => (theme.pick("·", "."), Role::Dim),
    }
}

/// What stands at the right end of the border.
pub(crate) fn note(ui: &Ui, triaged: &Triaged, width: u16) -> String {
    let (kept, all) = (ui.states.triage.moments.len(), triaged.overview.moments.len());
    let counts = if kept == all { format!("{all} events") } else { format!("{kept} of {all} events") };
    let theme = &ui.theme;
    let legend = format!("{} broken ! error ~ lost i notice {} follows", theme.pick("✗", "x"), theme.pick("·", "."));
    if width < 76 { counts } else { format!("{legend}, {counts}") }
}

/// The part of a pane in which the list stands.
pub(crate) fn list(ui: &Ui, triaged: &Triaged, inside: Rect) -> Rect {
    let lanes = lanes_of(ui, triaged, inside);
    Rect { y: inside.y + lanes, height: inside.height - lanes, ..inside }
}

fn lanes_of(ui: &Ui, triaged: &Triaged, inside: Rect) -> u16 {
    if inside.height + 2 < LANES { 0 } else { lanes::height(ui, triaged, inside.height / 2) }
}

/// Draws the pane inside its border.
pub(crate) fn draw(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, inside: Rect) {
    let (theme, state) = (&ui.theme, &ui.states.triage);
    if state.moments.is_empty() {
        let text = if triaged.overview.moments.is_empty() {
            "No line that a rule knows falls into the time of the job's end.".to_owned()
        } else {
            format!("No event matches `{}`; esc clears the filter.", ui.filter.text())
        };
        for (y, line) in (inside.y..inside.bottom()).zip(wrap(&text, inside.width.into())) {
            put(buffer, (inside.x, y), inside.width, &line, theme.style(Role::Dim));
        }
        return;
    }
    let lanes = lanes_of(ui, triaged, inside);
    if lanes > 0 {
        lanes::draw(ui, triaged, buffer, Rect { height: lanes, ..inside });
    }
    let area = list(ui, triaged, inside);
    let has_keys = state.pane == Pane::Timeline;
    // Only what is in view is made: the rest is as high as it is known to be.
    let first = state.timeline.at.saturating_sub(usize::from(area.height));
    let last = (state.timeline.at + usize::from(area.height) + 1).min(state.moments.len());
    let made =
        |at: usize| if (first..last).contains(&at) { entry(ui, triaged, at, area.width) } else { Entry::default() };
    let entries: Vec<Entry> = (0..last).map(made).collect();
    reader::draw(theme, (buffer, area), &state.timeline, (&entries, has_keys));
}

/// Lines that each event takes: one, and the one under the cursor all it needs.
pub(crate) fn heights(ui: &Ui, triaged: &Triaged, room: u16) -> Vec<usize> {
    let state = &ui.states.triage;
    let mut heights = vec![1; state.moments.len()];
    if let Some(height) = heights.get_mut(state.timeline.at) {
        *height = reader::heights(&[entry(ui, triaged, state.timeline.at, room)], room)[0];
    }
    heights
}

/// An event as a line; the one under the cursor with its whole text below.
pub(crate) fn entry(ui: &Ui, triaged: &Triaged, at: usize, room: u16) -> Entry {
    let (theme, state) = (&ui.theme, &ui.states.triage);
    let moment = |at: usize| state.moments.get(at).and_then(|place| triaged.overview.moments.get(*place));
    let Some(one) = moment(at) else { return Entry::default() };
    let before = at.checked_sub(1).and_then(moment).is_some_and(|before| one.is_tied(before));
    let after = moment(at + 1).is_some_and(|after| after.is_tied(one));
    let bracket = match (before, after) {
        (false, false) => " ",
        (false, true) => theme.pick("┌", "/"),
        (true, true) => theme.pick("│", "|"),
        (true, false) => theme.pick("└", "\\"),
    };
    let ascii = theme.is_ascii();
    let time = one.at_s.map_or_else(|| "no time".to_owned(), |at_s| words::clock(at_s, one.error_s));
    let error = one.at_s.map_or(String::new(), |_| words::error(one.error_s, ascii));
    let node = elide(one.node.as_deref().unwrap_or_default(), NODE, ascii);
    let rank = one.rank.map_or(String::new(), |rank| format!("r{rank}"));
    let (glyph, role) = glyph(theme, one.kind);
    let times = if one.count > 1 { format!(" ({} times)", one.count) } else { String::new() };
    let pad = |text: &str, cells: usize| format!("{text}{} ", " ".repeat(cells.saturating_sub(width(text))));
    let narrow = usize::from(room) < NARROW;
    let mut pieces = vec![(format!("{bracket} "), Role::Dim), (pad(&time, 10), Role::Head)];
    if !narrow {
        pieces.push((pad(&error, 7), Role::Dim));
    }
    let rank_cells = if narrow { 0 } else { 5 };
    pieces.extend([
        (format!("{glyph} "), role),
        (pad(&node, if narrow { width(&node) } else { NODE }), Role::Text),
        (pad(&rank, rank_cells), Role::Dim),
        (format!("{}{times}", one.meaning), Role::Text),
    ]);
    let head = fitted(pieces, room.into(), ascii);
    let chosen = at == state.timeline.at && state.pane == Pane::Timeline;
    let mut body = Vec::new();
    if chosen {
        let clock = one.at_s.map_or(String::new(), |_| format!(", clock {error}"));
        body.push((format!("{}{times}", one.meaning), Role::Text));
        body.push((format!("{}{clock}, rule {}", one.source.title(), one.rule), Role::Dim));
        body.push((one.text.clone(), Role::Text));
    }
    Entry { head, body }
}
