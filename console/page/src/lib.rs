//! What a report looks like in a browser or on paper: one file without a script, from a model of plain words and numbers.
//!
//! | module | settles |
//! |---|---|
//! | `model` | what a report is made of |
//! | `chart` | how curves, heat maps, courses and events are drawn |
//! | `escape` | what may not get into a page |
//! | `settle` | in which words names are said |
//!
//! Nothing here knows what a verdict is, opens a file or asks the time: the same model gives the same bytes.

mod chart;
mod escape;
mod model;
mod settle;

pub use chart::{Course, Curve, Curves, Events, Heat, Mark, Moment, Values, ValuesOf};
pub use model::{Cell, Column, Count, Entry, Fact, Fold, Line, Names, Page, Part, Section, State, Table};

#[cfg(test)]
mod tests;
