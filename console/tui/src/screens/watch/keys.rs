//! What keys do on the screen.

use crate::filter::Filter;
use crate::intent::{Export, Intent};
use crate::keymap::{Action, Binding, ENTER, FREEZE, MARK, Motion, PLUS, TAB, WIDE, char, either, letter, one};
use crate::popups::{Confirm, FilterBox, Popup};
use crate::screens::watch::layout::parts;
use crate::screens::watch::rows;
use crate::screens::watch::state::{Fold, Pane};
use crate::screens::watch::{lists, time, words};
use crate::screens::{Screen, fleet};
use crate::snapshot::{Origin, Snapshot, Watching};
use crate::text::counted;
use crate::ui::Ui;
use crate::update::ask_run_on;
use crossterm::event::{KeyCode, KeyModifiers};

/// The playbook that checks a machine by itself.
const CHECK: &str = "cbd-light";
/// How often a column may be doubled: a day and more.
const ZOOM: u32 = 10;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "open the machine under the cursor, or what is folded there").hint("open", 2),
    letter("n", Action::NextNode, "go to the next alert: its machine, metric and time").hint("next alert", 1),
    letter("p", Action::PreviousNode, "go to the alert before"),
    letter("L", Action::CheckAlone, "run cbd-light on this machine alone; asks first").hint("cbd-light", 3),
    either([char('h'), (KeyModifiers::NONE, KeyCode::Left)], "left h", Action::Move(Motion::Left), "back in time"),
    either(
        [char('l'), (KeyModifiers::NONE, KeyCode::Right)],
        "right l",
        Action::Move(Motion::Right),
        "on in time; past its newest, a recording jumps on",
    ),
    letter("<", Action::Scrub(false), "half a screen back in time"),
    letter(">", Action::Scrub(true), "half a screen on in time"),
    letter("f", Action::Follow, "show what comes as it comes").hint("follow", 4),
    FREEZE,
    either(PLUS, "+", Action::More, "half as much time in a column"),
    letter("-", Action::Less, "twice as much time in a column").hint("zoom out", 5),
    letter("m", Action::Metric, "show the next metric, by what speaks loudest").hint("metric", 3),
    one(TAB, "tab", Action::Pane, "move to the metrics, the alerts, the machines").hint("pane", 4),
    letter("o", Action::Fold, "gather machines by leaf, rack or rail, or none"),
    MARK,
    letter("t", Action::Triage, "look into this machine's job: go to Triage").hint("triage", 4),
    letter("s", Action::StopWatch, "stop watching; asks first"),
    WIDE,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let watch = snapshot.watch.data.as_deref()?;
    match action {
        Action::Move(Motion::Left) => scrub(ui, watch, -1),
        Action::Move(Motion::Right) => return Some(on(ui, watch, 1)),
        Action::Scrub(false) => scrub(ui, watch, -half(ui)),
        Action::Scrub(true) => return Some(on(ui, watch, half(ui))),
        Action::Move(motion) => step(ui, motion, watch),
        Action::Pane => ui.states.watch.pane = ui.states.watch.pane.next(),
        Action::More => ui.states.watch.zoom = ui.states.watch.zoom.saturating_sub(1),
        Action::Less => ui.states.watch.zoom = (ui.states.watch.zoom + 1).min(ZOOM),
        Action::Follow => (ui.states.watch.seq, ui.frozen) = (None, None),
        Action::Metric => next_metric(ui, watch),
        Action::Fold => fold(ui, watch),
        Action::NextNode => jump(ui, watch, snapshot, Motion::Down),
        Action::PreviousNode => jump(ui, watch, snapshot, Motion::Up),
        Action::Open => open(ui, watch, snapshot),
        Action::Mark => {
            select(ui, watch, snapshot);
            ui.mark();
        }
        Action::CheckAlone => check_alone(ui, watch, snapshot),
        Action::Triage => triage(ui, watch, snapshot),
        Action::StopWatch if watch.over => ui.say(snapshot, "the watch is over"),
        Action::StopWatch => stop(ui, watch),
        Action::Filter => ui.popups.push(Popup::Filter(FilterBox::new(&ui.filter))),
        Action::Export => ui.ask_export(Export::Watch),
        Action::Copy => {
            let said = words::verdict(&ui.states.watch, watch);
            return Some(vec![Intent::Copy(said.text)]);
        }
        Action::Back => return back(ui),
        _ => return None,
    }
    Some(Vec::new())
}

/// One step back: the filter, the opened group, the newest time; then the screen before.
fn back(ui: &mut Ui) -> Option<Vec<Intent>> {
    match () {
        () if !ui.filter.is_empty() => ui.filter = Filter::default(),
        () if ui.states.watch.inside.take().is_some() => {}
        () if ui.states.watch.seq.take().is_some() => {}
        () => return None,
    }
    Some(Vec::new())
}

fn half(ui: &Ui) -> i64 {
    (ui.states.watch.window.columns / 2).max(1).cast_signed()
}

/// Moves the time that is looked at by so many columns; gives whether it is the newest then.
fn scrub(ui: &mut Ui, watch: &Watching, columns: i64) {
    let state = &mut ui.states.watch;
    let Some((oldest, newest)) = watch.frames.first().zip(watch.frames.last()).map(|(a, b)| (a.seq, b.seq)) else {
        return;
    };
    let by = columns.saturating_mul(state.window.each.max(1).cast_signed());
    state.seq = Some(state.seq.unwrap_or(newest).saturating_add_signed(by).clamp(oldest, newest));
}

/// The same forward. Past the newest frame, a recording goes on there at once, and what is live is followed.
fn on(ui: &mut Ui, watch: &Watching, columns: i64) -> Vec<Intent> {
    let newest = watch.frames.last().map(|frame| frame.seq);
    if ui.states.watch.seq.is_some_and(|seq| Some(seq) != newest) {
        scrub(ui, watch, columns);
        return Vec::new();
    }
    ui.states.watch.seq = None;
    let Origin::Recording { at_s, end_s, .. } = &watch.origin else { return Vec::new() };
    let ahead = columns as f64 * ui.states.watch.window.each.max(1) as f64 * muster_watch::BLOCK_S;
    let at_s = (at_s + ahead).min(*end_s);
    if watch.over || ui.is_frozen() { Vec::new() } else { vec![Intent::WatchFrom { at_s }] }
}

/// Moves in the list that has the keys.
fn step(ui: &mut Ui, motion: Motion, watch: &Watching) {
    let parts = parts(ui, watch);
    let state = &mut ui.states.watch;
    match state.pane {
        Pane::Machines => {
            state.machines.go(motion, state.rows.len(), parts.strip.height.into());
            if let Some(node) = state.rows.get(state.machines.at).and_then(|row| row.nodes.first()) {
                state.chosen = watch.nodes.get(*node).map(|node| node.name.clone());
            }
        }
        Pane::Metrics => {
            let mut cursor = crate::widgets::Cursor::default();
            cursor.at = state.ranked.iter().position(|at| *at == state.metric).unwrap_or_default();
            cursor.go(motion, state.ranked.len(), lists::page(parts.lists.map_or(parts.line, |lists| lists[0])));
            choose_metric(ui, watch, cursor.at);
        }
        Pane::Alerts => {
            let page = lists::page(parts.lists.map_or(parts.line, |lists| lists[1]));
            state.alert.go(motion, watch.alerts.len(), page);
            show_alert(ui, watch);
        }
    }
}

fn next_metric(ui: &mut Ui, watch: &Watching) {
    let state = &ui.states.watch;
    let at = state.ranked.iter().position(|at| *at == state.metric).map_or(0, |at| at + 1);
    let at = if at < state.ranked.len() { at } else { 0 };
    choose_metric(ui, watch, at);
}

fn choose_metric(ui: &mut Ui, watch: &Watching, rank: usize) {
    let state = &mut ui.states.watch;
    if let Some(metric) = state.ranked.get(rank).and_then(|at| watch.metrics.get(*at)) {
        state.chosen_metric = Some(metric.name.clone());
    }
}

/// To the next alert, the newest first; the first press shows the newest.
fn jump(ui: &mut Ui, watch: &Watching, snapshot: &Snapshot, motion: Motion) {
    if watch.alerts.is_empty() {
        return ui.say(snapshot, "no alert so far");
    }
    let state = &mut ui.states.watch;
    let shown = state.alert_at(watch).is_some_and(|alert| {
        let name = |at: usize| watch.nodes.get(at).map(|node| node.name.as_str());
        name(state.node) == Some(alert.node.as_str()) && state.chosen.is_some()
    });
    if shown {
        let before = state.alert.at;
        state.alert.go(motion, watch.alerts.len(), 1);
        if state.alert.at == before {
            ui.say(snapshot, if motion == Motion::Down { "no older alert" } else { "no newer alert" });
        }
    }
    show_alert(ui, watch);
}

/// Shows the alert's machine and metric, and its time where it is over or out of view.
fn show_alert(ui: &mut Ui, watch: &Watching) {
    let state = &mut ui.states.watch;
    let Some(alert) = state.alert_at(watch) else { return };
    state.chosen = Some(alert.node.clone());
    state.chosen_metric.clone_from(&alert.metric);
    state.inside = None;
    state.seq = match alert.until_s {
        None => None,
        Some(_) => time::at(&watch.frames, alert.alerted_s - muster_watch::BLOCK_S),
    };
}

/// Opens what is folded under the cursor, else the machine on its own screen.
fn open(ui: &mut Ui, watch: &Watching, snapshot: &Snapshot) {
    let state = &mut ui.states.watch;
    let row = state.rows.get(state.machines.at).filter(|row| row.folded && state.pane == Pane::Machines);
    if let Some(label) = row.zip(state.folded).and_then(|(row, label)| {
        let value = watch.nodes.get(*row.nodes.first()?).and_then(|node| rows::value(node, label))?;
        Some((label.to_owned(), value.to_owned()))
    }) {
        state.inside = Some(label);
        return;
    }
    if select(ui, watch, snapshot) {
        ui.show(Screen::Node);
    } else {
        ui.say(snapshot, "nothing else is known of this machine");
    }
}

/// Makes the machine under the cursor the one that other screens show; gives whether they know it.
fn select(ui: &mut Ui, watch: &Watching, snapshot: &Snapshot) -> bool {
    let name = watch.nodes.get(ui.states.watch.node).map(|node| node.name.as_str());
    let at = name.and_then(|name| snapshot.nodes.iter().position(|node| node.name == name));
    if let Some(at) = at {
        ui.select(snapshot, at);
        fleet::seek(ui, at);
    }
    at.is_some()
}

fn check_alone(ui: &mut Ui, watch: &Watching, snapshot: &Snapshot) {
    let Some(node) = watch.nodes.get(ui.states.watch.node) else { return };
    ask_run_on(ui, CHECK, ("", std::slice::from_ref(&node.name)), snapshot);
}

/// To the case that has this machine; without one, the screen Triage says what would be collected.
fn triage(ui: &mut Ui, watch: &Watching, snapshot: &Snapshot) {
    let Some(node) = watch.nodes.get(ui.states.watch.node) else { return };
    let open = watch.alerts.iter().rev().find(|alert| alert.node == node.name && alert.until_s.is_none());
    crate::screens::triage::come_from(ui, snapshot, &node.name, open.map(|alert| alert.sentence.as_str()));
    ui.show(Screen::Triage);
}

/// Through what machines can be folded by, then a row each.
fn fold(ui: &mut Ui, watch: &Watching) {
    let labels = rows::labels(&watch.nodes);
    let state = &mut ui.states.watch;
    let next = match state.folded {
        None => 0,
        Some(label) => labels.iter().position(|known| *known == label).map_or(0, |at| at + 1),
    };
    state.inside = None;
    state.fold = labels.get(next).map_or(Fold::Off, |label| Fold::By(label));
}

fn stop(ui: &mut Ui, watch: &Watching) {
    let what = counted(watch.nodes.len(), "machine", "machines");
    let about = "What it saw stays on the screen.";
    let confirm = Confirm::plain(format!("Stop watching {what}?"), about, vec![Intent::StopWatch]);
    ui.popups.push(Popup::Confirm(confirm));
}

/// A click on a machine chooses it, and in the strip its time.
pub(crate) fn click(ui: &mut Ui, (x, y): (u16, u16), snapshot: &Snapshot) -> Vec<Intent> {
    let Some(watch) = snapshot.watch.data.as_deref() else { return Vec::new() };
    let parts = parts(ui, watch);
    let Some(line) = y.checked_sub(parts.strip.y).filter(|line| *line < parts.strip.height) else { return Vec::new() };
    let state = &mut ui.states.watch;
    let at = state.machines.window(state.rows.len(), parts.strip.height.into()).start + usize::from(line);
    let Some(node) = state.rows.get(at).and_then(|row| row.nodes.first()) else { return Vec::new() };
    state.pane = Pane::Machines;
    state.chosen = watch.nodes.get(*node).map(|node| node.name.clone());
    if let Some(column) = x.checked_sub(parts.strip.x).filter(|column| *column < parts.strip.width)
        && let Some(frame) = state.window.frames(&watch.frames, column).last()
    {
        state.seq = Some(frame.seq);
    }
    Vec::new()
}
