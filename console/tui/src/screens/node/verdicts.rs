//! The metrics of a node against its peers and against itself before; below them the chosen one in full.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::judgement::State;
use crate::screens::node::panes::select;
use crate::screens::node::{Pane, changes};
use crate::snapshot::{Focus, MetricPast, MetricRow, NodeRow, Snapshot, VerdictRow};
use crate::stale::Stale;
use crate::text::{counted, elide, percent, similarity, whole_age, wrap, wrap_cut};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right, spark};

/// Rows that are not verdicts: the column header, the chosen verdict's reason, what it was before and its past.
pub(super) const EXTRA: u16 = 5;
/// Width reserved for a metric's name.
const METRIC: u16 = 30;
/// Widths of value, difference with the peers, similarity; state 9, one cell between any two.
const FIXED: u16 = 9 + 12 + 8 + 7 + 4;
/// Widths of the earlier value and of the change, each with the cell before it.
const BEFORE: u16 = 13 + 9;

/// Places of the columns for a width.
struct Places {
    metric: u16,
    before: bool,
    spark: u16,
}

fn places(width: u16) -> Places {
    let left = width.saturating_sub(FIXED);
    let before = left >= METRIC + BEFORE;
    let left = if before { left - BEFORE } else { left };
    let spark = if left > METRIC + 14 { (left - METRIC).min(24) } else { 0 };
    Places { metric: left.saturating_sub(spark), before, spark: spark.saturating_sub(1) }
}

/// Draws the list and the chosen verdict.
pub(super) fn draw(
    ui: &Ui,
    snapshot: &Snapshot,
    node: &NodeRow,
    focus: Option<&Focus>,
    (buffer, inner): (&mut Buffer, Rect),
) {
    let head = ui.theme.style(Role::Head);
    let at = places(inner.width);
    let series = if at.spark > 8 { "its series" } else { "" };
    let titles = ["state", "metric", "value", "vs peers", "similar", "before", "change", series];
    columns(buffer, inner, inner.y, &at, &titles.map(|title| (title.to_owned(), head)));
    let (listed, cursor) = (changes::listed(ui, node), ui.states.node.cursor(Pane::Verdicts));
    // On the lowest terminal the list keeps a row, and what is said of the chosen one gets less.
    let said = (EXTRA - 1).min(inner.height.saturating_sub(2));
    let height = inner.height.saturating_sub(1 + said);
    for (y, row) in (inner.y + 1..inner.y + 1 + height).zip(cursor.window(listed.len(), height.into())) {
        columns(buffer, inner, y, &at, &cells(ui, snapshot, listed[row], focus, &at));
        select(ui, Pane::Verdicts, cursor, row, (buffer, Rect { y, height: 1, ..inner }));
    }
    let Some(verdict) = listed.get(cursor.at) else { return };
    let below = Rect { y: inner.bottom() - said, height: said, ..inner };
    detail(ui, snapshot, (node, verdict), focus, (buffer, below));
}

/// `sentence`, which a verdict of `node` may have said, in at most `most` lines of `room` cells: whole where that fits, else without the
/// name, which the title has, then with the metric's name shortened, too.
pub(super) fn brief(
    ui: &Ui,
    node: &NodeRow,
    (sentence, said): (&str, Option<&VerdictRow>),
    (room, most): (usize, usize),
) -> Vec<String> {
    let ascii = ui.theme.is_ascii();
    let bare = sentence.strip_prefix(&node.name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(sentence);
    let short = said.map_or_else(String::new, |verdict| {
        let path = verdict.metric.path();
        bare.replace(&path, &elide(&path, room / 2, ascii))
    });
    let mut all = [sentence, bare, short.as_str()].into_iter().filter(|text| !text.is_empty());
    let whole = all.clone().map(|text| wrap(text, room)).find(|lines| lines.len() <= most);
    whole.unwrap_or_else(|| wrap_cut(all.next_back().unwrap_or(bare), (room, most), ascii))
}

/// Why, what it was before, and its past.
fn detail(
    ui: &Ui,
    snapshot: &Snapshot,
    (node, verdict): (&NodeRow, &VerdictRow),
    focus: Option<&Focus>,
    (buffer, below): (&mut Buffer, Rect),
) {
    let (theme, room) = (&ui.theme, usize::from(below.width));
    let reasons = if below.height < EXTRA - 1 { 1 } else { 2 };
    let sentence = verdict.sentence(&node.name);
    let said = brief(ui, node, (sentence.as_str(), Some(verdict)), (room, reasons));
    let mut lines: Vec<(String, Role)> = said.into_iter().map(|line| (line, Role::Text)).collect();
    lines.resize(reasons, (String::new(), Role::Text));
    let unit = snapshot.metrics.of(&verdict.metric).map(|metric| metric.unit);
    let role = if changes::has_changed(verdict) { Role::Text } else { Role::Dim };
    let change = match &verdict.before {
        Some(before) => changes::line(theme, verdict, before, unit, room),
        None if snapshot.looking_back => "reading earlier runs".to_owned(),
        None => "no earlier run has it".to_owned(),
    };
    lines.push((change, role));
    lines.push((past_of(ui, snapshot, verdict, focus, room), Role::Dim));
    for (y, (line, role)) in (below.y..below.bottom()).zip(lines) {
        put(buffer, (below.x, y), below.width, &line, theme.style(role));
    }
}

/// The chosen metric over stored runs, in one line.
fn past_of(ui: &Ui, snapshot: &Snapshot, verdict: &VerdictRow, focus: Option<&Focus>, room: usize) -> String {
    let age = || format!("measured {} ago", whole_age(ui.data_ms(snapshot).saturating_sub(verdict.at_ms)));
    let age = match verdict.state {
        // When the node was last heard of says nothing of what it did not measure.
        State::NotRun => "no value".to_owned(),
        _ => Stale::now(ui, snapshot).words(Some(verdict.at_ms)).unwrap_or_else(age),
    };
    let run = if room >= 100 { format!(" in {}", verdict.run) } else { String::new() };
    let when = format!("{age}{run}");
    let found = snapshot.metrics.of(&verdict.metric).and_then(|m| Some((m, history(focus?, m)?)));
    let Some((metric, past)) = found else { return when };
    let medians: Vec<f64> = past.medians.iter().map(|(_, v)| *v).collect();
    let ends = medians
        .first()
        .zip(medians.last())
        .map_or(String::new(), |(first, last)| format!("{} to {}", metric.unit.show(*first), metric.unit.show(*last)));
    let text = format!("{when}; {}: {ends} ", counted(medians.len(), "stored run", "stored runs"));
    let left = room.saturating_sub(text.len()).min(48);
    text + &spark(&medians, left, ui.theme.is_ascii())
}

fn history<'f>(focus: &'f Focus, metric: &MetricRow) -> Option<&'f MetricPast> {
    focus.past.as_deref()?.metrics.iter().find(|m| m.metric == metric.id)
}

type Cell = (String, Style);

fn columns(
    buffer: &mut Buffer,
    inner: Rect,
    y: u16,
    at: &Places,
    [state, metric, value, peers, similar, before, change, series]: &[Cell; 8],
) {
    put(buffer, (inner.x, y), 9, &state.0, state.1);
    put(buffer, (inner.x + 10, y), at.metric, &metric.0, metric.1);
    let mut x = inner.x + 10 + at.metric;
    let shown =
        [(value, 12, true), (peers, 8, true), (similar, 7, true), (before, 12, at.before), (change, 8, at.before)];
    for (cell, width, _) in shown.into_iter().filter(|(.., shown)| *shown) {
        put_right(buffer, (x, y), width, &cell.0, cell.1);
        x += width + 1;
    }
    put(buffer, (x, y), at.spark, &series.0, series.1);
}

fn cells(ui: &Ui, snapshot: &Snapshot, verdict: &VerdictRow, focus: Option<&Focus>, at: &Places) -> [Cell; 8] {
    let theme = &ui.theme;
    let (judged, dim) = (theme.style(Theme::state_role(verdict.state)), theme.style(Role::Dim));
    let (stale, text) = (Stale::now(ui, snapshot), theme.style(Role::Text));
    let absent = || (theme.absent().to_owned(), dim);
    let metric = snapshot.metrics.of(&verdict.metric);
    let shown = |value: Option<f64>, style| metric.zip(value).map(|(m, value)| (m.unit.show(value), style));
    let series = focus.and_then(|f| f.series.iter().find(|s| s.metric == verdict.metric));
    let (state, role) = stale.cell(theme, verdict.state, Some(verdict.at_ms));
    let before = verdict.before.as_ref().filter(|_| at.before);
    let change = before.map(|before| changes::cell(theme, verdict, before));
    [
        (state, theme.style(role)),
        (elide(&verdict.metric.path(), at.metric.into(), theme.is_ascii()), text),
        shown(verdict.value, text).unwrap_or_else(absent),
        verdict.deviation.map_or_else(absent, |d| (percent(d), judged)),
        verdict.similarity.map_or_else(absent, |s| (similarity(s), judged)),
        before.and_then(|before| shown(before.value, dim)).unwrap_or_else(absent),
        change.map_or_else(absent, |(change, role)| (change, theme.style(role))),
        series.map_or((String::new(), dim), |s| (spark(&s.values, at.spark.into(), theme.is_ascii()), dim)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_before_has_columns_where_names_keep_their_room() {
        for (width, before, spark) in [(68, false, false), (76, false, false), (92, true, false), (116, true, true)] {
            let at = places(width);
            assert_eq!((at.before, at.spark > 0), (before, spark), "{width}");
            assert!(at.metric >= 28, "{width}: {}", at.metric);
            let used = FIXED + at.metric + if at.before { BEFORE } else { 0 } + at.spark;
            assert!(used <= width, "{width}: {used}");
        }
    }
}
