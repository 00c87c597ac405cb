//! What a stored run told, and when: the same updates that watchers of a scan get, as far as its records say them.

use std::sync::Arc;

use muster_analysis::records::{DROPPED, leaves};
use muster_playbook::{Phase, Plan};
use muster_run::{Record, Run, is_work};
use muster_wire::{Datum, Outcome};

use super::{Observer, Update, followed};

/// The records of a run in order of time, and how far they have been played.
#[derive(Debug)]
pub struct Tape {
    run: Run,
    plan: Option<Plan>,
    records: Vec<Arc<Record>>,
    /// Records at which a phase begins, and its index.
    begins: Vec<(usize, usize)>,
    told: usize,
}

impl Tape {
    /// Of `run` with its `records`, before the first of them.
    #[must_use]
    pub fn new(run: Run, mut records: Vec<Arc<Record>>) -> Self {
        // What has one time keeps its order.
        records.sort_by_key(|record| record.at_ms);
        let plan = followed::plan(&run);
        let mut begins: Vec<(usize, usize)> = Vec::new();
        for (at, record) in records.iter().enumerate().filter(|(_, record)| is_work(&record.work)) {
            let phase = phase_of(plan.as_ref(), record);
            // A late node still tells of the phase before.
            if begins.last().is_none_or(|(_, under_way)| phase > *under_way) {
                begins.push((at, phase));
            }
        }
        Self { run, plan, records, begins, told: 0 }
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// What it did, where its playbook is known here.
    #[must_use]
    pub const fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// All records, in order of time.
    #[must_use]
    pub fn records(&self) -> &[Arc<Record>] {
        &self.records
    }

    /// When it began and ended, seconds since 1970 UTC.
    #[must_use]
    pub fn span(&self) -> (f64, f64) {
        let times = || self.records.iter().map(|record| record.at_ms);
        let first = times().min().map_or(self.run.started_ms, |first| first.min(self.run.started_ms));
        let last = times().max().into_iter().chain(self.run.ended_ms).max().unwrap_or(first).max(first);
        (first as f64 / 1e3, last as f64 / 1e3)
    }

    /// Begins again.
    pub fn rewind(&mut self) {
        self.told = 0;
    }

    /// Tells `watcher` all that happened up to `until_ms` and was not told yet. `pause` is called where the last phase of that begins: what
    /// is known by then is what its nodes keep until they have results of it.
    pub fn play(&mut self, until_ms: u64, watcher: &mut dyn Observer, pause: &mut dyn FnMut()) {
        let due = self.records.partition_point(|record| record.at_ms <= until_ms);
        let newest = self.begins.iter().rev().map(|(at, _)| *at).find(|at| *at < due).filter(|at| *at > 0);
        while self.told < due {
            if newest == Some(self.told) {
                pause();
            }
            self.tell(watcher);
        }
    }

    fn tell(&mut self, watcher: &mut dyn Observer) {
        let at = self.told;
        self.told += 1;
        if let Ok(nr) = self.begins.binary_search_by_key(&at, |(begins, _)| *begins) {
            self.begin(nr, watcher);
        }
        let record = &self.records[at];
        watcher.see(&Update::Recorded(record));
        if leaves(record) {
            let (step, reason) = left(record);
            watcher.see(&Update::Dropped { node: &record.node, step: &step, reason: &reason });
        }
    }

    /// Tells that the phase number `nr` of those that were seen begins.
    fn begin(&self, nr: usize, watcher: &mut dyn Observer) {
        let (at, index) = self.begins[nr];
        let nodes = self.run.nodes.len();
        let planned = self.plan.as_ref().filter(|plan| index < plan.phases.len());
        if let Some(plan) = planned {
            let count = |phase: &Phase| phase.work_names().len() * phase.nodes.len();
            let counts: Vec<usize> = plan.phases[plan.stretch_of(index)].iter().map(count).collect();
            let step = plan.phases[index].step.as_str();
            return watcher.see(&Update::Phase { index, step, nodes, work: counts[0], further: &counts[1..] });
        }
        if self.plan.is_none() && index == 0 {
            let work = self.run.plan.len() * nodes;
            return watcher.see(&Update::Phase { index, step: &self.run.playbook, nodes, work, further: &[] });
        }
        let end = self.begins.get(nr + 1).map_or(self.records.len(), |(next, _)| *next);
        let own = self.records[at..end].iter().filter(|record| is_work(&record.work));
        let visit = self.records[at].visit();
        let step = format!("measure again (visit {visit})");
        watcher.see(&Update::Phase { index, step: &step, nodes, work: own.count(), further: &[] });
    }
}

/// The phase that is under way when this record comes: nodes go through a stretch of them each at its own pace. Further visits are
/// counted on after the last.
fn phase_of(plan: Option<&Plan>, record: &Record) -> usize {
    let Some(plan) = plan else { return record.visit() - 1 };
    followed::part(plan, record).map_or(0, |part| plan.stretch_of(part).start)
}

/// After which step its node left, and why.
fn left(record: &Record) -> (String, String) {
    let text = |key: &str| {
        let found = record.facts.iter().find(|fact| fact.key == key).and_then(|fact| fact.reading.value());
        if let Some(Datum::Text(text)) = found { muster_wire::clean(text, 400) } else { "?".to_owned() }
    };
    match &record.outcome {
        _ if record.work == DROPPED => (text("step"), text("reason")),
        Outcome::Failed(why) => ("this step".to_owned(), muster_wire::clean(why, 400)),
        _ => ("this step".to_owned(), "the connection was lost".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use muster_run::{RunState, noted};

    use super::*;

    /// Writes down what it is told.
    #[derive(Default)]
    struct Ear(Vec<String>);

    impl Observer for Ear {
        fn see(&mut self, update: &Update<'_>) {
            self.0.push(match update {
                Update::Phase { index, work, .. } => format!("phase {index}: {work}"),
                Update::Recorded(record) => format!("{} {}", record.node, record.work),
                Update::Dropped { node, reason, .. } => format!("{node} left: {reason}"),
                _ => String::new(),
            });
        }
    }

    fn run() -> Run {
        let nodes = vec!["n1".to_owned(), "n2".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &nodes);
        Run {
            id: "r".to_owned(),
            playbook: plan.playbook.clone(),
            profile: plan.profile,
            started_ms: 1_000,
            ended_ms: Some(9_000),
            nodes,
            plan: plan.work_names(),
            state: RunState::Finished,
        }
    }

    fn record(node: &str, work: &str, at_ms: u64) -> Arc<Record> {
        Arc::new(noted("r", node, work, Vec::new(), at_ms))
    }

    #[test]
    fn a_run_is_told_in_order_of_time_with_its_phases_and_nothing_twice() {
        let run = run();
        let (first, last) = (run.plan[0].clone(), run.plan[run.plan.len() - 1].clone());
        let again = format!("{last}#2");
        let lost =
            Record { outcome: Outcome::Failed("no route".to_owned()), ..noted("r", "n2", "link", Vec::new(), 6_000) };
        let all = vec![
            record("n1", &again, 8_000),
            record("n2", &first, 3_000),
            record("n1", &first, 2_000),
            Arc::new(lost),
            record("n1", &last, 5_000),
        ];
        let mut tape = Tape::new(run, all);
        assert_eq!(tape.span(), (1.0, 9.0));
        let (mut ear, mut pauses) = (Ear::default(), 0);
        tape.play(2_500, &mut ear, &mut || pauses += 1);
        assert_eq!(ear.0.len(), 2, "{:?}", ear.0);
        tape.play(9_000, &mut ear, &mut || pauses += 1);
        let said = ear.0.clone();
        assert!(
            said[0].starts_with("phase 0: ") && said[1..3] == [format!("n1 {first}"), format!("n2 {first}")],
            "{said:?}"
        );
        assert!(said.contains(&"n2 left: no route".to_owned()), "{said:?}");
        assert_eq!(said.last(), Some(&format!("n1 {again}")));
        assert_eq!(pauses, 1, "before the newest phase only");
        tape.rewind();
        let mut once_more = Ear::default();
        tape.play(u64::MAX, &mut once_more, &mut || {});
        assert_eq!(once_more.0, said, "at once it is the same");
    }
}
