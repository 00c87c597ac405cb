//! Which metric is chosen, and which of the two lists has the keys.

use muster_wire::MetricId;

use crate::snapshot::{MetricRow, Snapshot, Terms};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// The list that has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Metrics,
    Nodes,
}

/// State of the benchmarks' screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(crate) metrics: Cursor,
    pub(crate) nodes: Cursor,
    /// Terms that are tried instead of those in force.
    pub(crate) terms: Option<Terms>,
    /// The cursor follows the metric, not the row.
    pub(crate) chosen: Option<MetricId>,
}

impl State {
    /// The chosen metric.
    pub(crate) fn metric<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s MetricRow> {
        snapshot.metrics.get(self.metrics.at).map(AsRef::as_ref)
    }
}

/// Keeps the cursor on the chosen metric while metrics arrive.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let page = ui.page();
    let state = &mut ui.states.bench;
    let here = snapshot.metrics.get(state.metrics.at).map(|m| &m.id);
    if state.chosen.is_some() && here == state.chosen.as_ref() {
        return;
    }
    let at = state.chosen.as_ref().and_then(|id| snapshot.metrics.iter().position(|m| m.id == *id));
    state.metrics.put(at.unwrap_or(state.metrics.at), snapshot.metrics.len(), page);
    if state.chosen.is_none() {
        state.chosen = snapshot.metrics.get(state.metrics.at).map(|m| m.id.clone());
    }
}
