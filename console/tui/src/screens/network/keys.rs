//! What keys do on the network's screen.

use crate::intent::Intent;
use crate::keymap::{Action, Motion};
use crate::screens::network::state::{Pane, worst_pair};
use crate::snapshot::{Network, Snapshot};
use crate::ui::Ui;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let Some(network) = snapshot.network.data.as_deref() else { return Vec::new() };
    match action {
        Action::Move(motion) => step(ui, motion, network),
        Action::More if !ui.network.is_closest() => ui.network.zoom += 1,
        Action::Less => ui.network.zoom = ui.network.zoom.saturating_sub(1),
        Action::Gather => ui.network.gather = ui.network.gather.other(),
        Action::Pane => ui.network.pane = ui.network.pane.next(),
        Action::NextNode => suspect(ui, Motion::Down, network),
        Action::PreviousNode => suspect(ui, Motion::Up, network),
        Action::Metric if network.metrics.len() > 1 => {
            let next = (network.metric + 1) % network.metrics.len();
            return vec![Intent::PairMetric(network.metrics[next].clone())];
        }
        Action::Open => open(ui, network),
        Action::Copy => return network.suspects.get(ui.network.suspects.at).map(sentence).into_iter().collect(),
        _ => {}
    }
    Vec::new()
}

/// Asks for the samples of the pair under the cursor, once.
pub(crate) fn ask(ui: &mut Ui, snapshot: &Snapshot) -> Option<Intent> {
    let network = snapshot.network.data.as_deref()?;
    let name = |at: usize| network.endpoints.get(at).map(|e| e.name.clone());
    let (src, dst) = (name(ui.network.src)?, name(ui.network.dst)?);
    let pair = Some((src.clone(), dst.clone()));
    if ui.network.asked == pair || src == dst {
        return None;
    }
    ui.network.asked = pair;
    Some(Intent::Pair { src, dst })
}

/// Moves by one block of the map.
fn step(ui: &mut Ui, motion: Motion, network: &Network) {
    let state = &mut ui.network;
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
    ui.network.suspects.go(motion, network.suspects.len(), 1);
    let chosen = network.suspects.get(ui.network.suspects.at);
    if let Some((src, dst)) = chosen.and_then(|s| worst_pair(network, &s.element)) {
        (ui.network.src, ui.network.dst) = (src, dst);
    }
}

/// Into the block under the cursor, on its worst pair; with one pair a place, to its samples.
fn open(ui: &mut Ui, network: &Network) {
    let state = &mut ui.network;
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
