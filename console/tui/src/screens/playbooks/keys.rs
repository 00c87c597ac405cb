//! What keys do on the playbooks' screen.

use crate::intent::{Export, Intent};
use crate::keymap::{Action, Binding, ENTER, FREEZE, one};
use crate::snapshot::Snapshot;
use crate::ui::Ui;
use crate::update::ask_run;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] =
    &[one(ENTER, "enter", Action::Open, "run this playbook; asks first").hint("run", 1), FREEZE];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let name = snapshot.playbooks.get(ui.states.playbooks.cursor.at).map(|p| p.name.clone());
    match action {
        Action::Move(motion) => {
            ui.states.playbooks.moved = true;
            let page = ui.page();
            ui.states.playbooks.cursor.go(motion, snapshot.playbooks.len(), page);
        }
        Action::Open | Action::Run => ask_run(ui, &name?, snapshot),
        Action::Copy => return name.map(|n| vec![Intent::Copy(format!("muster run {n}"))]),
        Action::Export if snapshot.run.is_some() => ui.ask_export(Export::Run),
        _ => return None,
    }
    Some(Vec::new())
}
