//! What keys do on the fleet's screen.

use crate::intent::{Export, Intent};
use crate::judgement::State;
use crate::keymap::Action;
use crate::screens::Screen;
use crate::screens::fleet::columns::COLUMNS;
use crate::screens::fleet::draw::{self, Place};
use crate::screens::fleet::map;
use crate::snapshot::{NodeRow, Snapshot};
use crate::stale::Stale;
use crate::ui::Ui;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    match action {
        Action::Move(motion) if ui.fleet.map.shown => map::act(ui, motion, snapshot),
        Action::Map => ui.fleet.map.shown = !ui.fleet.map.shown,
        Action::Move(motion) => {
            let (len, page) = (ui.fleet.rows().len(), ui.page());
            ui.fleet.cursor.go(motion, len, page);
            follow(ui, snapshot);
        }
        Action::Open if ui.selected.is_some() => ui.show(Screen::Node),
        Action::NextFinding => find(ui, snapshot, true),
        Action::PreviousFinding => find(ui, snapshot, false),
        Action::Mark => mark(ui, snapshot),
        Action::MarkAll => mark_all(ui, snapshot),
        Action::Sort => {
            let at = COLUMNS.iter().position(|s| s.column == ui.fleet.sort).unwrap_or(0);
            ui.fleet.sort = COLUMNS[(at + 1) % COLUMNS.len()].column;
            ui.fleet.reversed = false;
        }
        Action::Reverse => ui.fleet.reversed = !ui.fleet.reversed,
        Action::Copy => return copy(ui, snapshot),
        Action::Export => {
            let name = |i: &usize| snapshot.nodes.get(*i).map(|n| n.name.clone());
            let nodes = ui.fleet.rows().iter().filter_map(name).collect();
            ui.ask_export(Export::Fleet { nodes });
        }
        _ => {}
    }
    Vec::new()
}

/// Moves to the next row, or the one before, whose node is not a pass.
pub(crate) fn find(ui: &mut Ui, snapshot: &Snapshot, forward: bool) {
    let (rows, at, page) = (ui.fleet.rows(), ui.fleet.cursor.at, ui.page());
    let finding = |row: &usize| snapshot.nodes.get(rows[*row]).is_some_and(|node| node.state != State::Pass);
    let found = if forward { (at + 1..rows.len()).find(finding) } else { (0..at.min(rows.len())).rev().find(finding) };
    let len = rows.len();
    match found {
        Some(row) => {
            ui.fleet.cursor.put(row, len, page);
            follow(ui, snapshot);
        }
        None => ui.say(snapshot, if forward { "no further finding below" } else { "no finding above" }),
    }
}

/// Puts the cursor on the node with this index, if it is shown.
pub(crate) fn seek(ui: &mut Ui, node: usize) {
    let (rows, page) = (ui.fleet.rows(), ui.page());
    if let Some(row) = rows.iter().position(|at| *at == node) {
        let len = rows.len();
        ui.fleet.cursor.put(row, len, page);
    }
}

/// A click on a row selects it, a second one opens it; a click on a column's title sorts by it.
pub(crate) fn click(ui: &mut Ui, (x, y): (u16, u16), snapshot: &Snapshot) -> Vec<Intent> {
    if ui.fleet.map.shown {
        return map::click(ui, (x, y), snapshot);
    }
    let (len, page) = (ui.fleet.rows().len(), ui.page());
    match draw::at(ui, x, y) {
        Some(Place::Row(row)) if row == ui.fleet.cursor.at => return act(ui, Action::Open, snapshot),
        Some(Place::Row(row)) => {
            ui.fleet.cursor.put(row, len, page);
            follow(ui, snapshot);
        }
        Some(Place::Title(column)) if column == ui.fleet.sort => ui.fleet.reversed = !ui.fleet.reversed,
        Some(Place::Title(column)) => (ui.fleet.sort, ui.fleet.reversed) = (column, false),
        None => {}
    }
    Vec::new()
}

/// Makes the row under the cursor the selected node.
pub(crate) fn follow(ui: &mut Ui, snapshot: &Snapshot) {
    if let Some(at) = ui.fleet.rows().get(ui.fleet.cursor.at).copied() {
        ui.select(snapshot, at);
    }
}

fn mark(ui: &mut Ui, snapshot: &Snapshot) {
    let Some((name, _)) = ui.selected.clone() else { return };
    if !ui.marks.remove(&name) {
        ui.marks.insert(name);
    }
    // On the map the next row is somewhere else.
    if ui.fleet.map.shown {
        return;
    }
    let (len, page) = (ui.fleet.rows().len(), ui.page());
    ui.fleet.cursor.go(crate::keymap::Motion::Down, len, page);
    follow(ui, snapshot);
}

/// Marks every row shown; when all are marked, none.
fn mark_all(ui: &mut Ui, snapshot: &Snapshot) {
    let shown: Vec<String> =
        ui.fleet.rows().iter().filter_map(|i| snapshot.nodes.get(*i)).map(|n| n.name.clone()).collect();
    if shown.iter().all(|n| ui.marks.contains(n)) {
        shown.iter().for_each(|n| {
            ui.marks.remove(n);
        });
    } else {
        ui.marks.extend(shown);
    }
}

fn copy(ui: &Ui, snapshot: &Snapshot) -> Vec<Intent> {
    if !ui.marks.is_empty() {
        return vec![Intent::Copy(ui.targets(snapshot).join(","))];
    }
    ui.selected_row(snapshot)
        .map(|(_, node)| Intent::Copy(sentence(node, Stale::now(ui, snapshot))))
        .into_iter()
        .collect()
}

fn sentence(node: &NodeRow, stale: Stale) -> String {
    let reason = node.reasons.first().or_else(|| node.worst.as_ref().map(|w| &w.sentence));
    let state = stale.state(node.state, node.result_ms);
    reason.map_or_else(|| format!("{}: {state}", node.name), |r| format!("{state}: {r}"))
}
