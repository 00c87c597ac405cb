//! The network's screen: the map with the cursor's words on the left, what it points at on the right.

use muster_analysis::network::topology::Source;
use muster_wire::Direction;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::screens::network::layout::{self, Layout, layout};
use crate::screens::network::state::Pane;
use crate::screens::network::view::Step;
use crate::screens::network::{map, names, pair, suspects, tiers};
use crate::snapshot::{Network, Snapshot};
use crate::text::{age, counted, cut};
use crate::theme::Role;
use crate::ui::Ui;
use crate::usual;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_spans};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || {
        Panel::empty(
            "No pair has been measured yet.",
            "R runs a network playbook; `muster pairs --from FILE --show` shows a matrix of yours.",
        )
    };
    let part = &snapshot.network;
    let has = part.data.as_ref().is_some_and(|n| !n.endpoints.is_empty());
    let instead = instead(ui, snapshot, (&part.load, has), none);
    let (Some(network), None) = (part.data.as_deref(), &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Network", &instead.unwrap_or_else(none)));
    };
    let layout = layout(ui.size, ui.wide);
    matrix(ui, network, buffer, &layout);
    for (pane, area) in layout::panes(ui.size, ui.wide, ui.states.network.pane) {
        match pane {
            Pane::Suspects => suspects::draw(ui, network, buffer, area),
            Pane::Pair => pair::draw(ui, network, buffer, area),
            Pane::Tiers => tiers::draw(ui, network, buffer, area),
        }
    }
}

fn matrix(ui: &Ui, network: &Network, buffer: &mut Buffer, layout: &Layout) {
    let theme = &ui.theme;
    let (view, n) = (&ui.states.network.view, network.endpoints.len());
    let metric = network.metrics.get(network.metric).map_or("", String::as_str);
    let block_of = (view.rows.block, view.columns.block);
    let note = match block_of {
        (1, 1) => format!("{n} x {n}"),
        (r, c) => format!("{n} x {n}, {} of {r} x {c}", ui.states.network.gather.word()),
    };
    let whole = view.rows.is_whole(n) && view.columns.is_whole(n);
    let note = if whole { note } else { format!("{note}, part") };
    let block = block(theme, layout.left, metric, &note);
    let inner = block.inner(layout.left);
    block.render(layout.left, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    put_spans(buffer, (inner.x, inner.y), inner.width, &progress(ui, network, inner.width.into()));
    map::draw(ui, network, buffer, layout);
    let words = layout.map.bottom() + 1;
    cursor(ui, network, buffer, Rect { y: words, height: 2, ..inner });
    put_spans(buffer, (inner.x, words + 2), inner.width, &legend(ui, network.direction));
}

/// How far the scan is; of a stored matrix what it covers.
fn progress(ui: &Ui, network: &Network, room: usize) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let dim = theme.style(Role::Dim);
    let Some(p) = &network.progress else {
        let leaves = counted(network.leaves.len(), "leaf", "leaves");
        let text = format!("{}; {leaves}, topology {}", network.origin, source(network.topology));
        return vec![Span::styled(cut(&text, room, theme.is_ascii()), dim)];
    };
    let round = if p.rounds == 0 { format!("round {} ", p.round) } else { format!("round {}/{} ", p.round, p.rounds) };
    let share = p.done as f64 / p.total.max(1) as f64;
    let bar = theme.bar(share, if room < 60 { 5 } else { 16 });
    // Where each round follows from those before, nobody knows how many pairs there will be.
    let pairs = match p.total {
        0 => format!("after {}", counted(p.done, "pair", "pairs")),
        total => format!("{bar} {}/{total} pairs", p.done),
    };
    let mut spans = vec![Span::styled(round, theme.style(Role::Head)), Span::raw(pairs)];
    match p.eta_ms.filter(|_| p.going) {
        Some(eta) => spans.push(Span::raw(format!(", {} left", age(eta / 1000 * 1000)))),
        None if p.going => {}
        None => spans.push(Span::styled(", over", dim)),
    }
    if !p.dropped.is_empty() {
        spans.push(Span::styled(
            format!("  dropped: {}", cut(&p.dropped.join(", "), 24, theme.is_ascii())),
            theme.style(Role::Attention),
        ));
    }
    spans
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Labels => "from the inventory",
        Source::Csv => "from a CSV file",
        Source::Slurm => "from Slurm",
        Source::Ibnetdiscover => "from ibnetdiscover",
        Source::Latency => "guessed from latency",
        Source::Flat => "unknown",
    }
}

/// Two lines of words for what is under the cursor.
fn cursor(ui: &Ui, network: &Network, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let (src, dst) = (ui.states.network.src, ui.states.network.dst);
    let room = usize::from(area.width / 3).min(24);
    let names = names(network);
    let short = |name: &str| names.short(name, room, theme.is_ascii());
    let name = |at: usize| network.endpoints.get(at).map_or(String::new(), |e| short(&e.name));
    let share = network.grid.get(src, dst);
    let (text, role) = match share {
        _ if src == dst => (theme.absent().to_owned(), Role::Dim),
        None => (theme.pick("· not measured", ". not measured").to_owned(), Role::Dim),
        Some(s) if Step::of(s) == Step::Failed => ("? failed".to_owned(), Role::Act),
        Some(s) => (usual::words(s, network.direction), judged(s)),
    };
    let shown = network.pair.as_deref().filter(|p| (p.src, p.dst) == (src, dst));
    let middle = shown.and_then(|p| pair::median(&p.there.values));
    let value = middle.map_or(String::new(), |v| format!(", {}", pair::show(network, v)));
    let line = [
        Span::styled(format!("{} {} {}", name(src), theme.pick("→", "->"), name(dst)), theme.style(Role::Focus)),
        Span::styled(format!("  {text}{value}"), theme.style(role)),
    ];
    put_spans(buffer, (area.x, area.y), area.width, &line);
    let middle = |share: f32| usual::said(share, network.direction);
    let [sends, receives] = ui.states.network.view.middles.map(|m| m.map_or(theme.absent().to_owned(), middle));
    let text = format!("medians: row sends {sends}, column receives {receives}");
    put(
        buffer,
        (area.x, area.y + 1),
        area.width,
        &cut(&text, area.width.into(), theme.is_ascii()),
        theme.style(Role::Dim),
    );
}

/// The role of a share; only what is below the least fault asks for a look.
pub(crate) fn judged(share: f32) -> Role {
    if share < 0.75 {
        Role::Act
    } else if share < 0.95 {
        Role::Attention
    } else {
        Role::Text
    }
}

fn legend(ui: &Ui, direction: Direction) -> Vec<Span<'static>> {
    let theme = &ui.theme;
    let mut spans = vec![Span::styled("% ", theme.style(Role::Dim))];
    for (rank, word) in usual::steps(direction).into_iter().enumerate() {
        let swatch = if theme.has_half_cells() { "█" } else { theme.heat_glyph(rank) };
        spans.push(Span::styled(swatch, ratatui::style::Style::new().fg(theme.heat(rank))));
        spans.push(Span::styled(format!("{word} "), theme.style(Role::Dim)));
    }
    spans
}
