//! The line of one machine against the band of its peers, column by column below the strip.

use muster_watch::Frame;
use muster_wire::Unit;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use std::sync::Arc;

use crate::screens::watch::layout::Layout;
use crate::screens::watch::words::fit;
use crate::snapshot::{WatchedMetric, Watching};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put, put_right};
use ratatui::widgets::Widget;

/// A column: the machine's value, and quartiles and median of its peers; NaN where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    own: f64,
    low: f64,
    median: f64,
    high: f64,
}

/// Draws the line with its border.
pub(crate) fn draw(ui: &Ui, watch: &Watching, buffer: &mut Buffer, layout: &Layout) {
    let (theme, state, area) = (&ui.theme, &ui.states.watch, layout.line);
    let (Some(node), Some(metric)) = (watch.nodes.get(state.node), watch.metrics.get(state.metric)) else {
        block(theme, area, "Line", "").render(area, buffer);
        return;
    };
    let note = theme.pick("▀ it  ─ median  ░ half of its peers", "* it  - median  : half of its peers");
    let title = format!("{}: {}", node.name, metric.title());
    let title = fit(&title, usize::from(area.width).saturating_sub(note.chars().count() + 8).max(12), theme.is_ascii());
    let frame = block(theme, area, &title, note);
    let inner = frame.inner(area);
    frame.render(area, buffer);
    let points: Vec<Point> = (0..layout.strip.width)
        .map(|x| point(state.window.frames(&watch.frames, x), (state.node, state.metric)))
        .collect();
    let inside = Rect { x: layout.strip.x, width: layout.strip.width, ..inner };
    let Some(range) = range(&points, metric) else {
        put(buffer, (inner.x + 1, inner.y), inner.width, "nothing was told in this time", theme.style(Role::Dim));
        return;
    };
    labels(ui, buffer, (inner, inside), (range, metric));
    for (x, point) in (inside.x..inside.right()).zip(&points) {
        column(ui, buffer, (x, inside), (range, *point));
    }
}

/// The means over the frames of a column.
fn point(frames: &[Arc<Frame>], (node, metric): (usize, usize)) -> Point {
    let mean = |values: &mut dyn Iterator<Item = f32>| {
        let (sum, n) = values.filter(|v| v.is_finite()).fold((0.0, 0_u32), |(s, n), v| (s + f64::from(v), n + 1));
        if n == 0 { f64::NAN } else { sum / f64::from(n) }
    };
    let peers: Vec<_> = frames.iter().filter_map(|frame| frame.peers(node, metric)).collect();
    Point {
        own: mean(&mut frames.iter().map(|frame| frame.look(node, metric).value)),
        low: mean(&mut peers.iter().map(|peers| peers.low)),
        median: mean(&mut peers.iter().map(|peers| peers.median)),
        high: mean(&mut peers.iter().map(|peers| peers.high)),
    }
}

/// From zero for rates, else around what there is; `None` without a value.
fn range(points: &[Point], metric: &WatchedMetric) -> Option<(f64, f64)> {
    let all = points.iter().flat_map(|p| [p.own, p.low, p.high]).filter(|v| v.is_finite());
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return None;
    }
    let is_rate = matches!(metric.about.unit, Unit::BytesPerSec | Unit::OpsPerSec);
    let margin = ((high - low) * 0.08).max(high.abs() * 0.02);
    // Where nothing happens, the axis goes to one of whatever is counted.
    let margin = if margin > 0.0 { margin } else { 1.0 };
    let low = if is_rate && low >= 0.0 { 0.0 } else { low - margin };
    // No level that exists is below zero, so the axis is not either.
    let low = if points.iter().any(|p| p.own < 0.0 || p.low < 0.0) { low } else { low.max(0.0) };
    Some((low, high + margin))
}

fn labels(
    ui: &Ui,
    buffer: &mut Buffer,
    (inner, inside): (Rect, Rect),
    ((low, high), metric): ((f64, f64), &WatchedMetric),
) {
    let dim = ui.theme.style(Role::Dim);
    let room = inside.x.saturating_sub(inner.x + 2);
    put_right(buffer, (inner.x + 1, inner.y), room, &metric.about.show(high), dim);
    put_right(buffer, (inner.x + 1, inner.bottom() - 1), room, &metric.about.show(low), dim);
    for y in inside.top()..inside.bottom() {
        put(buffer, (inside.x - 1, y), 1, ui.theme.pick("│", "|"), dim);
    }
}

/// Where a value stands in half rows from the top; cut at the ends.
fn half_row(value: f64, (low, high): (f64, f64), rows: u16) -> Option<u16> {
    let share = (high - value) / (high - low);
    let last = 2.0 * f64::from(rows) - 1.0;
    value.is_finite().then(|| (share * last).round().clamp(0.0, last) as u16)
}

fn column(ui: &Ui, buffer: &mut Buffer, (x, inside): (u16, Rect), (range, point): ((f64, f64), Point)) {
    let theme = &ui.theme;
    let at = |value: f64| half_row(value, range, inside.height);
    if let (Some(top), Some(bottom)) = (at(point.high), at(point.low)) {
        for row in top / 2..=bottom / 2 {
            put(buffer, (x, inside.y + row), 1, theme.pick("░", ":"), theme.style(Role::Peers));
        }
    }
    if let Some(half) = at(point.median) {
        put(buffer, (x, inside.y + half / 2), 1, theme.pick("─", "-"), theme.style(Role::Peers));
    }
    if let Some(half) = at(point.own) {
        // The upper and the lower half of a cell are two places.
        let glyph = if half % 2 == 0 { theme.pick("▀", "*") } else { theme.pick("▄", "*") };
        put(buffer, (x, inside.y + half / 2), 1, glyph, theme.style(Role::Focus).remove_modifier(Modifier::DIM));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_axis_are_the_ends_of_the_chart() {
        assert_eq!(half_row(10.0, (0.0, 10.0), 5), Some(0));
        assert_eq!(half_row(0.0, (0.0, 10.0), 5), Some(9));
        assert_eq!((half_row(99.0, (0.0, 10.0), 5), half_row(f64::NAN, (0.0, 10.0), 5)), (Some(0), None));
    }

    #[test]
    fn rates_begin_at_zero_and_levels_do_not() {
        let metric =
            |name: &str| WatchedMetric { name: name.to_owned(), about: *muster_wire::telemetry(name).unwrap() };
        let points = [Point { own: 60.0, low: 65.0, median: 66.0, high: 67.0 }];
        assert_eq!(range(&points, &metric("net_tx_gbs")).unwrap().0, 0.0);
        assert!(range(&points, &metric("gpu_temp_c")).unwrap().0 > 55.0);
        assert_eq!(
            range(&[Point { own: f64::NAN, low: f64::NAN, median: f64::NAN, high: f64::NAN }], &metric("gpu_temp_c")),
            None
        );
    }
}
