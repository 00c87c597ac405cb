//! The answers of checks as they stand in the document.

use muster_analysis::State;
use muster_analysis::checks::{CheckResult, Severity};
use muster_wire::{clean, limits};

use super::CheckReport;

/// Its part of the document. Texts are cleaned, since they may come from the node.
pub(super) fn report(result: &CheckResult) -> CheckReport {
    let open = result.check.severity != Severity::Info && result.found.state >= State::Unknown;
    CheckReport {
        id: result.check.id.to_owned(),
        severity: result.check.severity,
        state: result.found.state,
        said: clean(&result.found.said, limits::TEXT_BYTES),
        next: if open { result.check.next.to_owned() } else { String::new() },
    }
}

#[cfg(test)]
mod tests {
    use muster_analysis::checks::{Found, check};
    use muster_analysis::findings::{Finding, Source};
    use muster_wire::{Component, Profile};

    use super::*;
    use crate::report::{NodeFindings, NodeReport, RunInfo, RunReport};

    fn result(id: &str, found: Found, demanded: bool) -> CheckResult {
        CheckResult { check: check(id).unwrap(), found, demanded }
    }

    fn node(results: &[(&str, Found)], troubles: &[(State, &str)]) -> NodeReport {
        let checks = results.iter().map(|(id, found)| result(id, found.clone(), false)).collect();
        let link =
            |(state, why): &(State, &str)| Finding::new("n1", Component::Node, Source::Link, *state, (*why).to_owned());
        let findings = troubles.iter().map(link).collect();
        let findings = NodeFindings { node: "n1".to_owned(), checks, findings, ..NodeFindings::default() };
        RunReport::new(RunInfo::new("r", "cbd", Profile::Quick, 0, None), &[findings], &[]).nodes.remove(0)
    }

    #[test]
    fn a_failing_critical_check_fails_the_node_with_its_sentence() {
        let node = node(
            &[
                ("swap", Found::warn("1.0 GiB of swap")),
                ("nic-mtu", Found::fail("eth0.mtu is 1400, 5 of 6 nodes have 1500")),
            ],
            &[],
        );
        assert_eq!(node.state, State::Fail);
        assert_eq!(
            node.reasons,
            ["n1: nic-mtu: eth0.mtu is 1400, 5 of 6 nodes have 1500", "n1: swap: 1.0 GiB of swap"]
        );
        assert!(node.checks[1].next.starts_with("set the MTU"));
    }

    #[test]
    fn checks_that_passed_or_do_not_apply_make_a_pass_and_checks_alone_can_do_so() {
        let passed = node(&[("swap", Found::pass("no swap")), ("dimm-count", Found::not_applicable("none"))], &[]);
        assert_eq!((passed.state, passed.reasons.len(), passed.checks[0].next.as_str()), (State::Pass, 0, ""));
        assert_eq!(node(&[("dimm-count", Found::not_applicable("none"))], &[]).state, State::NotApplicable);
    }

    #[test]
    fn a_critical_check_without_an_answer_keeps_the_node_from_passing_and_a_warning_does_not() {
        let critical = node(&[("nic-mtu", Found::unknown("denied")), ("nic-speed", Found::unknown("denied"))], &[]);
        assert_eq!(critical.state, State::Unknown);
        assert_eq!(critical.reasons, ["n1: nic-mtu, nic-speed have no answer: denied"]);
        let mild = node(&[("swap", Found::unknown("denied")), ("nic-mtu", Found::pass("same"))], &[]);
        assert_eq!((mild.state, mild.reasons.len()), (State::Pass, 0));
    }

    #[test]
    fn what_the_login_may_not_see_is_listed_as_unknown_and_warns_unless_the_playbook_demands_it() {
        let denied = |id: &str, demanded| {
            let found = Found { denied: true, ..Found::unknown("the kernel's log may not be read by this login") };
            result(id, found, demanded)
        };
        let of = |demanded| {
            let checks = vec![denied("xid", demanded), denied("machine-check", demanded), denied("oom-kill", demanded)];
            let findings = NodeFindings { node: "n1".to_owned(), checks, ..NodeFindings::default() };
            RunReport::new(RunInfo::new("r", "cbd", Profile::Quick, 0, None), &[findings], &[]).nodes.remove(0)
        };
        let said = "n1: xid, machine-check have no answer: the kernel's log may not be read by this login";
        for (demanded, state) in [(false, State::Warn), (true, State::Unknown)] {
            let node = of(demanded);
            assert_eq!((node.state, node.reasons.as_slice()), (state, &[said.to_owned()][..]));
            assert!(node.checks.iter().all(|check| check.state == State::Unknown && !check.next.is_empty()));
        }
    }

    #[test]
    fn a_node_that_was_not_reached_says_so_and_not_which_checks_did_not_run() {
        let not_run = Found { state: State::NotRun, ..Found::unknown("the nic collector did not run") };
        let lost = node(&[("nic-mtu", not_run)], &[(State::Unknown, "n1: link lost")]);
        assert_eq!((lost.state, lost.reasons.as_slice()), (State::Unknown, &["n1: link lost".to_owned()][..]));
    }
}
