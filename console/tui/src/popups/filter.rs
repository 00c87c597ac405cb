//! The filter while it is typed: rows follow every key, esc brings the old filter back.

use crossterm::event::{KeyCode, KeyEvent};

use crate::filter::Filter;
use crate::popups::{Input, Popup};
use crate::ui::Ui;

/// The filter's line.
#[derive(Debug)]
pub(crate) struct FilterBox {
    pub(crate) input: Input,
    before: Filter,
}

impl FilterBox {
    pub(crate) fn new(now: &Filter) -> Self {
        Self { input: Input::new(now.text()), before: now.clone() }
    }
}

/// Takes a key for the filter on top of the stack.
pub(crate) fn key(ui: &mut Ui, mut filter: FilterBox, key: KeyEvent) {
    match key.code {
        KeyCode::Enter => {}
        KeyCode::Esc => ui.filter = filter.before,
        _ => {
            if filter.input.key(key) {
                ui.filter = Filter::new(filter.input.text());
            }
            ui.popups.push(Popup::Filter(filter));
        }
    }
}
