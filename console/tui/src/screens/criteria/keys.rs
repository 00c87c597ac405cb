//! What keys do on the criteria's screen.

use crate::intent::Intent;
use crate::keymap::Action;
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let Some(criteria) = snapshot.criteria.data.as_deref() else { return Vec::new() };
    let chosen = criteria.versions.get(ui.criteria.versions.at).map(|v| v.criterion.id.clone());
    match action {
        Action::Move(motion) => {
            let page = ui.page();
            ui.criteria.versions.go(motion, criteria.versions.len(), page);
        }
        Action::Mark => ui.criteria.base = if ui.criteria.base == chosen { None } else { chosen },
        Action::Copy => return chosen.map(Intent::Copy).into_iter().collect(),
        _ => {}
    }
    Vec::new()
}

/// Asks for the versions whenever a screen that shows them is entered.
pub(crate) fn ask(ui: &mut Ui) -> Option<Intent> {
    (!std::mem::replace(&mut ui.criteria.asked, true)).then_some(Intent::Criteria)
}
