//! A whole report: its head and its sections.

use askama::Template;

use super::part::Part;
use super::state::State;

/// A report; [`Page::html`] makes the file.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "page.html")]
pub struct Page {
    /// What kind of report, such as `Run`.
    pub kind: &'static str,
    /// What it is of.
    pub title: String,
    /// What it comes to; `None` where nothing is judged.
    pub state: Option<State>,
    /// How many ended how, the gravest first.
    pub counts: Vec<Count>,
    /// How many of them were not decided in every part, in words; empty where all were.
    pub undecided: String,
    /// Which run, when, by what.
    pub facts: Vec<Fact>,
    /// What has to be known before the rest is read.
    pub notes: Vec<String>,
    /// In the order they are read.
    pub sections: Vec<Section>,
    /// Program and version that wrote it.
    pub program: String,
}

/// How many ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How.
    pub state: State,
    /// How many.
    pub count: usize,
}

/// One thing that is known of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What.
    pub label: &'static str,
    /// Its value.
    pub value: String,
}

/// A part of the report with a heading and a place in the table of contents.
#[derive(Clone, Debug, PartialEq, Template)]
#[template(path = "section.html")]
pub struct Section {
    /// Its anchor; another one for each section.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub parts: Vec<Part>,
}

impl Page {
    /// The file. Call [`Page::settle`] first, which puts the names in.
    ///
    /// # Errors
    /// When memory cannot be written.
    pub fn html(&self) -> Result<String, std::fmt::Error> {
        self.render().map_err(|_| std::fmt::Error)
    }
}
