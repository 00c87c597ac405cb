//! Which playbook is chosen.

use crate::snapshot::Snapshot;
use crate::ui::Ui;
use crate::widgets::Cursor;

/// State of the playbooks' screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) cursor: Cursor,
    /// Whether the user has moved; until then the cursor stands on the running playbook.
    pub(crate) moved: bool,
}

/// Keeps the cursor on a playbook that exists.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let page = ui.page();
    let running = snapshot.run.as_deref().filter(|_| !ui.states.playbooks.moved);
    let at = running
        .and_then(|run| snapshot.playbooks.iter().position(|p| p.name == run.playbook))
        .unwrap_or(ui.states.playbooks.cursor.at);
    ui.states.playbooks.cursor.put(at, snapshot.playbooks.len(), page);
}
