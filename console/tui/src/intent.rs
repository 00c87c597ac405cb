//! What the user wants done, for the engine to do. Drawing and keys never do it themselves.

use muster_triage::report::Subject;
use muster_wire::MetricId;

use crate::snapshot::{Ask, Terms};

/// One wish.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// Run a playbook on these nodes; the user has confirmed.
    RunPlaybook {
        /// Its name.
        playbook: String,
        /// Names, in inventory order.
        nodes: Vec<String>,
    },
    /// Stop the run that goes on; what was acknowledged stays.
    Cancel,
    /// Write what is shown to a file in this form and say where in a message.
    Export(Export, Format),
    /// Remove probes from these nodes; the user has confirmed.
    Clean {
        /// Names, in inventory order.
        nodes: Vec<String>,
    },
    /// Put this text on the clipboard. [`crate::run`] does it by OSC 52 and passes it on.
    Copy(String),
    /// Keep series and log of this node in [`crate::Snapshot::focus`] from now on.
    Focus {
        /// Its name.
        node: String,
    },
    /// Keep the samples of this pair in [`crate::snapshot::Network::pair`] from now on.
    Pair {
        /// Name of one endpoint.
        src: String,
        /// Name of the other one.
        dst: String,
    },
    /// Show this metric of the pairs from now on.
    PairMetric(String),
    /// Say what these terms would say, from now on; `None` goes back to those in force.
    WhatIf(Option<Terms>),
    /// Read the versions of criteria anew.
    Criteria,
    /// Read the list of runs anew.
    Runs,
    /// Show one stored run by itself; `None` shows the newest results of all runs.
    Open {
        /// Its identity.
        run: Option<String>,
    },
    /// Ask the Selector this from now on.
    Ask(Ask),
    /// Run these benchmarks on these nodes; the user has confirmed.
    RunSelection {
        /// Benchmarks, in the order to run them.
        benchmarks: Vec<String>,
        /// Names, the riskiest first.
        nodes: Vec<String>,
    },
    /// Put these nodes into other hands; the user has confirmed.
    Swap {
        /// Into whose.
        hand: Hand,
        /// Names, in inventory order.
        nodes: Vec<String>,
        /// Why, in words; may be empty.
        reason: String,
    },
    /// Watch these nodes while their job runs, instead of what is watched now; the user has confirmed.
    Watch {
        /// Names, in inventory order.
        nodes: Vec<String>,
    },
    /// End the watch; what it saw stays.
    StopWatch,
    /// Go on with the recording at this time, which is later than where it is.
    WatchFrom {
        /// Epoch seconds.
        at_s: f64,
    },
    /// Do this with the replay that is shown.
    Play(Play),
    /// Read this bundle of a failed job and show what it says.
    Triage {
        /// Its path, as typed.
        path: String,
    },
    /// Keep with the case that this suspect is wrong, or no longer; the verdict then names the next one.
    TriageWrong {
        /// Who or what.
        subject: Subject,
        /// Whether it is marked or the mark is taken away.
        wrong: bool,
    },
    /// Ask the nodes of the case again.
    TriageAgain {
        /// Whether the job is made to write flight-recorder dumps first; the user has confirmed.
        dumps: bool,
    },
    /// Test nodes of the case without the job and add what they show to the case; the user has confirmed.
    TriageOffline {
        /// Names.
        nodes: Vec<String>,
    },
    /// Write this root cause into the incident log; the user has confirmed.
    TriageConfirm {
        /// Who or what.
        subject: Subject,
    },
    /// Draw the whole screen anew. [`crate::run`] does it and does not pass it on.
    Redraw,
    /// Stop this process until the shell continues it. [`crate::run`] does it and does not pass it on.
    Suspend,
    /// Leave the console. A run that goes on is cancelled first. [`crate::run`] passes it on and returns.
    Quit,
}

impl Intent {
    /// Whether it does something on nodes, or puts them into other hands.
    #[must_use]
    pub const fn acts(&self) -> bool {
        matches!(
            self,
            Self::RunPlaybook { .. }
                | Self::RunSelection { .. }
                | Self::Clean { .. }
                | Self::Swap { .. }
                | Self::Watch { .. }
                | Self::TriageAgain { .. }
                | Self::TriageOffline { .. }
        )
    }

    /// Whether what comes of it is written into the database.
    #[must_use]
    pub const fn writes(&self) -> bool {
        matches!(
            self,
            Self::RunPlaybook { .. }
                | Self::RunSelection { .. }
                | Self::Swap { .. }
                | Self::TriageOffline { .. }
                | Self::TriageConfirm { .. }
        )
    }
}

/// What can be done with a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// Stand still, or go on.
    Pause,
    /// Five seconds of playing back.
    Back,
    /// Five seconds of playing on.
    On,
    /// To the first moment.
    Start,
    /// To the last moment.
    End,
    /// Half as fast.
    Slower,
    /// Twice as fast.
    Faster,
}

/// Into whose hands a node is put, as by the subcommands of `muster swap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// Into repair.
    Repair,
    /// Into repair, with the listed spare put into service in its place.
    Replace,
    /// Into the hot buffer.
    Spare,
    /// Back into service, if it passes what it failed.
    Return,
}

/// In which form to write it. The log is text whatever is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The document with schema and version.
    Json,
    /// Tables for a ticket.
    Markdown,
    /// One row per verdict.
    Csv,
    /// A page for a browser or for paper.
    Html,
}

/// What to write to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Export {
    /// Rows of these nodes, in this order.
    Fleet {
        /// Names as sorted and filtered on the screen.
        nodes: Vec<String>,
    },
    /// One node with everything known about it.
    Node {
        /// Its name.
        node: String,
    },
    /// One metric: criterion, similarities, curves.
    Metric {
        /// Its identity.
        metric: MetricId,
    },
    /// The latest run as one document.
    Run,
    /// What the watch found, as the document of `muster watch --json`.
    Watch,
    /// What triage says of the case, as the document of `muster triage --json`, or a ticket's text.
    Triage,
    /// The log.
    Log,
}
