//! What keys do on the network's screen.

use crate::intent::Intent;
use crate::keymap::{Action, Binding, ENTER, FREEZE, LEFT, Motion, PLUS, RIGHT, TAB, WIDE, either, letter, one};
use crate::screens::network::state::{Pane, worst_pair};
use crate::snapshot::{Network, Snapshot};
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "go to the worst pair of the block").hint("closer", 2),
    letter("n", Action::NextNode, "go to the next suspect's worst pair").hint("next suspect", 1),
    letter("p", Action::PreviousNode, "go to the suspect before"),
    either(PLUS, "+", Action::More, "see half as many pairs, twice as large").hint("zoom in", 3),
    letter("-", Action::Less, "see twice as many pairs").hint("out", 4),
    letter("b", Action::Gather, "let a block show its worst pair or its middle one").hint("worst/median", 5),
    letter("m", Action::Metric, "show the next metric").hint("metric", 6),
    one(TAB, "tab", Action::Pane, "suspects, the pair's samples, hop distances").hint("pane", 3),
    WIDE,
    FREEZE,
    LEFT,
    RIGHT,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let network = snapshot.network.data.as_deref()?;
    match action {
        Action::Move(motion) => step(ui, motion, network),
        Action::More if !ui.states.network.is_closest() => ui.states.network.zoom += 1,
        Action::Less => ui.states.network.zoom = ui.states.network.zoom.saturating_sub(1),
        Action::Gather => ui.states.network.gather = ui.states.network.gather.other(),
        Action::Pane => ui.states.network.pane = ui.states.network.pane.next(),
        Action::NextNode => suspect(ui, Motion::Down, network),
        Action::PreviousNode => suspect(ui, Motion::Up, network),
        Action::Metric if network.metrics.len() > 1 => {
            let next = (network.metric + 1) % network.metrics.len();
            return Some(vec![Intent::PairMetric(network.metrics[next].clone())]);
        }
        Action::Open => open(ui, network),
        Action::Copy => return network.suspects.get(ui.states.network.suspects.at).map(|s| vec![sentence(s)]),
        _ => return None,
    }
    Some(Vec::new())
}

/// Asks for the samples of the pair under the cursor, once.
pub(crate) fn ask(ui: &mut Ui, snapshot: &Snapshot) -> Option<Intent> {
    let network = snapshot.network.data.as_deref()?;
    let name = |at: usize| network.endpoints.get(at).map(|e| e.name.clone());
    let (src, dst) = (name(ui.states.network.src)?, name(ui.states.network.dst)?);
    let pair = Some((src.clone(), dst.clone()));
    if ui.states.network.asked == pair || src == dst {
        return None;
    }
    ui.states.network.asked = pair;
    Some(Intent::Pair { src, dst })
}

/// Moves by one block of the map.
fn step(ui: &mut Ui, motion: Motion, network: &Network) {
    let state = &mut ui.states.network;
    let (rows, columns) = (state.view.rows, state.view.columns);
    let page = rows.count.max(2) / 2 * rows.block;
    let last = network.grid.len().saturating_sub(1);
    match motion {
        Motion::Up => state.src = state.src.saturating_sub(rows.block),
        Motion::Down => state.src = (state.src + rows.block).min(last),
        Motion::PageUp => state.src = state.src.saturating_sub(page),
        Motion::PageDown => state.src = (state.src + page).min(last),
        Motion::Left => state.dst = state.dst.saturating_sub(columns.block),
        Motion::Right => state.dst = (state.dst + columns.block).min(last),
        Motion::Home => (state.src, state.dst) = (0, 0),
        Motion::End => (state.src, state.dst) = (last, last),
    }
}

/// Puts the cursor on the worst pair of another suspect.
fn suspect(ui: &mut Ui, motion: Motion, network: &Network) {
    ui.states.network.suspects.go(motion, network.suspects.len(), 1);
    let chosen = network.suspects.get(ui.states.network.suspects.at);
    if let Some((src, dst)) = chosen.and_then(|s| worst_pair(network, &s.element)) {
        (ui.states.network.src, ui.states.network.dst) = (src, dst);
    }
}

/// Into the block under the cursor, on its worst pair; with one pair a place, to its samples.
fn open(ui: &mut Ui, network: &Network) {
    let state = &mut ui.states.network;
    state.pane = Pane::Pair;
    let (rows, columns, n) = (state.view.rows, state.view.columns, network.grid.len());
    let (Some(row), Some(column)) = (rows.place(state.src), columns.place(state.dst)) else { return };
    let cells = rows.endpoints(row, n).flat_map(|s| columns.endpoints(column, n).map(move |d| (s, d)));
    let worst =
        cells.filter_map(|(s, d)| network.grid.get(s, d).map(|share| (share, s, d))).min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, src, dst)) = worst {
        (state.src, state.dst) = (src, dst);
    }
    if (rows.block, columns.block) != (1, 1) {
        state.zoom += 2;
    }
}

fn sentence(suspect: &muster_analysis::network::localise::Suspect) -> Intent {
    let [low, high] = suspect.interval.map(|share| share * 100.0);
    Intent::Copy(format!(
        "{} {} at {:.0} % of usual ({low:.0} to {high:.0} %, {} of {} pairs slow, confidence {:.2})",
        super::suspects::word(suspect.kind),
        suspect.element,
        suspect.effect * 100.0,
        suspect.slow,
        suspect.pairs,
        suspect.confidence
    ))
}
