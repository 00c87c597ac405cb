//! What keys do on the criteria's screen.

use crate::intent::Intent;
use crate::keymap::{Action, Binding, FREEZE, WIDE, char, one};
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] =
    &[one(char(' '), "space", Action::Mark, "compare others with this version").hint("compare", 1), WIDE, FREEZE];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let criteria = snapshot.criteria.data.as_deref()?;
    let chosen = criteria.versions.get(ui.states.criteria.versions.at).map(|v| v.criterion.id.clone());
    match action {
        Action::Move(motion) => {
            let page = ui.page();
            ui.states.criteria.versions.go(motion, criteria.versions.len(), page);
        }
        Action::Mark => ui.states.criteria.base = if ui.states.criteria.base == chosen { None } else { chosen },
        Action::Copy => return chosen.map(|id| vec![Intent::Copy(id)]),
        _ => return None,
    }
    Some(Vec::new())
}

/// Asks for the versions whenever a screen that shows them is entered.
pub(crate) fn ask(ui: &mut Ui, _: &Snapshot) -> Option<Intent> {
    (!std::mem::replace(&mut ui.states.criteria.asked, true)).then_some(Intent::Criteria)
}
