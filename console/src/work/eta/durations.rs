//! How long did the same work take in earlier runs, by work and node?

use std::collections::{BTreeSet, HashMap};

use anyhow::Result;
use muster_run::{Run, RunState, Summary, is_work, visit_of};
use muster_store::Store;
use muster_wire::Outcome;

/// Finished runs that are looked into, newest first.
const RUNS: usize = 3;

/// Times from finished runs of the same profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durations {
    /// Milliseconds by work and node, of the newest run that has them.
    of: HashMap<String, HashMap<String, u32>>,
    /// Mean time that further visits took at the end of a run, milliseconds.
    pub again_ms: u64,
}

impl Durations {
    /// Times from the newest finished runs like `run`: first those of its playbook, then others of its profile.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read(store: &dyn Store, run: &Run) -> Result<Self> {
        let like =
            |other: &Run| other.id != run.id && other.state == RunState::Finished && other.profile == run.profile;
        let mut runs: Vec<Run> = store.runs()?.into_iter().filter(like).collect();
        runs.sort_by_key(|other| other.playbook != run.playbook);
        let (mut found, mut again) = (Self::default(), Vec::new());
        for other in runs.iter().take(RUNS) {
            let summaries = store.summaries(&other.id)?;
            if other.playbook == run.playbook {
                again.push(again_ms(&summaries));
            }
            found.add(&summaries);
        }
        found.again_ms = again.iter().sum::<u64>() / (again.len() as u64).max(1);
        Ok(found)
    }

    /// The same, but empty if the store cannot be read: then the time left is estimated from the plan alone.
    #[must_use]
    pub fn known(store: &dyn Store, run: &Run) -> Self {
        Self::read(store, run).unwrap_or_else(|why| {
            log::warn!("what earlier runs took cannot be read, so the time left is that of the plan: {why:#}");
            Self::default()
        })
    }

    /// Adds the times of an older run for work that no newer run has.
    pub fn add(&mut self, older: &[Summary]) {
        for one in older.iter().filter(|one| is_work(&one.work) && visit_of(&one.work).1 == 1) {
            // A work that failed says how long it took to fail.
            if matches!(one.outcome, Outcome::Failed(_) | Outcome::NotRun(_)) {
                continue;
            }
            let ms = u32::try_from(one.elapsed_ns / 1_000_000).unwrap_or(u32::MAX);
            self.of.entry(one.work.clone()).or_default().entry(one.node.clone()).or_insert(ms);
        }
    }

    /// What `work` took, by node; `None` where no run had it.
    pub fn of(&self, work: &str) -> Option<&HashMap<String, u32>> {
        self.of.get(work)
    }
}

/// Time between the last result of a first visit and the very last result.
fn again_ms(summaries: &[Summary]) -> u64 {
    let works = || summaries.iter().filter(|one| is_work(&one.work));
    let first = works().filter(|one| visit_of(&one.work).1 == 1).map(|one| one.at_ms).max();
    let last = works().map(|one| one.at_ms).max();
    first.zip(last).map_or(0, |(first, last)| last.saturating_sub(first))
}

/// Names of the nodes of `plan`, each once, in the order of their turns.
pub(super) fn nodes(plan: &muster_playbook::Plan) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = plan.phases.iter().flat_map(|phase| phase.nodes.iter());
    all.filter(|node| seen.insert(node.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::Record;
    use muster_store::{Db, Options};
    use muster_wire::Profile;

    fn run(id: &str, playbook: &str, profile: Profile, started_ms: u64) -> Run {
        let (nodes, plan) = (vec!["n1".to_owned(), "n2".to_owned()], vec!["disk".to_owned()]);
        let (playbook, state) = (playbook.to_owned(), RunState::Running);
        Run { id: id.to_owned(), playbook, profile, started_ms, ended_ms: None, nodes, plan, state }
    }

    fn record(run: &Run, (node, work): (&str, &str), seconds: u64, at_ms: u64) -> Record {
        Record {
            run: run.id.clone(),
            node: node.to_owned(),
            work: work.to_owned(),
            outcome: Outcome::Done,
            at_ms,
            elapsed_ns: seconds * 1_000_000_000,
            series: Vec::new(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn the_newest_finished_run_of_the_playbook_counts_and_others_of_the_profile_fill_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let mut keep = |run: &Run, records: &[Record], ends: bool| {
            store.begin(run).unwrap();
            store.append_many(records).unwrap();
            if ends {
                store.end(&run.id, RunState::Finished, run.started_ms + 9).unwrap();
            }
        };
        let old = run("a", "cbd", Profile::Quick, 1);
        keep(&old, &[record(&old, ("n1", "disk"), 7, 2), record(&old, ("n2", "disk"), 9, 2)], true);
        let newer = run("b", "cbd", Profile::Quick, 10);
        let again = record(&newer, ("n1", "disk#2"), 50, 4_011);
        let failed = Record { outcome: Outcome::Failed("no".into()), ..record(&newer, ("n2", "disk"), 1, 11) };
        keep(&newer, &[record(&newer, ("n1", "disk"), 5, 11), failed, again], true);
        let other = run("c", "build-out", Profile::Quick, 20);
        keep(&other, &[record(&other, ("n1", "disk"), 99, 21), record(&other, ("n1", "cpu-gemm"), 3, 21)], true);
        let longer = run("d", "cbd", Profile::Full, 30);
        keep(&longer, &[record(&longer, ("n1", "disk"), 600, 31)], true);
        let open = run("e", "cbd", Profile::Quick, 40);
        keep(&open, &[record(&open, ("n1", "disk"), 1, 41)], false);

        let found = Durations::read(&store, &run("now", "cbd", Profile::Quick, 50)).unwrap();
        let of = |work: &str, node: &str| found.of(work).and_then(|nodes| nodes.get(node)).copied();
        assert_eq!([of("disk", "n1"), of("disk", "n2"), of("cpu-gemm", "n1")], [Some(5_000), Some(9_000), Some(3_000)]);
        assert_eq!(of("disk#2", "n1"), None);
        assert_eq!(found.again_ms, 2_000, "one of two runs measured again for four seconds");
    }
}
