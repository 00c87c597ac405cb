//! Which version the cursor is on, and which it is compared with.

use crate::screens::Screen;
use crate::snapshot::{Criteria, Snapshot, VersionRow};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// State of the criteria's screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) versions: Cursor,
    /// Identity of the version that others are compared with; without one it is the version before.
    pub(crate) base: Option<String>,
    /// Whether the engine was asked since a screen that shows versions was entered.
    pub(crate) asked: bool,
}

impl State {
    /// The version under the cursor and the one that it is compared with.
    pub(crate) fn chosen<'c>(&self, criteria: &'c Criteria) -> Option<(&'c VersionRow, Option<&'c VersionRow>)> {
        let at = self.versions.at;
        let chosen = criteria.versions.get(at)?;
        let same = |row: &&VersionRow| row.criterion.metric == chosen.criterion.metric && row.group == chosen.group;
        let before = || at.checked_sub(1).and_then(|before| criteria.versions.get(before)).filter(same);
        let base = self.base.as_ref().and_then(|id| criteria.versions.iter().find(|v| v.criterion.id == *id));
        Some((chosen, base.or_else(before)))
    }
}

/// Keeps the cursor within the versions; leaving the screen makes the next visit ask anew.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let len = snapshot.criteria.data.as_deref().map_or(0, |c| c.versions.len());
    let page = ui.page();
    ui.states.criteria.versions.put(ui.states.criteria.versions.at, len, page);
    ui.states.criteria.asked &= matches!(ui.screen, Screen::Criteria | Screen::Benchmarks);
}
