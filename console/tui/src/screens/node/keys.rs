//! What keys do on the node's screen.

use crate::intent::{Export, Intent};
use crate::keymap::{
    Action, Binding, ENTER, FREEZE, HAND_OVER, MARK, Motion, NEXT_FINDING, NEXT_NODE, OTHER_LIST, PREVIOUS_FINDING,
    PREVIOUS_NODE, WIDE, letter, one,
};
use crate::screens::bench;
use crate::screens::fleet;
use crate::screens::node::{Pane, State, changes, draw, panes, service};
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "open the metric under the cursor").hint("its chart", 1),
    MARK,
    OTHER_LIST,
    NEXT_FINDING,
    PREVIOUS_FINDING,
    NEXT_NODE,
    letter("d", Action::Changed, "only metrics that changed since the run before, or all").hint("diff", 5),
    PREVIOUS_NODE,
    HAND_OVER,
    WIDE,
    FREEZE,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let (at, node) = ui.selected_row(snapshot)?;
    match action {
        Action::Move(motion) => {
            let len = panes::len(ui, snapshot, node, ui.states.node.pane);
            let page = draw::page(ui, node);
            ui.states.node.cursor_mut().go(motion, len, page);
        }
        Action::Pane => ui.states.node.pane = ui.states.node.pane.next(node),
        Action::Changed => {
            ui.states.node = State { changed: !ui.states.node.changed, ..State::default() };
        }
        Action::NextNode => step(ui, Motion::Down, snapshot),
        Action::PreviousNode => step(ui, Motion::Up, snapshot),
        Action::NextFinding | Action::PreviousFinding => {
            fleet::find(ui, snapshot, action == Action::NextFinding);
            ui.states.node = ui.states.node.of_another();
        }
        Action::Open => {
            if let Some(verdict) = changes::chosen(ui, node, ui.states.node.cursor(Pane::Verdicts).at) {
                bench::open_metric(ui, snapshot, (&verdict.metric, Some(at)));
            }
        }
        Action::Copy => {
            let fact = node
                .facts
                .get(ui.states.node.cursor(Pane::Facts).at)
                .map(|f| format!("{} {}: {}", node.name, f.key, f.value));
            let verdict =
                changes::chosen(ui, node, ui.states.node.cursor(Pane::Verdicts).at).map(|v| v.sentence(&node.name));
            let check = node
                .checks
                .get(ui.states.node.cursor(Pane::Checks).at)
                .map(|c| format!("{}: {}: {}; next: {}", node.name, c.id, c.said, c.next));
            let text = match ui.states.node.pane {
                Pane::Facts => fact,
                Pane::Checks => check,
                Pane::Service => service::copied(ui, snapshot, node, panes::focus_of(snapshot, node)),
                _ => verdict,
            };
            return Some(vec![Intent::Copy(text.unwrap_or_else(|| node.name.clone()))]);
        }
        Action::Export => ui.ask_export(Export::Node { node: node.name.clone() }),
        _ => return None,
    }
    Some(Vec::new())
}

/// The next node in the order of the fleet's screen.
fn step(ui: &mut Ui, motion: Motion, snapshot: &Snapshot) {
    let (len, page) = (ui.states.fleet.rows().len(), ui.page());
    ui.states.fleet.cursor.go(motion, len, page);
    fleet::follow(ui, snapshot);
    ui.states.node = ui.states.node.of_another();
}
