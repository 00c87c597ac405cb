//! What keys do on the runs' screen.

use crate::intent::Intent;
use crate::keymap::Action;
use crate::screens::Screen;
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let Some(runs) = snapshot.runs.data.as_deref() else { return Vec::new() };
    match action {
        Action::Move(motion) => {
            let page = ui.page();
            ui.runs.rows.go(motion, runs.rows.len(), page);
            ui.runs.chosen = ui.runs.chosen(runs).map(|row| row.run.id.clone());
            Vec::new()
        }
        Action::Open => {
            let chosen = ui.runs.chosen(runs).map(|row| row.run.id.clone());
            if chosen.is_some() {
                ui.show(Screen::Fleet);
            }
            chosen.map(|id| Intent::Open { run: Some(id) }).into_iter().collect()
        }
        Action::Copy => ui.runs.chosen(runs).map(|row| Intent::Copy(row.run.id.clone())).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Asks for the runs whenever the screen is entered.
pub(crate) fn ask(ui: &mut Ui) -> Option<Intent> {
    (!std::mem::replace(&mut ui.runs.asked, true)).then_some(Intent::Runs)
}
