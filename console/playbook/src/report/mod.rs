//! What came of a run, in the forms that people and programs read.

mod alarms;
mod checks;
mod collective;
mod criteria;
mod csv;
mod exit;
mod known;
mod markdown;
mod node;
mod pairs;
mod pairs_text;
mod run;
mod text;
mod time;

pub use collective::{COLLECTIVE_SCHEMA, CollectiveFailure, CollectiveReport, CollectiveResult, SizeResult};
pub use criteria::{CRITERIA_SCHEMA, CriteriaReport, CriterionReport, Defect};
pub use csv::csv;
pub use exit::{FailOn, Summary, exit_code};
pub use known::{Earlier, Known, Told, known, settled};
pub use markdown::markdown;
pub use node::{ComponentReport, FindingReport, NodeFindings};
pub use pairs::{Alternatives, LeftOut, Of, PAIRS_SCHEMA, PairsReport, PairsRun};
pub use pairs_text::{accusation, source_word, warning};
pub use run::{
    Basis, CheckReport, CriterionRef, Demo, Dropped, MetricReport, NodeReport, RUN_SCHEMA, RunInfo, RunReport,
    VerdictReport,
};
pub use text::table;
pub use time::rfc3339;
