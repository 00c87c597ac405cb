//! What a screen tells the rest of the console of itself.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::intent::Intent;
use crate::keymap::{Action, Binding};
use crate::snapshot::Snapshot;
use crate::theme::Role;
use crate::ui::Ui;

/// One screen. A screen sets what differs from [`View::new`].
pub(crate) struct View {
    /// The word in the tab.
    pub(crate) title: &'static str,
    /// The same where all do not fit.
    pub(crate) short: &'static str,
    /// Sentence in help.
    pub(crate) about: &'static str,
    /// Keys that work here and not everywhere.
    pub(crate) keys: &'static [Binding],
    pub(crate) draw: fn(&Ui, &Snapshot, &mut Buffer, Rect),
    /// Does an action; `None` leaves it to what the console does with it on every screen.
    pub(crate) act: fn(&mut Ui, Action, &Snapshot) -> Option<Vec<Intent>>,
    /// A click on a cell of the body.
    pub(crate) click: fn(&mut Ui, (u16, u16), &Snapshot) -> Vec<Intent>,
    /// Brings its state up to date after every event, shown or not.
    pub(crate) settle: fn(&mut Ui, &Snapshot),
    /// What it needs to know to show what the user looks at.
    pub(crate) ask: fn(&mut Ui, &Snapshot) -> Option<Intent>,
    /// What stands in the message line while there is nothing newer.
    pub(crate) message: fn(&Ui, &Snapshot) -> (String, Role),
    /// Whether it has rows that keys can act on.
    pub(crate) ready: fn(&Snapshot) -> bool,
    /// Whether what it shows can be exported.
    pub(crate) exports: bool,
}

impl View {
    /// A screen of nodes that draws and takes keys, and nothing else.
    pub(crate) const fn new(
        (title, about): (&'static str, &'static str),
        keys: &'static [Binding],
        draw: fn(&Ui, &Snapshot, &mut Buffer, Rect),
        act: fn(&mut Ui, Action, &Snapshot) -> Option<Vec<Intent>>,
    ) -> Self {
        Self {
            title,
            short: title,
            about,
            keys,
            draw,
            act,
            click: |_, _, _| Vec::new(),
            settle: |_, _| (),
            ask: |_, _| None,
            message: |_, _| (String::new(), Role::Text),
            ready: |snapshot| !snapshot.nodes.is_empty(),
            exports: true,
        }
    }
}
