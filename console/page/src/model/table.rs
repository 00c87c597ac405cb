//! Tables.

use askama::Template;

use super::part::Names;
use super::state::State;

/// A table whose first column names the row.
#[derive(Clone, Debug, Default, PartialEq, Template)]
#[template(path = "table.html")]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// What was left out, in a sentence; empty where it is whole.
    pub left_out: String,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Whether it holds numbers, which stand to the right.
    pub number: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number with its unit.
    Number(String),
    /// An identity or a command.
    Code(String),
    /// Nodes.
    Names(Names),
    /// A state.
    State(State),
    /// There is no value.
    Nothing,
}

impl Cell {
    /// The number `value` in the words of `show`, if there is one.
    #[must_use]
    pub fn number(value: Option<String>) -> Self {
        value.map_or(Self::Nothing, Self::Number)
    }

    /// Words, if there are any.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::Nothing } else { Self::Text(text) }
    }
}

impl Table {
    /// Without rows. Headings that begin with `#` are of numbers.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
        let column =
            |title: &&str| Column { title: title.trim_start_matches('#').to_owned(), number: title.starts_with('#') };
        let columns = columns.iter().map(column).collect();
        Self { caption: caption.into(), columns, rows: Vec::new(), left_out: String::new() }
    }
}
