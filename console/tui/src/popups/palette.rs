//! Finds a command by its name.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use muster_wire::MetricId;

use crate::judgement::word;
use crate::keymap::{Action, BINDINGS, Motion};
use crate::popups::{Input, Popup};
use crate::snapshot::{MetricRow, NodeRow, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Rows in view.
pub(crate) const ROWS: usize = 10;
/// Nodes, and metrics, that a text finds at most: who sees so many types one more letter.
const MOST: usize = 50;

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
    /// Open the node of this name.
    Node(String),
    /// Open this metric.
    Metric(Arc<MetricId>),
}

impl Palette {
    pub(crate) fn new(text: &str) -> Self {
        Self { input: Input::new(text), cursor: Cursor::default() }
    }
}

/// Commands whose name or sentence holds every word of `text`, those whose name begins with it first; without a text,
/// those used last first. Nodes and metrics are found by their names once something is typed.
pub(crate) fn entries(ui: &Ui, snapshot: &Snapshot, text: &str) -> Vec<Entry> {
    let text = text.to_lowercase();
    let mut all = runs(snapshot);
    all.extend(actions(ui));
    all.extend(filters());
    all.retain(|e| {
        let line = format!("{} {}", e.name, e.about).to_lowercase();
        text.split_whitespace().all(|w| line.contains(w))
    });
    if text.trim().is_empty() {
        let used = |e: &Entry| ui.history.iter().rev().position(|name| *name == e.name).unwrap_or(usize::MAX);
        all.sort_by_key(used);
        return all;
    }
    all.extend(places(snapshot, text.trim()));
    all.sort_by_key(|e| !e.name.to_lowercase().starts_with(text.trim()));
    all
}

/// Nodes and metrics whose name holds every word of `text`, up to [`MOST`] of each.
fn places(snapshot: &Snapshot, text: &str) -> Vec<Entry> {
    let named = |name: &str| {
        let name = name.to_lowercase();
        text.split_whitespace().all(|word| name.contains(word))
    };
    let node = |node: &Arc<NodeRow>| {
        let (name, about) = (&node.name, format!("open this node ({})", word(node.state)));
        named(name).then(|| Entry { name: name.clone(), about, does: Command::Node(name.clone()) })
    };
    let metric = |metric: &Arc<MetricRow>| {
        let name = metric.id.to_string();
        let about = "open this metric".to_owned();
        named(&name).then(|| Entry { name, about, does: Command::Metric(metric.id.clone()) })
    };
    let nodes = snapshot.nodes.iter().filter_map(node).take(MOST);
    nodes.chain(snapshot.metrics.iter().filter_map(metric).take(MOST)).collect()
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
        Action::Rerun => "measure again".to_owned(),
        Action::NextFinding => "next finding".to_owned(),
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
        KeyCode::Enter => {
            let entry = found.get(palette.cursor.at)?;
            ui.remember(&entry.name);
            return Some(entry.does.clone());
        }
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
