//! From the answers of health and consistency checks to findings.

use std::collections::BTreeMap;

use muster_wire::Component;

use super::{ComponentState, Finding, Source};
use crate::State;
use crate::checks::CheckResult;

/// Ids named in one sentence about checks without an answer.
const NAMED: usize = 4;

/// What the checks of `node` found: one finding for every bad answer, one sentence for all checks that have none for the same
/// reason. `lost` says that another finding tells already why the node was not looked at.
#[must_use]
pub fn check_findings(node: &str, results: &[CheckResult], lost: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut silent: BTreeMap<(State, &str), Vec<&CheckResult>> = BTreeMap::new();
    for result in results {
        let of = |state, sentence| finding(node, result, state, sentence);
        match result.weight() {
            state if state > State::Pass && result.found.denied => {
                silent.entry((state, &result.found.said)).or_default().push(result);
            }
            State::Fail | State::Warn => found.push(of(result.found.state, result.sentence(node))),
            state @ (State::Unknown | State::NotRun) => {
                silent.entry((state, &result.found.said)).or_default().push(result);
            }
            State::Pass | State::NotApplicable => {}
        }
    }
    // Critical ones come first, whatever the order they were asked in: a warning must not hide a failure.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.state));
    for ((state, why), results) in silent {
        // A node that was not reached says why itself.
        let said = if state == State::NotRun && lost { String::new() } else { unanswered(node, &results, why) };
        let each = results.iter().enumerate().map(|(at, result)| {
            let sentence = if at == 0 { said.clone() } else { String::new() };
            finding(node, result, state, sentence)
        });
        found.extend(each);
    }
    found
}

/// Components that checks looked at and found in order, or to which none applies.
pub fn checked_components(results: &[CheckResult]) -> impl Iterator<Item = ComponentState> {
    let mut best: BTreeMap<Component, State> = BTreeMap::new();
    for result in results.iter().filter(|result| result.found.state <= State::Pass) {
        let state = best.entry(component(result.check.area)).or_insert(result.found.state);
        *state = (*state).max(result.found.state);
    }
    best.into_iter().map(|(component, state)| ComponentState { component, state, undecided: false, resolution: None })
}

fn finding(node: &str, result: &CheckResult, state: State, sentence: String) -> Finding {
    let source = Source::Check(result.check.id);
    Finding::new(node, component(result.check.area), source, state, sentence).next(result.check.next)
}

/// The part of the node that an area of checks looks at.
fn component(area: &str) -> Component {
    match area {
        "cpu" => Component::Cpu,
        "memory" => Component::Memory,
        "disk" => Component::Disk(None),
        "nic" | "infiniband" => Component::Nic(None),
        "gpu" => Component::Gpus,
        _ => Component::Node,
    }
}

fn unanswered(node: &str, results: &[&CheckResult], why: &str) -> String {
    let more = if results.len() > NAMED { format!(" and {} more", results.len() - NAMED) } else { String::new() };
    let ids: Vec<&str> = results.iter().take(NAMED).map(|result| result.check.id).collect();
    let verb = if results.len() == 1 { "has" } else { "have" };
    format!("{node}: {}{more} {verb} no answer: {why}", ids.join(", "))
}
