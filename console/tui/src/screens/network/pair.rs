//! The samples of the pair under the cursor, there and back, against what is usual at its distance.

use muster_wire::Unit;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::network::names;
use crate::snapshot::{Network, Pair, Visits};
use crate::text::counted;
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Line, Plot, block, put, put_spans, spark};

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, network: &Network, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let here = (ui.states.network.src, ui.states.network.dst);
    let pair = network.pair.as_deref().filter(|p| (p.src, p.dst) == here);
    let hops = pair.and_then(|p| p.hops).map_or(String::new(), |h| counted(h.into(), "hop", "hops"));
    let block = block(theme, area, "Pair", &hops);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let Some(pair) = pair else {
        let text = if here.0 == here.1 { "One node is not a pair." } else { "Reading its samples." };
        return put(buffer, (inner.x, inner.y), inner.width, text, theme.style(Role::Dim));
    };
    let name = |at: usize| network.endpoints.get(at).map_or("", |e| e.name.as_str());
    let all = names(network);
    let mut y = inner.y;
    for (tag, (from, to), visits) in [('A', (pair.src, pair.dst), &pair.there), ('B', (pair.dst, pair.src), &pair.back)]
    {
        let room = usize::from(inner.width.saturating_sub(6)) / 2;
        let short = |at: usize| all.short(name(at), room, theme.is_ascii());
        let names = format!("{} {} {}", short(from), theme.pick("→", "->"), short(to));
        let line = [Span::styled(format!("{tag} "), theme.style(role(tag))), Span::raw(names)];
        put_spans(buffer, (inner.x, y), inner.width, &line);
        put(
            buffer,
            (inner.x + 2, y + 1),
            inner.width.saturating_sub(2),
            &words(ui, network, visits, inner.width),
            theme.style(Role::Text),
        );
        y += 2;
    }
    if let Some(usual) = pair.usual {
        let text = format!("usual here {}", show(network, usual));
        put(buffer, (inner.x, y), inner.width, &text, theme.style(Role::Dim));
        y += 1;
    }
    plot(ui, network, pair, (buffer, Rect { y, height: inner.bottom().saturating_sub(y), ..inner }));
}

const fn role(tag: char) -> Role {
    if tag == 'A' { Role::Focus } else { Role::Head }
}

/// Median, how many values, the shape of their order, and the uplink.
fn words(ui: &Ui, network: &Network, visits: &Visits, room: u16) -> String {
    let theme = &ui.theme;
    let Some(middle) = median(&visits.values) else {
        return if visits.visits == 0 {
            theme.pick("· not measured", ". not measured").to_owned()
        } else {
            "? failed".to_owned()
        };
    };
    let mut text = format!("{}, {}", show(network, middle), counted(visits.values.len(), "value", "values"));
    if visits.failed > 0 {
        text += &format!(", {} of {} visits failed", visits.failed, visits.visits);
    }
    if !visits.up.is_empty() {
        text += &format!(", by {}", visits.up.join(" "));
    }
    let left = usize::from(room).saturating_sub(text.chars().count() + 6);
    if visits.values.len() > 3 && left > 3 {
        format!("{text} {}", spark(&visits.values, left.min(16), theme.is_ascii()))
    } else {
        text
    }
}

fn plot(ui: &Ui, network: &Network, pair: &Pair, (buffer, area): (&mut Buffer, Rect)) {
    let tier = network.tiers.iter().find(|t| t.hops == pair.hops);
    let (there, back) = (steps(&pair.there.values), steps(&pair.back.values));
    let mut lines = Vec::new();
    if let Some(tier) = tier.filter(|t| !t.curve.is_empty()) {
        lines.push(Line { points: &tier.curve, style: ui.theme.style(Role::Dim), tag: 'U' });
    }
    for (tag, points) in [('B', &back), ('A', &there)] {
        if !points.is_empty() {
            lines.push(Line { points, style: ui.theme.style(role(tag)), tag });
        }
    }
    if area.height < 5 || lines.is_empty() {
        return;
    }
    let text = match area.width {
        46.. => "CDF: A there, B back, U usual at this distance",
        _ => "CDF: A there, B back, U usual here",
    };
    put(buffer, (area.x, area.y), area.width, text, ui.theme.style(Role::Dim));
    let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    Plot { theme: &ui.theme, show: &|x| show(network, x), start: 0.0, band: None, lines }.draw(buffer, area);
}

/// A value with its unit; bare where the unit is not known.
pub(crate) fn show(network: &Network, value: f64) -> String {
    network.unit.unwrap_or(Unit::Count).show(value)
}

/// The middle value, of an even number the mean of the two.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]))
}

fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    sorted.into_iter().enumerate().map(|(i, v)| (v, (i + 1) as f64 / n)).collect()
}
