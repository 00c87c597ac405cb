//! What a watch of the job's nodes alerted of, as evidence: the machine that was unlike its peers while the job ran.

use std::collections::BTreeSet;

use muster_wire::{ComponentKind, telemetry};

use super::case::Alerted;
use super::facts::Facts;
use muster_logs::Category;

/// Machines beyond which their difference is something of the job, such as its roles.
const FEW: usize = 2;

/// Alerts of single machines that stood when the job ended, with their node.
pub(super) fn standing<'a>(facts: &Facts<'a>) -> Vec<(String, &'a Alerted)> {
    let open = |alert: &&Alerted| match (alert.until_s, facts.end.from_s) {
        (Some(until), Some(from)) => until >= from,
        _ => true,
    };
    let alerts: Vec<&Alerted> = facts.case.alerts.iter().filter(|alert| !alert.group).filter(open).collect();
    let nodes: BTreeSet<String> = alerts.iter().map(|alert| facts.layout.node(&alert.node)).collect();
    if nodes.len() > FEW {
        return Vec::new();
    }
    let own = |alert: &'a Alerted| (facts.layout.node(&alert.node), alert);
    // Machines of other jobs were watched with them.
    let of_job = |(node, _): &(String, &Alerted)| facts.layout.members.is_empty() || facts.layout.knows(node);
    alerts.into_iter().map(own).filter(of_job).collect()
}

/// What it comes to where nothing else tells.
pub(super) fn category(alert: &Alerted) -> Category {
    match alert.metric.as_deref().and_then(telemetry).map(|metric| metric.of) {
        Some(ComponentKind::Gpu | ComponentKind::Gpus | ComponentKind::GpuLink) => Category::SlowGpu,
        Some(ComponentKind::Nic | ComponentKind::IbPort) => Category::SlowLink,
        Some(ComponentKind::Disk) => Category::Storage,
        _ => Category::HostStall,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Job, Member};
    use crate::diagnose;
    use crate::report::{Report, Source};
    use muster_logs::Rules;

    #[test]
    fn what_was_over_before_the_job_ended_does_not_stand() {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let alert = |until_s| Alerted {
            node: "n2".to_owned(),
            metric: None,
            since_s: 1e9,
            until_s,
            group: false,
            sentence: "n2 is odd".to_owned(),
        };
        let stands = |until_s| {
            let job = Job { members: (0..4).map(member).collect(), ..Job::default() };
            let case = Case { job, alerts: vec![alert(until_s)], ..Case::default() };
            let mut facts = Facts::of(&case, &rules);
            facts.end.from_s = Some(1.1e9);
            standing(&facts).len()
        };
        assert_eq!((stands(None), stands(Some(1.2e9)), stands(Some(1.05e9))), (1, 1, 0));
        assert_eq!(stands(Some(1.1e9)), 1, "until then a line may tell the cause");
    }

    fn told(alerts: &[(&str, Option<&str>, bool)]) -> Report {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let one = |(node, metric, group): &(&str, Option<&str>, bool)| Alerted {
            node: (*node).to_owned(),
            metric: metric.map(str::to_owned),
            since_s: 1e9,
            until_s: None,
            group: *group,
            sentence: format!("{node} is odd"),
        };
        let case = Case {
            job: Job { members: (0..4).map(member).collect(), ..Job::default() },
            alerts: alerts.iter().map(one).collect(),
            ..Case::default()
        };
        diagnose(&case, &Rules::built_in().unwrap())
    }

    #[test]
    fn a_machine_that_a_watch_found_odd_is_suspected_by_the_part_its_metric_is_of() {
        for (metric, category) in [
            (Some("tcp_retrans_pps"), Category::SlowLink),
            (Some("cpu_pressure_pct"), Category::HostStall),
            (None, Category::HostStall),
        ] {
            let report = told(&[("n2", metric, false)]);
            assert_eq!((report.category, report.suspects.len()), (category, 1), "{metric:?}");
            let suspect = &report.suspects[0];
            assert_eq!((suspect.node.as_deref(), suspect.confidence), (Some("n2"), 0.60));
            assert_eq!((suspect.evidence[0].source, suspect.evidence[0].at), (Source::Telemetry, Some(1e9)));
        }
    }

    #[test]
    fn machines_of_other_jobs_whole_groups_and_many_at_once_are_no_suspects() {
        let none = |alerts: &[(&str, Option<&str>, bool)]| {
            let report = told(alerts);
            assert_eq!((report.category, report.suspects.len()), (Category::Undecided, 0));
        };
        none(&[("other7", None, false)]);
        none(&[("n1", None, true)]);
        none(&[("n0", None, false), ("n1", None, false), ("n2", None, false)]);
    }
}
