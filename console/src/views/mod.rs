//! From what was found to the rows and curves that a screen shows.

mod board;
mod earlier;
mod focus;
mod gpus;
mod hands;
pub mod page;
mod pairs;
mod past;
mod picture;
mod places;
mod provisional;
mod shelf;
mod triaged;
mod watched;
mod what_if;

pub use board::{Board, Reads, info};
pub use earlier::Earlier;
pub use hands::{Hands, Labelled, hands, read_service};
pub(crate) use pairs::share as pair_share;
pub use past::read_past;
pub use provisional::{Stage, visits_at_most};
pub use shelf::shelf;
pub use triaged::{csv as triage_csv, markdown as triage_markdown};
pub use watched::{DemoJob, Viewer, WatchReport};
pub use what_if::what_if;
