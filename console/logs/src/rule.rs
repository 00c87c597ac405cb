//! One rule.

use super::{Kind, Part, Stream};
use crate::Category;
use crate::fault::Fault;

/// A rule within its [`super::Rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub(crate) u32);

/// What a line means. How it is recognised stays with the rules.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its place.
    pub(crate) place: RuleId,
    /// Unique name, such as `xid-79`.
    pub id: String,
    /// Family: the name of its file.
    pub family: String,
    /// How much a line says about the cause.
    pub kind: Kind,
    /// What it speaks of.
    pub part: Part,
    /// What it speaks for, where it speaks for one thing.
    pub category: Option<Category>,
    /// What exactly is wrong then, where that decides what is done.
    pub fault: Option<Fault>,
    /// In which logs it holds.
    pub stream: Stream,
    /// A sentence for people.
    pub meaning: String,
    /// What to do, a sentence; empty where there is nothing to do.
    pub action: String,
    /// Where the meaning comes from.
    pub source: String,
    /// First version of the program that writes it.
    pub since: Option<String>,
    /// Last version of the program that writes it.
    pub until: Option<String>,
    /// Ids of the rules whose lines are the cause of this one, when they are there.
    pub follows: Vec<String>,
    /// Ids of the rules whose lines tell of what this one says is over.
    pub ends: Vec<String>,
    /// How exactly it points at one part, larger is more exact: what its expression captures.
    pub specificity: u8,
    /// Lines that it must match.
    pub examples: Vec<String>,
    /// Lines that look alike and that it must not match.
    pub not: Vec<String>,
}

impl Rule {
    /// Its place in the rules.
    #[must_use]
    pub const fn place(&self) -> RuleId {
        self.place
    }
}
