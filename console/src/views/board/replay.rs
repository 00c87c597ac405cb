//! What the board shows differently where a replay tells it what happened: another clock, and nothing that comes later.

use std::sync::Arc;

use muster_run::{Record, Run};
use muster_tui::snapshot::{MetricPast, Mode, Past, Replay, RunPhase, WorkSeen};

use super::{Board, Inner};

impl Board {
    /// A replay is shown, and is here. Until the console ends the board shows no other mode.
    pub fn replays(&self, replay: Replay) {
        let mut inner = self.lock();
        inner.now.mode = Mode::Replay(replay);
        inner.now.last_frame_ms = None;
        inner.dirty = true;
    }

    /// Sets how often a node of the run that is replayed is visited at most.
    pub fn visits(&self, visits: usize) {
        self.lock().going.visits = visits;
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
