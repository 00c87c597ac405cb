//! The similarity of every node, worst first, as bars against alpha.

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use crate::judgement::State;
use crate::screens::bench::Pane;
use crate::snapshot::{MetricRow, Score, Snapshot};
use crate::stale::{Stale, WORD, glyph, hides};
use crate::text::{counted, similarity, width};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_right};

/// Width that a bar keeps beside words.
const LEAST_BAR: usize = 12;

/// Rows of the list on a terminal of this size.
pub(crate) const fn rows(size: Size) -> usize {
    match size.height {
        0..30 => 4,
        30..50 => 9,
        _ => 16,
    }
}

/// Draws the list under a line that says what it is.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, metric: &MetricRow, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let head = theme.style(Role::Head);
    let failed = metric.counts.get(State::Fail);
    let verb = if failed == 1 { "fails" } else { "fail" };
    let nodes = counted(metric.scores.len(), "node", "nodes");
    let text = format!("similarity: {failed} of {nodes} {verb} at alpha {}", metric.alpha);
    let stale = Stale::now(ui, snapshot);
    let old = metric.scores.iter().filter(|score| stale.is(Some(score.at_ms()))).count();
    let text = if old > 0 { format!("{text}, {old} {WORD}") } else { text };
    put(buffer, (area.x, area.y), area.width, &text, head);
    let window = ui.states.bench.nodes.window(metric.scores.len(), usize::from(area.height.saturating_sub(1)));
    for (y, row) in (area.y + 1..area.bottom()).zip(window) {
        let line = Rect { y, height: 1, ..area };
        draw_score(ui, snapshot, metric.alpha, (buffer, line), &metric.scores[row]);
        if row == ui.states.bench.nodes.at && ui.states.bench.pane == Pane::Nodes {
            buffer.set_style(line, theme.style(Role::Selected));
        }
    }
}

fn draw_score(ui: &Ui, snapshot: &Snapshot, alpha: f64, (buffer, line): (&mut Buffer, Rect), score: &Score) {
    let theme = &ui.theme;
    let Some(node) = snapshot.nodes.get(score.node) else { return };
    let name_room = (line.width / 3).min(26);
    let (stale, at) = (Stale::now(ui, snapshot), Some(score.at_ms()));
    let dim = hides(score.state) && stale.is(at);
    let (mark, role) =
        if dim { (glyph(theme), Role::Dim) } else { (theme.glyph(score.state), Theme::state_role(score.state)) };
    let style = theme.style(role);
    put(buffer, (line.x, line.y), 1, mark, style);
    if ui.marks.contains(&node.name) {
        put(buffer, (line.x + 1, line.y), 1, "*", theme.style(Role::Key));
    }
    let name = ui.states.fleet.names().short(&node.name, name_room.into(), theme.is_ascii());
    put(buffer, (line.x + 2, line.y), name_room, &name, theme.style(Role::Text));
    let number = score.similarity.map_or(theme.absent().to_owned(), similarity);
    put_right(buffer, (line.right() - 6, line.y), 6, &number, style);
    let start = line.x + 3 + name_room;
    let room = line.right().saturating_sub(7 + start);
    // Words take the end of the bar, where both fit.
    let words = stale.words(at).filter(|words| width(words) + LEAST_BAR < room.into()).unwrap_or_default();
    let taken = if words.is_empty() { 0 } else { u16::try_from(width(&words) + 1).unwrap_or(room) };
    put_right(buffer, (start + room - taken, line.y), taken, &words, theme.style(Role::Dim));
    let room = room - taken;
    if let Some(value) = score.similarity {
        put(buffer, (start, line.y), room, &theme.bar(value, room.into()), style);
        // `alpha` is a similarity, so the mark lies within the bar.
        let at = (alpha.clamp(0.0, 1.0) * f64::from(room.saturating_sub(1))).round() as u16;
        put(buffer, (start + at, line.y), 1, theme.pick("┃", "|"), theme.style(Role::Head));
    }
}
