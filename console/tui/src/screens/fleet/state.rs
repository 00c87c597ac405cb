//! The order of rows, and the cursor over it.

use std::cmp::Ordering;

use crate::filter::Filter;
use crate::popups::Popup;
use crate::screens::Screen;
use crate::screens::fleet::columns::{Column, compare};
use crate::screens::fleet::{follow, map};
use crate::snapshot::Snapshot;
use crate::stale::Stale;
use crate::text::Common;
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Rows keep their order this long after a key, so that nothing moves under the cursor.
const HOLD_MS: u64 = 2_000;

/// State of the fleet's screen.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) sort: Column,
    pub(crate) reversed: bool,
    pub(crate) cursor: Cursor,
    pub(crate) map: map::State,
    order: Order,
    /// Name of the node under the cursor when the filter that is being typed was begun.
    before: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            sort: Column::State,
            reversed: false,
            cursor: Cursor::default(),
            map: map::State::default(),
            order: Order::default(),
            before: None,
        }
    }
}

/// Sorted and filtered rows, and what they were made from.
#[derive(Debug, Default)]
struct Order {
    made_from: Option<Source>,
    rows: Vec<usize>,
    nodes: usize,
    /// What the names of all nodes share.
    names: Common,
    held: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Source {
    generation: u64,
    filter: String,
    sort: Column,
    reversed: bool,
}

impl State {
    /// Indices into [`Snapshot::nodes`] in the order shown.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.order.rows
    }

    /// How names of nodes are shortened wherever nodes are listed.
    pub(crate) const fn names(&self) -> &Common {
        &self.order.names
    }

    /// Whether the rows were made with another filter.
    fn is_filtered_otherwise(&self, filter: &Filter) -> bool {
        self.order.made_from.as_ref().is_some_and(|source| source.filter != filter.text())
    }

    /// Whether rows keep an older order because the user is moving among them.
    pub(crate) const fn held(&self) -> bool {
        self.order.held
    }

    /// Makes the order anew if what it was made from has changed; gives whether it did. While `hold`, newer data alone
    /// is no reason: rows must not move under the cursor.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot, filter: &Filter, hold: bool) -> bool {
        let source = Source {
            generation: snapshot.generation,
            filter: filter.text().to_owned(),
            sort: self.sort,
            reversed: self.reversed,
        };
        if self.order.made_from.as_ref() == Some(&source) {
            self.order.held = false;
            return false;
        }
        let only_newer = self
            .order
            .made_from
            .as_ref()
            .is_some_and(|s| (&s.filter, s.sort, s.reversed) == (&source.filter, source.sort, source.reversed));
        if hold && only_newer && self.order.nodes == snapshot.nodes.len() {
            self.order.held = true;
            return false;
        }
        self.order = Order {
            rows: rows(snapshot, filter, self.sort, self.reversed),
            made_from: Some(source),
            nodes: snapshot.nodes.len(),
            names: Common::of(snapshot.nodes.iter().map(|node| node.name.as_str())),
            held: false,
        };
        true
    }
}

/// Orders the rows anew where something has changed that they were made from, and keeps the cursor on its node.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let hold = ui.now_ms(snapshot).saturating_sub(ui.last_key_ms) < HOLD_MS && ui.last_key_ms > 0;
    let page = ui.page();
    let typing = matches!(ui.popups.last(), Some(Popup::Filter(_)));
    if typing && ui.states.fleet.before.is_none() {
        ui.states.fleet.before = ui.selected().map(str::to_owned);
    }
    let refiltered = ui.states.fleet.is_filtered_otherwise(&ui.filter);
    if ui.states.fleet.refresh(snapshot, &ui.filter, hold) {
        // The selection follows the node, not the row.
        // Until a key is pressed, the cursor stays on the first row, which is the worst node.
        let wanted = if ui.last_key_ms > 0 { wanted(ui, snapshot) } else { [None; 2] };
        let rows = ui.states.fleet.rows();
        let kept = wanted.into_iter().flatten().find_map(|at| rows.iter().position(|row| *row == at));
        // Of other nodes the first one is the worst.
        let row = kept.unwrap_or(if refiltered { 0 } else { ui.states.fleet.cursor.at });
        let len = rows.len();
        ui.states.fleet.cursor.put(row, len, page);
        if wanted == [None; 2] || ui.screen == Screen::Fleet {
            follow(ui, snapshot);
        }
    }
    if !typing {
        ui.states.fleet.before = None;
    }
    map::settle(ui, snapshot);
}

/// Nodes that the cursor is to stay on, as far as they are shown: while a filter is typed the one that was under it before, which a
/// filter typed by half may hide for a moment, and the selected one.
fn wanted(ui: &Ui, snapshot: &Snapshot) -> [Option<usize>; 2] {
    let before = ui.states.fleet.before.as_deref();
    let before = before.and_then(|name| snapshot.nodes.iter().position(|node| node.name == name));
    [before, ui.selected_row(snapshot).map(|(at, _)| at)]
}

fn rows(snapshot: &Snapshot, filter: &Filter, sort: Column, reversed: bool) -> Vec<usize> {
    let nodes = &snapshot.nodes;
    let stale = Stale::then(snapshot);
    let kept = |i: &usize| filter.is_empty() || filter.keeps(&nodes[*i], stale);
    let mut rows: Vec<usize> = (0..nodes.len()).filter(kept).collect();
    rows.sort_by(|a, b| {
        let order = compare(sort, stale, &nodes[*a], &nodes[*b]);
        let order = if reversed { order.reverse() } else { order };
        if order == Ordering::Equal { a.cmp(b) } else { order }
    });
    rows
}
