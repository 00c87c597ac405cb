//! Metrics on the left; on the right the criterion's words, the CDFs and the similarity of every node.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::judgement::{State, Status, status_about, status_word};
use crate::screens::bench::{Pane, chart, scores, what_if};
use crate::snapshot::{MetricRow, Snapshot};
use crate::stale::{Stale, WORD};
use crate::text::{cut, distinct, elide, similarity, width, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_right, put_spans};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || Panel::empty("No metric has been measured yet.", "R runs a playbook.");
    if let Some(instead) = instead(ui, snapshot, (&snapshot.load, !snapshot.metrics.is_empty()), none) {
        return framed_panel(buffer, area, &ui.theme, ("Benchmarks", &instead));
    }
    // Wide, the list that has the keys takes all of the width.
    let width = match (ui.wide, ui.states.bench.pane) {
        (true, Pane::Metrics) => area.width,
        (true, Pane::Nodes) => 0,
        (false, _) => (area.width * 3 / 10).clamp(24, 44),
    };
    if width > 0 {
        list(ui, snapshot, buffer, Rect { width, ..area });
    }
    if let Some(metric) = ui.states.bench.metric(snapshot).filter(|_| width < area.width) {
        let right = Rect { x: area.x + width, width: area.width - width, ..area };
        chosen(ui, snapshot, metric, buffer, right);
    }
}

fn list(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let metrics = &snapshot.metrics;
    let page = usize::from(area.height.saturating_sub(2));
    let window = ui.states.bench.metrics.window(metrics.len(), page);
    let note = format!("{}/{}", ui.states.bench.metrics.at + 1, metrics.len());
    let block = block(theme, area, "Metrics", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let paths: Vec<String> = window.clone().map(|row| metrics[row].id.path()).collect();
    let room = usize::from(inner.width.saturating_sub(MARK + 1));
    // Wide, there is room for nearly every path.
    let paths = if ui.wide { paths } else { distinct(&paths, room, theme.is_ascii()) };
    for ((y, row), path) in (inner.y..inner.bottom()).zip(window).zip(&paths) {
        let metric = &metrics[row];
        let (mark, role) = mark(metric, Stale::now(ui, snapshot));
        let numbers =
            if ui.wide { numbers(ui, metric, inner.width.saturating_sub(PATH).into()) } else { String::new() };
        let used = u16::try_from(width(&numbers)).unwrap_or(0);
        let marked = MARK.max(u16::try_from(width(&mark)).unwrap_or(MARK));
        let room = inner.width.saturating_sub(marked + 1 + used);
        put_right(buffer, (inner.right() - marked - 1 - used, y), used, &numbers, theme.style(Role::Dim));
        put(buffer, (inner.x, y), room, &elide(path, room.into(), theme.is_ascii()), theme.style(Role::Text));
        put_right(buffer, (inner.right() - marked, y), marked, &mark, theme.style(role));
        if row == ui.states.bench.metrics.at {
            let role = if ui.states.bench.pane == Pane::Metrics { Role::Selected } else { Role::Head };
            buffer.set_style(Rect { y, height: 1, ..inner }, theme.style(role));
        }
    }
}

/// Cells of most marks.
const MARK: u16 = 5;
/// Width that the wide list reserves for a metric's path and mark.
const PATH: u16 = 36;

/// Further columns of the wide list, as many as fit: healthy nodes, repeatability and median.
fn numbers(ui: &Ui, metric: &MetricRow, room: usize) -> String {
    let value = |v: Option<f64>, show: &dyn Fn(f64) -> String| v.map_or(ui.theme.absent().to_owned(), show);
    let healthy = format!("{}/{} healthy", metric.healthy, metric.n);
    let repeatability = value(metric.repeatability, &similarity);
    let median = value(metric.median, &|m| metric.unit.show(m));
    let parts =
        [format!("{healthy:>16}"), format!("  repeatability {repeatability:>5}"), format!("  median {median:>14}")];
    let mut text = String::new();
    for part in parts {
        if width(&text) + width(&part) <= room {
            text += &part;
        }
    }
    text
}

/// The state of a metric in five cells, or more for more than nine nodes: `2 bad` if nodes failed, `noisy` if it is not repeatable, `stale` if all results are, else
/// `ok`.
fn mark(metric: &MetricRow, stale: Stale) -> (String, Role) {
    let old = !metric.scores.is_empty() && metric.scores.iter().all(|score| stale.is(Some(score.at_ms())));
    match (metric.counts.get(State::Fail), metric.status) {
        (0, None) => ("...".to_owned(), Role::Dim),
        (0, Some(_)) if old => (WORD.to_owned(), Role::Dim),
        (0, Some(Status::Ok)) => ("ok".to_owned(), Role::Dim),
        (0, Some(Status::Provisional)) => ("prov".to_owned(), Role::Dim),
        (0, Some(Status::NotRepeatable)) => ("noisy".to_owned(), Role::Attention),
        (0, Some(Status::NoConsensus)) => ("split".to_owned(), Role::Attention),
        (0, Some(Status::Bimodal)) => ("two".to_owned(), Role::Attention),
        (n, _) => (format!("{n} bad"), Role::Act),
    }
}

fn chosen(ui: &Ui, snapshot: &Snapshot, metric: &MetricRow, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let room = usize::from(area.width.saturating_sub(4));
    let title = elide(&metric.id.to_string(), room, theme.is_ascii());
    let better = match metric.direction {
        muster_wire::Direction::HigherIsBetter => "higher is better",
        muster_wire::Direction::LowerIsBetter => "lower is better",
    };
    let block = block(theme, area, &title, better);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    words(ui, metric, buffer, inner);
    let list = u16::try_from(scores::rows(ui.size)).unwrap_or(0) + 1;
    let top = inner.y + 3;
    let height = inner.bottom().saturating_sub(top + list);
    chart::draw(ui, snapshot, metric, buffer, Rect { y: top, height, ..inner });
    let below = Rect { y: top + height, height: list, ..inner };
    match &ui.states.bench.terms {
        None => scores::draw(ui, snapshot, metric, buffer, below),
        Some(terms) => {
            what_if::banner(ui, snapshot, (metric, terms), buffer, Rect { y: inner.y + 2, height: 1, ..inner });
            what_if::flips(ui, snapshot, terms, buffer, below);
        }
    }
}

/// What the criterion is worth, in one line or two, and its numbers.
fn words(ui: &Ui, metric: &MetricRow, buffer: &mut Buffer, inner: Rect) {
    let theme = &ui.theme;
    let dim = theme.style(Role::Dim);
    let (word, about) = metric
        .status
        .map_or(("learning", "too few samples for a criterion so far"), |s| (status_word(s), status_about(s)));
    let role = if matches!(metric.status, None | Some(Status::Ok | Status::Provisional)) {
        Role::Head
    } else {
        Role::Attention
    };
    // The line below the numbers is that of the terms tried.
    let rows = if ui.states.bench.terms.is_some() { 1 } else { 2 };
    let mut about = wrap(&format!("{word}: {about}"), inner.width.into());
    if about.len() > rows {
        about = vec![cut(&about.join(" "), inner.width.into(), theme.is_ascii())];
    }
    for (y, line) in (inner.y..).zip(&about) {
        put(buffer, (inner.x, y), inner.width, line, dim);
    }
    put(buffer, (inner.x, inner.y), inner.width, word, theme.style(role));
    let below = inner.y + u16::try_from(about.len()).unwrap_or(1);
    let value = |v: Option<f64>, show: &dyn Fn(f64) -> String| v.map_or(theme.absent().to_owned(), show);
    let mut line: Vec<Span<'_>> = Vec::new();
    let numbers = [
        ("healthy ", format!("{}/{}", metric.healthy, metric.n)),
        ("repeatability ", value(metric.repeatability, &similarity)),
        ("median ", value(metric.median, &|m| metric.unit.show(m))),
        ("alpha ", format!("{}", metric.alpha)),
        ("tau ", format!("{}", metric.tau)),
        ("criterion ", metric.version.clone()),
    ];
    for (label, number) in numbers {
        let used: usize = line.iter().map(Span::width).sum();
        if !number.is_empty() && used + label.len() + width(&number) <= usize::from(inner.width) {
            line.push(Span::styled(label, dim));
            line.push(Span::raw(format!("{number}  ")));
        }
    }
    put_spans(buffer, (inner.x, below), inner.width, &line);
}
