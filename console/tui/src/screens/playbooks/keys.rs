//! What keys do on the playbooks' screen.

use crate::intent::{Export, Intent};
use crate::keymap::Action;
use crate::snapshot::Snapshot;
use crate::ui::Ui;
use crate::update::ask_run;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let name = snapshot.playbooks.get(ui.playbooks.cursor.at).map(|p| p.name.clone());
    match action {
        Action::Move(motion) => {
            ui.playbooks.moved = true;
            let page = ui.page();
            ui.playbooks.cursor.go(motion, snapshot.playbooks.len(), page);
        }
        Action::Open => {
            if let Some(name) = name {
                ask_run(ui, &name, snapshot);
            }
        }
        Action::Copy => return name.map(|n| Intent::Copy(format!("muster run {n}"))).into_iter().collect(),
        Action::Export if snapshot.run.is_some() => ui.ask_export(Export::Run),
        _ => {}
    }
    Vec::new()
}
