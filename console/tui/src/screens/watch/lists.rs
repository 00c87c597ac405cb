//! The metrics by what speaks loudest in them, and the alerts.

use muster_watch::{Alert, Frame, Look};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::watch::state::{Pane, State};
use crate::screens::watch::strip::score;
use crate::screens::watch::time::minute;
use crate::screens::watch::words::title;
use crate::snapshot::Watching;
use crate::text::{elide, whole_age, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Cursor, block, put, put_right, put_spans};

/// Rows that a list in `area` shows.
pub(crate) fn page(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2)).max(1)
}

/// What a list is sorted by.
pub(crate) fn rank(look: Look) -> (u32, u32) {
    let score = if look.score.is_finite() { look.score.abs() } else { 0.0 };
    (look.evidence.abs().round() as u32, (10.0 * score).round() as u32)
}

/// The machine with most against it in `metric`.
pub(crate) fn loudest(watch: &Watching, frame: &Frame, metric: usize) -> Option<(usize, Look)> {
    let looks = (0..watch.nodes.len()).map(|node| (node, frame.look(node, metric)));
    looks.filter(|(_, look)| look.value.is_finite()).max_by_key(|(node, look)| (rank(*look), std::cmp::Reverse(*node)))
}

/// Draws the metrics.
pub(crate) fn metrics(ui: &Ui, watch: &Watching, buffer: &mut Buffer, area: Rect) {
    let (theme, state) = (&ui.theme, &ui.states.watch);
    let inner = framed(ui, buffer, area, ("Metrics", "most odd machine, score"), Pane::Metrics);
    let mut cursor = Cursor::default();
    let page = page(area);
    let at = state.ranked.iter().position(|at| *at == state.metric).unwrap_or_default();
    cursor.put(at, state.ranked.len(), page);
    let rows: Vec<usize> = cursor.window(state.ranked.len(), page).collect();
    let found = |row: &usize| state.frame(watch).and_then(|frame| loudest(watch, frame, state.ranked[*row]));
    let found: Vec<_> = rows.iter().map(found).collect();
    let scored = found.iter().flatten().filter(|(_, look)| look.score.is_finite());
    let named = scored.filter_map(|(node, _)| watch.nodes.get(*node));
    let longest = named.map(|node| width(&node.name)).max();
    // The names that stand here have the room they need, up to half of it.
    let names = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).min(inner.width.saturating_sub(6) / 2);
    for ((y, row), found) in (inner.y..inner.bottom()).zip(rows).zip(found) {
        let metric = state.ranked[row];
        let Some(known) = watch.metrics.get(metric) else { continue };
        let style = theme.style(if row == at { Role::Selected } else { Role::Text });
        let blank = " ".repeat(inner.width.into());
        put(buffer, (inner.x, y), inner.width, &blank, style);
        let text = title(known.title(), usize::from(inner.width - names - 8), theme.is_ascii());
        put(buffer, (inner.x, y), inner.width - names - 8, &text, style);
        let Some((node, look)) = found.filter(|(_, look)| look.score.is_finite()) else {
            put_right(buffer, (inner.x, y), inner.width, theme.absent(), style);
            continue;
        };
        let name =
            watch.nodes.get(node).map_or(String::new(), |node| elide(&node.name, names.into(), theme.is_ascii()));
        put_right(buffer, (inner.right() - 7 - names, y), names, &name, style);
        let (text, role) = score(look.score);
        let style = if row == at { style } else { theme.style(role) };
        put_right(buffer, (inner.right() - 6, y), 6, &text, style);
    }
}

/// Draws the alerts, the newest first.
pub(crate) fn alerts(ui: &Ui, watch: &Watching, buffer: &mut Buffer, area: Rect) {
    let (theme, state) = (&ui.theme, &ui.states.watch);
    let open = watch.alerts.iter().filter(|alert| alert.until_s.is_none()).count();
    let note = format!("{open} open of {}", watch.alerts.len());
    let inner = framed(ui, buffer, area, ("Alerts", &note), Pane::Alerts);
    if watch.alerts.is_empty() {
        put(buffer, (inner.x, inner.y), inner.width, "none so far", theme.style(Role::Dim));
        return notes(ui, watch, buffer, Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner });
    }
    let now_s = state.frame(watch).map_or(0.0, |frame| frame.end_s());
    let window = state.alert.window(watch.alerts.len(), page(area));
    let shown = window.len();
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let Some(alert) = watch.alerts.iter().rev().nth(row) else { continue };
        let chosen = row == state.alert.at && state.pane == Pane::Alerts;
        put_spans(buffer, (inner.x, y), inner.width, &line(theme, watch, (alert, now_s), inner.width.into(), chosen));
    }
    let used = u16::try_from(shown).unwrap_or(inner.height).min(inner.height);
    notes(ui, watch, buffer, Rect { y: inner.y + used, height: inner.height - used, ..inner });
}

/// Notes below the alerts, where there is room.
fn notes(ui: &Ui, watch: &Watching, buffer: &mut Buffer, area: Rect) {
    let lines = watch.notes.iter().flat_map(|note| crate::text::wrap(note, area.width.into()));
    for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
        put(buffer, (area.x, y), area.width, &line, ui.theme.style(Role::Dim));
    }
}

/// `✗ n07 GPU power 4 min`, with when it was over.
fn line(
    theme: &Theme,
    watch: &Watching,
    (alert, now_s): (&Alert, f64),
    room: usize,
    chosen: bool,
) -> Vec<Span<'static>> {
    let (glyph, role) = match alert.until_s {
        None => (theme.pick("✗", "x"), Role::Act),
        Some(_) => (theme.pick("·", "."), Role::Text),
    };
    let age = match alert.until_s {
        None => format!("for {}", whole_age(ms(now_s.max(alert.alerted_s) - alert.since_s))),
        Some(until) => format!("{} to {}", minute(alert.since_s), minute(until)),
    };
    let metric = alert.metric.as_deref().map_or("silent", |name| {
        let known = watch.metrics.iter().find(|metric| metric.name == name);
        known.map_or(name, |metric| metric.title())
    });
    let who = alert.group.as_deref().unwrap_or(&alert.node);
    let ascii = theme.is_ascii();
    let left = room.saturating_sub(age.len() + 4);
    let name = elide(who, left / 2, ascii);
    let metric = title(metric, left.saturating_sub(width(&name) + 1), ascii);
    let used = width(&name) + width(&metric) + 1;
    let gap = " ".repeat(room.saturating_sub(2 + used + age.len()));
    let (role, dim) = if chosen { (Role::Selected, Role::Selected) } else { (role, Role::Dim) };
    vec![
        Span::styled(format!("{glyph} {name} "), theme.style(role)),
        Span::styled(metric, theme.style(if chosen { Role::Selected } else { Role::Text })),
        Span::styled(gap, theme.style(if chosen { Role::Selected } else { Role::Text })),
        Span::styled(age, theme.style(dim)),
    ]
}

/// Seconds as milliseconds.
fn ms(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e3) as u64
}

/// The border of a list, marked where it has the keys; gives the room inside.
pub(crate) fn framed(ui: &Ui, buffer: &mut Buffer, area: Rect, (title, note): (&str, &str), pane: Pane) -> Rect {
    let has_keys = ui.states.watch.pane == pane;
    let title = if has_keys { format!("{} {title}", ui.theme.pick("▸", ">")) } else { title.to_owned() };
    let frame = block(&ui.theme, area, &title, note);
    let inner = frame.inner(area);
    frame.render(area, buffer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

impl State {
    /// The list that stands below the machines of a narrow screen; their line where the machines have the keys.
    pub(crate) const fn below(&self) -> Option<Pane> {
        match self.pane {
            Pane::Machines => None,
            pane => Some(pane),
        }
    }
}
