//! Which run the cursor is on.

use crate::screens::Screen;
use crate::snapshot::{RunRow, Runs, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// State of the runs' screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) rows: Cursor,
    /// The cursor follows the run, not the row.
    pub(crate) chosen: Option<String>,
    /// Whether the engine was asked since the screen was entered.
    pub(crate) asked: bool,
}

impl State {
    /// The run under the cursor.
    pub(crate) fn chosen<'r>(&self, runs: &'r Runs) -> Option<&'r RunRow> {
        runs.rows.get(self.rows.at)
    }
}

/// Keeps the cursor on its run while others begin; leaving the screen makes the next visit ask anew.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let rows = snapshot.runs.data.as_deref().map_or(&[][..], |runs| &runs.rows);
    let at = ui.states.runs.chosen.as_ref().and_then(|id| rows.iter().position(|row| row.run.id == *id));
    let page = ui.page();
    ui.states.runs.rows.put(at.unwrap_or(ui.states.runs.rows.at), rows.len(), page);
    ui.states.runs.asked &= ui.screen == Screen::Runs;
}
