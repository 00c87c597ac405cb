//! The node's screen: who it is and why on top, its lists below; beside one another where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::fleet::filter;
use crate::screens::node::so_far::so_far;
use crate::screens::node::verdicts::brief;
use crate::screens::node::{Pane, panes, service};
use crate::snapshot::{NodeRow, Snapshot};
use crate::stale::Stale;
use crate::text::{counted, cut, whole_age, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_spans};

/// From this width on facts and log stand beside the verdicts.
const WIDE: u16 = 120;
/// Minimum height of a pane beside the verdicts.
const LEAST: u16 = 9;
/// Lines of reasons shown at most on a terminal of 24 rows.
const REASONS: usize = 4;
/// Lines shown at most of the hands that it is in.
const HANDS: usize = 3;

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || Panel::empty("No node is chosen.", "1 shows the fleet, enter there opens a node.");
    let node = ui.selected_row(snapshot).map(|(_, node)| node.as_ref());
    let instead = instead(ui, snapshot, (&snapshot.load, node.is_some()), none);
    let (Some(node), None) = (node, &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Node", &instead.unwrap_or_else(none)));
    };
    let node = so_far(snapshot, node);
    let node = node.as_ref();
    let head = head_height(ui, node);
    summary(ui, snapshot, node, buffer, Rect { height: head, ..area });
    let rest = Rect { y: area.y + head, height: area.height - head, ..area };
    if area.width < WIDE || ui.wide {
        panes::draw(ui, snapshot, node, ui.states.node.pane, (buffer, rest));
        return;
    }
    let left = Rect { width: area.width * 3 / 5, ..rest };
    let right = Rect { x: rest.x + left.width, width: rest.width - left.width, ..rest };
    panes::draw(ui, snapshot, node, Pane::Verdicts, (buffer, left));
    for (pane, area) in beside(ui.states.node.pane, node, right) {
        panes::draw(ui, snapshot, node, pane, (buffer, area));
    }
}

/// As many panes as `right` has room for, among them `chosen`.
fn beside(chosen: Pane, node: &NodeRow, right: Rect) -> Vec<(Pane, Rect)> {
    let all = Pane::beside(node);
    let count = (right.height / LEAST).clamp(1, all.len() as u16);
    let at = all.iter().position(|p| *p == chosen).unwrap_or(0);
    let first = (at + 1).saturating_sub(count.into());
    let shown = all[first..first + usize::from(count)].iter().zip(0..count);
    let edge = |i: u16| right.height * i / count;
    shown.map(|(pane, i)| (*pane, Rect { y: right.y + edge(i), height: edge(i + 1) - edge(i), ..right })).collect()
}

/// Rows in view of the pane that has the keys.
pub(crate) fn page(ui: &Ui, node: &NodeRow) -> usize {
    let rest = ui.size.height.saturating_sub(4 + head_height(ui, node));
    let pane = ui.states.node.pane;
    let column = Rect { height: rest, ..Rect::default() };
    let own =
        beside(pane, node, column).into_iter().find(|(p, _)| *p == pane).filter(|_| ui.size.width >= WIDE && !ui.wide);
    let height = own.map_or(rest, |(_, area)| area.height);
    usize::from(height.saturating_sub(2 + panes::extra(pane)))
}

fn head_height(ui: &Ui, node: &NodeRow) -> u16 {
    3 + u16::try_from(reasons(ui, node).len() + hands(node).len()).unwrap_or(0)
}

/// In whose hands it is, and the parts of it that failed most often before.
fn hands(node: &NodeRow) -> Vec<(String, Role)> {
    service::head(node).into_iter().take(HANDS).collect()
}

fn reasons(ui: &Ui, node: &NodeRow) -> Vec<String> {
    let room = usize::from(ui.size.width.saturating_sub(4));
    let limit = if ui.size.height >= 40 { 2 * REASONS } else { REASONS };
    let all: Vec<Vec<String>> = node.reasons.iter().map(|reason| wrap(reason, room)).collect();
    if all.iter().map(Vec::len).sum::<usize>() <= limit {
        return all.concat();
    }
    let verdict = |reason: &str| node.verdicts.iter().find(|verdict| verdict.reason == reason);
    let brief = |reason: &String| brief(ui, node, (reason.as_str(), verdict(reason.as_str())), (room, limit));
    let all: Vec<Vec<String>> = node.reasons.iter().map(brief).collect();
    // Only whole sentences, and the worst in any case.
    let mut lines: Vec<String> = Vec::new();
    let mut shown = 0;
    for reason in &all {
        if shown > 0 && lines.len() + reason.len() >= limit {
            break;
        }
        lines.extend(reason.iter().cloned());
        shown += 1;
    }
    lines.truncate(limit);
    if shown < all.len() {
        let more = counted(all.len() - shown, "more reason", "more reasons");
        lines.push(format!("and {more}; each verdict below has its own"));
    }
    lines
}

/// Which row of Fleet the node is, `3/24`, or the filter that hides it there.
fn place(ui: &Ui, snapshot: &Snapshot) -> String {
    let rows = ui.states.fleet.rows();
    let own = ui.selected_row(snapshot).map(|(at, _)| at);
    let row = rows.iter().position(|row| Some(*row) == own);
    if row.is_none() && !ui.filter.is_empty() {
        return format!("hidden by {}", filter(ui, 32));
    }
    format!("{}/{}", row.unwrap_or(ui.states.fleet.cursor.at) + 1, rows.len())
}

fn summary(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let mark = if ui.marks.contains(&node.name) { "marked, " } else { "" };
    let block = block(theme, area, &node.name, &format!("{mark}{}", place(ui, snapshot)));
    let inner = block.inner(area);
    block.render(area, buffer);
    let dim = theme.style(Role::Dim);
    let known = || Stale::now(ui, snapshot).state(node.state, node.result_ms);
    let state = snapshot.awaited(node.state).map_or_else(known, str::to_owned);
    let mark = if node.provisional { ", provisional" } else { "" };
    let state = format!("{} {state}{mark}", theme.glyph(node.state));
    let mut line = vec![Span::styled(state, theme.style(Theme::state_role(node.state))), Span::raw("  ")];
    let link = cut(&node.link.text, 40, theme.is_ascii());
    line.extend([Span::styled("link ", dim), Span::styled(link, theme.style(Theme::link_role(node.link.kind)))]);
    for (label, value) in [("rack", node.rack.clone()), ("groups", node.groups.join(","))] {
        if !value.is_empty() {
            line.extend([Span::styled(format!("  {label} "), dim), Span::raw(value)]);
        }
    }
    if let Some(seen) = node.seen_ms {
        let age = whole_age(ui.data_ms(snapshot).saturating_sub(seen));
        line.extend([Span::styled("  seen ", dim), Span::raw(format!("{age} ago"))]);
    }
    if let Some(work) = &node.work {
        let text = format!("{} {:.0} % {}", work.name, work.done * 100.0, work.note);
        let used: usize = line.iter().map(Span::width).sum();
        let room = usize::from(inner.width).saturating_sub(used + 8);
        line.extend([Span::styled("  now ", dim), Span::raw(cut(&text, room, theme.is_ascii()))]);
    }
    put_spans(buffer, (inner.x + 1, inner.y), inner.width.saturating_sub(2), &line);
    let reasons = reasons(ui, node).into_iter().map(|reason| (reason, Role::Text));
    let room = inner.width.saturating_sub(2);
    for (y, (text, role)) in (inner.y + 1..inner.bottom()).zip(hands(node).into_iter().chain(reasons)) {
        put(buffer, (inner.x + 1, y), room, &cut(&text, room.into(), theme.is_ascii()), theme.style(role));
    }
}
