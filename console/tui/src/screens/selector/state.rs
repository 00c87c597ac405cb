//! Which node the cursor is on, which pane stands beside the list, and what was asked but not answered yet.

use crate::snapshot::{Ask, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// What stands beside the nodes where there is room for one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Picks,
    Survival,
    Coverage,
}

impl Pane {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Picks => Self::Survival,
            Self::Survival => Self::Coverage,
            Self::Coverage => Self::Picks,
        }
    }
}

/// State of the Selector's screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(crate) nodes: Cursor,
    /// The question as the sliders have it, from the first move on; the answer may still be on its way.
    pub(crate) asked: Option<Ask>,
}

/// Keeps the cursor within the nodes.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let len = snapshot.selector.data.as_deref().map_or(0, |s| s.nodes.len());
    let page = super::draw::page(ui.size);
    ui.states.selector.nodes.put(ui.states.selector.nodes.at, len, page);
}
