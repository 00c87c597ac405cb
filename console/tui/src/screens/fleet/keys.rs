//! What keys do on the fleet's screen.

use crate::filter::Filter;
use crate::intent::{Export, Intent};
use crate::judgement::State;
use crate::keymap::{
    Action, Binding, ENTER, FREEZE, HAND_OVER, LEFT, MARK, NEXT_FINDING, PREVIOUS_FINDING, RIGHT, WIDE, letter, one,
};
use crate::screens::Screen;
use crate::screens::fleet::columns::{Spec, telling};
use crate::screens::fleet::draw::{self, Place};
use crate::screens::fleet::map;
use crate::snapshot::{NodeRow, Snapshot};
use crate::stale::Stale;
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "open the node under the cursor").hint("open", 1),
    MARK,
    letter("a", Action::MarkAll, "mark every node shown, or none").hint("mark all", 8),
    letter("s", Action::Sort, "sort by the next column").hint("sort", 4),
    letter("S", Action::Reverse, "reverse the order"),
    NEXT_FINDING,
    PREVIOUS_FINDING,
    letter("m", Action::Map, "racks, a cell a node, instead of the table; m goes back").hint("map", 5),
    HAND_OVER,
    WIDE,
    FREEZE,
    LEFT,
    RIGHT,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    match action {
        Action::Move(motion) if ui.states.fleet.map.shown => map::act(ui, motion, snapshot),
        Action::Map => ui.states.fleet.map.shown = !ui.states.fleet.map.shown,
        Action::Move(motion) => {
            let (len, page) = (ui.states.fleet.rows().len(), ui.page());
            ui.states.fleet.cursor.go(motion, len, page);
            follow(ui, snapshot);
        }
        Action::Open if ui.selected.is_some() => ui.show(Screen::Node),
        Action::Back => return Some(back(ui, snapshot)),
        Action::NextFinding => find(ui, snapshot, true),
        Action::PreviousFinding => find(ui, snapshot, false),
        Action::Mark => mark(ui, snapshot),
        Action::MarkAll => mark_all(ui, snapshot),
        Action::Sort => {
            let columns: Vec<&Spec> = telling(snapshot).collect();
            let at = columns.iter().position(|s| s.column == ui.states.fleet.sort).unwrap_or(0);
            ui.states.fleet.sort = columns[(at + 1) % columns.len()].column;
            ui.states.fleet.reversed = false;
        }
        Action::Reverse => ui.states.fleet.reversed = !ui.states.fleet.reversed,
        Action::Copy => return copy(ui, snapshot).map(|copied| vec![copied]),
        Action::Export => {
            let name = |i: &usize| snapshot.nodes.get(*i).map(|n| n.name.clone());
            let nodes = ui.states.fleet.rows().iter().filter_map(name).collect();
            ui.ask_export(Export::Fleet { nodes });
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// One step back: the filter, the marks, the run that alone is shown.
fn back(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    if !ui.filter.is_empty() {
        ui.filter = Filter::default();
    } else if !ui.marks.is_empty() {
        ui.marks.clear();
        ui.say(snapshot, "marks cleared");
    } else if snapshot.alone.is_some() {
        return vec![Intent::Open { run: None }];
    }
    Vec::new()
}

/// Moves to the next row, or the one before, whose node is not a pass.
pub(crate) fn find(ui: &mut Ui, snapshot: &Snapshot, forward: bool) {
    let (rows, at, page) = (ui.states.fleet.rows(), ui.states.fleet.cursor.at, ui.page());
    let finding = |row: &usize| snapshot.nodes.get(rows[*row]).is_some_and(|node| node.state != State::Pass);
    let found = if forward { (at + 1..rows.len()).find(finding) } else { (0..at.min(rows.len())).rev().find(finding) };
    let len = rows.len();
    match found {
        Some(row) => {
            ui.states.fleet.cursor.put(row, len, page);
            follow(ui, snapshot);
        }
        None => ui.say(snapshot, if forward { "no further finding below" } else { "no finding above" }),
    }
}

/// Puts the cursor on the node with this index, if it is shown.
pub(crate) fn seek(ui: &mut Ui, node: usize) {
    let (rows, page) = (ui.states.fleet.rows(), ui.page());
    if let Some(row) = rows.iter().position(|at| *at == node) {
        let len = rows.len();
        ui.states.fleet.cursor.put(row, len, page);
    }
}

/// A click on a row selects it, a second one opens it; a click on a column's title sorts by it.
pub(crate) fn click(ui: &mut Ui, (x, y): (u16, u16), snapshot: &Snapshot) -> Vec<Intent> {
    if ui.states.fleet.map.shown {
        return map::click(ui, (x, y), snapshot);
    }
    let (len, page) = (ui.states.fleet.rows().len(), ui.page());
    match draw::at(ui, snapshot, (x, y)) {
        Some(Place::Row(row)) if row == ui.states.fleet.cursor.at => {
            return act(ui, Action::Open, snapshot).unwrap_or_default();
        }
        Some(Place::Row(row)) => {
            ui.states.fleet.cursor.put(row, len, page);
            follow(ui, snapshot);
        }
        Some(Place::Title(column)) if column == ui.states.fleet.sort => {
            ui.states.fleet.reversed = !ui.states.fleet.reversed
        }
        Some(Place::Title(column)) => (ui.states.fleet.sort, ui.states.fleet.reversed) = (column, false),
        None => {}
    }
    Vec::new()
}

/// Makes the row under the cursor the selected node.
pub(crate) fn follow(ui: &mut Ui, snapshot: &Snapshot) {
    if let Some(at) = ui.states.fleet.rows().get(ui.states.fleet.cursor.at).copied() {
        ui.select(snapshot, at);
    }
}

fn mark(ui: &mut Ui, snapshot: &Snapshot) {
    ui.mark();
    // On the map the next row is somewhere else.
    if ui.states.fleet.map.shown {
        return;
    }
    let (len, page) = (ui.states.fleet.rows().len(), ui.page());
    ui.states.fleet.cursor.go(crate::keymap::Motion::Down, len, page);
    follow(ui, snapshot);
}

/// Marks every row shown; when all are marked, none.
fn mark_all(ui: &mut Ui, snapshot: &Snapshot) {
    let shown: Vec<String> =
        ui.states.fleet.rows().iter().filter_map(|i| snapshot.nodes.get(*i)).map(|n| n.name.clone()).collect();
    if shown.iter().all(|n| ui.marks.contains(n)) {
        shown.iter().for_each(|n| {
            ui.marks.remove(n);
        });
    } else {
        ui.marks.extend(shown);
    }
}

fn copy(ui: &Ui, snapshot: &Snapshot) -> Option<Intent> {
    if !ui.marks.is_empty() {
        return Some(Intent::Copy(ui.targets(snapshot).join(",")));
    }
    ui.selected_row(snapshot).map(|(_, node)| Intent::Copy(sentence(node, Stale::now(ui, snapshot))))
}

fn sentence(node: &NodeRow, stale: Stale) -> String {
    let reason = node.reasons.first().or_else(|| node.worst.as_ref().map(|w| &w.sentence));
    let state = stale.state(node.state, node.result_ms);
    reason.map_or_else(|| format!("{}: {state}", node.name), |r| format!("{state}: {r}"))
}
