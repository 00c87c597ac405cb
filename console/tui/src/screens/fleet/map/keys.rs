//! What keys do on the map. The cursor is the selected node, so that the table and the map always mean the same one.

use crate::intent::Intent;
use crate::keymap::Motion;
use crate::screens::Screen;
use crate::screens::fleet::map::cells::{Tally, cell_of, next, tally};
use crate::screens::fleet::map::state::room;
use crate::screens::fleet::seek;
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Nodes that the filter keeps, by their places in the snapshot.
pub(crate) fn kept(ui: &Ui, snapshot: &Snapshot) -> Vec<bool> {
    let mut kept = vec![false; snapshot.nodes.len()];
    for at in ui.states.fleet.rows() {
        if let Some(kept) = kept.get_mut(*at) {
            *kept = true;
        }
    }
    kept
}

/// Moves the cursor.
pub(crate) fn act(ui: &mut Ui, motion: Motion, snapshot: &Snapshot) {
    let kept = kept(ui, snapshot);
    let layout = &ui.states.fleet.map.layout;
    let of = |at: usize| layout.cells.get(at).and_then(|cell| tally(layout, cell, &snapshot.nodes, &kept));
    let here = ui.selected_row(snapshot).and_then(|(node, _)| cell_of(layout, node)).unwrap_or(0);
    let page = usize::from(room(ui).height / 2);
    let chosen = next(layout, here, motion, page, |at| of(at).is_some()).and_then(of);
    choose(ui, snapshot, chosen);
}

/// A click on a cell puts the cursor there, a second one opens the node.
pub(crate) fn click(ui: &mut Ui, (x, y): (u16, u16), snapshot: &Snapshot) -> Vec<Intent> {
    let (room, kept) = (room(ui), kept(ui, snapshot));
    let layout = &ui.states.fleet.map.layout;
    let under = layout
        .cells
        .iter()
        .position(|cell| (room.x + cell.x..room.x + cell.x + cell.width).contains(&x) && room.y + cell.y == y);
    let here = ui.selected_row(snapshot).and_then(|(node, _)| cell_of(layout, node));
    let chosen = under.and_then(|at| tally(layout, layout.cells.get(at)?, &snapshot.nodes, &kept));
    if under.is_some() && under == here {
        ui.show(Screen::Node);
    } else {
        choose(ui, snapshot, chosen);
    }
    Vec::new()
}

fn choose(ui: &mut Ui, snapshot: &Snapshot, chosen: Option<Tally>) {
    if let Some(tally) = chosen {
        ui.select(snapshot, tally.node);
        seek(ui, tally.node);
    }
}
