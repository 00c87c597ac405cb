//! What keys do on the log's screen.

use log::LevelFilter;
use tui_logger::TuiWidgetEvent;

use crate::intent::{Export, Format, Intent};
use crate::keymap::{Action, Motion};
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Levels that `+` and `-` step through.
const LEVELS: [LevelFilter; 4] = [LevelFilter::Error, LevelFilter::Warn, LevelFilter::Info, LevelFilter::Debug];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, _snapshot: &Snapshot) -> Vec<Intent> {
    let at = LEVELS.iter().position(|l| *l == ui.log.level).unwrap_or(2);
    match action {
        Action::More if at + 1 < LEVELS.len() => ui.log.show(LEVELS[at + 1]),
        Action::Less if at > 0 => ui.log.show(LEVELS[at - 1]),
        Action::Move(Motion::End) => {
            back(ui);
        }
        Action::Move(Motion::PageUp | Motion::Up | Motion::Home) => {
            ui.log.scrolled = true;
            ui.log.widget.transition(TuiWidgetEvent::PrevPageKey);
        }
        Action::Move(Motion::PageDown | Motion::Down) => ui.log.widget.transition(TuiWidgetEvent::NextPageKey),
        Action::Export => return vec![Intent::Export(Export::Log, Format::Markdown)],
        _ => {}
    }
    Vec::new()
}

/// Returns to the end of the log; gives whether the reader was elsewhere.
pub(crate) fn back(ui: &mut Ui) -> bool {
    ui.log.widget.transition(TuiWidgetEvent::EscapeKey);
    std::mem::take(&mut ui.log.scrolled)
}
