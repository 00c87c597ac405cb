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
mod run;
mod text;
mod time;

pub use collective::{COLLECTIVE_SCHEMA, CollectiveFailure, CollectiveReport, CollectiveResult, SizeResult};
pub use criteria::{CRITERIA_SCHEMA, CriteriaReport, CriterionReport, Defect};
pub use csv::{csv, guarded, write_csv};
pub use exit::{FailOn, Summary, exit_code};
pub use known::{Earlier, Known, Told, known, settled};
pub use markdown::{escape, markdown};
pub use muster_analysis::findings::NodeFindings;
pub use muster_analysis::network::{
    Alternatives, LeftOut, Of, PAIRS_SCHEMA, PairsReport, PairsRun, accusation, source_word, warning,
};
pub use muster_analysis::records::Dropped;
pub use node::{ComponentReport, FindingReport};
pub use run::{
    Basis, CheckReport, Cost, CriterionRef, Demo, Gathered, MetricReport, NodeReport, NodeReports, RUN_SCHEMA, RunInfo,
    RunReport, VerdictReport,
};
pub use text::{between, headline, table};
pub use time::rfc3339;
