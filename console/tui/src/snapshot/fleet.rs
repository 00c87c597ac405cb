//! The whole picture: where it comes from, whether it can be shown, and what it holds.

use std::sync::Arc;

use muster_analysis::service::Service;
use muster_wire::Level;

use crate::judgement::{BY_SEVERITY, State, severity};
use crate::snapshot::{
    Criteria, Focus, Load, Metrics, Network, NodeRow, Part, PlaybookRow, Reading, Replay, RunInfo, RunProgress, Runs,
    Selector, Testing, Triaged, Watching, WhatIf,
};

/// Everything a frame is drawn from.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Grows whenever anything below but `now_ms` differs from the snapshot before.
    pub generation: u64,
    /// Wall clock when it was made.
    pub now_ms: u64,
    /// Name of the inventory, the recording or the demo.
    pub title: String,
    /// Why this console only looks at what another one or nobody writes, where it does.
    pub only_looks: Option<Arc<str>>,
    /// Where frames come from.
    pub mode: Mode,
    /// Whether the data below can be shown.
    pub load: Load,
    /// When the last frame of any node came.
    pub last_frame_ms: Option<u64>,
    /// Age past which a live value is stale.
    pub stale_after_ms: u64,
    /// Age past which a result is stale and says little about the node as it is today.
    pub stale_result_ms: u64,
    /// The running or the latest run.
    pub run: Option<Arc<RunInfo>>,
    /// How far it is.
    pub progress: RunProgress,
    /// The fleet in inventory order.
    pub nodes: Arc<[Arc<NodeRow>]>,
    /// How many nodes are in each state.
    pub counts: Counts,
    /// Of these, the nodes all of whose results are stale.
    pub stale: Counts,
    /// How many nodes are in other hands, by state; empty where all are simply in service.
    pub hands: Arc<[(Service, usize)]>,
    /// Metrics in catalogue order.
    pub metrics: Arc<Metrics>,
    /// Whether earlier runs are still being read; until then earlier results may be missing.
    pub looking_back: bool,
    /// The stored run that is being read and judged, if one is.
    pub reading: Option<Reading>,
    /// Playbooks that can be run.
    pub playbooks: Arc<[PlaybookRow]>,
    /// Data that is too large to keep for every node, for the one that [`crate::Intent::Focus`] named.
    pub focus: Option<Arc<Focus>>,
    /// What the verdicts would be under the terms of [`crate::Intent::WhatIf`].
    pub what_if: Option<Arc<WhatIf>>,
    /// Versions of criteria in the database.
    pub criteria: Part<Criteria>,
    /// Runs in the database.
    pub runs: Part<Runs>,
    /// The stored run that is shown by itself; `None` if the newest results of all runs are shown.
    pub alone: Option<String>,
    /// What is known of the pairs.
    pub network: Part<Network>,
    /// The job that is watched.
    pub watch: Part<Watching>,
    /// The job whose failure is looked into.
    pub triage: Part<Triaged>,
    /// The offline diagnosis that goes on, if one does.
    pub testing: Option<Arc<Testing>>,
    /// What the Selector says.
    pub selector: Part<Selector>,
    /// Oldest first; the last is shown under the body while it is fresh.
    pub messages: Arc<[Message]>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            generation: 0,
            now_ms: 0,
            title: String::new(),
            only_looks: None,
            mode: Mode::Idle,
            load: Load::Ready,
            last_frame_ms: None,
            stale_after_ms: 3_000,
            stale_result_ms: 30 * 86_400_000,
            run: None,
            progress: RunProgress::default(),
            nodes: Arc::from([]),
            counts: Counts::default(),
            stale: Counts::default(),
            hands: Arc::from([]),
            metrics: Arc::default(),
            looking_back: false,
            reading: None,
            playbooks: Arc::from([]),
            focus: None,
            what_if: None,
            criteria: Part::default(),
            runs: Part::default(),
            alone: None,
            network: Part::default(),
            watch: Part::default(),
            triage: Part::default(),
            testing: None,
            selector: Part::default(),
            messages: Arc::from([]),
        }
    }
}

impl Snapshot {
    /// Where the replay is that is shown, if one is.
    #[must_use]
    pub const fn replay(&self) -> Option<&Replay> {
        if let Mode::Replay(replay) = &self.mode { Some(replay) } else { None }
    }

    /// Whether a replay is shown whose time one can go through.
    #[must_use]
    pub fn plays(&self) -> bool {
        self.replay().is_some_and(|replay| !replay.is_moment())
    }

    /// The word shown instead of a state that is not known yet because a stored run is still being read.
    #[must_use]
    pub fn awaited(&self, state: State) -> Option<&'static str> {
        self.reading.as_ref().filter(|_| state == State::NotRun).map(Reading::word)
    }
}

/// Where frames come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// From nodes, since then.
    Live {
        /// Start of the run.
        since_ms: u64,
    },
    /// From a recording that is played.
    Replay(Replay),
    /// From the database; nothing is running.
    Idle,
}

/// Number of nodes per state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; 6]);

impl Counts {
    /// Counts `states`.
    #[must_use]
    pub fn of(states: impl IntoIterator<Item = State>) -> Self {
        let mut counts = Self::default();
        for state in states {
            counts.0[severity(state)] += 1;
        }
        counts
    }

    /// Nodes in `state`.
    #[must_use]
    pub const fn get(&self, state: State) -> usize {
        self.0[severity(state)]
    }

    /// States that occur, worst first, with their count.
    pub fn present(&self) -> impl Iterator<Item = (State, usize)> + '_ {
        BY_SEVERITY.into_iter().zip(self.0).filter(|(_, n)| *n > 0)
    }
}

/// Something to tell the user.
#[derive(Clone, Debug)]
pub struct Message {
    /// When.
    pub at_ms: u64,
    /// Importance.
    pub level: Level,
    /// One sentence, subject first.
    pub text: String,
}
