//! What a reader gives: values of one metric on one node, in our unit.

use std::collections::HashMap;

use muster_wire::{Declared, Direction, MetricId, Unit};
use serde::{Deserialize, Serialize};

use crate::{Bad, Limits, Meaning};

/// Values of one metric on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Node the values belong to.
    pub node: String,
    /// Metric; its engine is the tool that measured, so that it meets no other tool's.
    pub metric: MetricId,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// What it speaks of, and whether the values are averages.
    pub declared: Declared,
    /// In the order measured.
    pub values: Vec<f64>,
}

impl Series {
    /// Series of `values` in the file's unit. `None` where the metric is no measurement: a flag, a count.
    #[must_use]
    pub fn of(node: &str, (metric, declared): (MetricId, Declared), meaning: Meaning, values: &[f64]) -> Option<Self> {
        let Meaning::Measure { unit, factor, direction } = meaning else { return None };
        let values = values.iter().map(|v| v * factor).collect();
        Some(Self { node: node.to_owned(), metric, unit, direction, declared, values })
    }
}

/// Values of one node's output as they come, gathered by metric in the order of their first value.
pub(crate) struct Gather<'a> {
    node: &'a str,
    limits: Limits,
    declare: fn(&MetricId) -> Declared,
    at: HashMap<MetricId, usize>,
    series: Vec<Series>,
}

impl<'a> Gather<'a> {
    /// `declare` says of every metric what it speaks of.
    pub(crate) fn new(node: &'a str, limits: Limits, declare: fn(&MetricId) -> Declared) -> Self {
        Self { node, limits, declare, at: HashMap::new(), series: Vec::new() }
    }

    /// Adds one value in the file's unit, read on `line`.
    pub(crate) fn add(&mut self, metric: MetricId, meaning: Meaning, value: f64, line: usize) -> Result<(), Bad> {
        let declared = (self.declare)(&metric);
        self.add_declared((metric, declared), meaning, value, line)
    }

    /// The same for a metric whose line says more of it than its name.
    pub(crate) fn add_declared(
        &mut self,
        (metric, declared): (MetricId, Declared),
        meaning: Meaning,
        value: f64,
        line: usize,
    ) -> Result<(), Bad> {
        if let Some(&at) = self.at.get(&metric) {
            if let Meaning::Measure { factor, .. } = meaning {
                self.series[at].values.push(value * factor);
            }
            return Ok(());
        }
        if self.series.len() >= self.limits.columns {
            return Err(Bad::TooMuch { line, limit: self.limits.columns, what: "metrics" });
        }
        if let Some(series) = Series::of(self.node, (metric.clone(), declared), meaning, &[value]) {
            self.at.insert(metric, self.series.len());
            self.series.push(series);
        }
        Ok(())
    }

    pub(crate) fn done(self) -> Vec<Series> {
        self.series
    }
}
