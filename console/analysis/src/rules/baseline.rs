//! What a metric should be: SuperBench's baseline file, one flat JSON object of numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A baseline file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("baseline, line {line}: {why}")]
pub struct BadBaseline {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

/// Expected values by metric, in the unit of the results they belong to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baseline(pub BTreeMap<String, f64>);

impl Baseline {
    /// Reads `baseline.json`: `{"mem-bw/h2d_bw": 26.1, …}`.
    ///
    /// # Errors
    /// When it is not a flat object of numbers, with the line.
    pub fn parse(text: &str) -> Result<Self, BadBaseline> {
        serde_json::from_str(text).map_err(|e| BadBaseline { line: e.line(), why: e.to_string() })
    }

    /// Baseline of `metric`: by its full name, then without its `:rank`, then by its benchmark's name where the
    /// metric has no rank (SuperBench's order).
    #[must_use]
    pub fn of(&self, metric: &str) -> Option<f64> {
        let short = match metric.rsplit_once(':') {
            Some((short, _)) => short,
            None => metric.split('/').next().unwrap_or(metric),
        };
        self.0.get(metric).or_else(|| self.0.get(short)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_the_baseline_of_its_metric() {
        let baseline = Baseline::parse(r#"{"k/event": 0.5, "k/event_10": 2, "k": 7}"#).unwrap();
        assert_eq!(baseline.of("k/event"), Some(0.5));
        assert_eq!(baseline.of("k/event:3"), Some(0.5));
        // SuperBench strips the characters 1 and 0 here and finds nothing.
        assert_eq!(baseline.of("k/event_10:10"), Some(2.0));
        assert_eq!(baseline.of("k/other"), Some(7.0));
        assert_eq!(baseline.of("k/other:1"), None);
    }

    #[test]
    fn a_nested_file_is_refused_with_its_line() {
        let error = Baseline::parse("{\n\"a\": {\"b\": 1}}").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(Baseline::parse("[]").is_err());
    }
}
