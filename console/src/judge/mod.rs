//! What is said of the nodes of a run: judged anew from its records, by the terms that were written down when it began.

mod assess;
mod by_node;
mod cards;
mod freeze;
mod kept;
pub mod notes;
pub mod pairs;
mod shape;
mod steps;
mod terms;
mod told;
mod usual;
mod versions;
mod visits;

pub use assess::assess;
pub use by_node::ByNode;
pub use cards::keep_cards;
pub use freeze::spreads;
pub use kept::{Kept, keep_assessment, prepare, stored};
#[cfg(test)]
pub use muster_analysis::assess::Basis;
pub use muster_analysis::assess::{Assessment, ByMetric, Chart, Count, Judged, on_all_cores};
pub use pairs::Pairs;
pub use shape::{each_report, info, report, report_of_all, report_of_nodes};
pub use steps::{Profiled, keep_steps, kept_steps, steps_of};
pub use terms::{Judging, Terms};
pub use told::{Asked, Told, is_result, known_of};
pub use usual::usual;
pub use versions::{Version, find, freeze, frozen, keep, thaw, versions};
pub use visits::Visits;
