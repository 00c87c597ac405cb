//! Sentences, lists and what holds other parts.

use askama::Template;

use super::state::State;
use super::table::Table;
use crate::chart::{Course, Curves, Events, Heat, Values};

/// One part of a section.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "part.html")]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// A command to copy.
    Code(String),
    /// A list of names.
    Names(Names),
    /// Sentences.
    List(Vec<Line>),
    /// What is said of one node or one suspect.
    Entry(Entry),
    /// What is shown on demand, and on paper.
    Fold(Fold),
    /// A table.
    Table(Table),
    /// Distributions of one metric.
    Curves(Curves),
    /// One value of every node.
    Values(Values),
    /// Pairs.
    Heat(Heat),
    /// A metric over time.
    Course(Course),
    /// Events of nodes over time.
    Events(Events),
}

/// One sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What it makes of its subject.
    pub state: Option<State>,
    /// What was seen.
    pub text: String,
    /// What to do; empty where there is nothing to do.
    pub next: String,
}

impl Line {
    /// A sentence alone.
    #[must_use]
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// What is said of one node or one suspect.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "entry.html")]
pub struct Entry {
    /// Its anchor; another one for each entry.
    pub id: String,
    /// State.
    pub state: State,
    /// Its name.
    pub title: String,
    /// Whose entry it is, where it is of several; empty otherwise.
    pub names: Names,
    /// Sentences, the gravest first.
    pub lines: Vec<Line>,
    /// What belongs to it.
    pub parts: Vec<Part>,
}

/// What is shown on demand, and on paper.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "fold.html")]
pub struct Fold {
    /// What is in it.
    pub title: String,
    /// Whether it is shown from the start.
    pub open: bool,
    /// Its content.
    pub parts: Vec<Part>,
}

/// Names, which are shown folded once [`crate::Page::settle`] has said them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Each by itself.
    pub all: Vec<String>,
    /// All together.
    pub(crate) shown: String,
}

impl Names {
    /// These names.
    #[must_use]
    pub fn of<S: Into<String>>(all: impl IntoIterator<Item = S>) -> Self {
        Self { all: all.into_iter().map(Into::into).collect(), shown: String::new() }
    }
}
