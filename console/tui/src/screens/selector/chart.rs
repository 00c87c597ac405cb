//! How long nodes go without an incident: the fleet's steps with the number at risk, the node's own curve, and why.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::selector::draw::hours;
use crate::snapshot::Selector;
use crate::text::{elide, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Line, Plot, block, put, put_right, put_spans};

/// Cells left of the plot.
const LABELS: u16 = 5;

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, selector: &Selector, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let block = block(theme, area, "Without an incident", "");
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let node = selector.nodes.get(ui.states.selector.nodes.at);
    let from_one = |points: &mut dyn Iterator<Item = (f64, f64)>| -> Vec<(f64, f64)> {
        std::iter::once((0.0, 1.0)).chain(points).collect()
    };
    let own = node.map(|n| from_one(&mut n.curve.iter().copied())).unwrap_or_default();
    // The fleet's steps may reach further than anyone asks about.
    let end = own.last().map_or(f64::INFINITY, |p| p.0.max(selector.ask.job_hours));
    let steps = || selector.fleet.iter().filter(|s| s.hours <= end);
    let fleet = from_one(&mut steps().map(|s| (s.hours, s.survival)));
    let mut y = inner.y;
    if let Some(node) = node {
        let name = elide(&node.name, usize::from(inner.width / 2), theme.is_ascii());
        let line = [
            Span::styled("N ", theme.style(Role::Focus)),
            Span::raw(format!("{name}  ")),
            Span::styled("F ", theme.style(Role::Head)),
            Span::raw("fleet"),
        ];
        put_spans(buffer, (inner.x, y), inner.width, &line);
        let why: Vec<String> = node.reasons.iter().take(3).map(|(what, by)| format!("{what} {by:+.3}")).collect();
        let text = if why.is_empty() { "nothing sets it apart".to_owned() } else { why.join(", ") };
        put(buffer, (inner.x, y + 1), inner.width, &text, theme.style(Role::Dim));
        y += 2;
    }
    let plot = Rect { y, height: inner.bottom().saturating_sub(y + 1), ..inner };
    if plot.height < 4 {
        return;
    }
    let mut lines = vec![Line { points: &fleet, style: theme.style(Role::Head), tag: 'F' }];
    lines.push(Line { points: &own, style: theme.style(Role::Focus), tag: 'N' });
    lines.retain(|l| l.points.len() > 1);
    if lines.is_empty() {
        let why = "No incident and no time without one is known, so there is no curve.";
        for (y, line) in (plot.y + 1..plot.bottom()).zip(wrap(why, plot.width.into())) {
            put(buffer, (plot.x, y), plot.width, &line, theme.style(Role::Dim));
        }
        return;
    }
    Plot { theme, show: &hours, start: 1.0, band: None, lines }.draw(buffer, plot);
    at_risk(ui, selector, (buffer, Rect { y: inner.bottom() - 1, height: 1, ..inner }), end);
}

/// The number at risk at the beginning, the middle and the end of the axis.
fn at_risk(ui: &Ui, selector: &Selector, (buffer, line): (&mut Buffer, Rect), end: f64) {
    let dim = ui.theme.style(Role::Dim);
    let last = selector.fleet.iter().map(|s| s.hours).filter(|h| *h <= end).fold(0.0, f64::max);
    let end = if end.is_finite() { end } else { last };
    let watched =
        |at: f64| selector.fleet.iter().find(|s| s.hours >= at).or(selector.fleet.last()).map_or(0, |s| s.at_risk);
    let inside = Rect { x: line.x + LABELS, width: line.width.saturating_sub(LABELS), ..line };
    put(buffer, (line.x, line.y), LABELS, "n", dim);
    let middle = watched(end / 2.0).to_string();
    put(buffer, (inside.x, line.y), 8, &watched(0.0).to_string(), dim);
    put(buffer, (inside.x + (inside.width.saturating_sub(middle.len() as u16)) / 2, line.y), 8, &middle, dim);
    put_right(buffer, (line.right().saturating_sub(8), line.y), 8, &watched(end).to_string(), dim);
}
