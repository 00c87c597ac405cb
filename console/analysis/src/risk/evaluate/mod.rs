//! How good is an incident model? Order, probabilities and decisions, on rows it has not seen.

mod accuracy;
mod brier;
mod calibration;
mod concordance;
mod cross;
mod lift;
mod scores;
mod split;

pub use accuracy::{Forecast, accuracy};
pub use brier::{Censoring, Integrated, brier, integrated, log_likelihood};
pub use calibration::{Bin, calibration, calibration_error};
pub use concordance::concordance;
pub use cross::{Bench, Run, Summary, cross_validate, summarise};
pub use lift::{Lift, lift};
pub use scores::{HORIZONS_H, Plan, Scores, score};
pub use split::{Split, by_fold, by_node, by_time, node_folds};
