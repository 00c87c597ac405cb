//! What is said of the nodes of a run: judged anew from its records, by the terms that were written down when it began.

mod assess;
mod cards;
mod chart;
mod decided;
mod freeze;
pub mod health;
mod kept;
pub mod pairs;
mod parallel;
mod shape;
mod steps;
mod terms;
mod told;
mod trusted;
mod usual;
mod versions;
mod visits;

#[cfg(test)]
pub use assess::Basis;
pub use assess::{Assessment, ByMetric, Judged, assess};
pub use cards::keep_cards;
pub use chart::Chart;
pub use freeze::spreads;
pub use kept::{Kept, keep_assessment, stored};
pub use pairs::Pairs;
pub use parallel::on_all_cores;
pub use shape::{report, report_of_all};
pub use steps::{Profiled, keep_steps, kept_steps, steps_of};
pub use terms::{Count, Judging};
pub use told::{Asked, Told, is_result, known_of};
pub use usual::usual;
pub use versions::{Version, find, freeze, frozen, keep, thaw, versions};
pub use visits::Visits;
