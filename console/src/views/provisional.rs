//! When is the state of a node provisional? While results to come may still change it: those of its peers in the current phase, and
//! another visit to a node in doubt.
//!
//! A node that has finished a phase keeps its state until it has results of a later one: waiting for its turn takes nothing back.
//! So a state that is not provisional changes only by the node's own results, and never flaps because others report.

use std::collections::HashSet;

use muster_analysis::State;
use muster_playbook::Plan;
use muster_run::RunState;
use muster_wire::Profile;

use crate::judge::Told;
use crate::work::{again, followed};

/// Where a run stood when it was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has ended; no more results will come.
    #[default]
    Over,
    /// It is running.
    Going(Going),
    /// It is running in another console, by a playbook that is not known here, so its phases cannot be told apart.
    Elsewhere,
}

/// A run in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Going {
    /// Nodes with results in the current phase, or in those that nodes go through with it at their own pace.
    pub seen: HashSet<String>,
    /// Nodes that have left the run.
    pub gone: HashSet<String>,
    /// How often a node is visited at most; nodes in doubt are visited again before the run ends.
    pub visits: usize,
}

impl Going {
    /// A run of `plan` in another console.
    fn elsewhere(plan: &Plan, told: &Told) -> Self {
        // Nodes go through the phases of a stretch each at its own pace.
        let stretch = |record| followed::part(plan, record).map(|part| plan.stretch_of(part).start);
        let newest = told.all().filter_map(|record| Some((record.at_ms, stretch(record)?))).max();
        let under_way = newest.map(|(_, start)| start);
        let seen = told.all().filter(|record| stretch(record) == under_way);
        // How often that console visits a node is not known here.
        let visits = visits_at_most(told.run.profile, usize::MAX);
        Self { seen: seen.map(|record| record.node.clone()).collect(), gone: told.gone.clone(), visits }
    }
}

impl Stage {
    /// The stage of a stored run.
    #[must_use]
    pub fn of(told: &Told) -> Self {
        if told.run.state != RunState::Running {
            return Self::Over;
        }
        followed::plan(&told.run).map_or(Self::Elsewhere, |plan| Self::Going(Going::elsewhere(&plan, told)))
    }

    /// Whether a node keeps its state `before` although it would be `now`: its peers have results of the current phase, and it has
    /// none yet.
    #[must_use]
    pub fn keeps(&self, node: &str, before: State, now: State) -> bool {
        let waits = matches!(self, Self::Going(going) if !going.seen.contains(node));
        waits && now == State::NotRun && !matches!(before, State::NotRun | State::NotApplicable)
    }

    /// Whether `state`, which is based on `told` among others, is provisional. A node without a state is not.
    #[must_use]
    pub fn is_provisional(&self, node: &str, state: State, told: &Told) -> bool {
        if matches!(state, State::NotRun | State::NotApplicable) {
            return false;
        }
        let Some(own) = told.of(node).filter(|own| !own.works.is_empty()) else { return false };
        match self {
            Self::Over => false,
            Self::Elsewhere => true,
            Self::Going(going) => {
                let doubted = || !again::in_doubt(own.findings, &told.visits, going.visits).is_empty();
                going.seen.contains(node) || (!going.gone.contains(node) && doubted())
            }
        }
    }
}

/// How often a run of this profile visits a node at most, where `visits` are asked for.
#[must_use]
pub fn visits_at_most(profile: Profile, visits: usize) -> usize {
    // A burn-in of a day is not run twice unasked.
    if profile == Profile::Full { 1 } else { visits }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_run::{Record, Run};
    use muster_tui::snapshot::RunPhase;
    use muster_wire::{Direction, MetricId, Outcome, Series, Unit};

    use super::*;
    use crate::judge::Judging;
    use crate::views::Board;
    use crate::work::{Course, Durations};
    use crate::work::{Observer, Update};

    const NODES: usize = 16;

    /// A run as the screen sees it: each result is judged as soon as it is there.
    struct Replay {
        run: Run,
        board: Board,
        told: Option<Arc<Told>>,
        at_ms: u64,
    }

    impl Replay {
        fn new() -> Self {
            let nodes: Vec<String> = (0..NODES).map(|nr| format!("n{nr:02}")).collect();
            let run = Run {
                id: "r".to_owned(),
                playbook: "made-up".to_owned(),
                profile: Profile::Smoke,
                started_ms: 1,
                ended_ms: None,
                nodes: nodes.clone(),
                plan: vec!["cpu-stream".to_owned(), "cpu-gemm".to_owned()],
                state: RunState::Running,
            };
            let board = Board::new("made-up", &nodes, &[]);
            board.begin(&run, None, Vec::new(), RunPhase::Running);
            let replay = Self { run, board, told: None, at_ms: 2 };
            replay.expects(3);
            replay
        }

        fn expects(&self, visits: usize) {
            let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &self.run.nodes);
            self.board.expect(Course::new(&plan, &Durations::default(), 64, &Default::default()), visits);
        }

        fn phase(&mut self, index: usize) {
            self.board.see(&Update::Phase { index, step: "step", nodes: NODES, work: NODES, further: &[] });
        }

        /// `work` ends on a node that is `level` times as fast as usual.
        fn result(&mut self, node: usize, work: &str, level: f64) {
            let record = self.record(node, work, level);
            self.board.see(&Update::Recorded(&record));
        }

        fn record(&self, node: usize, work: &str, level: f64) -> Record {
            let benchmark = work.split('#').next().unwrap();
            // No two nodes are quite alike.
            let usual = 1e9 * level * (1.0 + 0.0004 * (node * 7 % 11) as f64);
            let series = Series {
                metric: MetricId::new(benchmark, "rate", "own"),
                unit: Unit::BytesPerSec,
                direction: Direction::HigherIsBetter,
                values: (0..32).map(|i| usual * (1.0 + 0.001 * f64::from(i * 5 % 7))).collect(),
                warmup: 0,
                started_ns: 0,
            };
            Record {
                run: self.run.id.clone(),
                node: format!("n{node:02}"),
                work: work.to_owned(),
                outcome: Outcome::Done,
                at_ms: self.at_ms,
                elapsed_ns: 1,
                series: vec![series],
                facts: Vec::new(),
            }
        }

        /// State of each node, and whether it is provisional.
        fn look(&mut self) -> Vec<(State, bool)> {
            if let Some((records, stage)) = self.board.unjudged() {
                let told = Arc::new(Told::judge(self.run.clone(), &records, &Judging::default()));
                self.board.show(vec![told.clone()], Arc::default(), &stage);
                self.told = Some(told);
            }
            self.rows()
        }

        fn rows(&self) -> Vec<(State, bool)> {
            self.board.publish();
            self.board.snapshot().nodes.iter().map(|row| (row.state, row.provisional)).collect()
        }
    }

    /// Every second node is slow in the first phase, and these come first: what is usual turns round with those that follow.
    fn order() -> impl Iterator<Item = (usize, f64)> {
        let slow = (0..5).map(|nr| (2 * nr, if nr == 4 { 1.0 } else { 0.6 }));
        slow.chain((0..NODES).filter(|nr| nr % 2 == 1 || *nr > 8).map(|nr| (nr, 1.0)))
    }

    #[test]
    fn a_state_that_is_not_provisional_changes_only_by_results_of_the_node_itself() {
        let mut replay = Replay::new();
        let mut before = replay.look();
        let (mut measured, mut flipped) = (HashSet::new(), 0);
        let mut check = |replay: &mut Replay, own: Option<usize>| {
            let now = replay.look();
            // Nothing was decided of a node that has no result yet.
            let others =
                before.iter().zip(&now).enumerate().filter(|(nr, _)| Some(*nr) != own && measured.contains(nr));
            for (nr, (was, is)) in others {
                let changed = was.0 != is.0 && was.0 != State::NotRun;
                assert!(!changed || was.1, "n{nr:02} was {:?} for good and is {:?}", was.0, is.0);
                flipped += usize::from(changed);
            }
            before = now;
            measured.extend(own);
        };
        for (phase, work) in ["cpu-stream", "cpu-gemm"].into_iter().enumerate() {
            replay.phase(phase);
            check(&mut replay, None);
            for (nr, level) in order() {
                replay.result(nr, work, if phase == 0 { level } else { 1.0 });
                check(&mut replay, Some(nr));
            }
        }
        replay.phase(2);
        check(&mut replay, None);
        for nr in [0, 2, 4, 6, 1, 3, 5, 7] {
            replay.result(nr, "cpu-stream#2", 1.0);
            check(&mut replay, Some(nr));
        }
        assert!(flipped > 0, "the replay has nothing to show");
        replay.board.phase(RunPhase::Finished);
        assert!(
            replay.rows().iter().all(|(_, provisional)| !provisional),
            "nothing is provisional once the run is over"
        );
    }

    #[test]
    fn a_phase_that_ends_makes_states_final_but_for_what_is_measured_again() {
        let mut replay = Replay::new();
        replay.phase(0);
        for nr in 0..NODES {
            replay.result(nr, "cpu-stream", if nr == 3 { 0.5 } else { 1.0 });
        }
        assert!(replay.look().iter().all(|(_, provisional)| *provisional), "the phase is not over");
        replay.phase(1);
        let rows = replay.look();
        assert_eq!(rows[3], (State::Fail, true), "a slow node is measured again before the run ends");
        assert!(!rows[5].1, "{:?}", rows[5]);
        replay.expects(1);
        replay.phase(1);
        assert_eq!(replay.look()[3], (State::Fail, false), "where it is not, it has failed");
    }

    #[test]
    fn a_run_of_another_console_is_provisional_until_it_ends() {
        let replay = {
            let mut replay = Replay::new();
            (0..NODES).for_each(|nr| replay.result(nr, "cpu-stream", 1.0));
            replay.look();
            replay
        };
        let told = replay.told.unwrap();
        let stage = Stage::of(&told);
        assert_eq!(stage, Stage::Elsewhere, "no playbook of ours is called made-up");
        assert!(stage.is_provisional("n01", State::Pass, &told));
        assert!(!stage.is_provisional("n01", State::NotRun, &told));
        assert!(!stage.is_provisional("elsewhere", State::Pass, &told));
        let over = Run { state: RunState::Interrupted, ..replay.run };
        let over = Told::judge(over, &[], &Judging::default());
        assert_eq!(Stage::of(&over), Stage::Over);
    }

    #[test]
    fn a_run_of_another_console_by_a_known_playbook_is_provisional_as_one_of_our_own() {
        let nodes: Vec<String> = (0..NODES).map(|nr| format!("n{nr:02}")).collect();
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd").unwrap(), &nodes);
        let mut replay = Replay::new();
        (replay.run.playbook, replay.run.plan) = ("cbd".to_owned(), plan.work_names());
        let mut records: Vec<Arc<Record>> = Vec::new();
        let mut stage = |replay: &mut Replay, (nr, work, level): (usize, &str, f64)| {
            replay.at_ms += 1;
            records.push(Arc::new(replay.record(nr, work, level)));
            let told = Told::judge(replay.run.clone(), &records, &Judging::default());
            let stage = Stage::of(&told);
            let state = |nr: usize| told.assessment.nodes[nr].state().state;
            let marks = |nr: usize| stage.is_provisional(&nodes[nr], state(nr), &told);
            (0..NODES).map(marks).collect::<Vec<_>>()
        };
        let mut marks = Vec::new();
        for nr in 0..NODES {
            marks = stage(&mut replay, (nr, "cpu-stream", if nr == 3 { 0.5 } else { 1.0 }));
        }
        assert!(marks.iter().all(|provisional| *provisional), "the phase is not known to be over");
        marks = stage(&mut replay, (0, "disk", 1.0));
        assert!(marks[0] && marks[3] && !marks[5], "the next has begun, and what is slow is measured again: {marks:?}");
    }

    #[test]
    fn a_fail_that_a_second_visit_confirmed_is_final_when_the_next_visit_begins() {
        let mut replay = Replay::new();
        replay.phase(0);
        for nr in 0..NODES {
            replay.result(nr, "cpu-stream", if nr == 3 { 0.5 } else { 1.0 });
        }
        replay.phase(1);
        assert_eq!(replay.look()[3], (State::Fail, true));
        for nr in 0..NODES {
            replay.result(nr, "cpu-stream#2", if nr == 3 { 0.5 } else { 1.0 });
        }
        assert_eq!(replay.look()[3], (State::Fail, true), "its peers may still be measured");
        replay.phase(2);
        assert_eq!(replay.look()[3], (State::Fail, false), "whoever failed twice has failed");
    }
}
