//! What another tool's checks say of a node: a pass is a value, and everything else is how the check ended, with its reason.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_analysis::State;
use muster_import::Series;
use muster_import::dcgm::Check;
use muster_run::WARNED;
use muster_wire::{Declared, Direction, MetricId, MetricRole, Unit, clean, limits};

use super::fleet::{Fleet, some};

/// Adds the checks of DCGM: each test is a benchmark, `dcgm/hardware/memory`. A device that passes has its `passed` there, so that it
/// is known what was tested; a test that fails on any of a node's devices fails there. A warning and a test that DCGM skipped leave
/// the test open: neither is a pass.
///
/// # Errors
/// As [`Fleet::add`].
pub fn add(checks: &[Check], fleet: &mut Fleet) -> Result<()> {
    let mut ended: BTreeMap<(&str, String, State), Vec<String>> = BTreeMap::new();
    for check in checks {
        fleet.node(&check.node);
        let work = clean(&format!("dcgm/{}", check.name), limits::NAME_BYTES);
        if check.state == State::Pass {
            fleet.add(&passed(check, &work), None)?;
        } else {
            ended.entry((check.node.as_str(), work, check.state)).or_default().push(said(check));
        }
    }
    // The gravest first: of what leaves a test open, the first is told.
    for ((node, work, state), all) in ended.into_iter().rev() {
        let all = some(&all.iter().map(String::as_str).collect::<Vec<_>>());
        match state {
            State::Fail => fleet.fail(node, &work, all),
            State::Warn => fleet.leave_open(node, &work, format!("{WARNED}{all}")),
            State::NotRun => fleet.leave_open(node, &work, format!("DCGM skipped it: {all}")),
            State::Unknown | State::NotApplicable | State::Pass => {
                fleet.leave_open(node, &work, format!("DCGM's answer is none that is known: {all}"));
            }
        }
    }
    Ok(())
}

/// A pass as the whole share of a test.
fn passed(check: &Check, work: &str) -> Series {
    let device = check.device.strip_prefix("gpu").unwrap_or(&check.device);
    let name = if device.is_empty() { "passed".to_owned() } else { format!("passed:{device}") };
    Series {
        node: check.node.clone(),
        metric: MetricId::new(work, name, "dcgm"),
        unit: Unit::Ratio,
        direction: Direction::HigherIsBetter,
        declared: Declared { component: check.component(), role: MetricRole::Judged, aggregated: true },
        values: vec![1.0],
    }
}

/// `gpu2: DCGM_FR 29: Persistence Mode: off`
fn said(check: &Check) -> String {
    let device = Some(check.device.as_str()).filter(|device| !device.is_empty());
    let parts: Vec<&str> = device.into_iter().chain(check.reasons.iter().map(String::as_str)).collect();
    if parts.is_empty() { "no reason given".to_owned() } else { parts.join(": ") }
}

#[cfg(test)]
mod tests {
    use muster_wire::Component;

    use super::*;

    fn check(node: &str, device: &str, state: State, reason: &str) -> Check {
        let reasons = Some(reason.to_owned()).filter(|reason| !reason.is_empty()).into_iter().collect();
        Check { node: node.into(), name: "hardware/memory".into(), device: device.into(), state, reasons }
    }

    #[test]
    fn a_pass_is_recorded_a_failure_fails_and_a_warning_and_a_skipped_test_are_no_pass() {
        let checks = [
            check("a", "gpu0", State::Pass, ""),
            check("a", "gpu1", State::Pass, ""),
            check("b", "gpu0", State::Pass, ""),
            check("b", "gpu1", State::Fail, "DCGM_FR 29: row remap"),
            check("b", "gpu2", State::Warn, "ECC"),
            check("c", "gpu1", State::NotRun, ""),
            check("c", "gpu0", State::Warn, "ECC"),
            check("d", "", State::NotRun, ""),
        ];
        let mut fleet = Fleet::default();
        add(&checks, &mut fleet).unwrap();
        assert_eq!(fleet.nodes, ["a", "b", "c", "d"]);
        let metrics: Vec<String> = fleet.metrics.iter().map(|metric| metric.id.to_string()).collect();
        assert_eq!(metrics, ["dcgm/hardware/memory/passed:0@dcgm", "dcgm/hardware/memory/passed:1@dcgm"]);
        assert_eq!((fleet.metrics[1].values(0), fleet.metrics[1].values(1)), (&[1.0][..], &[][..]));
        assert_eq!(fleet.metrics[1].declared.component, Component::Gpu(1));
        let work = "dcgm/hardware/memory";
        assert_eq!(fleet.failures(), [("b", work, "gpu1: DCGM_FR 29: row remap")]);
        assert_eq!(
            fleet.left_open(),
            [("c", work, "DCGM warned: gpu0: ECC"), ("d", work, "DCGM skipped it: no reason given")]
        );
    }
}
