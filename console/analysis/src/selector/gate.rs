//! May a job start on these nodes now? The decision for a scheduler's prolog, without a measurement.

use serde::{Deserialize, Serialize};

use super::{Outcome, Selection};

/// What is known of the nodes when the job asks.
#[derive(Clone, Debug)]
pub struct Gate<'a> {
    /// Nodes whose last verdict is a failure nobody has cleared.
    pub failed: &'a [String],
    /// Nodes with an incident that lasts.
    pub down: &'a [String],
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
    let reason = selection.reason.clone();
    if selection.outcome == Outcome::NotNeeded {
        return Decision::Run { reason };
    }
    if selection.minutes > gate.minutes {
        let reason = format!("{reason}; that is more than the {:.0} min allowed here", gate.minutes);
        return Decision::Refuse { nodes: Vec::new(), reason };
    }
    let benchmarks = selection.picks.iter().map(|p| p.benchmark.clone()).collect();
    Decision::Validate { benchmarks, minutes: selection.minutes, reason }
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
            gate(&Gate { failed, down, selection: s, minutes: 10.0 })
        };
        assert!(matches!(ask(&[], &[], &low), Decision::Run { .. }));
        assert!(matches!(ask(&node, &[], &low), Decision::Refuse { nodes, .. } if nodes == node));
        assert!(matches!(ask(&[], &node, &low), Decision::Refuse { .. }));
        assert!(matches!(ask(&[], &[], &selection(Outcome::Reached, 9.0)), Decision::Validate { .. }));
        assert!(
            matches!(ask(&[], &[], &selection(Outcome::Reached, 11.0)), Decision::Refuse { nodes, .. } if nodes.is_empty())
        );
    }
}
