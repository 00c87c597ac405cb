//! Whether many nodes fail one check: then the check, or the last roll-out, is suspected before the nodes.
//!
//! Faults of hardware come one by one; a wrong limit, a new image or a broken tool comes to all at once. (Aegis,
//! NSDI'25, rolls back on mass failure of its check before delivery; NVSentinel has a circuit breaker.)

use serde::{Deserialize, Serialize};

/// How much of a fleet may fail one check before the check is suspected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    /// Share of the nodes with an answer; more failures than this trip it.
    pub share: f64,
    /// Failures needed at least: two of four nodes are no roll-out.
    pub nodes: usize,
    /// The usual rate, times this, is the share where the usual rate is known: a check that always fails on a
    /// twentieth of the fleet trips at a fifth and not before.
    pub surge: f64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { share: 0.10, nodes: 3, surge: 4.0 }
    }
}

/// How the nodes of one group answered one check in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Failed.
    pub failed: usize,
    /// Passed, warnings among them.
    pub passed: usize,
    /// Not run, not applicable or unknown; they count neither way.
    pub silent: usize,
}

/// What is suspected first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspicion {
    /// Those that fail.
    Nodes,
    /// The check, its limit, or what was rolled out last.
    Check,
}

/// What a breaker says of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// Whom to suspect.
    pub suspicion: Suspicion,
    /// Share of the nodes with an answer that failed, 0 to 1; 0 without answers.
    pub share: f64,
    /// Share beyond which the check is suspected.
    pub limit: f64,
    /// One sentence for a person; empty when nothing failed.
    pub reason: String,
}

impl Breaker {
    /// Weighs `now` against the usual rate of failures in `before` (all earlier runs together, `None` when there
    /// are none). `check` names it in the sentence.
    #[must_use]
    pub fn weigh(&self, check: &str, now: Outcomes, before: Option<Outcomes>) -> Alarm {
        let answers = now.failed + now.passed;
        let share = rate(now).unwrap_or(0.0);
        let usual = before.and_then(rate);
        let limit = usual.map_or(self.share, |rate| self.share.max(self.surge * rate)).min(1.0);
        let many = now.failed >= self.nodes && share > limit;
        // Everybody fails: no rate, however high it usually is, makes that the nodes' fault.
        let all = now.failed >= self.nodes && now.passed == 0;
        let suspicion = if many || all { Suspicion::Check } else { Suspicion::Nodes };
        let usually = usual.map_or_else(String::new, |rate| format!(", usually {:.1} %", rate * 100.0));
        let reason = match suspicion {
            Suspicion::Check => format!(
                "{check} fails on {} of {answers} nodes ({:.0} %{usually}): suspect the check or the last roll-out first",
                now.failed,
                share * 100.0
            ),
            Suspicion::Nodes if now.failed > 0 => {
                format!("{check} fails on {} of {answers} nodes ({:.1} %{usually})", now.failed, share * 100.0)
            }
            Suspicion::Nodes => String::new(),
        };
        Alarm { suspicion, share, limit, reason }
    }
}

fn rate(outcomes: Outcomes) -> Option<f64> {
    let answers = outcomes.failed + outcomes.passed;
    (answers > 0).then(|| outcomes.failed as f64 / answers as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(failed: usize, passed: usize) -> Outcomes {
        Outcomes { failed, passed, silent: 7 }
    }

    fn suspected(now: Outcomes, before: Option<Outcomes>) -> Suspicion {
        Breaker::default().weigh("disk/fsync", now, before).suspicion
    }

    #[test]
    fn a_few_failures_are_the_nodes_and_many_are_the_check() {
        assert_eq!(suspected(outcomes(9, 91), None), Suspicion::Nodes);
        assert_eq!(suspected(outcomes(30, 70), None), Suspicion::Check);
        // Two of four are half the fleet and still only two nodes.
        assert_eq!(suspected(outcomes(2, 2), None), Suspicion::Nodes);
        assert_eq!(suspected(outcomes(0, 0), None), Suspicion::Nodes);
    }

    #[test]
    fn the_usual_rate_moves_the_limit() {
        let often = Some(outcomes(50, 950));
        assert_eq!(suspected(outcomes(15, 85), often), Suspicion::Nodes);
        assert_eq!(suspected(outcomes(25, 75), often), Suspicion::Check);
        let always = Some(outcomes(500, 500));
        assert_eq!(suspected(outcomes(99, 1), always), Suspicion::Nodes);
        assert_eq!(suspected(outcomes(100, 0), always), Suspicion::Check);
    }

    #[test]
    fn the_sentence_names_check_count_and_advice() {
        let alarm = Breaker::default().weigh("nic/mtu", outcomes(40, 60), Some(outcomes(1, 99)));
        assert_eq!(
            alarm.reason,
            "nic/mtu fails on 40 of 100 nodes (40 %, usually 1.0 %): suspect the check or the last roll-out first"
        );
    }
}
