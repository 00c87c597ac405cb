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
    use crate::case::{Job, Whose};
    use crate::made;

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

    #[test]
    fn of_more_moments_than_can_be_shown_those_that_tell_most_are_kept_in_their_order() {
        let rules = Rules::built_in().unwrap();
        // Of each node 250 servers that do not answer, which are errors, and as many rows of memory that were replaced, which are notices.
        let log = |node: usize| {
            let lines: String = (0..250)
                .map(|nr| {
                    format!(
                        "NVRM: Xid (PCI:0000:{:02x}:{:02x}): 63, pid='<unknown>', name=<unknown>, Row Remapper\nnfs: server s{nr} not responding, still trying\n",
                        nr / 25,
                        nr % 25
                    )
                })
                .collect();
            made::log(Whose::Kernel(format!("n{node}")), &lines, &rules)
        };
        let kinds = |nodes: usize| {
            let case = Case { logs: (0..nodes).map(log).collect(), ..Case::default() };
            let (moments, left_out) = moments(&Facts::of(&case, &rules));
            let of = |kind: Kind| moments.iter().filter(|moment| moment.kind == kind).count();
            let in_order = moments.windows(2).all(|pair| pair[0].node <= pair[1].node);
            (of(Kind::Error), of(Kind::Notice), left_out, in_order)
        };
        assert_eq!(kinds(8), (2000, 2000, 0, true));
        assert_eq!(kinds(9), (2250, 1750, 500, true));
    }

    #[test]
    fn a_moment_is_the_line_with_its_meaning_and_how_often_it_came() {
        let rules = Rules::built_in().unwrap();
        let line = "nfs: server 10.4.0.19 not responding, still trying\n";
        let harmless = "nfs: server 10.4.0.19 OK\n";
        let elsewhere = made::log(Whose::Kernel("n9".to_owned()), line, &rules);
        let log = made::log(Whose::Kernel("n1".to_owned()), &[line, line, harmless].concat(), &rules);
        let job = Job { nodes: vec!["n1".to_owned()], ..Job::default() };
        let case = Case { job, logs: vec![log, elsewhere], ..Case::default() };
        let shown = overview(&case, &rules, &[]);
        let [moment] = &shown.moments[..] else { panic!("{:?}", shown.moments) };
        let of = (moment.node.as_deref(), moment.rank, moment.source, moment.kind, moment.rule.as_str(), moment.count);
        assert_eq!(of, (Some("n1"), None, Source::Kernel, Kind::Error, "nfs-not-responding", 2));
        assert_eq!(
            (moment.text.as_str(), moment.meaning.as_str()),
            (line.trim(), "The NFS server does not answer this node.")
        );
        assert_eq!((shown.nodes, shown.last_step_s, shown.left_out), (vec!["n1".to_owned(), "n9".to_owned()], None, 0));
    }
}
