//! What-if: other terms than those in force, which nodes they would judge otherwise, and the way back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::intent::Intent;
use crate::judgement::word;
use crate::keymap::Term;
use crate::snapshot::{MetricRow, Snapshot, Terms, VersionRow};
use crate::text::{counted, cut, whole_age};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{put, put_spans};

/// Steps of alpha and tau.
const STEP: f64 = 0.005;

/// Moves one of the terms; asks the engine what they say.
pub(crate) fn turn(ui: &mut Ui, snapshot: &Snapshot, term: Term) -> Vec<Intent> {
    let Some(metric) = ui.states.bench.metric(snapshot) else { return Vec::new() };
    let in_force = Terms { alpha: metric.alpha, tau: metric.tau, group: None, version: None };
    let now = ui.states.bench.terms.clone().unwrap_or_else(|| in_force.clone());
    // Whole steps, so that going there and back ends where it began.
    let step = |value: f64, by: f64| ((value / STEP).round() + by).clamp(0.0, 1.0 / STEP) * STEP;
    let terms = match term {
        Term::Alpha(up) => Terms { alpha: step(now.alpha, if up { 1.0 } else { -1.0 }), ..now },
        Term::Tau(up) => Terms { tau: step(now.tau, if up { 1.0 } else { -1.0 }), ..now },
        Term::Group => Terms { group: next_group(snapshot, now.group.as_deref()), ..now },
        Term::Version => match next_version(snapshot, metric, now.version.as_deref()) {
            Some(VersionRow { criterion: c, .. }) => {
                Terms { alpha: c.alpha, tau: c.tau, version: Some(c.id.clone()), ..now }
            }
            None => Terms { group: now.group, ..in_force },
        },
    };
    ui.states.bench.terms = Some(terms.clone());
    vec![Intent::WhatIf(Some(terms))]
}

/// Back to the terms in force; `None` where they never were left.
pub(crate) fn restore(ui: &mut Ui) -> Option<Intent> {
    ui.states.bench.terms.take().map(|_| Intent::WhatIf(None))
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

/// The stored versions of the metric's criterion, oldest first, and then again none.
fn next_version<'s>(snapshot: &'s Snapshot, metric: &MetricRow, now: Option<&str>) -> Option<&'s VersionRow> {
    let mut others = versions(snapshot).filter(|v| v.criterion.metric == metric.id && v.criterion.id != metric.version);
    if now.is_some() {
        others.find(|v| Some(v.criterion.id.as_str()) == now);
    }
    others.next()
}

fn versions(snapshot: &Snapshot) -> impl Iterator<Item = &VersionRow> {
    snapshot.criteria.data.as_deref().into_iter().flat_map(|criteria| criteria.versions.iter())
}

/// Which criterion judges, in a few words.
fn version(ui: &Ui, snapshot: &Snapshot, id: &str) -> String {
    let learned = versions(snapshot).find(|v| v.criterion.id == id).map(|v| v.learned_ms);
    let age =
        learned.map_or(String::new(), |at| format!(", {} old", whole_age(ui.now_ms(snapshot).saturating_sub(at))));
    let (metric, mark) = id.rsplit_once('#').unwrap_or((id, ""));
    let metric = metric.split('@').next().unwrap_or(metric);
    format!("{metric} by #{}{age}", mark.get(..6).unwrap_or(mark))
}

/// The terms tried beside those in force, in one line.
pub(crate) fn banner(
    ui: &Ui,
    snapshot: &Snapshot,
    (metric, terms): (&MetricRow, &Terms),
    buffer: &mut Buffer,
    line: Rect,
) {
    let theme = &ui.theme;
    let mut text =
        format!("WHAT IF alpha {:.3} ({})  tau {:.3} ({})", terms.alpha, metric.alpha, terms.tau, metric.tau);
    if let Some(group) = &terms.group {
        text += &format!("  group {group}");
    }
    if let Some(id) = &terms.version {
        text += &format!("  {}", version(ui, snapshot, id));
    }
    let room = usize::from(line.width).saturating_sub(14);
    let spans = [
        Span::styled(cut(&text, room, theme.is_ascii()), theme.style(Role::Mode)),
        Span::styled("  esc restores", theme.style(Role::Key)),
    ];
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
        let name = ui.states.fleet.names().short(&node.name, names.into(), theme.is_ascii());
        put(buffer, (area.x, y), names, &name, theme.style(Role::Text));
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
