//! `swap repair`, `replace`, `spare`, `return` and `slurm`, as `muster swap` has them: for the marked nodes, else for the one under the cursor.

use muster_analysis::service::Service;

use crate::intent::{Hand, Intent};
use crate::popups::palette::{Command, Entry};
use crate::popups::{Confirm, Popup};
use crate::snapshot::{NodeRow, Snapshot};
use crate::text::counted;
use crate::ui::Ui;

/// Begins all of them.
const SWAP: &str = "swap ";

/// What is done with nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Hand(Hand),
    /// Take the commands for Slurm along.
    Slurm,
}

impl Verb {
    const ALL: [Self; 5] = [
        Self::Hand(Hand::Repair),
        Self::Hand(Hand::Replace),
        Self::Hand(Hand::Spare),
        Self::Hand(Hand::Return),
        Self::Slurm,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Hand(Hand::Repair) => "repair",
            Self::Hand(Hand::Replace) => "replace",
            Self::Hand(Hand::Spare) => "spare",
            Self::Hand(Hand::Return) => "return",
            Self::Slurm => "slurm",
        }
    }

    fn about(self, whom: &str) -> String {
        match self {
            Self::Hand(Hand::Repair) => format!("put {whom} into repair; type why behind it"),
            Self::Hand(Hand::Replace) => format!("replace {whom} from the hot buffer"),
            Self::Hand(Hand::Spare) => format!("keep {whom} as a spare; type why behind it"),
            Self::Hand(Hand::Return) => format!("give {whom} back to service, if it passes"),
            Self::Slurm => "copy what a person then tells Slurm".to_owned(),
        }
    }

    fn entry(self, about: String, reason: &str) -> Entry {
        Entry { name: format!("{SWAP}{}", self.word()), about, does: Command::Swap(self, reason.to_owned()) }
    }
}

/// The commands without a reason.
pub(super) fn entries(ui: &Ui, snapshot: &Snapshot) -> impl Iterator<Item = Entry> {
    let nodes = targets(ui, snapshot);
    let whom = match nodes.as_slice() {
        [] => "a node".to_owned(),
        [one] => one.clone(),
        more => format!("{} marked nodes", more.len()),
    };
    Verb::ALL.into_iter().map(move |verb| verb.entry(verb.about(&whom), ""))
}

/// The command that `text` spells with a reason behind it.
pub(super) fn with_reason(ui: &Ui, snapshot: &Snapshot, text: &str) -> Option<Entry> {
    let (word, reason) = text.strip_prefix(SWAP)?.trim_start().split_once(' ')?;
    let hand = |verb: &Verb| *verb != Verb::Slurm && verb.word() == word;
    let verb = Verb::ALL.into_iter().find(hand)?;
    let reason = plain(reason);
    // Which nodes are meant is said by the marks and the cursor.
    if reason.is_empty() || reason.starts_with('-') {
        return None;
    }
    let whom = match targets(ui, snapshot).as_slice() {
        [one] => one.clone(),
        more => counted(more.len(), "node", "nodes"),
    };
    Some(verb.entry(format!("{whom}: {reason}"), reason))
}

/// A reason as it was meant by whoever types what the command line takes.
fn plain(reason: &str) -> &str {
    let reason = reason.trim();
    reason.strip_prefix("--reason").map_or(reason, |rest| rest.trim().trim_matches(['\'', '"']))
}

/// The marked nodes in inventory order, else the one under the cursor: hands are nothing to change of all at once.
fn targets(ui: &Ui, snapshot: &Snapshot) -> Vec<String> {
    match ui.marks.is_empty() {
        true => ui.selected_row(snapshot).map(|(_, node)| node.name.clone()).into_iter().collect(),
        false => ui.targets(snapshot),
    }
}

/// Asks whether to do it; commands are only taken along.
pub(crate) fn ask(ui: &mut Ui, snapshot: &Snapshot, (verb, reason): (Verb, &str)) -> Vec<Intent> {
    let Verb::Hand(hand) = verb else { return slurm(ui, snapshot) };
    let nodes = targets(ui, snapshot);
    if nodes.is_empty() {
        ui.say(snapshot, "there is no node under the cursor");
        return Vec::new();
    }
    let defective = |node: &NodeRow| node.hands() == Service::Defective && nodes.contains(&node.name);
    if hand == Hand::Replace && !snapshot.nodes.iter().any(|node| defective(node)) {
        ui.say(snapshot, "only a defective node has a spare listed; muster swap replace --by names another");
        return Vec::new();
    }
    let count = counted(nodes.len(), "node", "nodes");
    let (question, about) = match hand {
        Hand::Repair => (
            format!("Put {count} into repair?"),
            "It comes back only after a full validation that passes. muster runs no Slurm command; swap slurm copies them.",
        ),
        Hand::Replace => (
            format!("Replace {count} from the hot buffer?"),
            "It goes into repair, and the spare that is listed for it into service. muster runs no Slurm command; copy them \
             first with swap slurm.",
        ),
        Hand::Spare => (
            format!("Keep {count} free as spares in the hot buffer?"),
            "A spare replaces a defective node of the same hardware. muster runs no Slurm command.",
        ),
        Hand::Return => (
            format!("Give {count} back to service?"),
            "Only a node that passed a full validation since, also by the run that failed it, is given back; else muster \
             says what is missing. Incidents that muster opened end.",
        ),
    };
    let spare = if hand == Hand::Replace { listed(snapshot, &nodes) } else { String::new() };
    let why = if reason.is_empty() { String::new() } else { format!(" Why: {reason}.") };
    let about = format!("{spare}{about}{why}");
    let then = Intent::Swap { hand, nodes: nodes.clone(), reason: reason.to_owned() };
    ui.popups.push(Popup::Confirm(Confirm { question, ..Confirm::on_nodes("", about, &nodes, then) }));
    Vec::new()
}

/// Which spare is listed for a node, where only one is meant: `n101 replaces it (same leaf). `.
fn listed(snapshot: &Snapshot, nodes: &[String]) -> String {
    let [one] = nodes else { return String::new() };
    let row = snapshot.nodes.iter().find(|node| node.name == *one).and_then(|node| node.service.as_deref());
    row.filter(|row| !row.swap.is_empty()).map_or_else(String::new, |row| format!("{}. ", row.swap))
}

/// Copies the commands that replace the marked nodes, else all that are defective.
fn slurm(ui: &mut Ui, snapshot: &Snapshot) -> Vec<Intent> {
    let wanted = |node: &&NodeRow| ui.marks.is_empty() || ui.marks.contains(&node.name);
    let defective = snapshot.nodes.iter().map(AsRef::as_ref).filter(|node| node.hands() == Service::Defective);
    let nodes: Vec<&NodeRow> = defective.filter(wanted).collect();
    let lines: Vec<&str> = nodes
        .iter()
        .filter_map(|node| node.service.as_ref())
        .flat_map(|row| row.commands.iter().map(String::as_str))
        .collect();
    if lines.is_empty() {
        ui.say(snapshot, "no node here is defective, so there is no command for Slurm");
        return Vec::new();
    }
    let text = lines.join("\n");
    let of = counted(nodes.len(), "defective node", "defective nodes");
    ui.say(snapshot, format!("copied the commands for Slurm for {of}; look at them before you run them"));
    vec![Intent::Copy(text)]
}
