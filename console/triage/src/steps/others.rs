//! What else did machines report, of which no step before makes a cause?

use std::collections::{BTreeMap, BTreeSet};

use super::critical::{hardware, leave_out_what_all_say};
use super::{Verdict, nothing};
use crate::events::Event;
use crate::facts::Facts;
use crate::report::Done;
use muster_logs::Kind;

const STEP: &str = "other-errors";
/// Most errors, and most machines, that are named.
const MOST: usize = 3;

/// The step. It accuses nobody: it says where to look first.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let errors = errors(facts);
    if errors.is_empty() {
        return nothing(STEP, "no machine reported another error".to_owned(), "Nothing else was read.");
    }
    let mut nodes_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in &errors {
        let node = event.node.as_deref().unwrap_or("a log");
        nodes_of.entry(event.rule.meaning.trim_end_matches('.')).or_default().insert(node);
    }
    let told = nodes_of.iter().map(|(meaning, nodes)| format!("{}: {meaning}", first(nodes.iter().copied(), ", ")));
    let told: Vec<String> = told.collect();
    nothing(STEP, first(told.iter().map(String::as_str), "; "), "None of this proves a cause: look there first.")
}

/// The first few, and how many more there are.
fn first<'a>(all: impl ExactSizeIterator<Item = &'a str>, between: &str) -> String {
    let more = all.len().saturating_sub(MOST);
    let mut shown: Vec<String> = all.take(MOST).map(str::to_owned).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(between)
}

/// What to do where nothing but such errors is known, of few machines.
pub(crate) fn advice(facts: &Facts<'_>) -> Option<String> {
    let errors = errors(facts);
    let nodes: BTreeSet<&str> = errors.iter().filter_map(|event| event.node.as_deref()).collect();
    let nodes: Vec<&str> = nodes.into_iter().collect();
    let (last, before) = nodes.split_last().filter(|_| nodes.len() <= MOST)?;
    let (names, what) = match before {
        [] => ((*last).to_owned(), "an error"),
        some => (format!("{} and {last}", some.join(", ")), "errors"),
    };
    Some(format!(
        "Look at {names} first, which reported {what} that may be the cause. Then collect what is missing (see not looked at), or run \
         the checks on all nodes of the job, before you drain anything."
    ))
}

/// Each error of each machine once, but those that most of them have.
fn errors<'f, 'a>(facts: &'f Facts<'a>) -> Vec<&'f Event<'a>> {
    let of_machine = |event: &&Event<'_>| event.rule.kind != Kind::Distributed && hardware(event.rule.part);
    let mut errors: Vec<&Event<'_>> = facts.roots().filter(of_machine).collect();
    leave_out_what_all_say(facts, &mut errors);
    let mut seen = BTreeSet::new();
    errors.retain(|event| seen.insert((event.node.clone(), event.rule.id.clone())));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Job, Member, Whose};
    use crate::made;
    use muster_logs::Rules;

    const DRIVER: &str = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x23:0x65:1401)\n";

    /// What is told and advised of a job on eight nodes, of which `nodes` have the line.
    fn told(nodes: &[u32]) -> (String, Option<String>) {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: None, gpu: None };
        let log = |node: &u32| made::log(Whose::Kernel(format!("n{node}")), DRIVER, &rules);
        let case = Case {
            job: Job { members: (0..8).map(member).collect(), ..Job::default() },
            logs: nodes.iter().map(log).collect(),
            ..Case::default()
        };
        let facts = Facts::of(&case, &rules);
        let (done, verdict) = step(&facts);
        assert!(verdict.is_none(), "it accuses nobody");
        (done.result, advice(&facts))
    }

    #[test]
    fn a_few_nodes_with_an_error_are_to_be_looked_at_first_and_many_are_not() {
        let (result, advice) = told(&[3]);
        assert_eq!(result, "n3: The driver could not bring up the GPU");
        assert!(advice.unwrap().starts_with("Look at n3 first, which reported an error that may be the cause."));
        let advice = told(&[1, 2, 5]).1.unwrap();
        assert!(advice.starts_with("Look at n1, n2 and n5 first, which reported errors that may"), "{advice}");
        let (result, advice) = told(&[1, 2, 5, 6]);
        assert_eq!((result.as_str(), advice), ("n1, n2, n5, and 1 more: The driver could not bring up the GPU", None));
        assert_eq!(told(&[0, 1, 2, 3, 4]).0, "no machine reported another error", "most nodes have it, whenever");
        assert_eq!(told(&[]), ("no machine reported another error".to_owned(), None));
    }

    #[test]
    fn three_are_told_by_name_and_the_rest_by_number() {
        assert_eq!(first(["a", "b", "c"].into_iter(), ", "), "a, b, c");
        assert_eq!(first(["a", "b", "c", "d", "e"].into_iter(), "; "), "a; b; c; and 2 more");
    }
}
