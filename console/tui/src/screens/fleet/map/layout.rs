//! Where the cell of each node is, so that the whole fleet fits: a cell a node where there is room, else several.
//!
//! ```text
//! leaf1
//! r1 ✓✓✓✓✗✓✓✓  r2 ✓✓✓✓✓✓✓✓
//! leaf2
//! r3 ✓✓✓✓✓✓✓✓  r4 ✓✓✓!✓✓
//! ```

use std::ops::Range;

use crate::screens::fleet::map::groups::Group;
use crate::text::width;

/// Cells of a label at most.
const LABEL: usize = 12;

/// One or more nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// From the left edge of the map.
    pub(crate) x: u16,
    /// From its top.
    pub(crate) y: u16,
    pub(crate) width: u16,
    /// Its nodes, as a part of [`Layout::order`].
    pub(crate) nodes: Range<usize>,
}

/// The name of a leaf or a rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) width: u16,
    pub(crate) text: String,
    /// Whether it stands over several racks.
    pub(crate) heading: bool,
}

/// The map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Places of nodes in the snapshot, in the order of the map.
    pub(crate) order: Vec<usize>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) labels: Vec<Label>,
    /// Nodes of a cell at most.
    pub(crate) fold: usize,
}

/// The map of `groups` in `width` times `height` cells of the terminal. Folds no more than it must, and lets names go
/// before it folds further: first those of the leaves, then those of the racks.
pub(crate) fn layout(groups: &[Group], (width, height): (u16, u16)) -> Layout {
    let order: Vec<usize> = groups.iter().flat_map(|group| group.nodes.iter().copied()).collect();
    if order.is_empty() || width == 0 || height == 0 {
        return Layout::default();
    }
    let room = (usize::from(width), usize::from(height));
    let largest = groups.iter().map(|group| group.nodes.len()).max().unwrap_or(1);
    let mut fold = 1;
    loop {
        let found = Names::of(groups).iter().find_map(|names| Blocks { groups, room, fold, names: *names }.place());
        if let Some((cells, labels)) = found {
            return Layout { order, cells, labels, fold };
        }
        if fold == largest {
            break;
        }
        fold = (fold + (fold / 4).max(1)).min(largest);
    }
    let (cells, fold) = merged(order.len(), room);
    Layout { order, cells, labels: Vec::new(), fold }
}

/// What is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Leaves,
    Racks,
    None,
}

impl Names {
    /// From the most names to none; leaves stand over racks only where both are known.
    fn of(groups: &[Group]) -> &'static [Self] {
        let known = |name: fn(&Group) -> &str| groups.iter().any(|group| !name(group).is_empty());
        let both = known(|group| &group.leaf) && known(|group| &group.rack);
        if both { &[Self::Leaves, Self::Racks, Self::None] } else { &[Self::Racks, Self::None] }
    }
}

/// Cells of a terminal that a cell of the map takes: a glyph, and how many nodes it counts where it may be several.
fn cell_width(fold: usize) -> usize {
    if fold == 1 { 1 } else { 1 + fold.to_string().len() }
}

/// Groups as blocks of the same width, beside and below one another.
struct Blocks<'g> {
    groups: &'g [Group],
    room: (usize, usize),
    fold: usize,
    names: Names,
}

impl Blocks<'_> {
    /// Cells and labels in their places; `None` where they do not fit.
    fn place(&self) -> Option<(Vec<Cell>, Vec<Label>)> {
        let (room, height) = self.room;
        let label = match self.names {
            Names::None => 0,
            _ => self.groups.iter().map(|group| width(name(group))).max()?.min(LABEL) + 1,
        };
        // Where a cell is one node, cells need no gap.
        let (own, gap) = (cell_width(self.fold), usize::from(self.fold > 1));
        let most = self.groups.iter().map(|group| group.nodes.len().div_ceil(self.fold)).max()?;
        let across = ((room + gap).saturating_sub(label) / (own + gap)).min(most);
        if across == 0 {
            return None;
        }
        let between = if self.names == Names::None { 1 } else { 2 };
        let block = label + across * (own + gap) - gap;
        let beside = ((room + between) / (block + between)).max(1);
        let (mut cells, mut labels) = (Vec::new(), Vec::new());
        let (mut x, mut y, mut lines, mut start) = (0, 0, 0, 0);
        for (at, group) in self.groups.iter().enumerate() {
            let heading = self.names == Names::Leaves && (at == 0 || self.groups[at - 1].leaf != group.leaf);
            if x == beside || heading {
                (x, y, lines) = (0, y + lines, 0);
            }
            if heading {
                labels.push(self.label(leaf(group), (0, y, room), true));
                y += 1;
            }
            let count = group.nodes.len().div_ceil(self.fold);
            lines = lines.max(count.div_ceil(across));
            if y + lines > height {
                return None;
            }
            let left = x * (block + between);
            if label > 0 {
                labels.push(self.label(name(group), (left, y, label - 1), false));
            }
            for nr in 0..count {
                let first = start + nr * self.fold;
                let (column, line) = (nr % across, nr / across);
                let nodes = first..(first + self.fold).min(start + group.nodes.len());
                cells.push(cell((left + label + column * (own + gap), y + line, own), nodes));
            }
            start += group.nodes.len();
            x += 1;
        }
        Some((cells, labels))
    }

    fn label(&self, text: &str, (x, y, width): (usize, usize, usize), heading: bool) -> Label {
        Label { x: small(x), y: small(y), width: small(width), text: text.to_owned(), heading }
    }
}

/// Cells that go on over the ends of groups, where not even one cell a group fits.
fn merged(nodes: usize, (room, height): (usize, usize)) -> (Vec<Cell>, usize) {
    let mut fold = 1;
    loop {
        let own = cell_width(fold);
        let (own, gap) = if own > room { (1, 0) } else { (own, 1) };
        let across = ((room + gap) / (own + gap)).max(1);
        if nodes.div_ceil(fold) <= across * height {
            let place = |nr: usize| {
                let nodes = nr * fold..((nr + 1) * fold).min(nodes);
                cell((nr % across * (own + gap), nr / across, own), nodes)
            };
            return ((0..nodes.div_ceil(fold)).map(place).collect(), fold);
        }
        fold += (fold / 16).max(1);
    }
}

fn cell((x, y, width): (usize, usize, usize), nodes: Range<usize>) -> Cell {
    Cell { x: small(x), y: small(y), width: small(width), nodes }
}

/// What lies within the terminal is small.
fn small(cells: usize) -> u16 {
    u16::try_from(cells).unwrap_or(u16::MAX)
}

fn name(group: &Group) -> &str {
    match (group.rack.as_str(), group.leaf.as_str()) {
        ("", "") => "no rack",
        ("", leaf) => leaf,
        (rack, _) => rack,
    }
}

fn leaf(group: &Group) -> &str {
    if group.leaf.is_empty() { "no leaf" } else { &group.leaf }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Racks of these sizes, `under` of them at each leaf.
    fn fleet(sizes: &[usize], under: usize) -> Vec<Group> {
        let mut next = 0;
        let group = |(at, size): (usize, &usize)| {
            let nodes = (next..next + size).collect();
            next += size;
            let leaf = at.checked_div(under).map_or(String::new(), |leaf| format!("leaf{leaf}"));
            Group { leaf, rack: format!("r{at}"), nodes }
        };
        sizes.iter().enumerate().map(group).collect()
    }

    /// Everything that a map promises at any size.
    fn hold(groups: &[Group], size: (u16, u16)) {
        let map = layout(groups, size);
        let nodes: usize = groups.iter().map(|group| group.nodes.len()).sum();
        let mut seen = vec![0; nodes];
        for cell in &map.cells {
            assert!(!cell.nodes.is_empty() && cell.nodes.len() <= map.fold, "{cell:?}");
            map.order[cell.nodes.clone()].iter().for_each(|node| seen[*node] += 1);
        }
        assert!(seen.iter().all(|times| *times == 1), "every node is in exactly one cell: {seen:?}");
        let mut taken = vec![false; usize::from(size.0) * usize::from(size.1)];
        let own = map.cells.iter().map(|cell| (cell.x, cell.y, cell.width));
        for (x, y, width) in own.chain(map.labels.iter().map(|label| (label.x, label.y, label.width))) {
            assert!(x + width <= size.0 && y < size.1 && width > 0, "{x},{y} {width} in {size:?}");
            for x in x..x + width {
                let at = usize::from(y) * usize::from(size.0) + usize::from(x);
                assert!(!std::mem::replace(&mut taken[at], true), "{x},{y} twice in {size:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_node_is_in_one_cell_and_nothing_is_outside_or_twice(
            sizes in vec(1..70_usize, 1..60), under in 0..5_usize, width in 1..210_u16, height in 1..70_u16,
        ) {
            hold(&fleet(&sizes, under), (width, height));
        }
    }

    #[test]
    fn ten_thousand_nodes_fit_the_smallest_terminal() {
        for (racks, each) in [(250, 40), (1, 10_000), (10_000, 1), (640, 16)] {
            for size in [(78, 17), (118, 33), (198, 53), (1, 1), (58, 9)] {
                hold(&fleet(&vec![each; racks], 2), size);
            }
        }
    }

    #[test]
    fn nothing_is_folded_or_left_unnamed_that_has_room() {
        let map = layout(&fleet(&[16; 8], 2), (78, 17));
        assert_eq!((map.fold, map.labels.iter().filter(|label| label.heading).count()), (1, 4));
        assert_eq!(
            map.cells.iter().map(|cell| cell.y).max(),
            Some(7),
            "two racks beside one another, a line for each leaf"
        );
        // A leaf a rack leaves no room for the names of leaves.
        let map = layout(&fleet(&[40; 17], 1), (78, 17));
        assert_eq!((map.fold, map.labels.len()), (1, 17));
        let map = layout(&fleet(&[40; 250], 2), (78, 17));
        assert!(map.fold > 1 && map.cells.len() >= 250, "{} in {} cells", map.fold, map.cells.len());
    }
}
