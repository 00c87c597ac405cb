//! Where the cursor is in the matrix, how far in the reader has zoomed, and which pane stands beside the map.

use crate::screens::network::layout;
use crate::screens::network::view::{Axis, Gather, View};
use crate::snapshot::{Network, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// What stands beside the map where there is room for one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Suspects,
    Pair,
    Tiers,
}

impl Pane {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Suspects => Self::Pair,
            Self::Pair => Self::Tiers,
            Self::Tiers => Self::Suspects,
        }
    }
}

/// State of the network's screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    /// The row under the cursor, a place in [`Network::endpoints`].
    pub(crate) src: usize,
    /// The column under it.
    pub(crate) dst: usize,
    /// How often the map was magnified by two.
    pub(crate) zoom: u32,
    pub(crate) gather: Gather,
    pub(crate) suspects: Cursor,
    /// The pair that the engine was last asked for.
    pub(crate) asked: Option<(String, String)>,
    pub(crate) view: View,
}

impl State {
    /// Whether the map cannot be magnified further.
    pub(crate) fn is_closest(&self) -> bool {
        self.view.rows.scale.min(self.view.columns.scale) >= 4
    }
}

/// Brings the view up to date.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let Some(network) = snapshot.network.data.as_deref() else { return };
    let room = layout::layout(ui.size, ui.wide).map;
    // Half a cell is about as high as wide.
    let halves = if ui.theme.has_half_cells() { 2 } else { 1 };
    let len = network.grid.len();
    let state = &mut ui.states.network;
    if state.asked.is_none() {
        // The cursor begins on what is accused first.
        if let Some((src, dst)) = network.suspects.first().and_then(|s| worst_pair(network, &s.element)) {
            (state.src, state.dst) = (src, dst);
        }
    }
    state.src = state.src.min(len.saturating_sub(1));
    state.dst = state.dst.min(len.saturating_sub(1));
    let axis = |old: Axis, room: u16, at: usize| old.fit(len, usize::from(room), state.zoom, at);
    let axes =
        (axis(state.view.rows, room.height * halves, state.src), axis(state.view.columns, room.width, state.dst));
    state.view.make(&network.grid, axes, state.gather);
    state.view.profile(&network.grid, (state.src, state.dst), state.gather);
    state.suspects.put(state.suspects.at, network.suspects.len(), 1);
}

/// The worst pair that crosses an element, by the names of endpoints and leaves that its own name is made of.
pub(crate) fn worst_pair(network: &Network, element: &str) -> Option<(usize, usize)> {
    let part_of = |name: &str| {
        element.match_indices(name).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            edge(element[..at].chars().next_back()) && edge(element[at + name.len()..].chars().next())
        })
    };
    let leaves: Vec<bool> = network.leaves.iter().map(|l| part_of(l)).collect();
    let named: Vec<usize> = (0..network.endpoints.len()).filter(|e| part_of(&network.endpoints[*e].name)).collect();
    let under = |e: usize| network.endpoints[e].leaf.is_some_and(|l| leaves.get(l) == Some(&true));
    let ends: Vec<usize> =
        if named.is_empty() { (0..network.endpoints.len()).filter(|e| under(*e)).collect() } else { named };
    let is_end = |e: usize| ends.binary_search(&e).is_ok();
    let mut worst: Option<(f32, usize, usize)> = None;
    let all = 0..network.grid.len();
    for (src, dst) in ends.iter().flat_map(|a| all.clone().flat_map(|b| [(*a, b), (b, *a)])) {
        let within = is_end(src) && is_end(dst);
        let Some(share) = network.grid.get(src, dst) else { continue };
        // An element that names two ends is the pair of them.
        let wanted = within == (ends.len() == 2);
        if wanted && worst.is_none_or(|(w, ..)| share < w) {
            worst = Some((share, src, dst));
        }
    }
    worst.map(|(_, src, dst)| (src, dst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Endpoint, Grid};
    use muster_analysis::network::topology::Source;
    use muster_wire::Direction;
    use std::sync::Arc;

    fn network(bad: &[(usize, usize, f32)]) -> Network {
        let mut grid = Grid::new(12);
        (0..144).filter(|i| i / 12 != i % 12).for_each(|i| grid.set(i / 12, i % 12, 1.0));
        bad.iter().for_each(|(s, d, share)| grid.set(*s, *d, *share));
        Network {
            origin: String::new(),
            metrics: Arc::from(["bw".to_owned()]),
            metric: 0,
            unit: None,
            direction: Direction::HigherIsBetter,
            topology: Source::Csv,
            endpoints: (0..12).map(|i| Endpoint { name: format!("n{i}"), leaf: Some(i / 4) }).collect(),
            leaves: (0..3).map(|i| format!("leaf{i}")).collect(),
            grid: Arc::new(grid),
            progress: None,
            suspects: Arc::from([]),
            undecided: Arc::from([]),
            next_pairs: Arc::from([]),
            tiers: Arc::from([]),
            pair: None,
        }
    }

    #[test]
    fn an_element_leads_to_its_worst_pair() {
        let network = network(&[(1, 5, 0.5), (5, 1, 0.4), (8, 2, 0.2), (11, 10, 0.1)]);
        assert_eq!(worst_pair(&network, "n1"), Some((5, 1)), "n1 is not n10 or n11");
        assert_eq!(worst_pair(&network, "n1-n5"), Some((5, 1)));
        assert_eq!(worst_pair(&network, "leaf2-spine0"), Some((8, 2)), "pairs within a leaf do not cross its uplink");
        assert_eq!(worst_pair(&network, "leaf1"), Some((5, 1)));
        assert_eq!(worst_pair(&network, "somewhere"), None);
    }
}
