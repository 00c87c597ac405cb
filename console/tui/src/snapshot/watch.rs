//! What is known of a job that is watched, live or from a recording.

use std::sync::Arc;

use muster_watch::{Alert, Calibration, Frame};

/// A watch, going on or over.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Where its ticks come from.
    pub origin: Origin,
    /// Nothing more will come.
    pub over: bool,
    /// Machines, by their places in the frames.
    pub nodes: Arc<[Watched]>,
    /// Metrics, by their places in the frames.
    pub metrics: Arc<[WatchedMetric]>,
    /// What the last blocks showed, the oldest first; their numbers follow one another.
    pub frames: Arc<[Arc<Frame>]>,
    /// How much evidence names a machine, and what that costs.
    pub calibration: Calibration,
    /// What was told, the oldest first.
    pub alerts: Arc<[Alert]>,
    /// What is worth knowing and accuses nobody.
    pub notes: Arc<[String]>,
}

/// Where ticks come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// From nodes.
    Live,
    /// From a recording that is played.
    Recording {
        /// Its file.
        name: String,
        /// Seconds of it that pass in a second.
        speed: f64,
        /// Where it is, epoch seconds.
        at_s: f64,
        /// Where it ends, epoch seconds.
        end_s: f64,
    },
}

/// A watched machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// Labels of the inventory, such as `leaf` and `leaf3`.
    pub labels: Vec<(String, String)>,
    /// Why it does not answer, where it does not.
    pub lost: Option<String>,
}

/// A watched metric.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedMetric {
    /// Its name in recordings.
    pub name: String,
    /// What the catalogue knows of it.
    pub about: muster_wire::Telemetry,
}

impl WatchedMetric {
    /// What the field calls it; its name where the field has no word.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.about.title.is_empty() { &self.name } else { self.about.title }
    }
}
