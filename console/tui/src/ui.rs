//! What the user has chosen: the screen, the cursor, the filter, the marks. Nothing in here came from a node.

use std::collections::BTreeSet;
use std::sync::Arc;

use ratatui::layout::Size;

use crate::filter::Filter;
use crate::freeze::Frozen;
use crate::intent::Export;
use crate::popups::{ExportBox, Popup};
use crate::screens::{Screen, States};
use crate::snapshot::{NodeRow, RunInfo, RunPhase, Snapshot};
use crate::theme::Theme;

/// What an offline diagnosis is called while it goes on.
const TESTING: &str = "the offline diagnosis";

/// State of the console between two events. Changed by [`crate::update`] only.
#[derive(Debug)]
pub struct Ui {
    pub(crate) theme: Theme,
    pub(crate) size: Size,
    pub(crate) screen: Screen,
    /// Screens to go back to, the latest last.
    pub(crate) trail: Vec<Screen>,
    /// Boxes over the screen, the topmost last.
    pub(crate) popups: Vec<Popup>,
    pub(crate) filter: Filter,
    /// The picture that is held still.
    pub(crate) frozen: Option<Frozen>,
    /// Whether lists take all of the width, and what stands beside them is hidden.
    pub(crate) wide: bool,
    pub(crate) marks: BTreeSet<String>,
    /// The node under the cursor, with its place in the snapshot as a hint.
    pub(crate) selected: Option<(String, usize)>,
    /// The node that the engine was last asked to focus.
    pub(crate) focused: Option<String>,
    /// Names of commands that were chosen in the palette, the latest last.
    pub(crate) history: Vec<String>,
    /// A word of ours for the message line, and until when.
    pub(crate) notice: Option<(String, u64)>,
    /// Age of the snapshot.
    pub(crate) age_ms: u64,
    pub(crate) last_key_ms: u64,
    pub(crate) interrupted_ms: Option<u64>,
    pub(crate) states: States,
}

impl Ui {
    /// The console as it opens: the fleet, worst first.
    #[must_use]
    pub fn new(theme: Theme, width: u16, height: u16) -> Self {
        Self {
            theme,
            size: Size { width, height },
            screen: Screen::Fleet,
            trail: Vec::new(),
            popups: Vec::new(),
            filter: Filter::default(),
            frozen: None,
            wide: false,
            marks: BTreeSet::new(),
            selected: None,
            focused: None,
            history: Vec::new(),
            notice: None,
            age_ms: 0,
            last_key_ms: 0,
            interrupted_ms: None,
            states: States::default(),
        }
    }

    /// The screen that is shown.
    #[must_use]
    pub const fn screen(&self) -> Screen {
        self.screen
    }

    /// Names of the marked nodes.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        self.marks.iter().map(String::as_str)
    }

    /// Name of the node under the cursor.
    #[must_use]
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_ref().map(|(name, _)| name.as_str())
    }

    /// Whether the picture is held still while results arrive.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// The wall clock as this console sees it, milliseconds since 1970 UTC.
    pub(crate) const fn now_ms(&self, snapshot: &Snapshot) -> u64 {
        snapshot.now_ms.saturating_add(self.age_ms)
    }

    /// The clock by which results have an age: that of the replay where one is shown, milliseconds since 1970 UTC.
    pub(crate) const fn data_ms(&self, snapshot: &Snapshot) -> u64 {
        match snapshot.replay() {
            Some(replay) => replay.at_ms,
            None => self.now_ms(snapshot),
        }
    }

    /// The row of the selected node. Costs nothing as long as nodes keep their places.
    pub(crate) fn selected_row<'s>(&self, snapshot: &'s Snapshot) -> Option<(usize, &'s Arc<NodeRow>)> {
        let (name, hint) = self.selected.as_ref()?;
        if let Some(row) = snapshot.nodes.get(*hint).filter(|n| n.name == *name) {
            return Some((*hint, row));
        }
        snapshot.nodes.iter().enumerate().find(|(_, n)| n.name == *name)
    }

    pub(crate) fn select(&mut self, snapshot: &Snapshot, at: usize) {
        if let Some(node) = snapshot.nodes.get(at) {
            self.selected = Some((node.name.clone(), at));
        }
    }

    /// Marks the selected node, or takes its mark away.
    pub(crate) fn mark(&mut self) {
        if let Some((name, _)) = self.selected.clone()
            && !self.marks.remove(&name)
        {
            self.marks.insert(name);
        }
    }

    pub(crate) fn show(&mut self, screen: Screen) {
        if screen != self.screen {
            self.trail.retain(|s| *s != screen);
            self.trail.push(self.screen);
            self.screen = screen;
        }
    }

    /// Puts a command first among those the palette offers.
    pub(crate) fn remember(&mut self, command: &str) {
        self.history.retain(|known| known != command);
        self.history.push(command.to_owned());
    }

    /// Asks in which form to write something.
    pub(crate) fn ask_export(&mut self, what: Export) {
        self.popups.push(Popup::Export(ExportBox::new(what)));
    }

    pub(crate) fn say(&mut self, snapshot: &Snapshot, text: impl Into<String>) {
        self.notice = Some((text.into(), self.now_ms(snapshot) + 5_000));
    }

    /// Rows that a list in the body can show: all but status, tabs, border, column header, border, message and hints.
    pub(crate) const fn page(&self) -> usize {
        self.size.height.saturating_sub(7) as usize
    }

    /// Whether the terminal is below 60x16: then only the size is said, and only quitting works.
    pub(crate) const fn is_too_small(&self) -> bool {
        self.size.width < 60 || self.size.height < 16
    }

    /// Names for the next action, in inventory order: the marked ones, else all.
    pub(crate) fn targets(&self, snapshot: &Snapshot) -> Vec<String> {
        let marked = |n: &&Arc<NodeRow>| self.marks.is_empty() || self.marks.contains(&n.name);
        snapshot.nodes.iter().filter(marked).map(|n| n.name.clone()).collect()
    }

    pub(crate) fn going(snapshot: &Snapshot) -> Option<&RunInfo> {
        // What a replay shows went on once.
        snapshot.run.as_deref().filter(|r| r.phase.is_going() && snapshot.replay().is_none())
    }

    /// What nodes are at work for and how that stands, in words: a run, or an offline diagnosis.
    pub(crate) fn busy(snapshot: &Snapshot) -> Option<(&str, &'static str)> {
        let testing = snapshot.testing.as_deref().map(|testing| match testing.cancelling {
            true => (TESTING, RunPhase::Cancelling.word()),
            false => (TESTING, RunPhase::Running.word()),
        });
        testing.or_else(|| Self::going(snapshot).map(|run| (run.playbook.as_str(), run.phase.word())))
    }
}
