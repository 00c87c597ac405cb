//! Which key does what. The one table from which keys, the hint bar and help are made.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

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

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    keys: &'static [(KeyModifiers, KeyCode)],
    /// How the keys are written.
    pub(crate) shown: &'static str,
    pub(crate) action: Action,
    /// Screens on which it works; empty means all.
    on: &'static [Screen],
    /// Word in the hint bar; empty keeps it out.
    pub(crate) hint: &'static str,
    /// Lower stays longer when the bar is narrow.
    pub(crate) rank: u8,
    /// Sentence in help.
    pub(crate) help: &'static str,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

const fn key(c: char) -> (KeyModifiers, KeyCode) {
    (NONE, KeyCode::Char(c))
}

macro_rules! bind {
    ($keys:expr, $shown:literal, $action:expr, $on:expr, $hint:literal, $rank:literal, $help:literal) => {
        Binding { keys: &$keys, shown: $shown, action: $action, on: &$on, hint: $hint, rank: $rank, help: $help }
    };
}

use Action as A;
use Motion as M;
use Screen as S;

/// Screens on which something stands beside the list.
const WITH_PANES: [S; 6] = [S::Fleet, S::Node, S::Benchmarks, S::Criteria, S::Selector, S::Network];
/// Screens that show what was measured.
const WITH_DATA: [S; 8] =
    [S::Fleet, S::Node, S::Benchmarks, S::Criteria, S::Selector, S::Network, S::Playbooks, S::Runs];

/// The table, in the order of help: what belongs to single screens first.
pub(crate) const BINDINGS: &[Binding] = &[
    bind!([(NONE, KeyCode::Enter)], "enter", A::Open, [S::Fleet], "open", 1, "open the node under the cursor"),
    bind!([(NONE, KeyCode::Enter)], "enter", A::Open, [S::Node], "its chart", 1, "open the metric under the cursor"),
    bind!(
        [(NONE, KeyCode::Enter)],
        "enter",
        A::Open,
        [S::Benchmarks],
        "nodes",
        1,
        "go to its nodes, then open the node"
    ),
    bind!([(NONE, KeyCode::Enter)], "enter", A::Open, [S::Playbooks], "run", 1, "run this playbook; asks first"),
    bind!(
        [(NONE, KeyCode::Enter)],
        "enter",
        A::Open,
        [S::Runs],
        "open",
        1,
        "show what this run alone says; esc goes back"
    ),
    bind!([(NONE, KeyCode::Enter)], "enter", A::Open, [S::Network], "closer", 2, "go to the worst pair of the block"),
    bind!(
        [key(' ')],
        "space",
        A::Mark,
        [S::Fleet, S::Node, S::Benchmarks],
        "mark",
        2,
        "mark the node for the next action"
    ),
    bind!([key('a')], "a", A::MarkAll, [S::Fleet], "mark all", 8, "mark every node shown, or none"),
    bind!([key('s')], "s", A::Sort, [S::Fleet], "sort", 4, "sort by the next column"),
    bind!([key('S')], "S", A::Reverse, [S::Fleet], "", 9, "reverse the order"),
    bind!([(NONE, KeyCode::Tab)], "tab", A::Pane, [S::Benchmarks, S::Node], "pane", 3, "move to the other list"),
    bind!([key(']')], "[ ]", A::NextFinding, [S::Fleet, S::Node], "finding", 6, "next node that is not a pass"),
    bind!([key('[')], "[", A::PreviousFinding, [S::Fleet, S::Node], "", 9, "the one before"),
    bind!([key('n')], "n", A::NextNode, [S::Node, S::Benchmarks], "next node", 4, "next node in the order of Fleet"),
    bind!([key('d')], "d", A::Changed, [S::Node], "diff", 5, "only metrics that changed since the run before, or all"),
    bind!([key('p')], "p", A::PreviousNode, [S::Node, S::Benchmarks], "", 9, "previous node"),
    bind!([key('n')], "n", A::NextNode, [S::Network], "next suspect", 1, "go to the next suspect's worst pair"),
    bind!([key('p')], "p", A::PreviousNode, [S::Network], "", 9, "go to the suspect before"),
    bind!([key('+'), key('=')], "+", A::More, [S::Network], "zoom in", 3, "see half as many pairs, twice as large"),
    bind!([key('-')], "-", A::Less, [S::Network], "out", 4, "see twice as many pairs"),
    bind!(
        [key('b')],
        "b",
        A::Gather,
        [S::Network],
        "worst/median",
        5,
        "let a block show its worst pair or its middle one"
    ),
    bind!([key('m')], "m", A::Metric, [S::Network], "metric", 6, "show the next metric"),
    bind!(
        [(NONE, KeyCode::Tab)],
        "tab",
        A::Pane,
        [S::Network],
        "pane",
        3,
        "suspects, the pair's samples, hop distances"
    ),
    bind!(
        [key('+'), key('=')],
        "+ -",
        A::Try(Term::Alpha(true)),
        [S::Benchmarks],
        "what-if",
        2,
        "what if alpha were higher"
    ),
    bind!([key('-')], "-", A::Try(Term::Alpha(false)), [S::Benchmarks], "", 9, "what if alpha were lower"),
    bind!([key('>')], ">", A::Try(Term::Tau(true)), [S::Benchmarks], "", 9, "what if tau were higher"),
    bind!([key('<')], "<", A::Try(Term::Tau(false)), [S::Benchmarks], "", 9, "what if tau were lower"),
    bind!([key('o')], "o", A::Try(Term::Group), [S::Benchmarks], "", 9, "what if only the next group were judged"),
    bind!([key('v')], "v", A::Try(Term::Version), [S::Benchmarks], "", 9, "what if the next stored criterion judged"),
    bind!([key(' ')], "space", A::Mark, [S::Criteria], "compare", 1, "compare others with this version"),
    bind!([(NONE, KeyCode::Enter)], "enter", A::Open, [S::Selector], "open", 3, "open the node under the cursor"),
    bind!([key(']')], "[ ]", A::Slide(Slider::Hours, true), [S::Selector], "job", 1, "a longer job"),
    bind!([key('[')], "[", A::Slide(Slider::Hours, false), [S::Selector], "", 9, "a shorter job"),
    bind!(
        [key('+'), key('=')],
        "+",
        A::Slide(Slider::Budget, true),
        [S::Selector],
        "budget",
        2,
        "more minutes to spend"
    ),
    bind!([key('-')], "-", A::Slide(Slider::Budget, false), [S::Selector], "", 9, "fewer minutes to spend"),
    bind!([key('>')], "< >", A::Slide(Slider::Risk, true), [S::Selector], "p0", 2, "let more risk remain"),
    bind!([key('<')], "<", A::Slide(Slider::Risk, false), [S::Selector], "", 9, "let less risk remain"),
    bind!([(NONE, KeyCode::Tab)], "tab", A::Pane, [S::Selector], "pane", 4, "picks, survival, coverage"),
    bind!([key('m')], "m", A::Map, [S::Fleet], "map", 5, "racks, a cell a node, instead of the table; m goes back"),
    bind!([key('w')], "w", A::Wide, WITH_PANES, "", 9, "give the list all of the width, or show what is beside it"),
    bind!([key('F')], "F", A::Freeze, WITH_DATA, "", 9, "hold the picture still while results arrive; F goes on"),
    bind!([key('+'), key('=')], "+", A::More, [S::Log], "more", 2, "show less important lines too"),
    bind!([key('-')], "-", A::Less, [S::Log], "less", 3, "show only more important lines"),
    bind!([key('R')], "R", A::Run, [], "run", 5, "run a playbook on the marked nodes, else on all; asks first"),
    bind!([key('r')], "r", A::Rerun, [], "", 9, "measure failed and undecided nodes again; asks first"),
    bind!([key('c')], "c", A::Cancel, [], "cancel", 2, "cancel the run; asks first"),
    bind!([key('X')], "X", A::Clean, [], "", 9, "remove probes from the marked nodes, else from all; asks first"),
    bind!(
        [key('/')],
        "/",
        A::Filter,
        [],
        "filter",
        4,
        "nodes by text, !text, r[1-3], state:, rack:, leaf:, group:, link:"
    ),
    bind!([key(':')], ":", A::Palette, [], "", 9, "find a node, metric, run or command by its name"),
    bind!([key('y')], "y", A::Copy, [], "copy", 7, "copy what is under the cursor"),
    bind!([key('e')], "e", A::Export, [], "export", 7, "export what is shown to a file"),
    bind!([key('1')], "1", A::Show(S::Fleet), [], "", 9, "every node"),
    bind!([key('2')], "2", A::Show(S::Node), [], "", 9, "one node"),
    bind!([key('3')], "3", A::Show(S::Benchmarks), [], "", 9, "one metric over the fleet"),
    bind!([key('4')], "4", A::Show(S::Criteria), [], "", 9, "the versions of the criteria, and how they differ"),
    bind!([key('5')], "5", A::Show(S::Selector), [], "", 9, "which nodes are risky before a job, and what to run"),
    bind!([key('6')], "6", A::Show(S::Network), [], "", 9, "the pairs of the fleet, and what they point at"),
    bind!([key('7')], "7", A::Show(S::Playbooks), [], "", 9, "what can be run, and how far it is"),
    bind!([key('8')], "8", A::Show(S::Log), [], "", 9, "what happened"),
    bind!([key('9')], "9", A::Show(S::Runs), [], "", 9, "the stored runs, and which of them are current"),
    bind!([key('k'), (NONE, KeyCode::Up)], "up k", A::Move(M::Up), [], "", 9, "up"),
    bind!([key('j'), (NONE, KeyCode::Down)], "down j", A::Move(M::Down), [], "", 9, "down"),
    bind!([key('h'), (NONE, KeyCode::Left)], "left h", A::Move(M::Left), [S::Fleet, S::Network], "", 9, "left"),
    bind!([key('l'), (NONE, KeyCode::Right)], "right l", A::Move(M::Right), [S::Fleet, S::Network], "", 9, "right"),
    bind!([(NONE, KeyCode::PageUp), (CTRL, KeyCode::Char('b'))], "pgup", A::Move(M::PageUp), [], "", 9, "a page up"),
    bind!(
        [(NONE, KeyCode::PageDown), (CTRL, KeyCode::Char('f'))],
        "pgdn",
        A::Move(M::PageDown),
        [],
        "",
        9,
        "a page down"
    ),
    bind!([(NONE, KeyCode::Home), key('g')], "home g", A::Move(M::Home), [], "", 9, "first row"),
    bind!([(NONE, KeyCode::End), key('G')], "end G", A::Move(M::End), [], "", 9, "last row"),
    bind!([(NONE, KeyCode::Esc)], "esc", A::Back, [], "", 9, "one step back: box, filter, marks, screen"),
    bind!([(CTRL, KeyCode::Char('l'))], "ctrl-l", A::Redraw, [], "", 9, "draw the screen anew"),
    bind!([(CTRL, KeyCode::Char('z'))], "ctrl-z", A::Suspend, [], "", 9, "back to the shell; fg returns"),
    bind!([(CTRL, KeyCode::Char('c'))], "ctrl-c", A::Interrupt, [], "", 9, "cancel the run; a second time quits"),
    bind!([key('?'), (NONE, KeyCode::F(1))], "?", A::Help, [], "help", 0, "these keys"),
    bind!([key('q')], "q", A::Quit, [], "quit", 6, "quit; asks when a run goes on"),
];

impl Binding {
    /// Whether it works on `screen`.
    pub(crate) fn on(&self, screen: Screen) -> bool {
        self.on.is_empty() || self.on.contains(&screen)
    }

    /// Screens on which it works; empty means all.
    pub(crate) const fn screens(&self) -> &'static [Screen] {
        self.on
    }

    /// Whether it works on some screens only.
    pub(crate) const fn is_local(&self) -> bool {
        !self.on.is_empty()
    }
}

/// What `key` asks for on `screen`.
pub(crate) fn action(key: KeyEvent, screen: Screen) -> Option<Action> {
    // Shift is already in the character.
    let modifiers = key.modifiers.difference(KeyModifiers::SHIFT);
    BINDINGS.iter().find(|b| b.on(screen) && b.keys.contains(&(modifiers, key.code))).map(|b| b.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_on_one_screen() {
        for screen in Screen::ALL {
            let mut seen = Vec::new();
            for key in BINDINGS.iter().filter(|b| b.on(screen)).flat_map(|b| b.keys) {
                assert!(!seen.contains(key), "{key:?} twice on {screen:?}");
                seen.push(*key);
            }
        }
    }

    #[test]
    fn shifted_letters_arrive_with_and_without_the_modifier() {
        for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
            assert_eq!(action(KeyEvent::new(KeyCode::Char('R'), modifiers), Screen::Fleet), Some(Action::Run));
        }
    }
}
