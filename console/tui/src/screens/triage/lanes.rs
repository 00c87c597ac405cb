//! A row a node, time from left to right: where each event lies, and how far it may lie from there.

use std::collections::BTreeMap;

use muster_analysis::triage::overview::Moment;
use muster_analysis::triage::rules::Kind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screens::triage::timeline::glyph;
use crate::screens::triage::words::{clock, lasting};
use crate::snapshot::Triaged;
use crate::text::elide;
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{put, put_right};

/// Most nodes.
const NODES: usize = 8;
/// Cells for their names.
const NAMES: u16 = 13;

/// Events with a time that the filter keeps.
fn dated<'t>(ui: &'t Ui, triaged: &'t Triaged) -> impl Iterator<Item = (f64, &'t Moment)> {
    let kept = ui.states.triage.moments.iter().filter_map(|at| triaged.overview.moments.get(*at));
    kept.filter_map(|moment| Some((moment.at_s?, moment)))
}

/// The nodes to show: that of the suspect first, then those whose first event comes first.
fn nodes<'t>(ui: &'t Ui, triaged: &'t Triaged) -> Vec<&'t str> {
    let mut first: BTreeMap<&str, f64> = BTreeMap::new();
    for (at_s, moment) in dated(ui, triaged) {
        if let Some(node) = &moment.node {
            first.entry(node).and_modify(|first| *first = first.min(at_s)).or_insert(at_s);
        }
    }
    let suspect = ui.states.triage.suspect(triaged).and_then(|(suspect, _)| suspect.node.as_deref());
    let mut nodes: Vec<(&str, f64)> = first.into_iter().collect();
    nodes.sort_by(|a, b| (Some(b.0) == suspect).cmp(&(Some(a.0) == suspect)).then(a.1.total_cmp(&b.1)));
    nodes.into_iter().map(|(node, _)| node).collect()
}

/// Rows that are needed, `most` at most: nodes, the times below them, a blank; 0 where nothing has a node and a time.
pub(crate) fn height(ui: &Ui, triaged: &Triaged, most: u16) -> u16 {
    let nodes = u16::try_from(nodes(ui, triaged).len().min(NODES)).unwrap_or(0);
    if nodes == 0 || most < 4 { 0 } else { (nodes + 2).min(most) }
}

/// Draws them.
pub(crate) fn draw(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, area: Rect) {
    let (theme, state) = (&ui.theme, &ui.states.triage);
    let times = dated(ui, triaged).map(|(at_s, _)| at_s);
    let (first, last) = times.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), at| (from.min(at), to.max(at)));
    // A last step long before the first event would leave all of them in one column.
    let far = (last - first).max(1.0) * 1.5;
    let step_s = triaged.overview.last_step_s;
    let near = step_s.filter(|at| (first - far..=last + far).contains(at));
    let (from, to) = near.map_or((first, last), |at| (first.min(at), last.max(at)));
    let chart = Rect { x: area.x + NAMES, width: area.width.saturating_sub(NAMES + 1), height: area.height - 2, ..area };
    if from > to || chart.width < 10 {
        return;
    }
    let span = (to - from).max(1.0);
    let column = |at: f64| {
        let share = ((at - from) / span).clamp(0.0, 1.0);
        // Within the chart, so that the cast loses only the fraction.
        chart.x + (share * f64::from(chart.width - 1)).round() as u16
    };
    if let Some(at) = near {
        for y in chart.y..chart.bottom() {
            put(buffer, (column(at), y), 1, theme.pick("┊", ":"), theme.style(Role::Key));
        }
    }
    let chosen = state.moments.get(state.timeline.at).and_then(|place| triaged.overview.moments.get(*place));
    let all = nodes(ui, triaged);
    let suspect = state.suspect(triaged).and_then(|(suspect, _)| suspect.node.as_deref());
    for (y, node) in (chart.y..chart.bottom()).zip(&all) {
        let role = if Some(*node) == suspect { Role::Head } else { Role::Text };
        let name = elide(node, usize::from(NAMES - 1), theme.is_ascii());
        put(buffer, (area.x, y), NAMES - 1, &name, theme.style(role));
        let of_node = || dated(ui, triaged).filter(|(_, moment)| moment.node.as_deref() == Some(*node));
        for (at, moment) in of_node() {
            for x in column(at - moment.error_s)..=column(at + moment.error_s) {
                put(buffer, (x, y), 1, theme.pick("╌", "-"), theme.style(Role::Dim));
            }
        }
        // The gravest last, so that nothing covers it.
        let mut events: Vec<(f64, &Moment)> = of_node().collect();
        events.sort_by_key(|(_, moment)| std::cmp::Reverse(order(moment.kind)));
        for (at, moment) in events {
            let (glyph, role) = glyph(theme, moment.kind);
            let here = chosen.is_some_and(|chosen| std::ptr::eq(chosen, moment));
            put(buffer, (column(at), y), 1, glyph, theme.style(if here { Role::Selected } else { role }));
        }
    }
    let y = area.bottom() - 2;
    let hidden = all.len().saturating_sub(usize::from(chart.height));
    if hidden > 0 {
        put(buffer, (area.x, y), NAMES - 1, &format!("+{hidden} nodes"), theme.style(Role::Dim));
    }
    put(buffer, (chart.x, y), chart.width, &clock(from, 0.0), theme.style(Role::Dim));
    put_right(buffer, (chart.x, y), chart.width, &format!("{} UTC", clock(to, 0.0)), theme.style(Role::Dim));
    let text = match (near, step_s) {
        (Some(_), _) => "last step".to_owned(),
        (None, Some(at)) if at < from => format!("last step {} before", lasting(from - at)),
        _ => return,
    };
    let free = (chart.x + 12, chart.right().saturating_sub(16 + u16::try_from(text.len()).unwrap_or(u16::MAX)));
    if free.0 < free.1 {
        let x = near.map_or(free.0, |at| column(at).clamp(free.0, free.1));
        put(buffer, (x, y), chart.right() - x, &text, theme.style(Role::Key));
    }
}

/// The gravest first.
const fn order(kind: Kind) -> u8 {
    match kind {
        Kind::Critical => 0,
        Kind::Error => 1,
        Kind::Distributed => 2,
        Kind::Notice => 3,
        Kind::Consequence => 4,
        Kind::Benign | Kind::Progress => 5,
    }
}
