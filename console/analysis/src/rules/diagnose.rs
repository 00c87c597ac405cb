//! Which nodes violate which rules: SuperBench's diagnosis, one node after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::file::{Function, Rule, RuleFile};
use super::select::Columns;
use super::{Baseline, Test};
use crate::{State, Table};

/// What SuperBench files a missing metric under, whatever the rule's own category.
const FAILED_TEST: &str = "FailedTest";

/// One entry of a node's diagnosis. Shown in SuperBench's own words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// A metric, or everything a pattern could mean, is not there.
    Missing {
        /// Metric, or pattern as written.
        metric: String,
    },
    /// A value violates a rule.
    Violated {
        /// Metric.
        metric: String,
        /// In the file's unit.
        value: f64,
        /// What was expected, for variance rules.
        baseline: Option<f64>,
        /// The criterion as written.
        criteria: String,
    },
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { metric } => write!(f, "{metric}_miss"),
            Self::Violated { metric, value, baseline: None, criteria } => {
                write!(f, "{metric}(VAL: {value:.4} Rule:{criteria})")
            }
            Self::Violated { metric, value, baseline: Some(b), criteria } => {
                let percent = (value - b) / b * 100.0;
                write!(f, "{metric}(B/L: {b:.4} VAL: {value:.4} VAR: {percent:.2}% Rule:{criteria})")
            }
        }
    }
}

/// What the rules say about one row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Node name.
    pub node: String,
    /// Fail when a rule is violated; unknown when something is missing, has no baseline or was refused; else pass.
    pub state: State,
    /// Categories of its violations, by name.
    pub categories: BTreeSet<String>,
    /// What was found, by SuperBench's text.
    pub details: Vec<Detail>,
    /// Why it could not pass, in words.
    pub undecided: Vec<String>,
    /// For a failed node, the columns the rules look at, by name: the value, or its share over the baseline where a
    /// variance rule looked last; `None` where it is missing.
    pub summary: Vec<(usize, Option<f64>)>,
}

/// Applies the rules to every row of `table`, in its order. Values and baselines are in SuperBench's units.
#[must_use]
pub fn diagnose(table: &Table, file: &RuleFile, baseline: &Baseline) -> Vec<Diagnosis> {
    let columns = Columns::of(table);
    let plan = Plan {
        table,
        refused: file
            .refused
            .iter()
            .map(|r| format!("rule {} (line {}) is not applied: {}", r.rule, r.line, r.why))
            .collect(),
        rules: file.rules.iter().map(|rule| planned(rule, table, &columns, baseline)).collect(),
    };
    (0..table.nodes().len()).map(|row| plan.node(row)).collect()
}

/// A rule and the columns it means, with their baselines.
struct Planned<'a> {
    rule: &'a Rule,
    columns: Vec<(usize, Option<f64>)>,
}

fn planned<'a>(rule: &'a Rule, table: &Table, columns: &Columns<'_>, baseline: &Baseline) -> Planned<'a> {
    let of = |column: usize| (column, baseline.of(&table.metrics()[column]).filter(|b| *b != 0.0));
    Planned { rule, columns: columns.meant(&rule.patterns).into_iter().map(of).collect() }
}

struct Plan<'a> {
    table: &'a Table,
    refused: Vec<String>,
    rules: Vec<Planned<'a>>,
}

impl Plan<'_> {
    fn node(&self, row: usize) -> Diagnosis {
        let mut seen = Seen::new(self.table, row);
        let mut failed = false;
        for planned in self.rules.iter().filter(|p| p.rule.function != Function::Collect) {
            let violations = seen.apply(planned);
            failed |= violations > 0 && !planned.rule.store;
        }
        let mut details: Vec<(String, Detail)> = seen.details.into_iter().map(|d| (d.to_string(), d)).collect();
        details.sort_by(|a, b| a.0.cmp(&b.0));
        details.dedup_by(|a, b| a.0 == b.0);
        let missing = details.iter().filter(|(_, d)| matches!(d, Detail::Missing { .. }));
        let mut undecided: Vec<String> = missing.map(|(_, d)| d.to_string()).collect();
        undecided.extend(seen.undecided.into_iter().chain(self.refused.iter().cloned()));
        let state = match () {
            () if failed => State::Fail,
            () if undecided.is_empty() => State::Pass,
            () => State::Unknown,
        };
        Diagnosis {
            node: self.table.nodes()[row].clone(),
            state,
            categories: seen.categories,
            details: details.into_iter().map(|(_, d)| d).collect(),
            undecided,
            summary: if failed { self.summary(&seen.shown) } else { Vec::new() },
        }
    }

    /// All columns any rule looks at, by name.
    fn summary(&self, shown: &BTreeMap<usize, f64>) -> Vec<(usize, Option<f64>)> {
        let mut columns: Vec<usize> = self.rules.iter().flat_map(|p| p.columns.iter().map(|c| c.0)).collect();
        columns.sort_unstable_by_key(|&c| &self.table.metrics()[c]);
        columns.dedup();
        columns.into_iter().map(|column| (column, shown.get(&column).copied())).collect()
    }
}

/// What is found on one node while its rules are applied.
struct Seen<'a> {
    table: &'a Table,
    row: usize,
    details: Vec<Detail>,
    categories: BTreeSet<String>,
    undecided: Vec<String>,
    shown: BTreeMap<usize, f64>,
}

impl<'a> Seen<'a> {
    fn new(table: &'a Table, row: usize) -> Self {
        Self {
            table,
            row,
            details: Vec::new(),
            categories: BTreeSet::new(),
            undecided: Vec::new(),
            shown: BTreeMap::new(),
        }
    }

    /// How many violations `planned` finds.
    fn apply(&mut self, planned: &Planned<'_>) -> usize {
        let rule = planned.rule;
        let Some(test) = rule.test else { return 0 };
        let mut violations = 0;
        if rule.function == Function::FailureCheck {
            violations += self.presence(planned);
        } else if planned.columns.is_empty() {
            self.undecided.push(format!("rule {} means no metric of these results", rule.name));
        }
        for &(column, baseline) in &planned.columns {
            violations += usize::from(self.cell(rule, test, column, baseline));
        }
        violations
    }

    /// Patterns of a failure check under which something is missing.
    fn presence(&mut self, planned: &Planned<'_>) -> usize {
        let metrics = self.table.metrics();
        let mut violations = 0;
        for pattern in &planned.rule.patterns {
            let own = || planned.columns.iter().map(|c| c.0).filter(|&c| pattern.finds(&metrics[c]));
            if own().next().is_none() {
                self.details.push(Detail::Missing { metric: pattern.text.clone() });
                self.categories.insert(planned.rule.category.clone());
                violations += 1;
            } else if own().any(|c| self.table.value(self.row, c).is_none()) {
                violations += 1;
            }
        }
        violations
    }

    fn cell(&mut self, rule: &Rule, test: Test, column: usize, baseline: Option<f64>) -> bool {
        let metric = &self.table.metrics()[column];
        let Some(value) = self.table.value(self.row, column) else {
            self.details.push(Detail::Missing { metric: metric.clone() });
            self.categories.insert(FAILED_TEST.to_owned());
            return false;
        };
        let (x, baseline) = match (rule.function, baseline) {
            (Function::Variance, None) => {
                self.undecided.push(format!("{metric} has no baseline, or one of zero (rule {})", rule.name));
                return false;
            }
            (Function::Variance, Some(b)) => ((value - b) / b, Some(b)),
            _ => (value, None),
        };
        self.shown.insert(column, x);
        let violated = test.violated(x);
        if violated {
            let criteria = rule.criteria.clone();
            self.details.push(Detail::Violated { metric: metric.clone(), value, baseline, criteria });
            if !rule.store {
                self.categories.insert(rule.category.clone());
            }
        }
        violated
    }
}
