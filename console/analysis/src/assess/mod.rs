//! From the records of a run to what is said of each node: everything that judges, with nothing but values in and out.
//!
//! | file | settles |
//! |---|---|
//! | `context` | by what a run is judged: alpha and tau, groups, frozen criteria, what was seen of GPU cards before |
//! | `metrics` | what metrics say, group by group |
//! | `trusted` | nodes beyond a criterion that was frozen without a spread |
//! | `assessment` | all findings of all nodes put together |
//! | `chart` | where the samples of a metric lie |

mod assessment;
mod chart;
mod context;
mod metrics;
mod parallel;
mod trusted;

pub use assessment::{Assessment, Basis, ByMetric, Judged, assess, groups};
pub use chart::Chart;
pub use context::{Context, Count, group_of};
pub use parallel::on_all_cores;
