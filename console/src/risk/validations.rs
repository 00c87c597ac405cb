//! What each finished run said of its nodes, as the incident models read it: kept when it was said, so that nothing is
//! judged anew when somebody asks for a risk.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_analysis::State;
use muster_analysis::risk::Check;
use muster_playbook::report::{NodeReport, RunReport};
use muster_run::{Run, RunState, Summary};
use muster_store::{Store, Table};
use serde::{Deserialize, Serialize};

use super::incidents::{finders, hours};

/// What a run found on one node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    /// `alpha - similarity` of its worst metric that could be judged.
    margin: f64,
    /// Benchmarks that failed.
    failed: u32,
}

/// Keeps what `report` says of the nodes that it judged.
///
/// # Errors
/// When the store cannot keep it.
pub fn keep_validations(store: &mut dyn Store, report: &RunReport, works: &[Summary]) -> Result<()> {
    let found: BTreeMap<&str, Found> =
        report.nodes.iter().filter_map(|node| Some((node.node.as_str(), found(node, works)?))).collect();
    if !found.is_empty() {
        store.put(Table::Validations, &report.run.id, &serde_json::to_vec(&found)?)?;
    }
    Ok(())
}

/// None of a node that was not judged.
fn found(node: &NodeReport, works: &[Summary]) -> Option<Found> {
    if !matches!(node.state, State::Pass | State::Warn | State::Fail) {
        return None;
    }
    let judged = node.verdicts.iter().filter(|v| matches!(v.state, State::Pass | State::Warn | State::Fail));
    let margins = judged.filter_map(|v| Some(v.of.alpha? - v.similarity?));
    let failed = if node.state == State::Fail { finders(node, works).len() } else { 0 };
    Some(Found { margin: margins.reduce(f64::max)?, failed: u32::try_from(failed).unwrap_or(u32::MAX) })
}

/// Every validation that was kept, with its node; `full` names the benchmarks of the full set.
///
/// # Errors
/// When the store cannot be read.
pub fn kept_validations(store: &dyn Store, runs: &[Run], full: &[String]) -> Result<Vec<(String, Check)>> {
    let mut all = Vec::new();
    for run in runs.iter().filter(|run| run.state == RunState::Finished) {
        let (Some(ended_ms), Some(bytes)) = (run.ended_ms, store.get(Table::Validations, &run.id)?) else {
            continue;
        };
        let found: BTreeMap<String, Found> = serde_json::from_slice(&bytes)
            .with_context(|| format!("what run {} found is corrupt (run: muster db check)", run.id))?;
        let full = full.iter().all(|benchmark| run.plan.contains(benchmark));
        let check = |Found { margin, failed }| Check { at_h: hours(ended_ms), full, margin, failed };
        all.extend(found.into_iter().map(|(node, found)| (node, check(found))));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Status;
    use std::sync::Arc;

    use muster_playbook::report::{CriterionRef, MetricReport, RunInfo, VerdictReport};
    use muster_store::{Db, Options};
    use muster_wire::Profile;

    fn verdict(metric: &str, state: State, similarity: f64) -> VerdictReport {
        let of = MetricReport {
            metric: metric.into(),
            unit: None,
            engine: "own".into(),
            alpha: Some(0.95),
            tau: None,
            criterion: Some(CriterionRef { id: "c#1".into(), n: 9, status: Status::Ok }),
        };
        VerdictReport { of: Arc::new(of), state, similarity: Some(similarity), value: None }
    }

    #[test]
    fn margins_and_failures_come_back_with_the_end_of_their_run_and_its_extent() {
        let run = Run {
            id: "r1".into(),
            playbook: "demo".into(),
            profile: Profile::Smoke,
            started_ms: 3_600_000,
            ended_ms: None,
            nodes: vec!["n1".into(), "n2".into(), "n3".into()],
            plan: vec!["disk".into(), "cpu-gemm".into()],
            state: RunState::Running,
        };
        let info = RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, None);
        let mut report = RunReport::new(info, &[], &[]);
        let (bad, noisy) = (verdict("disk/seq-read", State::Fail, 0.5), verdict("disk/rand-read", State::Unknown, 0.0));
        let nodes = [
            ("n1", State::Pass, vec![verdict("disk/seq-read", State::Pass, 0.97), noisy.clone()]),
            ("n2", State::Fail, vec![verdict("cpu-gemm/fp64", State::Pass, 0.99), bad]),
            ("n3", State::Unknown, vec![noisy]),
        ];
        report.nodes.extend(nodes.map(|(node, state, verdicts)| NodeReport {
            node: node.into(),
            state,
            undecided: false,
            reasons: Vec::new(),
            components: Vec::new(),
            findings: Vec::new(),
            verdicts,
            checks: Vec::new(),
        }));
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        db.begin(&run).unwrap();
        keep_validations(&mut db, &report, &[]).unwrap();
        let all = |db: &Db, full: &[&str]| {
            let full: Vec<String> = full.iter().map(|b| (*b).to_owned()).collect();
            kept_validations(db, &db.runs().unwrap(), &full).unwrap()
        };
        assert_eq!(all(&db, &[]), [], "the run has not ended");
        db.end("r1", RunState::Finished, 7_200_000).unwrap();
        let round = |(node, c): &(String, Check)| (node.clone(), c.at_h, c.full, (c.margin * 100.0).round(), c.failed);
        let kept: Vec<_> = all(&db, &["disk", "cpu-gemm"]).iter().map(round).collect();
        assert_eq!(kept, [("n1".into(), 2.0, true, -2.0, 0), ("n2".into(), 2.0, true, 45.0, 1)]);
        assert!(all(&db, &["disk", "net-loopback"]).iter().all(|(_, check)| !check.full));
        assert!(crate::judge::versions(&db).unwrap().is_empty(), "no criterion");
    }
}
