//! What keys do on the node's screen.

use crate::intent::{Export, Intent};
use crate::keymap::{Action, Motion};
use crate::screens::bench;
use crate::screens::fleet;
use crate::screens::node::{Pane, State, changes, draw, panes};
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let Some((at, node)) = ui.selected_row(snapshot) else { return Vec::new() };
    match action {
        Action::Move(motion) => {
            let len = panes::len(ui, snapshot, node, ui.node.pane);
            let page = draw::page(ui, node);
            ui.node.cursor_mut().go(motion, len, page);
        }
        Action::Pane => ui.node.pane = ui.node.pane.next(node),
        Action::Changed => {
            ui.node = State { changed: !ui.node.changed, ..State::default() };
        }
        Action::NextNode => step(ui, Motion::Down, snapshot),
        Action::PreviousNode => step(ui, Motion::Up, snapshot),
        Action::NextFinding | Action::PreviousFinding => {
            fleet::find(ui, snapshot, action == Action::NextFinding);
            ui.node = ui.node.of_another();
        }
        Action::Open => {
            if let Some(verdict) = changes::chosen(ui, node, ui.node.cursor(Pane::Verdicts).at) {
                bench::open_metric(ui, snapshot, (&verdict.metric, Some(at)));
            }
        }
        Action::Mark => {
            let name = node.name.clone();
            if !ui.marks.remove(&name) {
                ui.marks.insert(name);
            }
        }
        Action::Copy => {
            let fact =
                node.facts.get(ui.node.cursor(Pane::Facts).at).map(|f| format!("{} {}: {}", node.name, f.key, f.value));
            let verdict = changes::chosen(ui, node, ui.node.cursor(Pane::Verdicts).at).map(|v| v.sentence(&node.name));
            let check = node
                .checks
                .get(ui.node.cursor(Pane::Checks).at)
                .map(|c| format!("{}: {}: {}; next: {}", node.name, c.id, c.said, c.next));
            let text = match ui.node.pane {
                Pane::Facts => fact,
                Pane::Checks => check,
                _ => verdict,
            };
            return vec![Intent::Copy(text.unwrap_or_else(|| node.name.clone()))];
        }
        Action::Export => ui.ask_export(Export::Node { node: node.name.clone() }),
        _ => {}
    }
    Vec::new()
}

/// The next node in the order of the fleet's screen.
fn step(ui: &mut Ui, motion: Motion, snapshot: &Snapshot) {
    let (len, page) = (ui.fleet.rows().len(), ui.page());
    ui.fleet.cursor.go(motion, len, page);
    fleet::follow(ui, snapshot);
    ui.node = ui.node.of_another();
}
