//! The map as it was last made; made anew when nodes, their places or its room differ.

use ratatui::layout::Rect;

use crate::draw::body;
use crate::screens::Screen;
use crate::screens::fleet::draw::list;
use crate::screens::fleet::map::groups::{digest, groups};
use crate::screens::fleet::map::layout::{Layout, layout};
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// State of the map.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether it is shown in place of the table.
    pub(crate) shown: bool,
    pub(crate) layout: Layout,
    looked: Option<u64>,
    made_from: Option<(u64, Rect)>,
}

/// The cells of the terminal that the map may take: inside the border, but for the line of words.
pub(crate) fn room(ui: &Ui) -> Rect {
    let area = list(ui, body(ui.size));
    Rect { x: area.x + 1, y: area.y + 1, width: area.width.saturating_sub(2), height: area.height.saturating_sub(3) }
}

/// Makes the map anew where something has changed that it was made from.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    if !ui.states.fleet.map.shown || ui.screen != Screen::Fleet {
        return;
    }
    let room = room(ui);
    let map = &mut ui.states.fleet.map;
    let same_room = map.made_from.is_some_and(|(_, of)| of == room);
    if same_room && map.looked == Some(snapshot.generation) {
        return;
    }
    map.looked = Some(snapshot.generation);
    let made_from = Some((digest(&snapshot.nodes), room));
    if map.made_from != made_from {
        map.layout = layout(&groups(&snapshot.nodes), (room.width, room.height));
        map.made_from = made_from;
    }
}
