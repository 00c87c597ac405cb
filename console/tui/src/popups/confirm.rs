//! Asks before anything is done: the verb, the count, the names; No unless the user says otherwise.

use crossterm::event::{KeyCode, KeyEvent};
use muster_analysis::TOGETHER;

use crate::intent::Intent;
use crate::judgement::State;
use crate::popups::{Input, Popup};
use crate::snapshot::RunInfo;
use crate::text::counted;
use crate::ui::Ui;

/// Actions on more nodes than this need the count typed.
const TYPED_PAST: usize = 10;
/// Names shown before the rest is a number.
const NAMES: usize = 5;

/// A question.
#[derive(Debug)]
pub(crate) struct Confirm {
    /// `Run build-out on 3 nodes`.
    pub(crate) question: String,
    /// What will and will not happen.
    pub(crate) about: String,
    /// First names and how many more.
    pub(crate) names: String,
    /// Count that must be typed.
    pub(crate) needs: Option<usize>,
    pub(crate) typed: Input,
    /// Whether Yes is chosen.
    pub(crate) yes: bool,
    pub(crate) then: Vec<Intent>,
}

impl Confirm {
    /// Asks whether to do `verb` to `nodes`.
    pub(crate) fn on_nodes(verb: &str, about: impl Into<String>, nodes: &[String], then: Intent) -> Self {
        let mut names = nodes.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
        if nodes.len() > NAMES {
            names += &format!(", +{}", nodes.len() - NAMES);
        }
        Self {
            question: format!("{verb} {}?", counted(nodes.len(), "node", "nodes")),
            about: about.into(),
            names,
            needs: (nodes.len() > TYPED_PAST).then_some(nodes.len()),
            typed: Input::default(),
            yes: false,
            then: vec![then],
        }
    }

    /// Asks something that names no nodes.
    pub(crate) fn plain(question: impl Into<String>, about: impl Into<String>, then: Vec<Intent>) -> Self {
        Self {
            question: question.into(),
            about: about.into(),
            names: String::new(),
            needs: None,
            typed: Input::default(),
            yes: false,
            then,
        }
    }

    /// Asks whether to measure failed and undecided nodes again, with some that passed for comparison; `None` if no node failed
    /// or is undecided.
    pub(crate) fn again<'n>(run: &RunInfo, nodes: impl Iterator<Item = (&'n str, State)>) -> Option<Self> {
        let (mut failed, mut undecided, mut names, mut peers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, state) in nodes {
            match state {
                State::Fail => failed.push(name),
                State::Unknown => undecided.push(name),
                State::Pass => {
                    peers.push(name);
                    continue;
                }
                _ => continue,
            }
            names.push(name.to_owned());
        }
        if names.is_empty() {
            return None;
        }
        peers.truncate(TOGETHER.saturating_sub(names.len()));
        let part = |nodes: &[&str], word: &str| match nodes {
            [] => None,
            [one] => Some(format!("1 {word} node ({one})")),
            many => Some(format!("{} {word} nodes", many.len())),
        };
        let parts: Vec<String> =
            [part(&failed, "failed"), part(&undecided, "undecided")].into_iter().flatten().collect();
        let beside = match peers.as_slice() {
            [] => String::new(),
            [one] => format!(" and on {one}, to compare with"),
            many => format!(" and on {} that passed, to compare with", counted(many.len(), "node", "nodes")),
        };
        let about = format!("{} runs on these nodes{beside}; all others keep their results.", run.playbook);
        let all = names.iter().cloned().chain(peers.into_iter().map(str::to_owned)).collect();
        let then = Intent::RunPlaybook { playbook: run.playbook.clone(), nodes: all };
        let confirm = Self::on_nodes("", about, &names, then);
        Some(Self { question: format!("Measure again {}?", parts.join(" and ")), ..confirm })
    }

    fn is_typed(&self) -> bool {
        self.needs.is_none_or(|n| self.typed.text().trim() == n.to_string())
    }
}

/// Takes a key for the question on top of the stack.
pub(crate) fn key(ui: &mut Ui, mut confirm: Confirm, key: KeyEvent) -> Vec<Intent> {
    match (key.code, confirm.needs) {
        (KeyCode::Esc | KeyCode::Char('n' | 'N'), _) => return Vec::new(),
        (KeyCode::Enter, Some(_)) if confirm.is_typed() => return confirm.then,
        // An empty line is the default answer, which is No; a wrong count asks again.
        (KeyCode::Enter, Some(_)) if confirm.typed.text().is_empty() => return Vec::new(),
        (KeyCode::Enter, None) if !confirm.yes => return Vec::new(),
        (KeyCode::Enter | KeyCode::Char('y' | 'Y'), None) => return confirm.then,
        (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, None) => confirm.yes = !confirm.yes,
        (KeyCode::Char(c), Some(_)) if !c.is_ascii_digit() => {}
        (_, Some(_)) => {
            confirm.typed.key(key);
        }
        _ => {}
    }
    ui.popups.push(Popup::Confirm(confirm));
    Vec::new()
}
