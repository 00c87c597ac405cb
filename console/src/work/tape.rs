//! What a stored run told, and when: the same updates that watchers of a scan get, as far as its records say them.

use std::sync::Arc;

use muster_analysis::records::{DROPPED, leaves};
use muster_playbook::{Pairs, Phase, Plan};
use muster_run::{Record, Run, is_work};
use muster_wire::{Datum, Outcome};

use super::rounds::{self, Round};
use super::{Update, followed};

/// The records of a run in order of time, and how far they have been played.
#[derive(Debug)]
pub struct Tape {
    run: Run,
    plan: Option<Plan>,
    records: Vec<Arc<Record>>,
    /// Records at which a phase begins, and its index.
    begins: Vec<(usize, usize)>,
    /// Rounds of pairs.
    rounds: Vec<Round>,
    /// All that is told, and when, milliseconds since 1970 UTC.
    events: Vec<(u64, Event)>,
    told: usize,
}

/// What is told, by its place among others of its kind.
#[derive(Clone, Copy, Debug)]
enum Event {
    Phase(usize),
    Round(usize),
    Record(usize),
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
        let bisects = plan.iter().flat_map(|plan| &plan.phases).any(|phase| phase.pairs == Some(Pairs::Bisect));
        let rounds = rounds::of(&records, bisects);
        let events = events(run.started_ms, &records, &begins, &rounds);
        Self { run, plan, records, begins, rounds, events, told: 0 }
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

    /// Tells all that happened up to `until_ms` and was not told yet, and when it did. `pause` is called where the last phase of that
    /// begins: what is known by then is what its nodes keep until they have results of it.
    pub fn play(&mut self, until_ms: u64, hear: &mut dyn FnMut(u64, &Update<'_>), pause: &mut dyn FnMut()) {
        let due = self.events.partition_point(|(at_ms, _)| *at_ms <= until_ms);
        let begins = |(_, event): &(u64, Event)| matches!(event, Event::Phase(nr) if self.begins[*nr].0 > 0);
        let newest = self.events[..due].iter().rposition(begins);
        for place in self.told..due {
            if newest == Some(place) {
                pause();
            }
            self.tell(self.events[place], hear);
        }
        self.told = self.told.max(due);
    }

    fn tell(&self, (at_ms, event): (u64, Event), hear: &mut dyn FnMut(u64, &Update<'_>)) {
        match event {
            Event::Phase(nr) => self.begin(nr, &mut |update| hear(at_ms, update)),
            Event::Round(nr) => {
                let Round { number, planned, more, pairs, measured, ref dropped, .. } = self.rounds[nr];
                hear(at_ms, &Update::More(more));
                hear(at_ms, &Update::Round { number, planned, pairs, measured, dropped });
            }
            Event::Record(at) => {
                let record = &self.records[at];
                hear(at_ms, &Update::Recorded(record));
                if leaves(record) {
                    let (step, reason) = left(record);
                    hear(at_ms, &Update::Dropped { node: &record.node, step: &step, reason: &reason });
                }
            }
        }
    }

    /// Tells that the phase number `nr` of those that were seen begins.
    fn begin(&self, nr: usize, hear: &mut dyn FnMut(&Update<'_>)) {
        let (at, index) = self.begins[nr];
        let nodes = self.run.nodes.len();
        let planned = self.plan.as_ref().filter(|plan| index < plan.phases.len());
        if let Some(plan) = planned {
            let count = |phase: &Phase| phase.work_names().len() * phase.nodes.len();
            let counts: Vec<usize> = plan.phases[plan.stretch_of(index)].iter().map(count).collect();
            let step = plan.phases[index].step.as_str();
            return hear(&Update::Phase { index, step, nodes, work: counts[0], further: &counts[1..] });
        }
        if self.plan.is_none() && index == 0 {
            let work = self.run.plan.len() * nodes;
            return hear(&Update::Phase { index, step: &self.run.playbook, nodes, work, further: &[] });
        }
        let end = self.begins.get(nr + 1).map_or(self.records.len(), |(next, _)| *next);
        let own = self.records[at..end].iter().filter(|record| is_work(&record.work));
        let visit = self.records[at].visit();
        let step = format!("measure again (visit {visit})");
        hear(&Update::Phase { index, step: &step, nodes, work: own.count(), further: &[] });
    }
}

/// All that is told of `records`, and when. A phase or a round begins when the work did that its first record is of, but not before
/// what was told last.
fn events(started_ms: u64, records: &[Arc<Record>], begins: &[(usize, usize)], rounds: &[Round]) -> Vec<(u64, Event)> {
    let mut events = Vec::with_capacity(records.len() + begins.len() + rounds.len());
    let mut last_ms = started_ms;
    for (at, record) in records.iter().enumerate() {
        let began_ms = record.at_ms.saturating_sub(record.elapsed_ns / 1_000_000).max(last_ms).min(record.at_ms);
        let phase = begins.binary_search_by_key(&at, |(begins, _)| *begins).ok();
        let round = rounds.binary_search_by_key(&at, |round| round.at).ok();
        events.extend(phase.map(|nr| (began_ms, Event::Phase(nr))));
        events.extend(round.map(|nr| (began_ms, Event::Round(nr))));
        events.push((record.at_ms, Event::Record(at)));
        last_ms = record.at_ms;
    }
    events
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
    use crate::judge::pairs::kept;
    use crate::work::Observer;

    /// Writes down what it is told.
    #[derive(Default)]
    struct Ear(Vec<String>);

    impl Observer for Ear {
        fn see(&mut self, update: &Update<'_>) {
            self.0.push(match update {
                Update::Phase { index, work, .. } => format!("phase {index}: {work}"),
                Update::More(more) => format!("{more} more"),
                Update::Round { number, planned, measured, .. } => {
                    format!("round {number} of {planned:?} after {measured}")
                }
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
        tape.play(2_500, &mut |_, update| ear.see(update), &mut || pauses += 1);
        assert_eq!(ear.0.len(), 2, "{:?}", ear.0);
        tape.play(9_000, &mut |_, update| ear.see(update), &mut || pauses += 1);
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
        tape.play(u64::MAX, &mut |_, update| once_more.see(update), &mut || {});
        assert_eq!(once_more.0, said, "at once it is the same");
    }

    #[test]
    fn a_phase_begins_when_its_first_work_did_and_not_when_that_is_done() {
        let run = run();
        let (first, again) = (run.plan[0].clone(), format!("{}#2", run.plan[0]));
        let of = |node: &str, work: &str, at_ms: u64| Record {
            elapsed_ns: 1_500_000_000,
            ..noted("r", node, work, Vec::new(), at_ms)
        };
        let all = [of("n1", &first, 3_000), of("n2", &first, 4_000), of("n1", &again, 7_000), of("n2", &again, 7_500)];
        let mut tape = Tape::new(run, all.into_iter().map(Arc::new).collect());
        let mut phases = Vec::new();
        let mut hear = |at_ms: u64, update: &Update<'_>| {
            phases.extend(matches!(update, Update::Phase { .. }).then_some(at_ms));
        };
        tape.play(9_000, &mut hear, &mut || {});
        assert_eq!(phases, [1_500, 5_500]);
    }

    #[test]
    fn the_rounds_of_a_scan_are_told_before_their_pairs_with_how_many_there_are_to_be() {
        let nodes = ["n1", "n2", "n3"].map(str::to_owned).to_vec();
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("network-full").unwrap(), &nodes);
        let run = Run { playbook: plan.playbook.clone(), plan: plan.work_names(), nodes, ..run() };
        let visit = |src: &str, dst: &str, round: usize, at_ms: u64| Record {
            elapsed_ns: 1_000_000_000,
            ..noted("r", src, &kept::work(dst, 1), vec![kept::number(kept::ROUND, round as f64)], at_ms)
        };
        let mut all = vec![
            visit("n1", "n2", 1, 3_000),
            visit("n2", "n1", 1, 3_001),
            visit("n3", "n1", 2, 6_000),
            visit("n1", "n3", 2, 6_001),
        ];
        all.extend(["n1", "n2", "n3"].map(|node| noted("r", node, muster_playbook::PAIRS, Vec::new(), 8_000)));
        let mut tape = Tape::new(run, all.into_iter().map(Arc::new).collect());
        let mut said = Vec::new();
        let mut hear = |at_ms: u64, update: &Update<'_>| {
            let mut ear = Ear::default();
            ear.see(update);
            said.push(format!("{at_ms} {}", ear.0[0]));
        };
        tape.play(5_500, &mut hear, &mut || {});
        assert_eq!(said[1..3], ["2000 4 more", "2000 round 0 of Some((2, 2)) after 0"]);
        assert_eq!(said[5..], ["5000 0 more", "5000 round 1 of Some((2, 2)) after 1"], "{said:?}");
    }
}
