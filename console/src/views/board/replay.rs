//! What the board shows differently where a replay tells it what happened: another clock, and nothing that comes later.

use std::sync::Arc;

use muster_run::{Record, Run};
use muster_tui::snapshot::{MetricPast, Mode, NodeRow, Past, Replay, RunPhase, WorkSeen};

use super::{Board, Inner};
use crate::work::Update;

impl Board {
    /// A replay is shown, and is here. Until the console ends the board shows no other mode.
    pub fn replays(&self, replay: Replay) {
        let mut inner = self.lock();
        inner.now.mode = Mode::Replay(replay);
        inner.now.last_frame_ms = None;
        inner.dirty = true;
    }

    /// The run that is replayed begins: no node has said anything yet, and each is visited this often at most.
    pub fn rewound(&self, visits: usize) {
        let mut inner = self.lock();
        inner.log.clear();
        inner.going.visits = visits;
        (inner.refocus, inner.dirty) = (true, true);
    }

    /// This happened at that moment of the run that is replayed.
    pub fn hear(&self, at_ms: u64, update: &Update<'_>) {
        self.lock().hear(update, at_ms);
    }

    /// The replay has come to the end of `run`, which ended as `phase` says.
    pub fn replayed(&self, run: &Run, phase: RunPhase) {
        self.phase(phase);
        let mut inner = self.lock();
        if let Some(shown) = &mut inner.now.run {
            Arc::make_mut(shown).ended_ms = run.ended_ms;
        }
        inner.dirty = true;
    }
}

impl Inner {
    /// Where frames come from now; a replay stays one.
    pub(super) fn mode(&mut self, mode: Mode) {
        if self.now.replay().is_none() {
            self.now.mode = mode;
        }
    }

    /// The nodes whose states are counted. A watch or a case that is replayed has no run, so nothing is missing of its nodes.
    pub(super) fn counted(&self) -> &[Arc<NodeRow>] {
        if self.now.replay().is_some() && self.now.run.is_none() { &[] } else { &self.nodes }
    }

    /// What of the past of a node there was at the moment that is shown.
    pub(super) fn until_now(&self, past: Past, mut stored: Vec<Record>) -> (Past, Vec<Record>) {
        let Some(at_ms) = self.now.replay().map(|replay| replay.at_ms) else { return (past, stored) };
        stored.retain(|record| record.at_ms <= at_ms);
        let works: Vec<WorkSeen> = past.works.iter().filter(|work| work.at_ms <= at_ms).cloned().collect();
        let metric = |metric: &MetricPast| MetricPast {
            metric: metric.metric.clone(),
            medians: metric.medians.iter().filter(|(at, _)| *at <= at_ms).copied().collect(),
        };
        let metrics = past.metrics.iter().map(metric).collect();
        (Past { works: works.into(), metrics, ..past }, stored)
    }
}

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_run::RunState;
    use muster_wire::{Level, LogLine, Profile};

    use super::*;

    const REPLAY: Replay = Replay { at_ms: 9_000, from_ms: 1_000, until_ms: 9_000, speed: 1.0, paused: false };

    fn run() -> Run {
        Run {
            id: "r".to_owned(),
            playbook: "made".to_owned(),
            profile: Profile::Smoke,
            started_ms: 1_000,
            ended_ms: None,
            nodes: vec!["n1".to_owned()],
            plan: vec!["disk".to_owned()],
            state: RunState::Running,
        }
    }

    #[test]
    fn nodes_of_a_replay_without_a_run_are_not_counted_as_not_run() {
        let board = Board::new("one", &["n1".to_owned()], &[]);
        let not_run = || {
            board.publish();
            board.snapshot().counts.get(State::NotRun)
        };
        assert_eq!(not_run(), 1, "nothing is known of it yet");
        board.replays(REPLAY);
        assert_eq!(not_run(), 0, "a watch measures nothing");
        board.begin(&run(), None, Vec::new(), RunPhase::Running);
        assert_eq!(not_run(), 1, "its result is still to come");
    }

    #[test]
    fn what_a_node_said_has_the_time_of_the_replay_and_is_unsaid_when_that_begins_again() {
        let board = Board::new("one", &["n1".to_owned()], &[]);
        board.replays(REPLAY);
        board.begin(&run(), None, Vec::new(), RunPhase::Running);
        board.focus("n1");
        let said = || {
            board.publish();
            let focus = board.snapshot().focus.clone();
            focus.map(|focus| focus.log.iter().map(|line| line.at_ms).collect::<Vec<u64>>()).unwrap_or_default()
        };
        board.hear(4_000, &Update::Dropped { node: "n1", step: "look", reason: "no route" });
        let line = LogLine { level: Level::Info, text: "hello".to_owned() };
        board.hear(5_000, &Update::Said { node: "n1", line: &line });
        assert_eq!(said(), [4_000, 5_000]);
        board.rewound(3);
        assert_eq!(said(), [0_u64; 0]);
    }
}
