//! What a report is made of.

mod page;
mod part;
mod state;
mod table;

pub use page::{Count, Fact, Page, Section};
pub use part::{Entry, Fold, Line, Names, Part};
pub use state::State;
pub use table::{Cell, Column, Table};
