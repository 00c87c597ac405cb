//! What a screen shows of a case: the verdict, the events on one clock with what that clock is worth, and how far each rank is.
//!
//! Worked out once from the same facts as the verdict; nothing here changes it.

use super::case::Case;
use super::counters::Movement;
use super::events::{Event, short};
use super::facts::Facts;
use super::matrix::{Matrix, matrix};
use super::procedure::concluded;
use super::report::{Report, Source, Subject};
use muster_logs::{Kind, Rules};

/// Events that are kept; of more, those that tell most.
pub const MOMENTS: usize = 4_000;

/// A case as it is shown.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The verdict.
    pub report: Report,
    /// Events in the order of the common clock, those without a time last.
    pub moments: Vec<Moment>,
    /// Events past [`MOMENTS`] that are not among them.
    pub left_out: usize,
    /// When the job last got on, epoch seconds on the common clock.
    pub last_step_s: Option<f64>,
    /// Whether the polls of RAS saw the job move.
    pub movement: Movement,
    /// How far each rank is in each communicator.
    pub matrix: Matrix,
    /// Nodes of the job, and those with a kernel log.
    pub nodes: Vec<String>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When, epoch seconds on the common clock; `None` for what counts from a boot or has no time.
    pub at_s: Option<f64>,
    /// By how much that may be wrong against other nodes, seconds either way.
    pub error_s: f64,
    /// Node that wrote it.
    pub node: Option<String>,
    /// Rank that wrote it, or that it speaks of.
    pub rank: Option<u32>,
    /// In what it stands.
    pub source: Source,
    /// How much it says about the cause.
    pub kind: Kind,
    /// Name of the rule that knows it.
    pub rule: String,
    /// What it means.
    pub meaning: String,
    /// The line.
    pub text: String,
    /// How often it was said.
    pub count: u64,
}

/// Diagnoses a case and works out what is shown of it; suspects that a person has marked as `wrong` are passed over.
#[must_use]
pub fn overview(case: &Case, rules: &Rules, wrong: &[Subject]) -> Overview {
    let facts = Facts::of(case, rules);
    let (moments, left_out) = moments(&facts);
    Overview {
        report: concluded(&facts, wrong),
        moments,
        left_out,
        last_step_s: facts.end.last_s,
        movement: facts.movement,
        matrix: matrix(&facts),
        nodes: case.nodes(),
    }
}

fn moments(facts: &Facts<'_>) -> (Vec<Moment>, usize) {
    let worth = |event: &&Event<'_>| {
        !matches!(event.rule.kind, Kind::Benign | Kind::Progress) && !event.foreign && event.in_window(&facts.end)
    };
    let mut told: Vec<(usize, &Event<'_>)> = facts.events.iter().filter(worth).enumerate().collect();
    let left_out = told.len().saturating_sub(MOMENTS);
    if left_out > 0 {
        told.sort_by_key(|(at, event)| (event.rule.kind, *at));
        told.truncate(MOMENTS);
        told.sort_by_key(|(at, _)| *at);
    }
    (told.into_iter().map(|(_, event)| moment(event)).collect(), left_out)
}

fn moment(event: &Event<'_>) -> Moment {
    Moment {
        at_s: event.at_s,
        error_s: event.error_s,
        node: event.node.clone(),
        rank: event.rank,
        source: event.source,
        kind: event.rule.kind,
        rule: event.rule.id.clone(),
        meaning: event.rule.meaning.clone(),
        text: short(&event.seen.text),
        count: event.seen.count,
    }
}

impl Moment {
    /// Whether nothing tells which of the two came first: on two nodes within the errors of both clocks, or without a time. A
    /// node's own clock orders what that node wrote.
    #[must_use]
    pub fn is_tied(&self, before: &Self) -> bool {
        let Some((first, second)) = before.at_s.zip(self.at_s) else { return true };
        if before.node.is_some() && before.node == self.node {
            return second <= first;
        }
        second - first <= before.error_s + self.error_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(node: &str, at_s: f64, error_s: f64) -> Moment {
        Moment {
            at_s: Some(at_s),
            error_s,
            node: Some(node.into()),
            rank: None,
            source: Source::Log,
            kind: Kind::Error,
            rule: String::new(),
            meaning: String::new(),
            text: String::new(),
            count: 1,
        }
    }

    #[test]
    fn order_between_nodes_is_told_only_beyond_the_errors_of_both_clocks() {
        assert!(at("n2", 10.9, 0.5).is_tied(&at("n1", 10.0, 0.5)));
        assert!(!at("n2", 11.1, 0.5).is_tied(&at("n1", 10.0, 0.5)));
        assert!(!at("n1", 10.1, 60.0).is_tied(&at("n1", 10.0, 60.0)), "one node's own clock orders its lines");
        assert!(at("n1", 10.0, 60.0).is_tied(&at("n1", 10.0, 60.0)));
        let undated = Moment { at_s: None, ..at("n1", 0.0, 0.0) };
        assert!(undated.is_tied(&at("n1", 10.0, 0.1)));
    }
}
