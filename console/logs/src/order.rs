//! Which of the lines are causes, and which only follow?

use super::{Kind, Rule};

/// A line on the one time line of a job.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What it means.
    pub rule: &'a Rule,
    /// The node it was written on, where known.
    pub node: Option<&'a str>,
    /// When, seconds on the common clock, where known.
    pub at_s: Option<f64>,
    /// By how much that may be wrong either way, seconds.
    pub error_s: f64,
}

/// The place of an event among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Which event, by its place in what was given.
    pub event: usize,
    /// The event that explains this one.
    pub because: Option<usize>,
    /// Whether it may be a root: its kind allows it, and nothing explains it.
    pub root: bool,
    /// Whether it is no less likely than the one before: same kind, as exact, and times that cannot be told apart.
    pub tied: bool,
}

/// Events with the likeliest root first: by kind, then by how exactly they point at a part, then by time where clocks can tell.
/// What is explained by another event that is there stands behind all that nothing explains, and behind its own explanation. Benign
/// lines and progress are left out.
#[must_use]
pub fn order(events: &[Event<'_>]) -> Vec<Ordered> {
    let because: Vec<Option<usize>> = events.iter().map(|event| explanation(event, events)).collect();
    let mut ordered: Vec<usize> = (0..events.len()).filter(|&at| events[at].rule.kind <= Kind::Notice).collect();
    let key = |at: usize| {
        let rule = events[at].rule;
        let explained = because[at].is_some() && rule.kind.may_be_root();
        let kind = if explained { Kind::Consequence } else { rule.kind };
        (kind, depth(at, &because), u8::MAX - rule.specificity)
    };
    let time = |at: usize| events[at].at_s.filter(|at_s| at_s.is_finite()).unwrap_or(f64::INFINITY);
    ordered.sort_by(|&a, &b| key(a).cmp(&key(b)).then(time(a).total_cmp(&time(b))));
    let place = |(nr, &event): (usize, &usize)| {
        let before = nr.checked_sub(1).map(|nr| ordered[nr]);
        Ordered {
            event,
            because: because[event],
            root: because[event].is_none() && events[event].rule.kind.may_be_root(),
            tied: before
                .is_some_and(|other| key(other) == key(event) && !clearly_before(&events[other], &events[event])),
        }
    };
    ordered.iter().enumerate().map(place).collect()
}

/// The earliest event on the same node that `event`'s rule says it follows, unless it clearly came later.
fn explanation(event: &Event<'_>, events: &[Event<'_>]) -> Option<usize> {
    let explains = |other: &Event<'_>| {
        event.rule.follows.contains(&other.rule.id) && same_node(event, other) && !clearly_before(event, other)
    };
    let time = |at: &usize| events[*at].at_s.unwrap_or(f64::INFINITY);
    (0..events.len()).filter(|&at| explains(&events[at])).min_by(|a, b| time(a).total_cmp(&time(b)))
}

/// Links to the root. Rules do not follow each other in a circle, so this ends.
fn depth(at: usize, because: &[Option<usize>]) -> usize {
    std::iter::successors(because[at], |&at| because[at]).count()
}

fn same_node(a: &Event<'_>, b: &Event<'_>) -> bool {
    match (a.node, b.node) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

fn clearly_before(a: &Event<'_>, b: &Event<'_>) -> bool {
    match (a.at_s, b.at_s) {
        (Some(a_s), Some(b_s)) => a_s + a.error_s.abs() < b_s - b.error_s.abs(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::Rules;

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());

    fn event<'a>(id: &str, node: &'a str, at_s: f64) -> Event<'a> {
        Event { rule: RULES.by_id(id).unwrap(), node: Some(node), at_s: Some(at_s), error_s: 0.1 }
    }

    fn ids<'a>(events: &[Event<'a>]) -> Vec<&'a str> {
        order(events).iter().map(|ordered| events[ordered.event].rule.id.as_str()).collect()
    }

    #[test]
    fn a_switch_that_lost_its_gpu_is_not_the_cause() {
        let events = [event("sxid-20034", "n1", 112.0), event("xid-45", "n1", 101.0), event("xid-79", "n1", 100.0)];
        let ordered = order(&events);
        assert_eq!(ids(&events), ["xid-79", "xid-45", "sxid-20034"].map(|id| id));
        assert!(ordered[0].root && !ordered[1].root && !ordered[2].root);
    }

    #[test]
    fn an_error_on_another_node_or_clearly_later_explains_nothing() {
        let elsewhere = [event("sxid-20034", "n1", 100.0), event("xid-79", "n2", 99.0)];
        assert!(order(&elsewhere).iter().all(|ordered| ordered.root));
        let later = [event("sxid-20034", "n1", 100.0), event("xid-79", "n1", 101.0)];
        assert!(order(&later).iter().all(|ordered| ordered.root));
        let within_the_clocks = [event("sxid-20034", "n1", 100.0), event("xid-79", "n1", 100.15)];
        assert_eq!(ids(&within_the_clocks), ["xid-79", "sxid-20034"]);
    }

    #[test]
    fn times_that_clocks_cannot_tell_apart_tie() {
        let events = [event("xid-79", "n1", 100.0), event("xid-79", "n2", 100.1), event("xid-79", "n3", 107.0)];
        assert_eq!(order(&events).iter().map(|ordered| ordered.tied).collect::<Vec<_>>(), [false, true, false]);
    }

    proptest! {
        #[test]
        fn a_consequence_never_stands_before_its_cause(
            picks in prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize, prop::option::of(0.0..30.0), 0.0..3.0), 0..40)
        ) {
            let nodes = ["a", "b", "c"];
            let events: Vec<_> = picks
                .iter()
                .map(|(pick, node, at_s, error_s)| Event {
                    rule: pick.get(&RULES.rules),
                    node: Some(nodes[*node]),
                    at_s: *at_s,
                    error_s: *error_s,
                })
                .collect();
            let ordered = order(&events);
            let place = |event: usize| ordered.iter().position(|other| other.event == event);
            let first_other = ordered.iter().position(|other| !other.root).unwrap_or(ordered.len());
            prop_assert!(ordered[first_other..].iter().all(|other| !other.root));
            for one in &ordered {
                prop_assert!(one.because.is_none_or(|cause| place(cause) < place(one.event)));
                prop_assert!(events[one.event].rule.kind <= Kind::Notice);
            }
        }
    }

    #[test]
    fn of_two_causes_the_earliest_explains_and_a_line_of_no_node_is_of_any() {
        let because = |events: &[Event<'_>]| {
            order(events).into_iter().find(|one| events[one.event].rule.id == "sxid-20034").unwrap().because
        };
        let last = event("sxid-20034", "n1", 112.0);
        assert_eq!(because(&[last, event("xid-79", "n1", 105.0), event("xid-79", "n1", 101.0)]), Some(2));
        assert_eq!(because(&[Event { node: None, ..last }, event("xid-79", "n2", 101.0)]), Some(1));
        assert_eq!(because(&[last, Event { at_s: None, ..event("xid-79", "n1", 0.0) }]), Some(1), "nobody knows when");
        let unsure = |error_s: f64| Event { error_s, ..event("xid-79", "n1", 114.0) };
        assert_eq!((because(&[last, unsure(1.0)]), because(&[last, unsure(2.0)])), (None, Some(1)));
        assert_eq!(because(&[last, unsure(-2.0)]), Some(1), "an error is one either way");
    }

    #[test]
    fn of_one_kind_what_points_more_exactly_at_a_part_stands_first_and_then_what_came_first() {
        let (exact, vague) = (event("mlx5-timeout", "n1", 9.0), event("python-exception", "n2", 1.0));
        assert!(exact.rule.kind == vague.rule.kind && exact.rule.specificity > vague.rule.specificity);
        assert_eq!(ids(&[vague, exact]), ["mlx5-timeout", "python-exception"]);
        let places = |events: &[Event<'_>]| order(events).iter().map(|one| (one.event, one.tied)).collect::<Vec<_>>();
        assert_eq!(places(&[event("xid-79", "n1", 9.0), event("xid-79", "n2", 1.0)]), [(1, false), (0, false)]);
        let off = |node, at_s| Event { error_s: 0.5, ..event("xid-79", node, at_s) };
        assert_eq!(places(&[off("n1", 1.0), off("n2", 2.0)]), [(0, false), (1, true)], "by as much as both may be off");
        let undated = Event { at_s: None, ..event("xid-79", "n3", 0.0) };
        assert_eq!(places(&[undated, event("xid-79", "n2", 1.0)]), [(1, false), (0, true)]);
    }
}
