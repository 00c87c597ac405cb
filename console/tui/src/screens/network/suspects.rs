//! What the slow pairs point at, with its evidence; what is undecided, and which pairs would decide.

use muster_analysis::network::localise::{Kind, SURE, Suspect, Undecided};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget;

use crate::screens::network::names;
use crate::snapshot::Network;
use crate::text::{Common, counted, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put};

type Row = (String, Style);

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, network: &Network, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let n = network.suspects.len();
    let note = if n == 0 { String::new() } else { format!("{}/{n}", ui.states.network.suspects.at + 1) };
    let block = block(theme, area, "Suspects", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let mut rows: Vec<Row> = Vec::new();
    let names = names(network);
    let mut chosen = 0;
    for (at, suspect) in network.suspects.iter().enumerate() {
        let here = at == ui.states.network.suspects.at;
        if here {
            chosen = rows.len();
        }
        rows.extend(suspect_rows(ui, &names, (suspect, here), inner.width.into()));
    }
    for undecided in network.undecided.iter() {
        rows.extend(undecided_rows(ui, undecided, inner.width.into()));
    }
    if let Some(pairs) = next_pairs(network) {
        rows.extend(wrap(&pairs, inner.width.into()).into_iter().map(|l| (l, theme.style(Role::Dim))));
    }
    if rows.is_empty() {
        let text = if network.progress.as_ref().is_some_and(|p| p.going) {
            "Nothing stands out so far."
        } else {
            "Nothing stands out."
        };
        rows.push((text.to_owned(), theme.style(Role::Text)));
    }
    let top = (chosen + 3).saturating_sub(inner.height.into());
    for (y, (text, style)) in (inner.y..inner.bottom()).zip(rows.into_iter().skip(top)) {
        put(buffer, (inner.x, y), inner.width, &text, style);
    }
}

/// The word for a kind of element.
pub(crate) const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Nic => "NIC",
        Kind::NodeRx => "receives slowly:",
        Kind::NodeTx => "sends slowly:",
        Kind::Leaf => "leaf",
        Kind::Uplink => "uplink",
        Kind::Pair => "pair",
    }
}

fn suspect_rows(ui: &Ui, names: &Common, (suspect, chosen): (&Suspect, bool), room: usize) -> Vec<Row> {
    let theme = &ui.theme;
    let mark = if chosen { theme.pick("▸ ", "> ") } else { "  " };
    let text = format!("{mark}{} {}", word(suspect.kind), suspect.element);
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let [low, high] = suspect.interval.map(percent);
    let sure = (suspect.confidence * 100.0).floor().min(99.0);
    let more = format!(
        "{} % of usual ({low}{}{high} %), {} of {} pairs slow, sure {sure:.0} %",
        percent(suspect.effect),
        theme.pick("–", "-"),
        suspect.slow,
        suspect.pairs,
    );
    let mut rows = vec![(names.within(&text, room, theme.is_ascii()), theme.style(Role::Act))];
    rows.extend(wrap(&more, room.saturating_sub(2)).into_iter().map(|l| (format!("  {l}"), theme.style(Role::Text))));
    rows
}

fn undecided_rows(ui: &Ui, undecided: &Undecided, room: usize) -> Vec<Row> {
    let theme = &ui.theme;
    let names: Vec<String> = undecided.candidates.iter().map(|c| format!("{} {}", word(c.kind), c.element)).collect();
    let head = if names.is_empty() { "? undecided".to_owned() } else { format!("? {}", names.join(" or ")) };
    let text =
        format!("{} ({} of {} slow)", undecided.reason, undecided.slow, counted(undecided.pairs, "pair", "pairs"));
    let head = wrap(&head, room).into_iter().map(|l| (l, theme.style(Role::Attention)));
    head.chain(wrap(&text, room).into_iter().map(|l| (l, theme.style(Role::Text)))).collect()
}

/// Pairs to measure, where something is in doubt: beside sure findings they are what chance explains.
fn next_pairs(network: &Network) -> Option<String> {
    let doubtful = network.suspects.iter().any(|suspect| suspect.confidence < SURE) || !network.undecided.is_empty();
    let pairs: Vec<String> = network.next_pairs.iter().take(6).map(|[a, b]| format!("{a}-{b}")).collect();
    let more = network.next_pairs.len().saturating_sub(pairs.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (doubtful && !pairs.is_empty()).then(|| format!("to decide, measure {}{more}", pairs.join(", ")))
}
