//! Which benchmarks should run on which nodes before a job? The Selector of SuperBench (ATC'24, section 4): joint
//! incident risk of the nodes, coverage of defects by benchmarks, and the cheapest subset that brings the risk
//! below a bound, or the best one within a budget.

mod beta;
mod budget;
mod coverage;
mod defects;
mod durations;
mod exact;
mod gate;
mod greedy;
mod instance;
mod joint;
mod outlook;
mod request;
mod selection;

pub use beta::lower_quantile;
pub use budget::best_within;
pub use coverage::{Coverage, CoverageSettings, Defect, MAX_BENCHMARKS};
pub use defects::{Validation, defects};
pub use durations::p90;
pub use exact::{Effort, Goal, Solved, solve};
pub use gate::{Decision, Gate, gate};
pub use greedy::{Cover, algorithm1, reverse_delete};
pub use instance::{Instance, Set};
pub use joint::{EXPECTATION_P0, expected_time_to_incident, joint_risk, nodes_to_validate, should_validate};
pub use outlook::{Answer, NodeOutlook, Outlook, Question};
pub use request::{Benchmark, Exploration, Mode, Request};
pub use selection::{Outcome, Pick, Selection, Why, apart, lasting, select};
