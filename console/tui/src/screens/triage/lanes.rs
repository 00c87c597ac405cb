//! A row a node, time from left to right: where each event lies, and how far it may lie from there.

use std::collections::BTreeMap;

use muster_logs::Kind;
use muster_triage::overview::Moment;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screens::triage::state::Pane;
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

/// The cells in which time is drawn, and the time that they show.
struct Chart {
    area: Rect,
    from: f64,
    to: f64,
    /// The job's last step, and whether it is in the chart.
    step: Option<(f64, bool)>,
}

impl Chart {
    /// From the first event to the last one, and to the last step where that is near; `None` without room or without events.
    fn new(ui: &Ui, triaged: &Triaged, area: Rect) -> Option<Self> {
        let times = dated(ui, triaged).map(|(at_s, _)| at_s);
        let (first, last) = times.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), at| (from.min(at), to.max(at)));
        // A last step long before the first event would leave all of them in one column.
        let far = (last - first).max(1.0) * 1.5;
        let step = triaged.overview.last_step_s.map(|at| (at, (first - far..=last + far).contains(&at)));
        let near = step.filter(|(_, near)| *near).map(|(at, _)| at);
        let (from, to) = near.map_or((first, last), |at| (first.min(at), last.max(at)));
        let width = area.width.saturating_sub(NAMES + 1);
        let area = Rect { x: area.x + NAMES, width, height: area.height.saturating_sub(2), ..area };
        (from <= to && width >= 10).then_some(Self { area, from, to, step })
    }

    fn column(&self, at: f64) -> u16 {
        let share = ((at - self.from) / (self.to - self.from).max(1.0)).clamp(0.0, 1.0);
        // Within the chart, so that the cast loses only the fraction.
        self.area.x + (share * f64::from(self.area.width - 1)).round() as u16
    }
}

/// Draws them.
pub(crate) fn draw(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, area: Rect) {
    let Some(chart) = Chart::new(ui, triaged, area) else { return };
    let (theme, state) = (&ui.theme, &ui.states.triage);
    if let Some((at, true)) = chart.step {
        for y in chart.area.y..chart.area.bottom() {
            put(buffer, (chart.column(at), y), 1, theme.pick("┊", ":"), theme.style(Role::Key));
        }
    }
    let all = nodes(ui, triaged);
    let suspect = state.suspect(triaged).and_then(|(suspect, _)| suspect.node.as_deref());
    for (y, node) in (chart.area.y..chart.area.bottom()).zip(&all) {
        let role = if Some(*node) == suspect { Role::Head } else { Role::Text };
        let name = elide(node, usize::from(NAMES - 1), theme.is_ascii());
        put(buffer, (area.x, y), NAMES - 1, &name, theme.style(role));
        lane(ui, triaged, buffer, (&chart, y, node));
    }
    let y = chart.area.bottom();
    let hidden = all.len().saturating_sub(usize::from(chart.area.height));
    if hidden > 0 {
        put(buffer, (area.x, y), NAMES - 1, &format!("+{hidden} nodes"), theme.style(Role::Dim));
    }
    axis(ui, buffer, &chart, y);
}

/// The events of one node, and around each how far it may lie from there.
fn lane(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, (chart, y, node): (&Chart, u16, &str)) {
    let (theme, state) = (&ui.theme, &ui.states.triage);
    let mut events: Vec<(f64, &Moment)> =
        dated(ui, triaged).filter(|(_, moment)| moment.node.as_deref() == Some(node)).collect();
    let mut drawn = vec![false; usize::from(chart.area.width)];
    for (at, moment) in &events {
        let ends = (chart.column(at - moment.error_s), chart.column(at + moment.error_s));
        let place = |x: u16| usize::from(x - chart.area.x);
        drawn[place(ends.0)..=place(ends.1)].fill(true);
    }
    for (x, _) in (chart.area.x..chart.area.right()).zip(&drawn).filter(|(_, drawn)| **drawn) {
        put(buffer, (x, y), 1, theme.pick("╌", "-"), theme.style(Role::Dim));
    }
    let at = state.moments.get(state.timeline.at).filter(|_| state.pane == Pane::Timeline);
    let chosen = at.and_then(|place| triaged.overview.moments.get(*place));
    // The gravest last, so that nothing covers it.
    events.sort_by_key(|(_, moment)| std::cmp::Reverse(order(moment.kind)));
    for (at, moment) in events {
        let (glyph, role) = glyph(theme, moment.kind);
        let here = chosen.is_some_and(|chosen| std::ptr::eq(chosen, moment));
        put(buffer, (chart.column(at), y), 1, glyph, theme.style(if here { Role::Selected } else { role }));
    }
}

/// Times below the chart, and where the last step is.
fn axis(ui: &Ui, buffer: &mut Buffer, chart: &Chart, y: u16) {
    let (theme, area) = (&ui.theme, chart.area);
    put(buffer, (area.x, y), area.width, &clock(chart.from, 0.0), theme.style(Role::Dim));
    put_right(buffer, (area.x, y), area.width, &format!("{} UTC", clock(chart.to, 0.0)), theme.style(Role::Dim));
    let text = match chart.step {
        Some((_, true)) => "last step".to_owned(),
        Some((at, false)) if at < chart.from => format!("last step {} before", lasting(chart.from - at)),
        _ => return,
    };
    let free = (area.x + 12, area.right().saturating_sub(16 + u16::try_from(text.len()).unwrap_or(u16::MAX)));
    if free.0 < free.1 {
        let near = chart.step.filter(|(_, near)| *near);
        let x = near.map_or(free.0, |(at, _)| chart.column(at).clamp(free.0, free.1));
        put(buffer, (x, y), area.right() - x, &text, theme.style(Role::Key));
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
