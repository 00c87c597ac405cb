//! May a job start on these nodes now? The decision for a scheduler's prolog, without a measurement.

use serde::{Deserialize, Serialize};

use super::{Benchmark, Outcome, Selection, lasting};

/// What is known of the nodes when the job asks.
#[derive(Clone, Debug)]
pub struct Gate<'a> {
    /// Nodes whose last verdict is a failure nobody has cleared.
    pub failed: &'a [String],
    /// Nodes with an incident that lasts.
    pub down: &'a [String],
    /// Why nothing is known of some of the nodes, such as `n7 never was measured here`; none where something is known of all.
    pub unknown: Option<&'a str>,
    /// All that may be run.
    pub benchmarks: &'a [Benchmark],
    /// What the Selector would run.
    pub selection: &'a Selection,
    /// Minutes the prolog may take; a subset that takes longer is refused.
    pub minutes: f64,
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum Decision {
    /// The nodes may run.
    Run {
        /// Why.
        reason: String,
    },
    /// They may run once these benchmarks passed.
    Validate {
        /// Benchmarks in order.
        benchmarks: Vec<String>,
        /// Minutes they take.
        minutes: f64,
        /// Why.
        reason: String,
    },
    /// They must not run.
    Refuse {
        /// Nodes at fault; empty when it is the set as a whole.
        nodes: Vec<String>,
        /// Why.
        reason: String,
    },
}

/// Decides.
#[must_use]
pub fn gate(gate: &Gate<'_>) -> Decision {
    let selection = gate.selection;
    for (nodes, why) in [(gate.down, "an incident lasts on"), (gate.failed, "the last validation failed on")] {
        if !nodes.is_empty() {
            return Decision::Refuse { nodes: nodes.to_vec(), reason: format!("{why} {}", nodes.join(", ")) };
        }
    }
    if let Some(why) = gate.unknown {
        return everything(gate, why);
    }
    let reason = selection.reason.clone();
    if selection.outcome == Outcome::NotNeeded {
        return Decision::Run { reason };
    }
    let benchmarks = selection.picks.iter().map(|p| p.benchmark.clone()).collect();
    validate(gate, benchmarks, selection.minutes, reason)
}

/// A model of other nodes vouches for nobody: who was never measured passes every benchmark first, however low the risk.
fn everything(gate: &Gate<'_>, why: &str) -> Decision {
    let minutes = gate.benchmarks.iter().map(|one| one.minutes).fold(0.0, |sum, minutes| sum + minutes);
    let reason = if gate.selection.outcome == Outcome::LowConfidence {
        format!("{why}; {}", gate.selection.reason)
    } else {
        format!("{why}; run all {} benchmarks, {}", gate.benchmarks.len(), lasting(minutes))
    };
    validate(gate, gate.benchmarks.iter().map(|one| one.id.clone()).collect(), minutes, reason)
}

fn validate(gate: &Gate<'_>, benchmarks: Vec<String>, minutes: f64, reason: String) -> Decision {
    if minutes > gate.minutes {
        let reason = format!("{reason}; that is more than the {:.0} min allowed here", gate.minutes);
        return Decision::Refuse { nodes: Vec::new(), reason };
    }
    Decision::Validate { benchmarks, minutes, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(outcome: Outcome, minutes: f64) -> Selection {
        let (picks, reason) = (vec![], "because".to_owned());
        Selection { outcome, picks, minutes, risk_before: 0.4, risk_after: 0.1, coverage: 0.8, gap: None, reason }
    }

    #[test]
    fn the_worst_news_decides() {
        let node = ["n1".to_owned()];
        let low = selection(Outcome::NotNeeded, 0.0);
        let ask = |down: &[String], failed: &[String], s: &Selection| {
            gate(&Gate { failed, down, unknown: None, benchmarks: &[], selection: s, minutes: 10.0 })
        };
        assert!(matches!(ask(&[], &[], &low), Decision::Run { .. }));
        assert!(matches!(ask(&node, &[], &low), Decision::Refuse { nodes, .. } if nodes == node));
        assert!(matches!(ask(&[], &node, &low), Decision::Refuse { .. }));
        assert!(matches!(ask(&[], &[], &selection(Outcome::Reached, 9.0)), Decision::Validate { .. }));
        assert!(
            matches!(ask(&[], &[], &selection(Outcome::Reached, 11.0)), Decision::Refuse { nodes, .. } if nodes.is_empty())
        );
    }

    #[test]
    fn a_node_that_was_never_measured_is_not_let_through_on_the_model_alone() {
        let benchmark = |id: &str| Benchmark { id: id.into(), minutes: 4.0, idle_h: None };
        let all = [benchmark("disk"), benchmark("cpu-gemm")];
        let ask = |outcome, down: &[String], minutes| {
            let (unknown, s) = (Some("n7 never was measured here"), selection(outcome, 0.0));
            gate(&Gate { failed: &[], down, unknown, benchmarks: &all, selection: &s, minutes })
        };
        for outcome in [Outcome::NotNeeded, Outcome::Reached] {
            let Decision::Validate { benchmarks, minutes, reason } = ask(outcome, &[], 10.0) else {
                panic!("{outcome:?}")
            };
            assert_eq!((benchmarks.as_slice(), minutes), (&["disk".to_owned(), "cpu-gemm".to_owned()][..], 8.0));
            assert_eq!(reason, "n7 never was measured here; run all 2 benchmarks, 8 min");
        }
        let low = ask(Outcome::LowConfidence, &[], 10.0);
        assert!(matches!(low, Decision::Validate { reason, .. } if reason == "n7 never was measured here; because"));
        assert!(matches!(ask(Outcome::NotNeeded, &[], 7.0), Decision::Refuse { .. }));
        let node = ["n7".to_owned()];
        assert!(matches!(ask(Outcome::NotNeeded, &node, 10.0), Decision::Refuse { nodes, .. } if nodes == node));
    }
}
