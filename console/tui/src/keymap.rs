//! Which key does what everywhere; every screen has a table of its own keys. From these the hint bar, help and the palette are made.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::intent::Play;
use crate::screens::Screen;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Show(Screen),
    Help,
    Filter,
    /// Hold the picture still while results arrive, or go on.
    Freeze,
    /// Give the list all of the width, or share it again.
    Wide,
    /// Show the racks instead of the table, or the other way round.
    Map,
    Palette,
    Mark,
    MarkAll,
    Open,
    Back,
    Pane,
    Sort,
    Reverse,
    /// Only what changed, or all.
    Changed,
    NextNode,
    NextFinding,
    PreviousFinding,
    PreviousNode,
    More,
    Less,
    Gather,
    Metric,
    /// Move a slider; up if true.
    Slide(Slider, bool),
    /// Try another term of judgement.
    Try(Term),
    Run,
    /// Watch nodes while their job runs.
    Watch,
    StopWatch,
    /// Check one machine by itself.
    CheckAlone,
    /// A screen's width back in time, or on if true.
    Scrub(bool),
    /// Show what comes as it comes.
    Follow,
    /// Gather the machines by another label.
    Fold,
    /// Look into the failure of the job of what is shown.
    Triage,
    /// Mark the suspect as wrong, or take the mark away.
    MarkWrong,
    /// Confirm the suspect as the root cause.
    ConfirmCause,
    /// Ask the nodes of the case again; after flight-recorder dumps were written, if true.
    AskAgain(bool),
    /// Take the command along that drains the suspect's node.
    Drain,
    /// Put nodes into other hands: into repair, into the hot buffer, back into service.
    HandOver,
    /// Take the command along that tests the nodes of a job without the job.
    Offline,
    Rerun,
    Cancel,
    Clean,
    Copy,
    Export,
    Redraw,
    Suspend,
    Quit,
    Interrupt,
    Move(Motion),
    /// Stop, move or speed up the replay.
    Play(Play),
}

/// How the cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// A term of judgement; up if true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    Alpha(bool),
    Tau(bool),
    /// The next group of nodes.
    Group,
    /// The next stored version of the metric's criterion.
    Version,
}

/// What the sliders of the Selector's screen set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slider {
    /// The job's length.
    Hours,
    /// Minutes that may be spent.
    Budget,
    /// The risk that may remain.
    Risk,
}

/// What must be held, and the key.
type Key = (KeyModifiers, KeyCode);

/// What a key, or either of two, asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    keys: [Key; 2],
    /// How the keys are written.
    pub(crate) shown: &'static str,
    pub(crate) action: Action,
    /// Word in the hint bar; empty keeps it out.
    pub(crate) hint: &'static str,
    /// Lower stays longer when the bar is narrow.
    pub(crate) rank: u8,
    /// Sentence in help.
    pub(crate) help: &'static str,
}

/// Either of two keys; help alone names them.
pub(crate) const fn either(keys: [Key; 2], shown: &'static str, action: Action, help: &'static str) -> Binding {
    Binding { keys, shown, action, hint: "", rank: 9, help }
}

/// One key, written in its own way.
pub(crate) const fn one(key: Key, shown: &'static str, action: Action, help: &'static str) -> Binding {
    either([key, key], shown, action, help)
}

/// The key of one ASCII character, written as it is.
pub(crate) const fn letter(shown: &'static str, action: Action, help: &'static str) -> Binding {
    one(char(shown.as_bytes()[0] as char), shown, action, help)
}

impl Binding {
    /// The same with a word in the hint bar.
    pub(crate) const fn hint(self, hint: &'static str, rank: u8) -> Self {
        Self { hint, rank, ..self }
    }

    /// The key as help writes it: its own one of two that the hint bar writes together, as each has a line in help.
    pub(crate) fn own(&self) -> &'static str {
        let [(_, key), other] = self.keys;
        let own = |part: &&str| matches!(key, KeyCode::Char(c) if part.chars().eq([c]));
        let pair = self.keys[0] == other;
        self.shown.split(' ').find(own).filter(|_| pair).unwrap_or(self.shown)
    }
}

pub(crate) const ENTER: Key = (NONE, KeyCode::Enter);
pub(crate) const TAB: Key = (NONE, KeyCode::Tab);
/// `=` is where `+` is, without shift.
pub(crate) const PLUS: [Key; 2] = [char('+'), char('=')];
const NONE: KeyModifiers = KeyModifiers::NONE;

pub(crate) const fn char(c: char) -> Key {
    (NONE, KeyCode::Char(c))
}

const fn ctrl(c: char) -> Key {
    (KeyModifiers::CONTROL, KeyCode::Char(c))
}

use Action as A;
use Motion as M;

/// For screens with a cursor on nodes.
pub(crate) const MARK: Binding = one(char(' '), "space", A::Mark, "mark the node for the next action").hint("mark", 2);
/// For screens that follow the order of Fleet.
pub(crate) const NEXT_FINDING: Binding =
    one(char(']'), "[ ]", A::NextFinding, "next node that is not a pass").hint("finding", 6);
pub(crate) const PREVIOUS_FINDING: Binding = letter("[", A::PreviousFinding, "the node before that is not a pass");
/// For screens of one node.
pub(crate) const NEXT_NODE: Binding = letter("n", A::NextNode, "next node in the order of Fleet").hint("next node", 4);
pub(crate) const PREVIOUS_NODE: Binding = letter("p", A::PreviousNode, "previous node");
/// For screens with two lists.
pub(crate) const OTHER_LIST: Binding = one(TAB, "tab", A::Pane, "move to the other list").hint("pane", 3);
/// For screens on which something stands beside the list.
pub(crate) const WIDE: Binding = letter("w", A::Wide, "give the list all of the width, or show what is beside it");
/// For screens with nodes that somebody repairs or keeps.
pub(crate) const HAND_OVER: Binding =
    letter("H", A::HandOver, "repair, spare or return it, or the marked ones; asks first");
/// For screens that show what was measured.
pub(crate) const FREEZE: Binding = letter("F", A::Freeze, "hold the picture still while results arrive; F goes on");
/// For screens with columns to go along.
pub(crate) const LEFT: Binding = either([char('h'), (NONE, KeyCode::Left)], "left h", A::Move(M::Left), "left");
pub(crate) const RIGHT: Binding = either([char('l'), (NONE, KeyCode::Right)], "right l", A::Move(M::Right), "right");

/// What can be done on every screen.
const ACTIONS: &[Binding] = &[
    letter("R", A::Run, "run a playbook on the marked nodes, else on all; asks first").hint("run", 5),
    letter("r", A::Rerun, "measure failed and undecided nodes again; asks first"),
    letter("W", A::Watch, "watch the marked nodes, else all, as their job runs; asks first"),
    letter("c", A::Cancel, "cancel the run; asks first").hint("cancel", 2),
    letter("X", A::Clean, "remove probes from the marked nodes, else from all; asks first"),
    letter("/", A::Filter, "nodes by text, !text, r[1-3], state:, rack:, leaf:, group:, link:").hint("filter", 4),
    letter(":", A::Palette, "find a node, metric, run or command by its name"),
    letter("y", A::Copy, "copy what is under the cursor").hint("copy", 7),
    letter("e", A::Export, "export what is shown to a file").hint("export", 7),
];

/// What can be done with a replay, on every screen.
pub(crate) const REPLAY: &[Binding] = &[
    letter("P", A::Play(Play::Pause), "pause the replay, or continue").hint("pause", 1),
    one(char(','), ", .", A::Play(Play::Back), "back as far as five seconds of playing").hint("back, on", 1),
    letter(".", A::Play(Play::On), "on as far as five seconds of playing"),
    letter("{", A::Play(Play::Start), "to the start"),
    letter("}", A::Play(Play::End), "to the end"),
    one(char('('), "( )", A::Play(Play::Slower), "half as fast").hint("speed", 2),
    letter(")", A::Play(Play::Faster), "twice as fast"),
];

/// The keys of the screens, in the order of [`Screen::ALL`]: ten is `0`, then a letter.
pub(crate) const DIGITS: [&str; 11] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "T"];

/// How one moves, and leaves.
const MOVES: &[Binding] = &[
    either([char('k'), (NONE, KeyCode::Up)], "up k", A::Move(M::Up), "up"),
    either([char('j'), (NONE, KeyCode::Down)], "down j", A::Move(M::Down), "down"),
    either([(NONE, KeyCode::PageUp), ctrl('b')], "pgup", A::Move(M::PageUp), "a page up"),
    either([(NONE, KeyCode::PageDown), ctrl('f')], "pgdn", A::Move(M::PageDown), "a page down"),
    either([(NONE, KeyCode::Home), char('g')], "home g", A::Move(M::Home), "first row"),
    either([(NONE, KeyCode::End), char('G')], "end G", A::Move(M::End), "last row"),
    one((NONE, KeyCode::Esc), "esc", A::Back, "one step back: box, filter, marks, screen"),
    one(ctrl('l'), "ctrl-l", A::Redraw, "draw the screen anew"),
    one(ctrl('z'), "ctrl-z", A::Suspend, "back to the shell; fg returns"),
    one(ctrl('c'), "ctrl-c", A::Interrupt, "cancel the run; a second time quits"),
    either([char('?'), (NONE, KeyCode::F(1))], "?", A::Help, "these keys").hint("help", 0),
    letter("q", A::Quit, "quit; asks when a run goes on").hint("quit", 6),
];

/// What works on every screen, in the order of help.
pub(crate) fn everywhere() -> impl Iterator<Item = Binding> {
    let shows = Screen::ALL.into_iter().zip(DIGITS);
    let shows = shows.map(|(screen, digit)| letter(digit, A::Show(screen), screen.view().about));
    ACTIONS.iter().copied().chain(shows).chain(MOVES.iter().copied())
}

/// What works on `screen`: its own keys first.
pub(crate) fn bindings(screen: Screen) -> impl Iterator<Item = Binding> {
    screen.view().keys.iter().copied().chain(everywhere())
}

/// What `key` asks for on `screen`.
pub(crate) fn action(key: KeyEvent, screen: Screen) -> Option<Action> {
    // Shift is already in the character.
    let modifiers = key.modifiers.difference(KeyModifiers::SHIFT);
    bindings(screen).find(|b| b.keys.contains(&(modifiers, key.code))).map(|b| b.action)
}

/// What `key` asks for in a replay.
pub(crate) fn in_replay(key: KeyEvent) -> Option<Action> {
    let modifiers = key.modifiers.difference(KeyModifiers::SHIFT);
    REPLAY.iter().find(|b| b.keys.contains(&(modifiers, key.code))).map(|b| b.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_on_one_screen() {
        for screen in Screen::ALL {
            let mut seen = Vec::new();
            for Binding { keys: [first, second], .. } in bindings(screen).chain(REPLAY.iter().copied()) {
                assert!(![first, second].iter().any(|key| seen.contains(key)), "{first:?} twice on {screen:?}");
                seen.extend([first, second]);
            }
        }
    }

    #[test]
    fn help_names_the_one_key_that_does_what_it_says() {
        let own = |action: Action| bindings(Screen::Fleet).find(|b| b.action == action).map(|b| b.own());
        assert_eq!([own(A::NextFinding), own(A::PreviousFinding)], [Some("]"), Some("[")]);
        assert_eq!([own(A::Mark), own(A::Open), own(A::Move(M::Left))], [Some("space"), Some("enter"), Some("left h")]);
        assert_eq!(own(A::Run), Some("R"));
    }

    #[test]
    fn every_screen_has_a_key() {
        for screen in Screen::ALL {
            assert!(everywhere().any(|b| b.action == Action::Show(screen)), "{screen:?}");
        }
    }

    #[test]
    fn shifted_letters_arrive_with_and_without_the_modifier() {
        for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
            assert_eq!(action(KeyEvent::new(KeyCode::Char('R'), modifiers), Screen::Fleet), Some(Action::Run));
        }
    }
}
