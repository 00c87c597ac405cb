//! The keys of the screen, made from the keymap.

use crossterm::event::{KeyCode, KeyEvent};

use crate::keymap::{Binding, REPLAY, everywhere};
use crate::popups::Popup;
use crate::screens::Screen;
use crate::snapshot::Snapshot;
use crate::text::wrap;
use crate::ui::Ui;

/// Help, scrolled by this many lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HelpBox {
    pub(crate) top: usize,
    /// Whether a replay is shown whose time has keys of its own.
    replay: bool,
}

impl HelpBox {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        Self { top: 0, replay: snapshot.plays() }
    }
}

/// Cells for a sentence on a terminal of 80 columns.
const SENTENCE: usize = 65;

/// Lines `(keys, sentence)`; a line without keys is a heading, one whose keys are a space goes on with the sentence before.
pub(crate) fn lines(help: HelpBox, screen: Screen) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if help.replay {
        lines.push(("", "In a replay".to_owned()));
        lines.extend(REPLAY.iter().flat_map(sentence));
    }
    lines.push(("", format!("On {}", screen.title())));
    lines.extend(screen.view().keys.iter().flat_map(sentence));
    lines.push(("", "Everywhere".to_owned()));
    lines.extend(everywhere().flat_map(|binding| sentence(&binding)));
    lines
}

/// The lines of one key.
fn sentence(binding: &Binding) -> Vec<(&'static str, String)> {
    let keys = std::iter::once(binding.own()).chain(std::iter::repeat(" "));
    keys.zip(wrap(binding.help, SENTENCE)).collect()
}

/// Takes a key for the help on top of the stack.
pub(crate) fn key(ui: &mut Ui, mut help: HelpBox, key: KeyEvent) {
    let last = lines(help, ui.screen).len().saturating_sub(ui.page().max(1));
    help.top = match key.code {
        KeyCode::Down | KeyCode::Char('j') => (help.top + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => help.top.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => (help.top + ui.page()).min(last),
        KeyCode::PageUp => help.top.saturating_sub(ui.page()),
        _ => return,
    };
    ui.popups.push(Popup::Help(help));
}
