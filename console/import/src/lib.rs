//! Other tools' results, read into our own terms: which node, which metric, in which unit, and which way is good.
//!
//! Every reader takes text or a [`std::io::BufRead`], holds no more than its limits allow, and names the line of
//! what it cannot read. Values keep the file's numbers times a power of ten: [`Meaning`] says which. Nothing here
//! judges, opens files or runs what a file contains.
//!
//! | reader | of |
//! |---|---|
//! | [`superbench::summary`] | SuperBench's `results-summary.jsonl`: a [`muster_analysis::Table`] in its own units |
//! | [`superbench::raw`] | SuperBench's per-rank `results.json`: step series |
//! | [`nccl`] | nccl-tests and rccl-tests output |
//! | [`perftest`] | `ib_{write,read,send}_{bw,lat}` output |
//! | [`fio`] | `fio --output-format=json` |
//! | [`nvbandwidth`] | nvbandwidth's text |
//! | [`dcgm`] | `dcgmi diag -j`, as checks |
//! | [`telemetry`] | recorded telemetry: CSV, Parquet, or answers of Prometheus; plain or gzip |
//! | [`bundle`] | a failed job: logs, kernel logs, RAS polls, flight-recorder dumps, Inspector files |
//!
//! [`mod@format`] tells the files apart. SuperBench's baselines and rules are read by [`muster_analysis::rules`], which also applies them.

pub mod bundle;
pub mod component;
pub mod dcgm;
mod error;
pub mod fio;
pub mod format;
mod lines;
pub mod meaning;
pub mod nccl;
pub mod nvbandwidth;
pub mod perftest;
mod series;
pub mod superbench;
pub mod telemetry;

pub use error::Bad;
pub use format::Format;
pub use lines::Limits;
pub use meaning::Meaning;
pub use series::Series;
