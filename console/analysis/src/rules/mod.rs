//! SuperBench's own rules and baselines, applied without running what they contain.
//!
//! A rule file names a function, a criterion written as a Python lambda, and metrics by regular expression.
//! SuperBench evaluates the lambda as code; here only `lambda x: x < c`, `x > c` and `x != c` are read, and
//! everything else is refused with its line. Verdicts are SuperBench's (0.12, `superbench/analyzer`), except where
//! it has defects:
//!
//! | SuperBench | here |
//! |---|---|
//! | a node without a metric of a variance or value rule is accepted | it is undecided: [`crate::State::Unknown`] |
//! | a baseline of zero, or none, stops the diagnosis of all nodes | that metric is undecided, and said so |
//! | the same node twice stops everything | two rows, judged one by one |
//! | "Number Of Issues" counts commas in the details | counts details |
//! | a baseline is looked up by stripping the rank's *characters* from both ends | by cutting the suffix `:rank` |
//! | `criteria` is executed | read, or refused |
//!
//! `multi_rules` combine other rules by code and are therefore refused; rules that only store values for them are
//! read, and decide nothing, as in SuperBench.

mod baseline;
mod criterion;
mod diagnose;
mod file;
mod select;
mod yaml;

pub use baseline::{BadBaseline, Baseline};
pub use criterion::Test;
pub use diagnose::{Detail, Diagnosis, diagnose};
pub use file::{BadRules, Function, Refusal, Rule, RuleFile};
