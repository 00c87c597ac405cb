//! How far healthy nodes and whole runs differ by what is about to be frozen: learned from the run a version comes from and the
//! runs of the same playbook around it, so that a frozen criterion is as careful as a fresh one.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_analysis::decide::{Frozen, Metric, Refusal, Settings, freeze};
use muster_analysis::{Params, Sample};
use muster_run::{Run, RunState};
use muster_store::Store;
use muster_wire::{MetricId, describe};

use super::Judging;
use super::versions::Version;
use muster_analysis::assess::groups;
use muster_analysis::records::{Evidence, of_metric};

/// Runs that are learned from at most, newest first.
const RUNS: usize = 10;

/// Samples of one group of nodes in one run, by metric.
type OfRun = BTreeMap<MetricId, Vec<Option<Sample>>>;

/// The spread of each version, or why it cannot be frozen. A version learned from a file, whose samples are not kept, is taken by
/// the spread that it says itself.
///
/// # Errors
/// When the store cannot be read.
pub fn spreads(store: &dyn Store, versions: &[Version]) -> Result<Vec<Result<Frozen, Refusal>>> {
    let mut found: Vec<Option<Result<Frozen, Refusal>>> = vec![None; versions.len()];
    let mut sets: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, version) in versions.iter().enumerate() {
        sets.entry((&version.source, &version.group)).or_default().push(at);
    }
    for ((source, group), members) in sets {
        let Some(run) = store.run(source)? else { continue };
        let wanted: Vec<&Version> = members.iter().map(|at| &versions[*at]).collect();
        let runs: Vec<OfRun> =
            alike(store, &run)?.iter().map(|run| of_run(store, run, group, &wanted)).collect::<Result<_>>()?;
        let learned: Vec<Vec<Metric<'_>>> =
            runs.iter().map(|of| wanted.iter().map(|version| metric(version, of)).collect()).collect();
        for (at, spread) in members.into_iter().zip(freeze(&learned, &Settings::default())) {
            found[at] = Some(spread);
        }
    }
    let alone = |version: &Version| {
        let few = Refusal::TooFewNodes { nodes: version.criterion.healthy, needed: 4 };
        version.criterion.assumed_spread().ok_or(few)
    };
    Ok(found.into_iter().zip(versions).map(|(spread, version)| spread.unwrap_or_else(|| alone(version))).collect())
}

/// `run` and finished runs of the same playbook and profile.
fn alike(store: &dyn Store, run: &Run) -> Result<Vec<Run>> {
    let same = |other: &Run| {
        (&other.playbook, other.profile, other.state) == (&run.playbook, run.profile, RunState::Finished)
            && other.id != run.id
    };
    let mut runs = vec![run.clone()];
    runs.extend(store.runs()?.into_iter().filter(same).take(RUNS - 1));
    Ok(runs)
}

fn of_run(store: &dyn Store, run: &Run, group: &str, wanted: &[&Version]) -> Result<OfRun> {
    let records = store.records(&run.id)?;
    let evidence = Evidence::new(&records);
    let names = groups(run, &evidence, &Judging::of(store, run, Params::default())?.context);
    let members: Vec<usize> = (0..run.nodes.len()).filter(|at| group.is_empty() || names[*at] == group).collect();
    let mut found = OfRun::new();
    for measured in evidence.measured(run) {
        if !wanted.iter().any(|version| version.criterion.metric == *measured.id) {
            continue;
        }
        let sample = |at: &usize| {
            let turns = evidence.turns(&run.nodes[*at], &measured.id.benchmark);
            let has = of_metric(&turns, &measured.described.component, measured.of_node(*at))?;
            has.visits.into_iter().flatten().next()
        };
        found.insert(measured.id.clone(), members.iter().map(sample).collect());
    }
    Ok(found)
}

fn metric<'a>(version: &'a Version, of: &'a OfRun) -> Metric<'a> {
    let criterion = &version.criterion;
    let described = describe(&criterion.metric);
    Metric {
        id: &criterion.metric,
        direction: criterion.direction,
        component: described.component,
        aggregated: described.aggregated,
        samples: of.get(&criterion.metric).map_or_else(Vec::new, |own| own.iter().map(Option::as_ref).collect()),
        frozen: None,
    }
}
