//! The keys of the screen, made from the keymap.

use crossterm::event::{KeyCode, KeyEvent};

use crate::keymap::everywhere;
use crate::popups::Popup;
use crate::screens::Screen;
use crate::ui::Ui;

/// Help, scrolled by this many lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HelpBox {
    pub(crate) top: usize,
}

/// Lines `(keys, sentence)`; a line without keys is a heading.
pub(crate) fn lines(screen: Screen) -> Vec<(&'static str, String)> {
    let mut lines = vec![("", format!("On {}", screen.title()))];
    lines.extend(screen.view().keys.iter().map(|b| (b.shown, b.help.to_owned())));
    lines.push(("", "Everywhere".to_owned()));
    lines.extend(everywhere().map(|b| (b.shown, b.help.to_owned())));
    lines
}

/// Takes a key for the help on top of the stack.
pub(crate) fn key(ui: &mut Ui, mut help: HelpBox, key: KeyEvent) {
    let last = lines(ui.screen).len().saturating_sub(ui.page().max(1));
    help.top = match key.code {
        KeyCode::Down | KeyCode::Char('j') => (help.top + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => help.top.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => (help.top + ui.page()).min(last),
        KeyCode::PageUp => help.top.saturating_sub(ui.page()),
        _ => return,
    };
    ui.popups.push(Popup::Help(help));
}
