//! What an event changes, and what the user wants by it. Touches no terminal, file or clock.

use crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::layout::Size;

use crate::draw::{TABS_ROW, tab_at};
use crate::event::{Event, Mouse};
use crate::filter::Filter;
use crate::freeze::{self, Frozen};
use crate::intent::Intent;
use crate::keymap::{self, Action, Motion};
use crate::popups::{self, Confirm, FilterBox, HelpBox, Palette, Popup};
use crate::screens::{Screen, bench, fleet};
use crate::snapshot::{RunProgress, Snapshot};
use crate::ui::Ui;

/// A second ctrl-c within this time quits.
const INTERRUPT_MS: u64 = 3_000;

/// Takes one event and gives what the user wants done, in order.
///
/// `snapshot` is the one that the next frame will be drawn from. Costs nothing that grows with the fleet, except on
/// [`Event::Snapshot`] and where the filter or the sort order changes.
pub fn update(ui: &mut Ui, event: Event, snapshot: &Snapshot) -> Vec<Intent> {
    ui.frozen.take_if(|frozen| !frozen.fits(snapshot));
    let mut intents = take(ui, event, &freeze::seen(ui.frozen.as_ref(), snapshot));
    // The event may have let a held picture go on.
    let seen = freeze::seen(ui.frozen.as_ref(), snapshot);
    refuse(ui, &seen);
    settle(ui, &seen);
    intents.extend(asks(ui, &seen));
    intents
}

/// What the event itself does.
fn take(ui: &mut Ui, event: Event, snapshot: &Snapshot) -> Vec<Intent> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Key(key) => {
            ui.last_key_ms = ui.now_ms(snapshot);
            take_key(ui, key, snapshot)
        }
        Event::Paste(text) => {
            paste(ui, &text);
            Vec::new()
        }
        Event::Mouse(mouse) => {
            ui.last_key_ms = ui.now_ms(snapshot);
            take_mouse(ui, mouse, snapshot)
        }
        Event::Resize { width, height } => {
            ui.size = Size { width, height };
            Vec::new()
        }
        Event::Snapshot => {
            ui.age_ms = 0;
            Vec::new()
        }
        Event::Tick { age_ms } => {
            ui.age_ms = age_ms;
            Vec::new()
        }
    }
}

/// What the screen needs to know to show what the user looks at.
fn asks(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    let mut intents = Vec::new();
    if let Some(name) = ui.selected().filter(|name| ui.focused.as_deref() != Some(*name)).map(str::to_owned) {
        ui.focused = Some(name.clone());
        intents.push(Intent::Focus { node: name });
    }
    intents.extend((ui.screen.view().ask)(ui, snapshot));
    intents
}

/// Takes back a question about something that would not be done whatever the answer, and says why.
fn refuse(ui: &mut Ui, snapshot: &Snapshot) {
    let Some(Popup::Confirm(confirm)) = ui.popups.last() else { return };
    let (acts, writes) = (confirm.then.iter().any(Intent::acts), confirm.then.iter().any(Intent::writes));
    let why = replayed(snapshot, acts).filter(|_| acts || writes).or_else(|| looks(snapshot).filter(|_| writes));
    if let Some(why) = why {
        ui.popups.pop();
        ui.say(snapshot, why);
    }
}

/// Why nothing is done on nodes from here, and nothing written, in a replay.
fn replayed(snapshot: &Snapshot, acts: bool) -> Option<String> {
    let nothing = if acts { "nothing is done on nodes" } else { "nothing is written to the database" };
    snapshot.replay().map(|_| format!("this is a replay: {nothing}"))
}

/// Why nothing is written from here, where this console only looks.
fn looks(snapshot: &Snapshot) -> Option<String> {
    snapshot.only_looks.as_ref().map(|why| format!("read-only: {why}"))
}

/// Brings what depends on the snapshot or the filter up to date.
fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let now = ui.now_ms(snapshot);
    if ui.notice.as_ref().is_some_and(|(_, until)| *until <= now) {
        ui.notice = None;
    }
    for screen in Screen::ALL {
        (screen.view().settle)(ui, snapshot);
    }
}

fn paste(ui: &mut Ui, text: &str) {
    match ui.popups.last_mut() {
        Some(Popup::Palette(palette)) => palette.input.paste(text),
        Some(Popup::Filter(filter)) => {
            filter.input.paste(text);
            ui.filter = Filter::new(filter.input.text());
        }
        _ => {}
    }
}

fn take_key(ui: &mut Ui, key: KeyEvent, snapshot: &Snapshot) -> Vec<Intent> {
    let in_replay = || keymap::in_replay(key).filter(|_| snapshot.replay().is_some());
    let action = keymap::action(key, ui.screen).or_else(in_replay);
    // These work whatever is open, so that nobody is ever locked in.
    if let Some(action @ (Action::Interrupt | Action::Redraw | Action::Suspend)) = action {
        return act(ui, action, snapshot);
    }
    if ui.is_too_small() {
        return if action == Some(Action::Quit) { quit(ui, snapshot) } else { Vec::new() };
    }
    match ui.popups.pop() {
        None => action.map(|a| act(ui, a, snapshot)).unwrap_or_default(),
        Some(Popup::Help(help)) => {
            popups::help_key(ui, help, key);
            Vec::new()
        }
        Some(Popup::Filter(filter)) => {
            popups::filter_key(ui, filter, key);
            Vec::new()
        }
        Some(Popup::Confirm(confirm)) => popups::confirm_key(ui, confirm, key),
        Some(Popup::Export(export)) => popups::export_key(ui, export, key),
        Some(Popup::Palette(palette)) => match popups::palette_key(ui, palette, key, snapshot) {
            Some(command) => obey(ui, command, snapshot),
            None => Vec::new(),
        },
    }
}

/// Rows that one step of the wheel moves.
const WHEEL: usize = 3;

fn take_mouse(ui: &mut Ui, mouse: Mouse, snapshot: &Snapshot) -> Vec<Intent> {
    if ui.is_too_small() || !ui.popups.is_empty() {
        return Vec::new();
    }
    match mouse {
        Mouse::Wheel { down } => {
            let motion = if down { Motion::Down } else { Motion::Up };
            (0..WHEEL).flat_map(|_| act(ui, Action::Move(motion), snapshot)).collect()
        }
        Mouse::Click { x, y: TABS_ROW } => {
            if let Some(screen) = tab_at(ui, x) {
                ui.show(screen);
            }
            Vec::new()
        }
        Mouse::Click { x, y } => (ui.screen.view().click)(ui, (x, y), snapshot),
    }
}

fn obey(ui: &mut Ui, command: popups::Command, snapshot: &Snapshot) -> Vec<Intent> {
    match command {
        popups::Command::Act(action) => act(ui, action, snapshot),
        popups::Command::Node(name) => {
            if let Some(at) = snapshot.nodes.iter().position(|node| node.name == name) {
                ui.select(snapshot, at);
                fleet::seek(ui, at);
                ui.show(Screen::Node);
            }
            Vec::new()
        }
        popups::Command::Open(run) => {
            ui.show(Screen::Fleet);
            vec![Intent::Open { run: Some(run) }]
        }
        popups::Command::Triage(path) => {
            ui.show(Screen::Triage);
            vec![Intent::Triage { path }]
        }
        popups::Command::Swap(verb, reason) => popups::ask_swap(ui, snapshot, (verb, &reason)),
        popups::Command::On(screen, action) => {
            ui.show(screen);
            act(ui, action, snapshot)
        }
        popups::Command::Metric(id) => {
            bench::open_metric(ui, snapshot, (&id, None));
            Vec::new()
        }
        popups::Command::Run(name) => {
            ask_run(ui, &name, snapshot);
            Vec::new()
        }
        popups::Command::Filter(text) => {
            ui.filter = Filter::new(text);
            ui.show(Screen::Fleet);
            Vec::new()
        }
    }
}

fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    let Some(intents) = (ui.screen.view().act)(ui, action, snapshot) else { return act_anywhere(ui, action, snapshot) };
    if let [Intent::Copy(text)] = &intents[..] {
        ui.say(snapshot, format!("copied: {text}"));
    }
    intents
}

/// Does what the screen has no answer of its own to.
fn act_anywhere(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    match action {
        Action::Show(screen) => ui.show(screen),
        Action::Help => ui.popups.push(Popup::Help(HelpBox::new(snapshot))),
        Action::Filter => {
            ui.show(Screen::Fleet);
            ui.popups.push(Popup::Filter(FilterBox::new(&ui.filter)));
        }
        Action::Palette => {
            ui.popups.push(Popup::Palette(Palette::default()));
            // It finds stored runs as well.
            return if snapshot.runs.data.is_none() { vec![Intent::Runs] } else { Vec::new() };
        }
        Action::Freeze => hold(ui, snapshot),
        Action::Wide => ui.wide = !ui.wide,
        Action::Back => ui.screen = ui.trail.pop().unwrap_or(Screen::Fleet),
        Action::Redraw => return vec![Intent::Redraw],
        Action::Suspend => return suspend(ui, snapshot),
        Action::Quit => return quit(ui, snapshot),
        Action::Interrupt => return interrupt(ui, snapshot),
        Action::Play(_) if !snapshot.plays() => {
            ui.say(snapshot, "this recording is of one moment: there is no time to go through");
        }
        Action::Play(play) => return vec![Intent::Play(play)],
        Action::Cancel | Action::Rerun | Action::Clean | Action::Run | Action::Watch if snapshot.replay().is_some() => {
            ui.say(snapshot, replayed(snapshot, true).unwrap_or_default());
        }
        Action::Cancel | Action::Rerun | Action::Run if snapshot.only_looks.is_some() => {
            ui.say(snapshot, looks(snapshot).unwrap_or_default());
        }
        Action::Cancel => ask_cancel(ui, snapshot),
        Action::Rerun => ask_rerun(ui, snapshot),
        Action::Clean => ask_clean(ui, snapshot),
        Action::Run if snapshot.playbooks.is_empty() => ui.say(snapshot, "there is no playbook to run"),
        Action::Run => ui.popups.push(Popup::Palette(Palette::new("run "))),
        Action::HandOver => ui.popups.push(Popup::Palette(Palette::new("swap "))),
        Action::Watch => ask_watch(ui, snapshot),
        Action::Mark => ui.mark(),
        Action::Copy | Action::Export => ui.say(snapshot, "there is nothing here to take along"),
        _ => {}
    }
    Vec::new()
}

/// Holds the picture still, or lets it go on.
fn hold(ui: &mut Ui, snapshot: &Snapshot) {
    ui.frozen = match ui.frozen {
        Some(_) => None,
        None => Some(Frozen::new(snapshot, ui.now_ms(snapshot))),
    };
    ui.say(
        snapshot,
        if ui.is_frozen() { "held; results keep arriving, F goes on" } else { "showing what is known now" },
    );
}

fn quit(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    let Some((what, _)) = Ui::busy(snapshot).filter(|_| !ui.is_too_small()) else { return vec![Intent::Quit] };
    let about = stays(snapshot);
    let question = format!("Cancel {what} and quit?");
    ui.popups.push(Popup::Confirm(Confirm::plain(question, about, vec![Intent::Cancel, Intent::Quit])));
    Vec::new()
}

/// What a run that is cancelled leaves.
fn stays(snapshot: &Snapshot) -> String {
    if snapshot.testing.is_some() {
        return "What was measured so far stays among the runs; the case learns nothing from it.".to_owned();
    }
    let RunProgress { done, total, .. } = &snapshot.progress;
    format!("{done} of {total} work items are done; they stay, and the run can be resumed.")
}

/// A stopped console hears no node, and probes that are not heard end by themselves.
fn suspend(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    let Some((what, word)) = Ui::busy(snapshot) else { return vec![Intent::Suspend] };
    ui.say(snapshot, format!("{what} is still {word}, and would end if this console stopped; c cancels it"));
    Vec::new()
}

fn interrupt(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    let now = ui.now_ms(snapshot);
    if ui.interrupted_ms.is_some_and(|at| now.saturating_sub(at) <= INTERRUPT_MS) {
        return vec![Intent::Quit];
    }
    ui.interrupted_ms = Some(now);
    if let Some((what, _)) = Ui::busy(snapshot) {
        let what = if snapshot.testing.is_some() { what } else { "the run" };
        ui.say(snapshot, format!("cancelling {what}; ctrl-c again quits"));
        return vec![Intent::Cancel];
    }
    ui.say(snapshot, "nothing is running; ctrl-c again quits");
    Vec::new()
}

/// Asks whether to run `playbook` on the marked nodes, else on all.
pub(crate) fn ask_run(ui: &mut Ui, playbook: &str, snapshot: &Snapshot) {
    let nodes = ui.targets(snapshot);
    let whose = whose(ui, &nodes);
    ask_run_on(ui, playbook, (whose, &nodes), snapshot);
}

/// Asks whether to run `playbook` on `nodes`; `whose` says which these are where their number does not.
pub(crate) fn ask_run_on(ui: &mut Ui, playbook: &str, (whose, nodes): (&str, &[String]), snapshot: &Snapshot) {
    if let Some((what, word)) = Ui::busy(snapshot) {
        ui.say(snapshot, format!("{what} is still {word}; c cancels it"));
        return;
    }
    if nodes.is_empty() {
        ui.say(snapshot, "there is no node to run it on");
        return;
    }
    let Some(found) = snapshot.playbooks.iter().find(|p| p.name == playbook) else { return };
    let about = format!("{}. Profile {}, {} steps.", found.title, found.profile, found.steps.len());
    let verb = format!("Run {playbook} on{whose}");
    let then = Intent::RunPlaybook { playbook: playbook.to_owned(), nodes: nodes.to_vec() };
    ui.popups.push(Popup::Confirm(Confirm::on_nodes(&verb, about, nodes, then)));
}

/// Asks whether to watch the marked nodes, else all.
fn ask_watch(ui: &mut Ui, snapshot: &Snapshot) {
    let nodes = ui.targets(snapshot);
    let whose = whose(ui, &nodes);
    ask_watch_on(ui, (whose, &nodes), snapshot);
}

/// Asks whether to watch `nodes`; `whose` says which these are where their number does not.
pub(crate) fn ask_watch_on(ui: &mut Ui, (whose, nodes): (&str, &[String]), snapshot: &Snapshot) {
    if nodes.is_empty() {
        return ui.say(snapshot, "there is no node to watch");
    }
    let goes_on = snapshot.watch.data.as_ref().is_some_and(|watch| !watch.over);
    let about = if goes_on {
        "A probe on each looks at it once a second. This takes the place of the watch that goes on now."
    } else {
        "A probe on each looks at it once a second until the watch is stopped; nothing else is done there."
    };
    let verb = format!("Watch{whose}");
    let then = Intent::Watch { nodes: nodes.to_vec() };
    ui.popups.push(Popup::Confirm(Confirm::on_nodes(&verb, about, nodes, then)));
}

/// ` all` or ` the marked`, where the number of nodes does not say it.
fn whose(ui: &Ui, nodes: &[String]) -> &'static str {
    match (ui.marks.is_empty(), nodes.len()) {
        (true, 1) => "",
        (true, _) => " all",
        (false, _) => " the marked",
    }
}

fn ask_cancel(ui: &mut Ui, snapshot: &Snapshot) {
    let Some((what, _)) = Ui::busy(snapshot) else { return ui.say(snapshot, "nothing is running") };
    let about = stays(snapshot);
    let question = format!("Cancel {what}?");
    ui.popups.push(Popup::Confirm(Confirm::plain(question, about, vec![Intent::Cancel])));
}

fn ask_rerun(ui: &mut Ui, snapshot: &Snapshot) {
    if let Some((what, word)) = Ui::busy(snapshot) {
        return ui.say(snapshot, format!("{what} is still {word}"));
    }
    let Some(run) = snapshot.run.as_deref() else { return ui.say(snapshot, "nothing has run yet; R runs a playbook") };
    if !snapshot.playbooks.iter().any(|known| known.name == run.playbook) {
        return ui.say(snapshot, format!("{} cannot be run from here; R runs a playbook", run.playbook));
    }
    let confirm = Confirm::again(run, snapshot.nodes.iter().map(|node| (node.name.as_str(), node.state)));
    match confirm {
        Some(confirm) => ui.popups.push(Popup::Confirm(confirm)),
        None => ui.say(snapshot, "no node failed and none is undecided, so there is nothing to measure again"),
    }
}

fn ask_clean(ui: &mut Ui, snapshot: &Snapshot) {
    let nodes = ui.targets(snapshot);
    if nodes.is_empty() {
        return ui.say(snapshot, "there is no node to clean");
    }
    let verb = format!("Remove probes from{}", whose(ui, &nodes));
    let then = Intent::Clean { nodes: nodes.clone() };
    let about = "Only files that muster uploaded are removed; results stay.";
    ui.popups.push(Popup::Confirm(Confirm::on_nodes(&verb, about, &nodes, then)));
}

#[cfg(test)]
mod tests {
    use muster_triage::report::{Kind, Subject};
    use muster_wire::Profile;

    use super::*;
    use crate::intent::Hand;
    use crate::snapshot::{Mode, PlaybookRow, Replay};
    use crate::theme::Theme;

    /// Questions that are open after `asks`, and what is said instead.
    fn asked(snapshot: &Snapshot, asks: impl FnOnce(&mut Ui)) -> (usize, String) {
        let mut ui = Ui::new(Theme::new(true, false), 120, 40);
        asks(&mut ui);
        refuse(&mut ui, snapshot);
        (ui.popups.len(), ui.notice.map_or_else(String::new, |(said, _)| said))
    }

    #[test]
    fn nothing_is_asked_that_would_not_be_done() {
        let book = PlaybookRow {
            name: "cbd-light".to_owned(),
            title: String::new(),
            about: String::new(),
            profile: Profile::Quick,
            steps: [].into(),
        };
        let live = Snapshot { playbooks: [book].into(), ..Snapshot::default() };
        let replay = Replay { at_ms: 1, from_ms: 0, until_ms: 2, speed: 1.0, paused: false };
        let played = Snapshot { mode: Mode::Replay(replay), ..live.clone() };
        let nodes = ["n1".to_owned()];
        let swap = Intent::Swap { hand: Hand::Repair, nodes: nodes.to_vec(), reason: String::new() };
        let run = |snapshot: &Snapshot| asked(snapshot, |ui| ask_run_on(ui, "cbd-light", ("", &nodes), snapshot));
        let hand = |snapshot: &Snapshot| {
            asked(snapshot, |ui| ui.popups.push(Popup::Confirm(Confirm::on_nodes("Put", "", &nodes, swap.clone()))))
        };
        let subject = Subject { kind: Kind::Node, node: Some("n1".to_owned()), rank: None, gpu: None, element: None };
        let confirm = |snapshot: &Snapshot| {
            let then = vec![Intent::TriageConfirm { subject: subject.clone() }];
            asked(snapshot, |ui| ui.popups.push(Popup::Confirm(Confirm::plain("Confirm n1?", "", then))))
        };
        let stop = |snapshot: &Snapshot| {
            let stop = || Confirm::plain("Stop watching?", "", vec![Intent::StopWatch]);
            asked(snapshot, |ui| ui.popups.push(Popup::Confirm(stop())))
        };
        for ask in [&run as &dyn Fn(&Snapshot) -> (usize, String), &hand] {
            assert_eq!(ask(&live), (1, String::new()));
            assert_eq!(ask(&played), (0, "this is a replay: nothing is done on nodes".to_owned()));
        }
        assert_eq!(confirm(&live), (1, String::new()));
        assert_eq!(confirm(&played), (0, "this is a replay: nothing is written to the database".to_owned()));
        assert_eq!(stop(&played), (1, String::new()), "the watch that is played may end");
        let looks = Snapshot { only_looks: Some("another muster has the database".into()), ..live };
        for ask in [&run as &dyn Fn(&Snapshot) -> (usize, String), &hand, &confirm] {
            assert_eq!(ask(&looks), (0, "read-only: another muster has the database".to_owned()));
        }
    }
}
