//! What-if: other terms than those in force, which nodes they would judge otherwise, and the way back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::intent::Intent;
use crate::judgement::word;
use crate::keymap::Term;
use crate::snapshot::{MetricRow, Snapshot, Terms};
use crate::text::{counted, cut, elide};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_spans};

/// Steps of alpha and tau.
const STEP: f64 = 0.005;

/// Moves one of the terms; asks the engine what they say.
pub(crate) fn turn(ui: &mut Ui, snapshot: &Snapshot, term: Term) -> Vec<Intent> {
    let Some((_, metric)) = ui.bench.metric(snapshot) else { return Vec::new() };
    let now = ui.bench.terms.clone().unwrap_or(Terms { alpha: metric.alpha, tau: metric.tau, group: None });
    // Whole steps, so that going there and back ends where it began.
    let step = |value: f64, by: f64| ((value / STEP).round() + by).clamp(0.0, 1.0 / STEP) * STEP;
    let terms = match term {
        Term::Alpha(up) => Terms { alpha: step(now.alpha, if up { 1.0 } else { -1.0 }), ..now },
        Term::Tau(up) => Terms { tau: step(now.tau, if up { 1.0 } else { -1.0 }), ..now },
        Term::Group => Terms { group: next_group(snapshot, now.group.as_deref()), ..now },
    };
    ui.bench.terms = Some(terms.clone());
    vec![Intent::WhatIf(Some(terms))]
}

/// Back to the terms in force; `None` where they never were left.
pub(crate) fn restore(ui: &mut Ui) -> Option<Intent> {
    ui.bench.terms.take().map(|_| Intent::WhatIf(None))
}

/// All nodes, then each group by name.
fn next_group(snapshot: &Snapshot, now: Option<&str>) -> Option<String> {
    let mut groups: Vec<&String> = snapshot.nodes.iter().flat_map(|n| &n.groups).collect();
    groups.sort();
    groups.dedup();
    let next = match now {
        None => 0,
        Some(now) => groups.iter().position(|g| *g == now).map_or(groups.len(), |at| at + 1),
    };
    groups.get(next).map(|g| (*g).clone())
}

/// The terms tried beside those in force, in one line.
pub(crate) fn banner(ui: &Ui, metric: &MetricRow, terms: &Terms, buffer: &mut Buffer, line: Rect) {
    let theme = &ui.theme;
    let group = terms.group.as_ref().map_or("all nodes".to_owned(), |g| format!("group {g}"));
    let text =
        format!("WHAT IF alpha {:.3} ({})  tau {:.3} ({})  {group}", terms.alpha, metric.alpha, terms.tau, metric.tau);
    let spans = [Span::styled(text, theme.style(Role::Mode)), Span::styled("  esc restores", theme.style(Role::Key))];
    put_spans(buffer, (line.x, line.y), line.width, &spans);
}

/// Which nodes would be judged otherwise, in place of the similarities.
pub(crate) fn flips(ui: &Ui, snapshot: &Snapshot, terms: &Terms, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let Some(answer) = snapshot.what_if.as_deref().filter(|w| w.terms == *terms) else {
        return put(buffer, (area.x, area.y), area.width, "what if: asking", theme.style(Role::Mode));
    };
    let head = format!("what if: {} of {} flip", answer.flips.len(), counted(answer.nodes, "node", "nodes"));
    put(buffer, (area.x, area.y), area.width, &head, theme.style(Role::Mode));
    let names = (area.width / 3).min(26);
    for (y, flip) in (area.y + 1..area.bottom()).zip(answer.flips.iter()) {
        let Some(node) = snapshot.nodes.get(flip.node) else { continue };
        put(buffer, (area.x, y), names, &elide(&node.name, names.into(), theme.is_ascii()), theme.style(Role::Text));
        let state = |s| Span::styled(format!("{} {}", theme.glyph(s), word(s)), theme.style(Theme::state_role(s)));
        let arrow = Span::raw(theme.pick(" → ", " -> "));
        let used = put_spans(buffer, (area.x + names + 1, y), 22, &[state(flip.from), arrow, state(flip.to)]);
        let x = area.x + names + 3 + used;
        let room = area.right().saturating_sub(x);
        put(buffer, (x, y), room, &cut(&flip.because, room.into(), theme.is_ascii()), theme.style(Role::Dim));
    }
    let more = answer.flips.len().saturating_sub(usize::from(area.height.saturating_sub(1)));
    if more > 0 {
        let text = format!("+{more} more");
        put(buffer, (area.right().saturating_sub(text.len() as u16), area.y), 12, &text, theme.style(Role::Mode));
    }
}
