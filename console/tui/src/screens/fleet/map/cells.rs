//! What a cell of the map says, and which one is next to it.

use std::sync::Arc;

use crate::judgement::{State, severity};
use crate::keymap::Motion;
use crate::screens::fleet::map::layout::{Cell, Layout};
use crate::snapshot::NodeRow;

/// The summary of the nodes in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The worst of their states.
    pub(crate) state: State,
    /// How many have it.
    pub(crate) count: usize,
    /// Whether all of them without a state are being measured.
    pub(crate) measuring: bool,
    /// The first node in that state, as its place in the snapshot.
    pub(crate) node: usize,
}

/// The summary of those nodes of `cell` that pass the filter; `None` if none does.
pub(crate) fn tally(layout: &Layout, cell: &Cell, nodes: &[Arc<NodeRow>], kept: &[bool]) -> Option<Tally> {
    let own = layout.order.get(cell.nodes.clone())?.iter().copied();
    let shown = own.filter(|at| kept.get(*at) == Some(&true)).filter_map(|at| Some((at, nodes.get(at)?)));
    let mut found: Option<Tally> = None;
    for (node, row) in shown {
        let measuring = row.state == State::NotRun && row.work.is_some();
        let one = Tally { state: row.state, count: 1, measuring, node };
        found = match found {
            Some(worst) if severity(worst.state) < severity(row.state) => Some(worst),
            Some(worst) if worst.state == row.state => {
                Some(Tally { count: worst.count + 1, measuring: worst.measuring && measuring, ..worst })
            }
            _ => Some(one),
        };
    }
    found
}

/// The cell that holds the node at this place of the snapshot.
pub(crate) fn cell_of(layout: &Layout, node: usize) -> Option<usize> {
    let place = layout.order.iter().position(|at| *at == node)?;
    layout.cells.iter().position(|cell| cell.nodes.contains(&place))
}

/// The cell to which `motion` leads from the cell `from`, among those that `open` lets through; `None` at an edge.
pub(crate) fn next(
    layout: &Layout,
    from: usize,
    motion: Motion,
    page: usize,
    open: impl Fn(usize) -> bool,
) -> Option<usize> {
    let cells = || layout.cells.iter().enumerate().filter(|(at, _)| open(*at));
    let here = layout.cells.get(from)?;
    let line = |y: u16| cells().filter(move |(_, cell)| cell.y == y);
    let nearest = |y: u16| line(y).min_by_key(|(_, cell)| cell.x.abs_diff(here.x)).map(|(at, _)| at);
    // Lines on the way, the nearest first; a page is so many of them.
    let lines = |up: bool| {
        let mut lines: Vec<u16> =
            cells().map(|(_, cell)| cell.y).filter(|y| if up { *y < here.y } else { *y > here.y }).collect();
        lines.sort_unstable_by_key(|y| y.abs_diff(here.y));
        lines.dedup();
        lines
    };
    let far = |up: bool| {
        let lines = lines(up);
        lines.get(page.max(1) - 1).or(lines.last()).copied()
    };
    match motion {
        Motion::Left => {
            line(here.y).filter(|(_, cell)| cell.x < here.x).max_by_key(|(_, cell)| cell.x).map(|(at, _)| at)
        }
        Motion::Right => {
            line(here.y).filter(|(_, cell)| cell.x > here.x).min_by_key(|(_, cell)| cell.x).map(|(at, _)| at)
        }
        Motion::Up => lines(true).first().and_then(|y| nearest(*y)),
        Motion::Down => lines(false).first().and_then(|y| nearest(*y)),
        Motion::PageUp => far(true).and_then(nearest),
        Motion::PageDown => far(false).and_then(nearest),
        Motion::Home => cells().next().map(|(at, _)| at),
        Motion::End => cells().last().map(|(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screens::fleet::map::groups::Group;
    use crate::screens::fleet::map::layout::layout;

    /// Two racks of four beside one another, twice.
    fn map() -> Layout {
        let group = |at: usize| Group {
            leaf: format!("leaf{}", at / 2),
            rack: format!("r{at}"),
            nodes: (at * 4..at * 4 + 4).collect(),
        };
        layout(&(0..4).map(group).collect::<Vec<_>>(), (40, 10))
    }

    #[test]
    fn the_cursor_goes_to_what_is_seen_beside_it_and_stops_at_the_edges() {
        let map = map();
        assert_eq!((map.fold, map.cells.len()), (1, 16));
        let go = |from, motion| next(&map, from, motion, 5, |_| true);
        assert_eq!(go(3, Motion::Right), Some(4), "on into the rack beside it");
        assert_eq!(go(4, Motion::Left), Some(3));
        assert_eq!(go(1, Motion::Down), Some(9), "straight down, over the name of the leaf");
        assert_eq!(go(9, Motion::Up), Some(1));
        assert_eq!([go(0, Motion::Left), go(7, Motion::Right), go(2, Motion::Up), go(15, Motion::Down)], [None; 4]);
        assert_eq!([go(5, Motion::Home), go(5, Motion::End), go(5, Motion::PageDown)], [Some(0), Some(15), Some(13)]);
        assert_eq!(next(&map, 0, Motion::Right, 5, |at| at > 2), Some(3), "what the filter hides is passed over");
    }

    #[test]
    fn every_cell_can_be_reached() {
        let map = map();
        let mut reached = vec![0];
        let mut at = 0;
        while let Some(from) = reached.get(at).copied() {
            for motion in [Motion::Left, Motion::Right, Motion::Up, Motion::Down] {
                let to = next(&map, from, motion, 5, |_| true);
                reached.extend(to.filter(|to| !reached.contains(to)));
            }
            at += 1;
        }
        assert_eq!(reached.len(), map.cells.len());
        assert!((0..map.cells.len()).all(|at| cell_of(&map, map.order[map.cells[at].nodes.start]) == Some(at)));
    }
}
