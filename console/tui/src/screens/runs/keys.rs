//! What keys do on the runs' screen.

use crate::intent::Intent;
use crate::keymap::{Action, Binding, ENTER, FREEZE, one};
use crate::screens::Screen;
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] =
    &[one(ENTER, "enter", Action::Open, "show what this run alone says; esc goes back").hint("open", 1), FREEZE];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let runs = snapshot.runs.data.as_deref()?;
    let id = |ui: &Ui| ui.states.runs.chosen(runs).map(|row| row.run.id.clone());
    match action {
        Action::Move(motion) => {
            let page = ui.page();
            ui.states.runs.rows.go(motion, runs.rows.len(), page);
            ui.states.runs.chosen = id(ui);
            Some(Vec::new())
        }
        Action::Open => {
            let run = id(ui)?;
            ui.show(Screen::Fleet);
            Some(vec![Intent::Open { run: Some(run) }])
        }
        Action::Copy => id(ui).map(|id| vec![Intent::Copy(id)]),
        _ => None,
    }
}

/// Asks for the runs whenever the screen is entered.
pub(crate) fn ask(ui: &mut Ui, _: &Snapshot) -> Option<Intent> {
    (!std::mem::replace(&mut ui.states.runs.asked, true)).then_some(Intent::Runs)
}
