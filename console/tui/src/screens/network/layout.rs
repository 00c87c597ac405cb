//! Where the parts of the network's screen are.

use ratatui::layout::{Rect, Size};

use crate::screens::network::state::Pane;

/// From this height on all panes stand below one another.
const TALL: u16 = 40;
/// Cells of the bars right of the map.
pub(crate) const BARS: u16 = 4;

/// The parts, in cells of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The map's border.
    pub(crate) left: Rect,
    /// What is beside it.
    pub(crate) right: Rect,
    /// Names of rows.
    pub(crate) gutter: Rect,
    /// The cells of the map.
    pub(crate) map: Rect,
}

/// The parts of the screen on a terminal of this size; `wide` leaves nothing beside the map.
pub(crate) fn layout(size: Size, wide: bool) -> Layout {
    let body = Rect { x: 0, y: 2, width: size.width, height: size.height.saturating_sub(4) };
    let side = match size.width {
        _ if wide => 0,
        0..100 => 32,
        100..160 => 46,
        _ => 78,
    };
    let left = Rect { width: body.width.saturating_sub(side), ..body };
    let right = Rect { x: left.width, width: body.width - left.width, ..body };
    let names = if size.width < 100 { 8 } else { 14 };
    // Inside the border: a line of progress, a line of column names; below the map its profile, three lines of words.
    let height = body.height.saturating_sub(2 + 2 + 4).max(1);
    let gutter = Rect { x: 2, y: body.y + 3, width: names, height };
    let used = 2 + names + 1 + BARS + 1 + 2;
    let map = Rect { x: gutter.right(), width: left.width.saturating_sub(used).max(1), ..gutter };
    Layout { left, right, gutter, map }
}

/// The panes beside the map and where: all where there is height, else the chosen one.
pub(crate) fn panes(size: Size, wide: bool, chosen: Pane) -> Vec<(Pane, Rect)> {
    let right = layout(size, wide).right;
    if wide {
        return Vec::new();
    }
    if size.height < TALL {
        return vec![(chosen, right)];
    }
    let third = right.height / 3;
    let rest = right.height - third;
    let (pair, tiers) = (rest / 2, rest - rest / 2);
    vec![
        (Pane::Suspects, Rect { height: third, ..right }),
        (Pane::Pair, Rect { y: right.y + third, height: pair, ..right }),
        (Pane::Tiers, Rect { y: right.y + third + pair, height: tiers, ..right }),
    ]
}
