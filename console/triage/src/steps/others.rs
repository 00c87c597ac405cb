//! Which other errors did nodes report, which no step before takes for the cause?

use std::collections::{BTreeMap, BTreeSet};

use super::critical::{hardware, leave_out_what_all_say};
use super::{Verdict, nothing};
use crate::events::Event;
use crate::facts::Facts;
use crate::names::few;
use crate::report::Done;
use muster_logs::Kind;

const STEP: &str = "other-errors";
/// Its result where there are none.
const NONE: &str = "no other errors on the nodes";
/// Most nodes that are to be looked at first.
const MOST: usize = 3;

/// The step. It accuses nobody, and says where to look first.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let errors = errors(facts);
    if errors.is_empty() {
        return nothing(STEP, NONE.to_owned(), "Nothing else in the logs points at a node.");
    }
    let mut nodes_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in &errors {
        let node = event.node.as_deref().unwrap_or("a log");
        nodes_of.entry(event.rule.meaning.trim_end_matches('.')).or_default().insert(node);
    }
    let told = nodes_of.into_iter().map(|(meaning, nodes)| {
        let nodes: Vec<&str> = nodes.into_iter().collect();
        format!("{}: {meaning}", few(&nodes, ", "))
    });
    let told: Vec<String> = told.collect();
    nothing(STEP, few(&told, "; "), "None of this proves a cause, but look there first.")
}

/// What to do where nothing but such errors is known, and only of a few nodes.
pub(crate) fn advice(facts: &Facts<'_>) -> Option<String> {
    let errors = errors(facts);
    let nodes: BTreeSet<&str> = errors.iter().filter_map(|event| event.node.as_deref()).collect();
    let nodes: Vec<&str> = nodes.into_iter().collect();
    let (last, before) = nodes.split_last().filter(|_| nodes.len() <= MOST)?;
    let (names, what) = match before {
        [] => ((*last).to_owned(), "it reported an error"),
        some => (format!("{} and {last}", some.join(", ")), "they reported errors"),
    };
    Some(format!(
        "Look at {names} first: {what} that may be the cause. Then collect what is missing (see not looked at), or run \
         the checks on all nodes of the job, before you drain anything."
    ))
}

/// Each error of each node once, without those that most nodes have.
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

    /// Result and advice for a job on eight nodes, where the kernels of `nodes` wrote the line.
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
        assert!(advice.unwrap().starts_with("Look at n3 first: it reported an error that may be the cause."));
        let advice = told(&[1, 2, 5]).1.unwrap();
        assert!(advice.starts_with("Look at n1, n2 and n5 first: they reported errors that may"), "{advice}");
        let (result, advice) = told(&[1, 2, 5, 6]);
        assert_eq!((result.as_str(), advice), ("n1, n2, n5, n6: The driver could not bring up the GPU", None));
        assert_eq!(told(&[0, 1, 2, 3, 4]).0, NONE, "most nodes have it");
        assert_eq!(told(&[]), (NONE.to_owned(), None));
    }
}
