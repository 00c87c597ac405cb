//! What keys do on the log's screen.

use tui_logger::TuiWidgetEvent;

use crate::intent::{Export, Format, Intent};
use crate::keymap::{Action, Binding, Motion, PLUS, either, letter};
use crate::screens::log::state::LEVELS;
use crate::snapshot::Snapshot;
use crate::ui::Ui;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    either(PLUS, "+", Action::More, "show less important lines too").hint("more", 2),
    letter("-", Action::Less, "show only more important lines").hint("less", 3),
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, _: &Snapshot) -> Option<Vec<Intent>> {
    let at = LEVELS.iter().position(|l| *l == ui.states.log.level).unwrap_or(2);
    match action {
        Action::More if at + 1 < LEVELS.len() => ui.states.log.show(LEVELS[at + 1]),
        Action::Less if at > 0 => ui.states.log.show(LEVELS[at - 1]),
        Action::Move(Motion::End) => {
            back(ui);
        }
        Action::Back if back(ui) => {}
        Action::Move(Motion::PageUp | Motion::Up | Motion::Home) => {
            ui.states.log.scrolled = true;
            ui.states.log.widget.transition(TuiWidgetEvent::PrevPageKey);
        }
        Action::Move(Motion::PageDown | Motion::Down) => ui.states.log.widget.transition(TuiWidgetEvent::NextPageKey),
        Action::Export => return Some(vec![Intent::Export(Export::Log, Format::Markdown)]),
        _ => return None,
    }
    Some(Vec::new())
}

/// Returns to the end of the log; gives whether the reader was elsewhere.
fn back(ui: &mut Ui) -> bool {
    ui.states.log.widget.transition(TuiWidgetEvent::EscapeKey);
    std::mem::take(&mut ui.states.log.scrolled)
}
