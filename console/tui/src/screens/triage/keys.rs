//! What keys do on the screen.

use muster_logs::Category;
use muster_triage::report::Suspect;

use crate::filter::Filter;
use crate::intent::{Export, Intent};
use crate::keymap::{Action, Binding, ENTER, LEFT, Motion, RIGHT, TAB, WIDE, char, letter, one};
use crate::popups::{Confirm, FilterBox, Popup};
use crate::screens::triage::state::{Pane, entries, inside, measured, parts, reader, suspects};
use crate::screens::triage::{matrix, timeline, words};
use crate::screens::{Screen, fleet};
use crate::snapshot::{Snapshot, Triaged};
use crate::ui::Ui;
use crate::update::ask_watch_on;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(TAB, "tab", Action::Pane, "evidence, time line, ranks, steps, what was not looked at").hint("pane", 1),
    one(char(']'), "[ ]", Action::NextFinding, "next suspect, whichever list has the keys").hint("suspect", 2),
    letter("[", Action::PreviousFinding, "the suspect before"),
    one(ENTER, "enter", Action::Open, "open the machine under the cursor on its own screen").hint("node", 4),
    letter("x", Action::MarkWrong, "mark the suspect as wrong, and see who is next; x again undoes it")
        .hint("wrong", 3),
    letter("C", Action::ConfirmCause, "confirm the suspect: an incident for its node; asks first").hint("confirm", 4),
    letter("a", Action::AskAgain(false), "ask the nodes again, and show what they tell now"),
    letter("A", Action::AskAgain(true), "the same after the job has written flight-recorder dumps; asks first"),
    letter("D", Action::Drain, "copy the command that drains the suspect's node"),
    letter("O", Action::Offline, "test the nodes without the job (offline diagnosis); asks first"),
    letter("o", Action::Fold, "gather equal ranks, or a line each"),
    LEFT,
    RIGHT,
    WIDE,
];

/// Shows the machine `node` of another screen: its suspicion where the case has one, else what would be done for its `alert`.
pub(crate) fn come_from(ui: &mut Ui, _: &Snapshot, node: &str, alert: Option<&str>) {
    ui.states.triage.asked = Some((node.to_owned(), alert.map(str::to_owned)));
}

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    let triaged = snapshot.triage.data.clone()?;
    match action {
        Action::Move(Motion::Left) => ui.states.triage.column = ui.states.triage.column.saturating_sub(1),
        Action::Move(Motion::Right) => ui.states.triage.column += 1,
        Action::Move(motion) => step(ui, motion, &triaged),
        Action::Pane => ui.states.triage.pane = ui.states.triage.pane.next(),
        Action::NextFinding => choose(ui, &triaged, Motion::Down),
        Action::PreviousFinding => choose(ui, &triaged, Motion::Up),
        Action::Open => open(ui, &triaged, snapshot),
        Action::MarkWrong => return Some(mark(ui, &triaged, snapshot)),
        Action::ConfirmCause => confirm(ui, &triaged, snapshot),
        Action::AskAgain(false) => return Some(vec![Intent::TriageAgain { dumps: false }]),
        Action::AskAgain(true) => ask_for_dumps(ui),
        Action::Drain => {
            let command = triaged.overview.report.drain.as_ref();
            return Some(taken(ui, command, "no node is to be drained by this verdict", snapshot));
        }
        Action::Offline => ask_to_test(ui, &triaged, snapshot),
        Action::Fold => fold(ui, &triaged),
        Action::Watch => watch(ui, &triaged, snapshot),
        Action::Filter => ui.popups.push(Popup::Filter(FilterBox::new(&ui.filter))),
        Action::Export => ui.ask_export(Export::Triage),
        Action::Copy => return Some(vec![Intent::Copy(copied(ui, &triaged))]),
        Action::Back => return back(ui),
        _ => return None,
    }
    Some(Vec::new())
}

/// One step back: the filter, the suspects; then the screen before.
fn back(ui: &mut Ui) -> Option<Vec<Intent>> {
    match () {
        () if !ui.filter.is_empty() => ui.filter = Filter::default(),
        () if ui.states.triage.pane != Pane::Suspects => ui.states.triage.pane = Pane::Suspects,
        () => return None,
    }
    Some(Vec::new())
}

/// Moves in the list that has the keys.
fn step(ui: &mut Ui, motion: Motion, triaged: &Triaged) {
    let parts = parts(ui, triaged);
    let pane = ui.states.triage.pane;
    match (pane, parts.of(pane)) {
        (Pane::Suspects, _) => choose(ui, triaged, motion),
        (Pane::Matrix, Some(area)) => {
            let state = &mut ui.states.triage;
            state.matrix.go(motion, state.lines.len(), matrix::page(area));
        }
        (_, Some(area)) => {
            let (heights, page) = measured(ui, triaged, (pane, area));
            if let Some(reader) = reader(&mut ui.states.triage, pane) {
                reader.go(motion, &heights, page);
            }
        }
        (_, None) => {}
    }
}

/// Another suspect.
fn choose(ui: &mut Ui, triaged: &Triaged, motion: Motion) {
    let page = usize::from(parts(ui, triaged).suspects.height);
    let state = &mut ui.states.triage;
    state.suspects.go(motion, suspects(triaged).count(), page);
    state.chosen = state.suspect(triaged).map(|(suspect, _)| suspect.subject());
}

/// The machine that the cursor of the list with the keys is on.
fn node_here(ui: &Ui, triaged: &Triaged) -> Option<String> {
    let state = &ui.states.triage;
    let of_suspect = || state.suspect(triaged).and_then(|(suspect, _)| suspect.node.clone());
    match state.pane {
        Pane::Timeline => {
            let place = *state.moments.get(state.timeline.at)?;
            triaged.overview.moments.get(place)?.node.clone()
        }
        Pane::Matrix => match matrix::chosen(ui, triaged, &parts(ui, triaged))?.nodes.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        },
        Pane::Evidence => {
            let (suspect, _) = state.suspect(triaged)?;
            // Its own sentence may stand above the lines.
            let above = usize::from(state.suspects.at > 0);
            let line = state.evidence.at.checked_sub(above).and_then(|at| suspect.evidence.get(at));
            line.and_then(|line| line.node.clone()).or_else(of_suspect)
        }
        _ => of_suspect(),
    }
}

fn open(ui: &mut Ui, triaged: &Triaged, snapshot: &Snapshot) {
    let Some(name) = node_here(ui, triaged) else {
        return ui.say(snapshot, "nothing under the cursor is one machine");
    };
    match snapshot.nodes.iter().position(|node| node.name == name) {
        Some(at) => {
            ui.select(snapshot, at);
            fleet::seek(ui, at);
            ui.show(Screen::Node);
        }
        None => ui.say(snapshot, format!("{name} is not in this inventory")),
    }
}

fn mark(ui: &mut Ui, triaged: &Triaged, snapshot: &Snapshot) -> Vec<Intent> {
    let Some((suspect, wrong)) = ui.states.triage.suspect(triaged) else {
        ui.say(snapshot, "nobody is suspected");
        return Vec::new();
    };
    let subject = suspect.subject();
    if !wrong {
        // Who is next leads.
        ui.states.triage.chosen = None;
        ui.states.triage.suspects = crate::widgets::Cursor::default();
    }
    vec![Intent::TriageWrong { subject, wrong: !wrong }]
}

/// Asks whether the suspect is the root cause; what names no machine is nothing for the incident log.
fn confirm(ui: &mut Ui, triaged: &Triaged, snapshot: &Snapshot) {
    let Some((suspect, wrong)) = ui.states.triage.suspect(triaged) else {
        return ui.say(snapshot, "nobody is suspected");
    };
    let said = match refuses(triaged, suspect, wrong) {
        Some(why) => return ui.say(snapshot, why),
        None => words::who(suspect),
    };
    let node = suspect.node.clone().unwrap_or_default();
    let about = format!(
        "An incident on {node} goes into the incident log with the source triage; the Selector learns from it."
    );
    let then = Intent::TriageConfirm { subject: suspect.subject() };
    ui.popups.push(Popup::Confirm(Confirm::plain(format!("Confirm {said} as the root cause?"), about, vec![then])));
}

/// Asks whether the job may be made to write dumps.
fn ask_for_dumps(ui: &mut Ui) {
    let about = "Each rank with a dump pipe (TORCH_NCCL_DEBUG_INFO_PIPE_FILE), and each of train-ddp, writes its last collectives to a \
                 file. The job goes on. Then the nodes are asked again.";
    let then = Intent::TriageAgain { dumps: true };
    ui.popups.push(Popup::Confirm(Confirm::plain(
        "Make the job write dumps?".to_owned(),
        about.to_owned(),
        vec![then],
    )));
}

/// Asks whether the nodes of the case may be loaded without the job.
fn ask_to_test(ui: &mut Ui, triaged: &Triaged, snapshot: &Snapshot) {
    if let Some((what, word)) = Ui::busy(snapshot) {
        return ui.say(snapshot, format!("{what} is still {word}; c cancels it"));
    }
    let nodes = match &triaged.testable {
        Ok(nodes) => nodes,
        Err(why) => return ui.say(snapshot, why.clone()),
    };
    let all = triaged.overview.nodes.len();
    let some =
        if nodes.len() < all { format!(" {} of its {all} nodes are known here.", nodes.len()) } else { String::new() };
    let about = format!(
        "They must be free of work: the job has left them, and nothing else runs there.{some} Self-tests, a reference job on all and \
         on parts, then pairs: {}. c cancels it.",
        words::testing_takes(nodes.len())
    );
    let then = Intent::TriageOffline { nodes: nodes.clone() };
    ui.popups.push(Popup::Confirm(Confirm::on_nodes("Test the case's", about, nodes, then)));
}

/// Why a suspect is nothing for the incident log, if so.
fn refuses(triaged: &Triaged, suspect: &Suspect, wrong: bool) -> Option<&'static str> {
    match triaged.overview.report.category {
        _ if wrong => Some("marked as wrong; x takes the mark away"),
        _ if triaged.confirmed.contains(&suspect.subject()) => Some("confirmed already"),
        Category::UserBug => Some("the program is at fault: no machine gets an incident"),
        Category::None => Some("nothing is wrong with a machine here"),
        _ if suspect.node.is_none() => Some("no machine is named, and incidents are of machines"),
        _ => None,
    }
}

/// Copies a command; where there is `none`, says why.
fn taken(ui: &mut Ui, command: Option<&String>, none: &str, snapshot: &Snapshot) -> Vec<Intent> {
    match command {
        Some(command) => vec![Intent::Copy(command.clone())],
        None => {
            ui.say(snapshot, none);
            Vec::new()
        }
    }
}

fn fold(ui: &mut Ui, triaged: &Triaged) {
    let page = parts(ui, triaged).of(Pane::Matrix).map_or(1, matrix::page);
    let state = &mut ui.states.triage;
    state.fold = Some(!state.is_folded(triaged, page));
    state.matrix = crate::widgets::Cursor::default();
}

/// To the watch that looks at these machines; where none does, asks whether to begin one.
fn watch(ui: &mut Ui, triaged: &Triaged, snapshot: &Snapshot) {
    let of_case = |name: &String| triaged.overview.nodes.contains(name);
    let suspect = ui.states.triage.suspect(triaged).and_then(|(suspect, _)| suspect.node.clone());
    if let Some(watch) = snapshot.watch.data.as_deref()
        && watch.nodes.iter().any(|node| of_case(&node.name))
    {
        if let Some(node) = suspect.filter(|name| watch.nodes.iter().any(|node| node.name == *name)) {
            ui.states.watch.chosen = Some(node);
        }
        return ui.show(Screen::Watch);
    }
    let nodes: Vec<String> = snapshot.nodes.iter().map(|node| node.name.clone()).filter(of_case).collect();
    if nodes.is_empty() {
        return ui.say(snapshot, "no machine of this case is watched or in this inventory");
    }
    ask_watch_on(ui, (" the case's", &nodes), snapshot);
}

/// What stands under the cursor, in words.
fn copied(ui: &Ui, triaged: &Triaged) -> String {
    let state = &ui.states.triage;
    let parts = parts(ui, triaged);
    let report = &triaged.overview.report;
    let entry = |pane, at: usize| entries(ui, triaged, pane).get(at).map(|entry| entry.plain());
    let found = match state.pane {
        Pane::Suspects => None,
        Pane::Evidence => entry(Pane::Evidence, state.evidence.at),
        Pane::Steps => entry(Pane::Steps, state.steps.at),
        Pane::Gaps => entry(Pane::Gaps, state.gaps.at),
        Pane::Timeline => {
            state.moments.get(state.timeline.at).and_then(|place| triaged.overview.moments.get(*place)).map(|moment| {
                let at = moment.at_s.map_or(String::new(), |at| {
                    format!(
                        "{} {} ",
                        words::clock(at, moment.error_s),
                        words::error(moment.error_s, ui.theme.is_ascii())
                    )
                });
                format!("{at}{} {}", moment.node.as_deref().unwrap_or_default(), moment.text)
            })
        }
        Pane::Matrix => {
            matrix::chosen(ui, triaged, &parts).map(|line| matrix::sentence(line, &triaged.overview.matrix.columns))
        }
    };
    found.unwrap_or_else(|| {
        let sentence = state.suspect(triaged).map_or("", |(suspect, _)| suspect.sentence.as_str());
        format!("{}: {sentence} Next: {}", report.category.name(), report.action)
    })
}

/// A click gives a list the keys, and puts its cursor on what was clicked.
pub(crate) fn click(ui: &mut Ui, (x, y): (u16, u16), snapshot: &Snapshot) -> Vec<Intent> {
    let Some(triaged) = snapshot.triage.data.clone() else { return Vec::new() };
    let parts = parts(ui, &triaged);
    if parts.top.contains((x, y).into()) {
        ui.states.triage.pane = Pane::Suspects;
        if let Some(line) = y.checked_sub(parts.suspects.y).filter(|line| *line < parts.suspects.height) {
            let count = suspects(&triaged).count();
            let state = &mut ui.states.triage;
            let at = state.suspects.window(count, parts.suspects.height.into()).start + usize::from(line);
            if at < count {
                state.suspects.put(at, count, parts.suspects.height.into());
                state.chosen = state.suspect(&triaged).map(|(suspect, _)| suspect.subject());
            }
        }
        return Vec::new();
    }
    let Some((pane, area)) = parts.panes.iter().find(|(_, area)| area.contains((x, y).into())) else {
        return Vec::new();
    };
    ui.states.triage.pane = *pane;
    if *pane == Pane::Matrix {
        let top = inside(*area).y + 2;
        let state = &mut ui.states.triage;
        let at = y
            .checked_sub(top)
            .map(|line| state.matrix.window(state.lines.len(), matrix::page(*area)).start + usize::from(line));
        if let Some(at) = at.filter(|at| *at < state.lines.len()) {
            state.matrix.put(at, state.lines.len(), matrix::page(*area));
        }
        return Vec::new();
    }
    let list = if *pane == Pane::Timeline { timeline::list(ui, &triaged, inside(*area)) } else { inside(*area) };
    let (heights, _) = measured(ui, &triaged, (*pane, *area));
    if let Some(reader) = reader(&mut ui.states.triage, *pane)
        && let Some(at) = y.checked_sub(list.y).and_then(|line| reader.entry_at(&heights, line.into()))
    {
        reader.seek(at);
    }
    Vec::new()
}
