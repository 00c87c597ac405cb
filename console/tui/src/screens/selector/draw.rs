//! The Selector's screen: the question and its answer on top, nodes by risk on the left, picks, survival and coverage.

use muster_analysis::selector::Outcome;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::selector::state::Pane;
use crate::screens::selector::{chart, coverage, keys, picks};
use crate::snapshot::{Ask, RiskRow, Selector, Snapshot};
use crate::text::{counted, cut, elide, width, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_right, put_spans};

/// From this height on the picks, survival and coverage stand below one another.
const TALL: u16 = 40;
/// Rows of the question and its answer, border included.
const TOP: u16 = 6;

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || {
        Panel::empty(
            "Nothing is known of incidents yet.",
            "`muster incidents import FILE` reads a log; failed verdicts are recorded by themselves.",
        )
    };
    let part = &snapshot.selector;
    let has = part.data.as_ref().is_some_and(|s| !s.nodes.is_empty());
    let instead = instead(ui, snapshot, (&part.load, has), none);
    let (Some(selector), None) = (part.data.as_deref(), &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Selector", &instead.unwrap_or_else(none)));
    };
    question(ui, selector, buffer, Rect { height: TOP, ..area });
    let rest = Rect { y: area.y + TOP, height: area.height - TOP, ..area };
    let left = Rect { width: if ui.wide { rest.width } else { rest.width * 9 / 20 }, ..rest };
    let right = Rect { x: left.right(), width: rest.width - left.width, ..rest };
    nodes(ui, selector, buffer, left);
    if ui.wide {
        return;
    }
    for (pane, area) in panes(ui.size, ui.states.selector.pane, right) {
        match pane {
            Pane::Picks => picks::draw(ui, selector, buffer, area),
            Pane::Survival => chart::draw(ui, selector, buffer, area),
            Pane::Coverage => coverage::draw(ui, selector, buffer, area),
        }
    }
}

fn panes(size: Size, chosen: Pane, right: Rect) -> Vec<(Pane, Rect)> {
    if size.height < TALL {
        return vec![(chosen, right)];
    }
    let (picks, survival) = (right.height * 3 / 10, right.height * 2 / 5);
    vec![
        (Pane::Picks, Rect { height: picks, ..right }),
        (Pane::Survival, Rect { y: right.y + picks, height: survival, ..right }),
        (Pane::Coverage, Rect { y: right.y + picks + survival, height: right.height - picks - survival, ..right }),
    ]
}

/// Nodes in view.
pub(crate) fn page(size: Size) -> usize {
    usize::from(size.height.saturating_sub(4 + TOP + 3))
}

fn question(ui: &Ui, selector: &Selector, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let ask = keys::current(ui, selector);
    let note = if ask == selector.ask { String::new() } else { "asking".to_owned() };
    let block = block(theme, area, "Before a job", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    put_spans(buffer, (inner.x, inner.y), inner.width, &sliders(ui, selector, &ask));
    put_spans(buffer, (inner.x, inner.y + 1), inner.width, &risk(ui, selector, inner.width));
    let reason = wrap(&selector.selection.reason, inner.width.into()).into_iter().next().unwrap_or_default();
    put(buffer, (inner.x, inner.y + 2), inner.width, &reason, theme.style(Role::Text));
    let model = &selector.model;
    let log = format!("{} in {:.0} days", counted(model.incidents, "incident", "incidents"), model.log_hours / 24.0);
    let mut text = model.reason.clone();
    if width(&text) + width(&log) + 2 <= inner.width.into() {
        text = format!("{text}; {log}");
    }
    let text = cut(&text, inner.width.into(), theme.is_ascii());
    put(buffer, (inner.x, inner.y + 3), inner.width, &text, theme.style(Role::Dim));
}

fn sliders(ui: &Ui, selector: &Selector, ask: &Ask) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let budget = ask.budget_minutes.map_or("no limit".to_owned(), |m| format!("{m:.0} min"));
    let p0 = ask.p0.map_or_else(|| format!("{:.2} (expected)", selector.p0), |p| format!("{p:.3}"));
    let mut spans = Vec::new();
    for (keys, label, value) in [("[ ]", "job", hours(ask.job_hours)), ("- +", "budget", budget), ("< >", "p0", p0)] {
        spans.push(Span::styled(keys, theme.style(Role::Key)));
        spans.push(Span::styled(format!(" {label} "), theme.style(Role::Dim)));
        spans.push(Span::styled(format!("{value}   "), theme.style(Role::Head)));
    }
    spans
}

/// The joint risk as a bar with the bound marked.
fn risk(ui: &Ui, selector: &Selector, room: u16) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    if !known(selector) {
        let text = format!("joint risk {}, p0 {}", theme.absent(), chance(selector.p0));
        return vec![Span::styled(text, theme.style(Role::Head))];
    }
    let over = selector.joint > selector.p0;
    let text = format!("joint risk {} ", chance(selector.joint));
    let after = format!(" {} after the picks, p0 {}", chance(selector.selection.risk_after), chance(selector.p0));
    let width = usize::from(room).saturating_sub(text.len() + after.len() + 1).min(40);
    let bar: Vec<char> = theme.bar(selector.joint, width).chars().collect();
    // A share of the width, so within the bar.
    let mark = ((selector.p0.clamp(0.0, 1.0) * width as f64) as usize).min(width.saturating_sub(1));
    let piece = |part: &[char]| part.iter().collect::<String>();
    let style = theme.style(if over { Role::Attention } else { Role::Text });
    let mut spans = vec![Span::styled(text, theme.style(Role::Head))];
    if !bar.is_empty() {
        spans.push(Span::styled(piece(&bar[..mark]), style));
        spans.push(Span::styled(theme.pick("┃", "|"), theme.style(Role::Head)));
        spans.push(Span::styled(piece(&bar[mark + 1..]), style));
    }
    spans.push(Span::raw(after));
    spans
}

/// Whether the history says anything of a risk.
pub(crate) fn known(selector: &Selector) -> bool {
    selector.selection.outcome != Outcome::LowConfidence
}

/// A probability with as many digits as it needs to be told from 0 and 1.
pub(crate) fn chance(p: f64) -> String {
    if p > 0.0 && p < 0.01 { format!("{p:.4}") } else { format!("{p:.2}") }
}

/// Hours in two units.
pub(crate) fn hours(h: f64) -> String {
    match h {
        h if h < 10.0 => format!("{h:.1} h").replace(".0 h", " h"),
        h if h <= 72.0 => format!("{h:.0} h"),
        h => format!("{:.0} d", h / 24.0),
    }
}

fn nodes(ui: &Ui, selector: &Selector, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let asked = selector.nodes.iter().filter(|n| n.validate).count();
    let place = format!("{}/{}", ui.states.selector.nodes.at + 1, selector.nodes.len());
    let note = if area.width < 44 { format!("{asked} to validate") } else { format!("{asked} to validate, {place}") };
    let block = block(theme, area, "Nodes by risk", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let wide = inner.width >= 46;
    let head = theme.style(Role::Head);
    put(buffer, (inner.x + 2, inner.y), 10, "node", head);
    put_right(buffer, (inner.right() - 8, inner.y), 7, "risk", head);
    if wide {
        put_right(buffer, (inner.right() - 27, inner.y), 9, "incidents", head);
        put_right(buffer, (inner.right() - 17, inner.y), 8, "quiet", head);
    }
    let window = ui.states.selector.nodes.window(selector.nodes.len(), usize::from(inner.height.saturating_sub(1)));
    for (y, row) in (inner.y + 1..inner.bottom()).zip(window) {
        let line = Rect { y, height: 1, ..inner };
        node(ui, &selector.nodes[row], (buffer, line), (wide, known(selector)));
        if row == ui.states.selector.nodes.at {
            buffer.set_style(line, theme.style(Role::Selected));
        }
    }
}

fn node(ui: &Ui, row: &RiskRow, (buffer, line): (&mut Buffer, Rect), (wide, known): (bool, bool)) {
    let theme = &ui.theme;
    let (mark, role) = match (row.down, row.validate) {
        (true, _) => (theme.pick("✗", "x"), Role::Act),
        (false, true) => (theme.pick("▸", ">"), Role::Attention),
        (false, false) => (" ", Role::Text),
    };
    put(buffer, (line.x, line.y), 1, mark, theme.style(role));
    let room = line.width.saturating_sub(if wide { 30 } else { 10 });
    put(buffer, (line.x + 2, line.y), room, &elide(&row.name, room.into(), theme.is_ascii()), theme.style(Role::Text));
    let text = match (row.down, known) {
        (true, _) => "down".to_owned(),
        (false, true) => chance(row.risk),
        (false, false) => theme.absent().to_owned(),
    };
    put_right(buffer, (line.right() - 8, line.y), 7, &text, theme.style(role));
    if wide {
        put_right(buffer, (line.right() - 27, line.y), 9, &row.incidents.to_string(), theme.style(Role::Dim));
        let quiet = row.quiet_hours.map_or(theme.absent().to_owned(), hours);
        put_right(buffer, (line.right() - 17, line.y), 8, &quiet, theme.style(Role::Dim));
    }
}
