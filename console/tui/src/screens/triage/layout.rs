//! Where the parts of the screen are, and which there is room for.

use ratatui::layout::{Rect, Size};

use crate::screens::triage::state::Pane;

/// Least rows of a pane, with its border.
const PANE: u16 = 6;
/// From this width on, panes stand side by side.
const WIDE: u16 = 110;
/// From this size on, all panes are shown.
const LARGE: (u16, u16) = (180, 50);

/// The parts, in cells of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The border around the verdict and the suspects.
    pub(crate) top: Rect,
    /// The sentences of the verdict.
    pub(crate) head: Rect,
    /// A row a suspect.
    pub(crate) suspects: Rect,
    /// The panes that are shown, with their borders.
    pub(crate) panes: Vec<(Pane, Rect)>,
}

impl Layout {
    /// Where a pane is, if it is shown.
    pub(crate) fn of(&self, pane: Pane) -> Option<Rect> {
        self.panes.iter().find(|(shown, _)| *shown == pane).map(|(_, area)| *area)
    }
}

/// The parts on a terminal of this size where `pane` has the keys, for so many lines of the verdict and so many suspects. `wide` leaves
/// one pane.
pub(crate) fn layout(size: Size, wide: bool, pane: Pane, (lines, suspects): (usize, usize)) -> Layout {
    let body = Rect { x: 0, y: 2, width: size.width, height: size.height.saturating_sub(4) };
    let most = match size.height {
        0..30 => 3,
        30..50 => 5,
        _ => 8,
    };
    let rows = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let room = body.height.saturating_sub(2 + PANE);
    let listed = rows(suspects).clamp(1, most).min(room.saturating_sub(rows(lines)).max(1));
    let head = rows(lines).min(room.saturating_sub(listed));
    let top = Rect { height: (2 + head + listed).min(body.height), ..body };
    let inside = Rect { x: top.x + 2, y: top.y + 1, width: top.width.saturating_sub(4), height: head };
    let suspects = Rect { y: inside.bottom(), height: listed, ..inside };
    let below = Rect { y: top.bottom(), height: body.height - top.height, ..body };
    Layout { top, head: inside, suspects, panes: panes(below, (size, wide), pane) }
}

/// The list that has the keys is always among them.
fn panes(area: Rect, (size, wide): (Size, bool), pane: Pane) -> Vec<(Pane, Rect)> {
    let asked = if pane == Pane::Suspects { Pane::Evidence } else { pane };
    let halves = |area: Rect, first: u16| {
        let first = first.min(area.height);
        [Rect { height: first, ..area }, Rect { y: area.y + first, height: area.height - first, ..area }]
    };
    let sides = |area: Rect, left: u16| {
        [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
    };
    if wide || size.width < WIDE || area.height < 2 * PANE {
        return vec![(asked, area)];
    }
    if size.width >= LARGE.0 && size.height >= LARGE.1 {
        let [left, right] = sides(area, area.width * 3 / 5);
        let [time, matrix] = halves(left, left.height / 2);
        let [evidence, rest] = halves(right, right.height * 2 / 5);
        let [steps, gaps] = halves(rest, rest.height / 2);
        return vec![
            (Pane::Evidence, evidence),
            (Pane::Timeline, time),
            (Pane::Matrix, matrix),
            (Pane::Steps, steps),
            (Pane::Gaps, gaps),
        ];
    }
    // Evidence and time line always, and one of the others below them.
    let [upper, lower] = halves(area, area.height.div_ceil(2));
    let [left, right] = sides(upper, upper.width / 2);
    let third = if matches!(asked, Pane::Steps | Pane::Gaps) { asked } else { Pane::Matrix };
    vec![(Pane::Evidence, left), (Pane::Timeline, right), (third, lower)]
}
