//! Finds a command by its name.

use crossterm::event::{KeyCode, KeyEvent};

use crate::keymap::{Action, BINDINGS, Motion};
use crate::popups::{Input, Popup};
use crate::snapshot::Snapshot;
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Rows in view.
pub(crate) const ROWS: usize = 10;

/// The palette.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    pub(crate) input: Input,
    pub(crate) cursor: Cursor,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) does: Command,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Act(Action),
    Run(String),
    Filter(&'static str),
}

impl Palette {
    pub(crate) fn new(text: &str) -> Self {
        Self { input: Input::new(text), cursor: Cursor::default() }
    }
}

/// Commands whose name or sentence holds every word of `text`, those whose name begins with it first.
pub(crate) fn entries(ui: &Ui, snapshot: &Snapshot, text: &str) -> Vec<Entry> {
    let text = text.to_lowercase();
    let mut all = runs(snapshot);
    all.extend(actions(ui));
    all.extend(filters());
    all.retain(|e| {
        let line = format!("{} {}", e.name, e.about).to_lowercase();
        text.split_whitespace().all(|w| line.contains(w))
    });
    all.sort_by_key(|e| !e.name.starts_with(text.trim()));
    all
}

fn runs(snapshot: &Snapshot) -> Vec<Entry> {
    let entry = |p: &crate::snapshot::PlaybookRow| Entry {
        name: format!("run {}", p.name),
        about: p.title.clone(),
        does: Command::Run(p.name.clone()),
    };
    snapshot.playbooks.iter().map(entry).collect()
}

fn actions(ui: &Ui) -> impl Iterator<Item = Entry> {
    BINDINGS.iter().filter(|b| b.on(ui.screen)).filter_map(|b| {
        let name = name(b.action)?;
        Some(Entry { name, about: format!("{} ({})", b.help, b.shown), does: Command::Act(b.action) })
    })
}

fn filters() -> impl Iterator<Item = Entry> {
    [
        ("show failed", "state:fail"),
        ("show warned", "state:warn"),
        ("show undecided", "state:unknown"),
        ("show passed", "state:pass"),
        ("show all", ""),
    ]
    .into_iter()
    .map(|(name, filter)| Entry {
        name: name.to_owned(),
        about: if filter.is_empty() { "clear the filter".to_owned() } else { format!("filter {filter}") },
        does: Command::Filter(filter),
    })
}

/// The command's name; `None` keeps it out of the palette.
fn name(action: Action) -> Option<String> {
    Some(match action {
        Action::Show(screen) => format!("go {}", screen.title().to_lowercase()),
        Action::Help => "help".to_owned(),
        Action::Filter => "filter".to_owned(),
        Action::MarkAll => "mark all".to_owned(),
        Action::Sort => "sort".to_owned(),
        Action::Reverse => "reverse".to_owned(),
        Action::Rerun => "rerun failed".to_owned(),
        Action::Cancel => "cancel".to_owned(),
        Action::Clean => "clean".to_owned(),
        Action::Copy => "copy".to_owned(),
        Action::Export => "export".to_owned(),
        Action::Redraw => "redraw".to_owned(),
        Action::Quit => "quit".to_owned(),
        _ => return None,
    })
}

/// Takes a key for the palette on top of the stack; gives the chosen command.
pub(crate) fn key(ui: &mut Ui, mut palette: Palette, key: KeyEvent, snapshot: &Snapshot) -> Option<Command> {
    let found = entries(ui, snapshot, palette.input.text());
    match key.code {
        KeyCode::Esc => return None,
        KeyCode::Enter => return found.get(palette.cursor.at).map(|e| e.does.clone()),
        KeyCode::Up => palette.cursor.go(Motion::Up, found.len(), ROWS),
        KeyCode::Down | KeyCode::Tab => palette.cursor.go(Motion::Down, found.len(), ROWS),
        KeyCode::PageUp => palette.cursor.go(Motion::PageUp, found.len(), ROWS),
        KeyCode::PageDown => palette.cursor.go(Motion::PageDown, found.len(), ROWS),
        _ => {
            if palette.input.key(key) {
                palette.cursor = Cursor::default();
            }
        }
    }
    ui.popups.push(Popup::Palette(palette));
    None
}
