//! What a check is, and what it may answer.

use serde::{Deserialize, Serialize};

use super::compare::{Count, Same};
use super::{Gap, NodeFacts, Policy};
use crate::State;

/// How much a bad answer weighs for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; never changes the node's state.
    Info,
    /// At worst a warning.
    Warn,
    /// A bad answer fails the node, and no answer leaves it undecided; where the login may not look, a warning.
    Critical,
}

impl Severity {
    /// The word in lists and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }
}

/// One question about a node.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Name in playbooks, reports and lists.
    pub id: &'static str,
    /// Part of the node it looks at; also a name for all checks of that part.
    pub area: &'static str,
    /// What holds when it passes.
    pub title: &'static str,
    /// Weight of a bad answer.
    pub severity: Severity,
    /// Who else checks this, and with which limit.
    pub source: &'static str,
    /// What to do when it does not pass.
    pub next: &'static str,
    /// Collectors whose facts it reads.
    pub needs: &'static [&'static str],
    pub(super) ask: Ask,
}

/// A check of one node by what one collector, called as the area, saw.
pub(super) struct Shape {
    pub(super) id: &'static str,
    /// The collector, alone.
    pub(super) area: &'static [&'static str; 1],
    pub(super) severity: Severity,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    pub(super) next: &'static str,
}

impl Shape {
    pub(super) const fn asks(self, ask: fn(&NodeFacts<'_>, &Policy) -> Result<Found, Gap>) -> Check {
        let Self { id, area, severity, title, source, next } = self;
        Check { id, area: area[0], title, severity, source, next, needs: area, ask: Ask::Node(ask) }
    }
}

/// How a check finds its answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// From the facts of one node.
    Node(fn(&NodeFacts<'_>, &Policy) -> Result<Found, Gap>),
    /// By comparing facts that must be equal across the group.
    Equal(&'static [Same]),
    /// A number that is expected, or else must be equal across the group.
    Count(Count),
    /// From the facts of the whole group, one answer per node.
    Group(fn(&[&NodeFacts<'_>], &Policy) -> Vec<Found>),
}

/// An answer: the state, and what was seen, as it stands behind the node's name and the check's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Judgement.
    pub state: State,
    /// The evidence in one sentence without a full stop.
    pub said: String,
    /// There is no answer because the login may not look.
    pub denied: bool,
}

impl Found {
    fn new(state: State, said: impl Into<String>) -> Self {
        Self { state, said: said.into(), denied: false }
    }

    /// Good.
    pub fn pass(said: impl Into<String>) -> Self {
        Self::new(State::Pass, said)
    }

    /// Not as it should be.
    pub fn warn(said: impl Into<String>) -> Self {
        Self::new(State::Warn, said)
    }

    /// Broken.
    pub fn fail(said: impl Into<String>) -> Self {
        Self::new(State::Fail, said)
    }

    /// Looked at, and not decidable.
    pub fn unknown(said: impl Into<String>) -> Self {
        Self::new(State::Unknown, said)
    }

    /// Nothing here to ask about.
    pub fn not_applicable(said: impl Into<String>) -> Self {
        Self::new(State::NotApplicable, said)
    }

    /// Fails with the sentences of `bad`, or passes with `good`.
    pub(super) fn fail_if(bad: &[String], good: impl Into<String>) -> Self {
        if bad.is_empty() { Self::pass(good) } else { Self::fail(some(bad)) }
    }
}

/// The first few, and how many more.
pub(super) fn some(parts: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = parts[..parts.len().min(SHOWN)].join("; ");
    if parts.len() > SHOWN { format!("{shown}; and {} more", parts.len() - SHOWN) } else { shown }
}

/// One check's answer for one node. The state is never graver than the check's severity allows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckResult {
    /// Which check.
    #[serde(with = "super::by_id")]
    pub check: &'static Check,
    /// Its answer.
    pub found: Found,
    /// Whether the playbook takes no login that may not look for an excuse.
    pub demanded: bool,
}

impl CheckResult {
    pub(super) fn new(check: &'static Check, mut found: Found, demanded: bool) -> Self {
        let most = match check.severity {
            Severity::Critical => State::Fail,
            Severity::Warn => State::Warn,
            Severity::Info => State::Pass,
        };
        if found.state >= State::Warn {
            found.state = found.state.min(most);
        }
        Self { check, found, demanded }
    }

    /// What the answer means for the node: an unanswered check that could not have failed it changes nothing, and one
    /// that the login may not answer warns of what was not seen.
    #[must_use]
    pub fn weight(&self) -> State {
        match self.found.state {
            State::Unknown | State::NotRun if self.check.severity != Severity::Critical => State::NotApplicable,
            State::Unknown if self.found.denied && !self.demanded => State::Warn,
            state => state,
        }
    }

    /// `n7: nic-mtu: eth0.mtu is 1400, 5 of 6 nodes have 1500`.
    #[must_use]
    pub fn sentence(&self, node: &str) -> String {
        format!("{node}: {}: {}", self.check.id, self.found.said)
    }
}
