//! The node's lists in their borders: verdicts against its peers, facts, its log, and those of `more`.

use muster_wire::Level;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

use crate::judgement::word;
use crate::screens::node::{Pane, checks, gpus, more, passport};
use crate::snapshot::{Focus, IncidentRow, MetricPast, MetricRow, NodeRow, Snapshot, VerdictRow};
use crate::text::{counted, cut, elide, percent, similarity, whole_age, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Cursor, block, put, put_right, spark};

/// Rows of the verdicts' pane that are not verdicts: the column header, the chosen verdict's reason and its past.
const VERDICT_EXTRA: u16 = 4;

/// Rows of a pane that are not lines of its list.
pub(crate) const fn extra(pane: Pane) -> u16 {
    match pane {
        Pane::Verdicts => VERDICT_EXTRA,
        Pane::Checks => checks::EXTRA,
        Pane::Gpus => gpus::EXTRA,
        // The timeline.
        Pane::Incidents => 1,
        _ => 0,
    }
}

fn focus_of<'s>(snapshot: &'s Snapshot, node: &NodeRow) -> Option<&'s Focus> {
    snapshot.focus.as_deref().filter(|f| f.node == node.name)
}

/// Lines of a pane's list.
pub(crate) fn len(snapshot: &Snapshot, node: &NodeRow, pane: Pane) -> usize {
    let focus = focus_of(snapshot, node);
    match pane {
        Pane::Verdicts => node.verdicts.len(),
        Pane::Passport => passport::fields(node).len(),
        Pane::Checks => node.checks.len(),
        Pane::Gpus => node.gpus.len(),
        Pane::Coverage => more::covered(node, focus).len(),
        Pane::Incidents => incidents(focus).len(),
        Pane::Facts => node.facts.len(),
        Pane::Log => focus.map_or(0, |f| f.log.len()),
    }
}

/// Draws one pane.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, pane: Pane, (buffer, area): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let here = ui.node.pane == pane;
    let focus = focus_of(snapshot, node);
    let (cursor, len) = (ui.node.cursor(pane), len(snapshot, node, pane));
    let note = if len == 0 { String::new() } else { format!("{}/{len}", cursor.at.min(len - 1) + 1) };
    let title = if here { format!("{} {}", theme.pick("▸", ">"), pane.title()) } else { pane.title().to_owned() };
    let block = block(theme, area, &title, &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if len == 0 {
        return put(buffer, (inner.x, inner.y), inner.width, nothing(pane, focus), theme.style(Role::Dim));
    }
    match pane {
        Pane::Verdicts => verdicts(ui, snapshot, node, focus, (buffer, inner)),
        Pane::Facts => facts(ui, node, (buffer, inner)),
        Pane::Checks => checks::draw(ui, node, (buffer, inner)),
        Pane::Gpus => gpus::draw(ui, snapshot, node, (buffer, inner)),
        Pane::Passport | Pane::Coverage | Pane::Incidents => lines(ui, snapshot, node, pane, (buffer, inner)),
        Pane::Log => log(ui, snapshot, focus, (buffer, inner)),
    }
}

const fn nothing(pane: Pane, focus: Option<&Focus>) -> &'static str {
    match (pane, focus) {
        (Pane::Verdicts, _) => "Nothing was measured here yet; R runs a playbook.",
        (Pane::Facts | Pane::Passport, _) => "No collector has reported yet; R runs a playbook.",
        (Pane::Checks, _) => "No check was asked for; R runs a playbook that does, such as cbd.",
        (Pane::Gpus, _) => "It has no GPU that is known.",
        (Pane::Coverage, _) => "There is nothing to cover.",
        (Pane::Incidents, Some(focus)) if focus.past.is_some() => "It has had no incident that is known.",
        (Pane::Incidents, _) => "Reading its past.",
        (Pane::Log, Some(_)) => "It has said nothing yet.",
        (Pane::Log, None) => "Reading its log.",
    }
}

pub(super) fn select(ui: &Ui, pane: Pane, cursor: Cursor, row: usize, (buffer, line): (&mut Buffer, Rect)) {
    if ui.node.pane == pane && row == cursor.at {
        // One colour in the selected row is enough: the state's, in the first ten cells.
        let rest = Rect { x: line.x + 10, width: line.width.saturating_sub(10), ..line };
        buffer.set_style(rest, Style::new().fg(Color::Reset));
        buffer.set_style(line, ui.theme.style(Role::Selected));
    }
}

/// Places of the verdicts' columns for a width.
struct Places {
    metric: u16,
    spark: u16,
}

fn places(width: u16) -> Places {
    // State 9, value 12, vs peers 8, similarity 7, one cell between any two.
    let fixed = 9 + 12 + 8 + 7 + 4;
    let left = width.saturating_sub(fixed);
    let spark = if left > 44 { (left - 30).min(24) } else { 0 };
    Places { metric: left.saturating_sub(spark), spark: spark.saturating_sub(1) }
}

fn verdicts(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, focus: Option<&Focus>, (buffer, inner): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let at = places(inner.width);
    let head = theme.style(Role::Head);
    let titles = ["state", "metric", "value", "vs peers", "similar", if at.spark > 8 { "its series" } else { "" }];
    columns(buffer, inner, inner.y, &at, &titles.map(|t| (t.to_owned(), head)));
    let height = inner.height.saturating_sub(VERDICT_EXTRA);
    let window = ui.node.cursor(Pane::Verdicts).window(node.verdicts.len(), height.into());
    for (y, row) in (inner.y + 1..inner.y + 1 + height).zip(window) {
        let verdict = &node.verdicts[row];
        columns(buffer, inner, y, &at, &verdict_cells(ui, snapshot, verdict, focus, &at));
        select(ui, Pane::Verdicts, ui.node.cursor(Pane::Verdicts), row, (buffer, Rect { y, height: 1, ..inner }));
    }
    if let Some(verdict) = node.verdicts.get(ui.node.cursor(Pane::Verdicts).at) {
        let reason = wrap(&verdict.sentence(&node.name), inner.width.into());
        for (y, line) in (inner.bottom() - 3..inner.bottom() - 1).zip(reason) {
            put(buffer, (inner.x, y), inner.width, &line, theme.style(Role::Text));
        }
        let past = past_of(ui, snapshot, verdict, focus, inner.width.into());
        put(buffer, (inner.x, inner.bottom() - 1), inner.width, &past, theme.style(Role::Dim));
    }
}

/// The chosen metric over stored runs, in one line.
fn past_of(ui: &Ui, snapshot: &Snapshot, verdict: &VerdictRow, focus: Option<&Focus>, room: usize) -> String {
    let age = whole_age(ui.now_ms(snapshot).saturating_sub(verdict.at_ms));
    let run = if room >= 100 { format!(" in {}", verdict.run) } else { String::new() };
    let when = format!("measured {age} ago{run}");
    let found = snapshot.metrics.of(&verdict.metric).and_then(|m| Some((m, history(focus?, m)?)));
    let Some((metric, past)) = found else { return format!("{when}; no older run has it") };
    let medians: Vec<f64> = past.medians.iter().map(|(_, v)| *v).collect();
    let ends = medians
        .first()
        .zip(medians.last())
        .map_or(String::new(), |(first, last)| format!("{} to {}", metric.unit.show(*first), metric.unit.show(*last)));
    let text = format!("{when}; {}: {ends} ", counted(medians.len(), "stored run", "stored runs"));
    let left = room.saturating_sub(text.len()).min(48);
    text + &spark(&medians, left, ui.theme.is_ascii())
}

fn incidents(focus: Option<&Focus>) -> &[IncidentRow] {
    focus.and_then(|f| f.past.as_deref()).map_or(&[], |p| &p.incidents)
}

fn history<'f>(focus: &'f Focus, metric: &MetricRow) -> Option<&'f MetricPast> {
    focus.past.as_deref()?.metrics.iter().find(|m| m.metric == *metric.id)
}

/// The lists that have one kind of line each.
fn lines(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, pane: Pane, (buffer, inner): (&mut Buffer, Rect)) {
    let focus = focus_of(snapshot, node);
    let (fields, covered) = (passport::fields(node), more::covered(node, focus));
    let incidents = incidents(focus);
    let cursor = ui.node.cursor(pane);
    let height = inner.height.saturating_sub(extra(pane));
    for (y, row) in (inner.y..inner.y + height).zip(cursor.window(len(snapshot, node, pane), height.into())) {
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

type Cell = (String, Style);

fn columns(
    buffer: &mut Buffer,
    inner: Rect,
    y: u16,
    at: &Places,
    [state, metric, value, peers, similar, series]: &[Cell; 6],
) {
    let mut x = inner.x;
    put(buffer, (x, y), 9, &state.0, state.1);
    x += 10;
    put(buffer, (x, y), at.metric, &elide(&metric.0, at.metric.into(), true), metric.1);
    x += at.metric;
    put_right(buffer, (x, y), 12, &value.0, value.1);
    put_right(buffer, (x + 13, y), 8, &peers.0, peers.1);
    put_right(buffer, (x + 22, y), 7, &similar.0, similar.1);
    put(buffer, (x + 30, y), at.spark, &series.0, series.1);
}

fn verdict_cells(ui: &Ui, snapshot: &Snapshot, verdict: &VerdictRow, focus: Option<&Focus>, at: &Places) -> [Cell; 6] {
    let theme = &ui.theme;
    let judged = theme.style(Theme::state_role(verdict.state));
    let text = theme.style(Role::Text);
    let dim = theme.style(Role::Dim);
    let absent = || (theme.absent().to_owned(), dim);
    let metric = snapshot.metrics.of(&verdict.metric);
    let series = focus.and_then(|f| f.series.iter().find(|s| s.metric == verdict.metric));
    [
        (format!("{} {}", theme.glyph(verdict.state), word(verdict.state)), judged),
        (verdict.metric.path(), text),
        metric.and_then(|m| verdict.value.map(|v| (m.unit.show(v), text))).unwrap_or_else(absent),
        verdict.deviation.map_or_else(absent, |d| (percent(d), judged)),
        verdict.similarity.map_or_else(absent, |s| (similarity(s), judged)),
        series.map_or((String::new(), dim), |s| (spark(&s.values, at.spark.into(), theme.is_ascii()), dim)),
    ]
}

fn facts(ui: &Ui, node: &NodeRow, (buffer, inner): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let keys = (inner.width / 2).min(32);
    let window = ui.node.cursor(Pane::Facts).window(node.facts.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let fact = &node.facts[row];
        let key = elide(&format!("{} {}", fact.collector, fact.key), keys.into(), theme.is_ascii());
        put(buffer, (inner.x, y), keys, &key, theme.style(Role::Dim));
        let room = inner.width.saturating_sub(keys + 1);
        let role = if fact.known { Role::Text } else { Role::Dim };
        put(buffer, (inner.x + keys + 1, y), room, &cut(&fact.value, room.into(), theme.is_ascii()), theme.style(role));
        select(ui, Pane::Facts, ui.node.cursor(Pane::Facts), row, (buffer, Rect { y, height: 1, ..inner }));
    }
}

fn log(ui: &Ui, snapshot: &Snapshot, focus: Option<&Focus>, (buffer, inner): (&mut Buffer, Rect)) {
    let Some(focus) = focus else { return };
    let theme = &ui.theme;
    // Newest first: what a node said last is what one asks for.
    let window = ui.node.cursor(Pane::Log).window(focus.log.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let line = &focus.log[focus.log.len() - 1 - row];
        let (word, role) = match line.level {
            Level::Error => ("error", Role::Act),
            Level::Warn => ("warn", Role::Attention),
            Level::Info => ("info", Role::Text),
            Level::Debug => ("debug", Role::Dim),
        };
        let age = whole_age(ui.now_ms(snapshot).saturating_sub(line.at_ms));
        put_right(buffer, (inner.x, y), 6, &age, theme.style(Role::Dim));
        put(buffer, (inner.x + 7, y), 5, word, theme.style(role));
        let room = inner.width.saturating_sub(13);
        put(buffer, (inner.x + 13, y), room, &cut(&line.text, room.into(), theme.is_ascii()), theme.style(Role::Text));
        select(ui, Pane::Log, ui.node.cursor(Pane::Log), row, (buffer, Rect { y, height: 1, ..inner }));
    }
}
