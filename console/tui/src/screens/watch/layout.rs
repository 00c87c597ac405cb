//! Where the parts of the screen are.

use ratatui::layout::{Rect, Size};

use crate::screens::watch::words;
use crate::snapshot::Watching;
use crate::text::wrap;
use crate::ui::Ui;

/// Rows above the machines: what is watched, then names of columns and the time.
pub(crate) const ABOVE: u16 = 2;
/// Machines that are shown however long the verdict is.
const MACHINES: u16 = 3;
/// From this width on, metrics and alerts stand beside the machines.
const WIDE: u16 = 100;

/// The parts, in cells of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The border around machines and verdict.
    pub(crate) top: Rect,
    /// Names, scores and evidence of the machines.
    pub(crate) gutter: Rect,
    /// A column a time, a row a machine.
    pub(crate) strip: Rect,
    /// The sentence on the machine under the cursor.
    pub(crate) verdict: Rect,
    /// The line of that machine; on a narrow screen the list that is chosen instead.
    pub(crate) line: Rect,
    /// Metrics above alerts, where there is room beside the machines.
    pub(crate) lists: Option<[Rect; 2]>,
}

/// The parts as they are now: the sentence has the lines that it needs, and the machines have the rest.
pub(crate) fn parts(ui: &Ui, watch: &Watching) -> Layout {
    let room = layout(ui.size, ui.wide, 1).verdict.width;
    let said = words::verdict(&ui.states.watch, watch);
    layout(ui.size, ui.wide, wrap(&said.text, room.into()).len())
}

/// The parts on a terminal of this size, with so many lines of the verdict; `wide` leaves nothing beside the machines.
pub(crate) fn layout(size: Size, wide: bool, said: usize) -> Layout {
    let body = Rect { x: 0, y: 2, width: size.width, height: size.height.saturating_sub(4) };
    let side = match size.width {
        _ if wide => 0,
        0..WIDE => 0,
        100..160 => 42,
        _ => 64,
    };
    let left = Rect { width: body.width - side, ..body };
    // Border and inside: a third for the line, but seven rows of it at least.
    let below = (body.height * 2 / 5).clamp(7, 18).min(7.max(body.height / 3)).min(body.height.saturating_sub(9));
    let top = Rect { height: body.height - below, ..left };
    let line = Rect { y: top.bottom(), height: below, ..left };
    let names = match left.width {
        0..90 => 27,
        90..130 => 32,
        _ => 38,
    };
    let room = top.height.saturating_sub(2 + ABOVE);
    let said = u16::try_from(said).unwrap_or(u16::MAX).max(1).min(room.saturating_sub(MACHINES).max(1));
    let rows = room.saturating_sub(said);
    let gutter = Rect { x: top.x + 2, y: top.y + 1 + ABOVE, width: names, height: rows };
    let strip = Rect { x: gutter.right(), width: top.width.saturating_sub(names + 4), ..gutter };
    let verdict = Rect { x: gutter.x, y: gutter.bottom(), width: top.width.saturating_sub(4), height: said };
    let lists = (side > 0).then(|| {
        let right = Rect { x: left.right(), width: side, ..body };
        let metrics = right.height / 2;
        [Rect { height: metrics, ..right }, Rect { y: right.y + metrics, height: right.height - metrics, ..right }]
    });
    Layout { top, gutter, strip, verdict, line, lists }
}
