//! Finds a node, a metric, a stored run or a command by its name.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};
use muster_wire::MetricId;

use crate::judgement::word;
use crate::keymap::{Action, Motion, Slider, Term, bindings};
use crate::popups::swap::{self, Verb};
use crate::popups::{Input, Popup};
use crate::screens::Screen;
use crate::snapshot::{MetricRow, NodeRow, RunRow, Snapshot};
use crate::text::counted;
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Rows in view.
pub(crate) const ROWS: usize = 10;
/// Nodes, metrics and runs that a text finds at most of each: who sees so many types one more letter.
const MOST: usize = 50;

/// Begins the command that opens a bundle; its path follows.
const TRIAGE: &str = "triage ";

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
    /// Go to this screen, then do it there.
    On(Screen, Action),
    Run(String),
    Filter(&'static str),
    /// Open the node of this name.
    Node(String),
    /// Open this metric.
    Metric(MetricId),
    /// Show this stored run alone.
    Open(String),
    /// Read the bundle at this path.
    Triage(String),
    /// Put nodes into other hands, for this reason.
    Swap(Verb, String),
}

impl Palette {
    pub(crate) fn new(text: &str) -> Self {
        Self { input: Input::new(text), cursor: Cursor::default() }
    }
}

/// Commands whose name or sentence holds every word of `text`, those whose name begins with it first; without a text,
/// what was used last comes first. Nodes, metrics and stored runs are found by their names once something is typed.
pub(crate) fn entries(ui: &Ui, snapshot: &Snapshot, text: &str) -> Vec<Entry> {
    if let Some(path) = text.strip_prefix(TRIAGE).map(str::trim).filter(|path| !path.is_empty()) {
        let (name, about) =
            (text.trim().to_owned(), "read this bundle of a failed job (folder, tar or tar.gz)".to_owned());
        return vec![Entry { name, about, does: Command::Triage(path.to_owned()) }];
    }
    if let Some(found) = swap::with_reason(ui, snapshot, text) {
        return vec![found];
    }
    let text = text.to_lowercase();
    let mut all = runs(snapshot);
    all.extend(actions(ui));
    all.extend(swap::entries(ui, snapshot));
    all.extend(filters());
    if text.trim().is_empty() {
        let mut used: Vec<Entry> = ui.history.iter().rev().filter_map(|name| recalled(&all, snapshot, name)).collect();
        all.retain(|entry| !used.contains(entry));
        used.extend(all);
        return used;
    }
    all.retain(|e| {
        let line = format!("{} {}", e.name, e.about).to_lowercase();
        text.split_whitespace().all(|w| line.contains(w))
    });
    all.extend(places(snapshot, text.trim()));
    all.sort_by_key(|e| !e.name.to_lowercase().starts_with(text.trim()));
    all
}

/// What was chosen under this name, if it is still there.
fn recalled(commands: &[Entry], snapshot: &Snapshot, name: &str) -> Option<Entry> {
    let command = commands.iter().find(|entry| entry.name == name).cloned();
    command.or_else(|| places(snapshot, &name.to_lowercase()).find(|entry| entry.name == name))
}

/// Nodes, metrics and stored runs whose name holds every word of `text`, up to [`MOST`] of each.
fn places(snapshot: &Snapshot, text: &str) -> impl Iterator<Item = Entry> {
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
    let run = |row: &RunRow| {
        let (name, nodes) = (&row.run.id, counted(row.nodes, "node", "nodes"));
        let about = format!("show this run alone ({}, {nodes})", row.run.phase.word());
        named(name).then(|| Entry { name: name.clone(), about, does: Command::Open(name.clone()) })
    };
    let mut found: Vec<Entry> = snapshot.nodes.iter().filter_map(node).take(MOST).collect();
    found.extend(snapshot.metrics.iter().filter_map(metric).take(MOST));
    found.extend(snapshot.runs.data.iter().flat_map(|runs| runs.rows.iter()).filter_map(run).take(MOST));
    found.into_iter()
}

fn runs(snapshot: &Snapshot) -> Vec<Entry> {
    let entry = |p: &crate::snapshot::PlaybookRow| Entry {
        name: format!("run {}", p.name),
        about: p.title.clone(),
        does: Command::Run(p.name.clone()),
    };
    snapshot.playbooks.iter().map(entry).collect()
}

/// What this screen can do, and what others can, which are gone to first.
fn actions(ui: &Ui) -> Vec<Entry> {
    let here = bindings(ui.screen).map(|binding| (None, binding));
    let others = Screen::ALL.into_iter().filter(|screen| *screen != ui.screen);
    let elsewhere = others.flat_map(|screen| screen.view().keys.iter().map(move |binding| (Some(screen), *binding)));
    let mut found: Vec<Entry> = Vec::new();
    for (screen, binding) in here.chain(elsewhere) {
        let Some(name) = name(binding.action).filter(|name| found.iter().all(|known| known.name != *name)) else {
            continue;
        };
        let (does, place) = match screen {
            Some(screen) => (Command::On(screen, binding.action), format!("{}, {}", screen.title(), binding.shown)),
            None => (Command::Act(binding.action), binding.shown.to_owned()),
        };
        found.push(Entry { name, about: format!("{} ({place})", binding.help), does });
    }
    found
}

fn filters() -> impl Iterator<Item = Entry> {
    [
        ("show failed", "state:fail"),
        ("show warned", "state:warn"),
        ("show undecided", "state:unknown"),
        ("show passed", "state:pass"),
        ("show in repair", "service:repair"),
        ("show hot buffer", "service:buffer"),
        ("show all", ""),
    ]
    .into_iter()
    .map(|(name, filter)| Entry {
        name: name.to_owned(),
        about: if filter.is_empty() { "clear the filter".to_owned() } else { format!("filter {filter}") },
        does: Command::Filter(filter),
    })
}

/// The command's name; `None` keeps it out of the palette, as what only moves or needs a cursor first.
fn name(action: Action) -> Option<String> {
    let name = match action {
        Action::Show(screen) => return Some(format!("go {}", screen.title().to_lowercase())),
        Action::Help => "help",
        Action::Filter => "filter",
        Action::Changed => "only changes",
        Action::Freeze => "freeze",
        Action::Wide => "wide",
        Action::Map => "rack map",
        Action::Mark => "mark",
        Action::MarkAll => "mark all",
        Action::Sort => "sort",
        Action::Reverse => "reverse",
        Action::Watch => "watch",
        Action::StopWatch => "stop watching",
        Action::CheckAlone => "check alone",
        Action::Scrub(true) => "later",
        Action::Scrub(false) => "earlier",
        Action::Follow => "follow",
        Action::Fold => "fold",
        Action::Triage => "triage",
        Action::MarkWrong => "mark as wrong",
        Action::ConfirmCause => "confirm root cause",
        Action::AskAgain(false) => "ask the nodes again",
        Action::AskAgain(true) => "ask the nodes again, for dumps",
        Action::Drain => "drain command",
        Action::Offline => "offline diagnosis",
        Action::Rerun => "measure again",
        Action::NextFinding => "next finding",
        Action::PreviousFinding => "previous finding",
        Action::NextNode => "next",
        Action::PreviousNode => "previous",
        Action::Pane => "pane",
        Action::More => "more",
        Action::Less => "less",
        Action::Gather => "worst or median",
        Action::Metric => "next metric",
        Action::Slide(slider, up) => slide(slider, up),
        Action::Try(term) => attempt(term),
        Action::Cancel => "cancel",
        Action::Clean => "clean",
        Action::Copy => "copy",
        Action::Export => "export",
        Action::Redraw => "redraw",
        Action::Suspend => "suspend",
        Action::Quit => "quit",
        // The palette has these by their own words.
        Action::HandOver => return None,
        Action::Open
        | Action::Run
        | Action::Back
        | Action::Palette
        | Action::Interrupt
        | Action::Move(_)
        | Action::Play(_) => return None,
    };
    Some(name.to_owned())
}

const fn slide(slider: Slider, up: bool) -> &'static str {
    match (slider, up) {
        (Slider::Hours, true) => "longer job",
        (Slider::Hours, false) => "shorter job",
        (Slider::Budget, true) => "larger budget",
        (Slider::Budget, false) => "smaller budget",
        (Slider::Risk, true) => "more risk",
        (Slider::Risk, false) => "less risk",
    }
}

const fn attempt(term: Term) -> &'static str {
    match term {
        Term::Alpha(true) => "try alpha up",
        Term::Alpha(false) => "try alpha down",
        Term::Tau(true) => "try tau up",
        Term::Tau(false) => "try tau down",
        Term::Group => "try next group",
        Term::Version => "try next criterion",
    }
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
