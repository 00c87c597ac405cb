//! What `info` and `run` found, and the JSON document that says it.

use muster_wire::{Fact, Finished, Outcome, Profile, Series};
use serde_json::{Value, json};

/// One collector's facts.
pub(crate) struct Look {
    /// Its name.
    pub(crate) collector: &'static str,
    /// What it saw.
    pub(crate) facts: Vec<Fact>,
    /// How it ended.
    pub(crate) outcome: Outcome,
}

/// One benchmark's series.
pub(crate) struct Measured {
    /// How it ended.
    pub(crate) finished: Finished,
    /// Its values.
    pub(crate) series: Vec<Series>,
    /// What it found beside them.
    pub(crate) facts: Vec<Fact>,
}

/// Everything.
pub(crate) struct Report {
    /// Of benchmarks.
    pub(crate) profile: Option<Profile>,
    /// Of `info`.
    pub(crate) looks: Vec<Look>,
    /// Of `run`.
    pub(crate) measured: Vec<Measured>,
}

/// A series in five numbers, for a person to look at; verdicts are made from the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Standard deviation over mean; 0 for fewer than two values.
    pub(crate) cv: f64,
    pub(crate) n: usize,
}

impl Summary {
    /// Of the finite values; `None` when there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max, n) = (*sorted.first()?, *sorted.last()?, sorted.len());
        let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let cv = if n < 2 || mean == 0.0 { 0.0 } else { (squares / (n - 1) as f64).sqrt() / mean.abs() };
        Some(Self { median, min, max, cv, n })
    }
}

impl Report {
    /// One document: schema `muster.probe`, version 1. Facts and values stand as the wire contract writes them.
    pub(crate) fn json(&self) -> String {
        let looks: Vec<Value> = self
            .looks
            .iter()
            .map(|look| json!({ "collector": look.collector, "outcome": look.outcome, "facts": look.facts }))
            .collect();
        let document = json!({
            "schema": "muster.probe",
            "version": 1,
            "build": env!("CARGO_PKG_VERSION"),
            "profile": self.profile,
            "collectors": looks,
            "benchmarks": self.measured.iter().map(Measured::json).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }
}

impl Measured {
    fn json(&self) -> Value {
        let series = self.series.iter().map(|series| {
            let summary = Summary::of(&series.values);
            json!({
                "metric": series.metric.to_string(),
                "name": series.metric.name,
                "engine": series.metric.engine,
                "unit": series.unit,
                "direction": series.direction,
                "n": series.values.len(),
                "median": summary.map(|s| s.median),
                "min": summary.map(|s| s.min),
                "max": summary.map(|s| s.max),
                "cv": summary.map(|s| s.cv),
                "warmup": series.warmup,
                "values": series.values,
            })
        });
        json!({
            "benchmark": self.finished.name,
            "outcome": self.finished.outcome,
            "elapsed_ns": self.finished.elapsed_ns,
            "series": series.collect::<Vec<_>>(),
            "facts": self.facts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_the_finite_values() {
        let summary = Summary::of(&[3.0, f64::NAN, 1.0, 2.0]).unwrap();
        assert_eq!((summary.median, summary.min, summary.max, summary.n), (2.0, 1.0, 3.0, 3));
        assert!((summary.cv - 0.5).abs() < 1e-12);
        assert_eq!(Summary::of(&[1.0, 4.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
    }
}
