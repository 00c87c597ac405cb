//! What does a watch look like at the moment, and what is written of it?

use std::sync::Arc;

use muster_playbook::report::{escape, guarded, rfc3339};
use muster_tui::snapshot::{Origin, Watched, WatchedMetric, Watching};
use muster_watch::{Alert, Calibration, Frame, Settings, Watch};
use serde::Serialize;

use crate::out::counted;
use crate::work::feed::Feed;
use crate::work::ticks::Member;

/// Alerts shown; the newest.
const ALERTS: usize = 500;

/// A job that a demo hurt.
#[derive(Clone, Debug, Serialize)]
pub struct DemoJob {
    /// Nodes of the ranks that are hurt.
    pub hurt: Vec<String>,
    /// What is done to them.
    pub how: String,
}

/// The published document of a watch, `assets/schemas/muster.watch.json`.
#[derive(Debug, Serialize)]
pub struct WatchReport<'a> {
    schema: &'static str,
    version: u32,
    nodes: usize,
    metrics: Vec<&'a str>,
    /// First tick, epoch seconds.
    pub from_s: Option<f64>,
    /// Last tick.
    pub to_s: Option<f64>,
    false_alarms_per_machine_day: f64,
    expected_delay_s: f64,
    /// What was told.
    pub alerts: &'a [Alert],
    /// What is worth knowing and accuses nobody.
    pub notes: Vec<String>,
    /// Written by a demo alone; the detector never reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demo: Option<DemoJob>,
}

impl<'a> WatchReport<'a> {
    /// What was found among so many `nodes` and in these `metrics`.
    #[must_use]
    pub fn new(
        (nodes, metrics): (usize, Vec<&'a str>),
        (span, calibration): (Option<(f64, f64)>, Calibration),
        alerts: &'a [Alert],
        notes: Vec<String>,
    ) -> Self {
        let (from_s, to_s) = span.unzip();
        let Calibration { false_alarms_per_machine_day, expected_delay_s, .. } = calibration;
        let (schema, version) = ("muster.watch", 1);
        Self {
            schema,
            version,
            nodes,
            metrics,
            from_s,
            to_s,
            false_alarms_per_machine_day,
            expected_delay_s,
            alerts,
            notes,
            demo: None,
        }
    }

    /// The same of what the screen shows.
    #[must_use]
    pub fn of(watch: &'a Watching) -> Self {
        let metrics = watch.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let span = watch.frames.first().zip(watch.frames.last()).map(|(first, last)| (first.at_s, last.end_s()));
        Self::new((watch.nodes.len(), metrics), (span, watch.calibration), &watch.alerts, watch.notes.to_vec())
    }

    /// Machines and metrics.
    #[must_use]
    pub const fn counts(&self) -> (usize, usize) {
        (self.nodes, self.metrics.len())
    }

    /// Sentences for a ticket.
    #[must_use]
    pub fn markdown(&self) -> String {
        let at = |seconds: f64| rfc3339((seconds.max(0.0) * 1e3) as u64);
        let span = self.from_s.zip(self.to_s).map(|(from, to)| format!(", {} to {}", at(from), at(to)));
        let (nodes, metrics) = self.counts();
        let what = format!("{}, {}", counted(nodes, "node", "nodes"), counted(metrics, "metric", "metrics"));
        let mut text = format!("# Watch\n\n{what}{}\n\n", span.unwrap_or_default());
        for alert in self.alerts {
            let over = alert.until_s.map_or(String::new(), |until| format!(" Over at {}.", at(until)));
            text += &format!("- {}: {}{over}\n", at(alert.alerted_s), plain(&alert.sentence));
        }
        if self.alerts.is_empty() {
            text += "Nobody was named.\n";
        }
        self.notes.iter().for_each(|note| text += &format!("- {}\n", plain(note)));
        text
    }

    /// One row an alert, times in epoch seconds. What a spreadsheet would take for a formula is preceded by an apostrophe.
    ///
    /// # Errors
    /// Never in memory.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        rows.write_record([
            "node",
            "group",
            "metric",
            "since_s",
            "alerted_s",
            "until_s",
            "score",
            "value",
            "peer_median",
            "unit",
            "sentence",
        ])?;
        for alert in self.alerts {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            rows.write_record([
                &*guarded(&alert.node),
                &guarded(alert.group.as_deref().unwrap_or_default()),
                &guarded(alert.metric.as_deref().unwrap_or_default()),
                &alert.since_s.to_string(),
                &alert.alerted_s.to_string(),
                &number(alert.until_s),
                &alert.score.to_string(),
                &number(alert.value),
                &number(alert.peer_median),
                &alert.unit,
                &guarded(&alert.sentence),
            ])?;
        }
        let bytes = rows.into_inner().map_err(csv::IntoInnerError::into_error).map_err(csv::Error::from)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Harmless text in which the command in backticks stays one.
fn plain(text: &str) -> String {
    escape(text).replace("\\`", "`")
}

/// A detector that is fed and drawn.
#[derive(Debug)]
pub struct Viewer {
    feed: Feed,
    members: Vec<Member>,
    lost: Vec<Option<String>>,
    /// What was drawn last.
    frames: Arc<[Arc<Frame>]>,
    seen: u64,
}

impl Viewer {
    /// Watches `members` by `settings` and keeps so many blocks for the screen.
    #[must_use]
    pub fn new(members: Vec<Member>, settings: Settings, blocks: usize) -> Self {
        let mut watch = Watch::new(settings);
        watch.keep(blocks);
        let lost = vec![None; members.len()];
        Self { feed: Feed::new(&members, watch), members, lost, frames: Arc::from([]), seen: 0 }
    }

    /// Takes a tick of the node in place `node`.
    pub fn take(&mut self, node: usize, metric: &str, at_s: f64, value: f64) {
        self.feed.take(node, metric, at_s, value);
    }

    /// Asks by how many seconds the times of each node may be off.
    pub fn clocks(&mut self, error_s: impl Fn(usize) -> Option<f64>) {
        for node in 0..self.members.len() {
            if let Some(error_s) = error_s(node) {
                self.feed.clock(node, error_s);
            }
        }
    }

    /// Nothing more will come of a recording.
    pub fn finish(&mut self) {
        self.feed.watch.finish();
    }

    /// A node answers, or does not, for this reason; whether that is new.
    pub fn answers(&mut self, node: usize, lost: Option<String>) -> bool {
        let Some(place) = self.lost.get_mut(node) else { return false };
        let new = place.is_some() != lost.is_some();
        *place = lost;
        new
    }

    /// Whether a block was closed since the last picture.
    #[must_use]
    pub const fn is_newer(&self) -> bool {
        self.feed.watch.seen() != self.seen
    }

    /// The picture for the screen.
    pub fn picture(&mut self, origin: Origin, over: bool) -> Watching {
        if self.is_newer() {
            self.frames = self.feed.watch.frames().cloned().collect();
            self.seen = self.feed.watch.seen();
        }
        let nodes = self.members.iter().zip(&self.lost);
        let nodes = nodes.map(|(member, lost)| Watched {
            name: member.name.clone(),
            labels: member.labels.clone(),
            lost: lost.clone(),
        });
        let watch = &self.feed.watch;
        let metrics = watch.metrics().map(|(name, about)| WatchedMetric { name: name.to_owned(), about: *about });
        let alerts = watch.alerts();
        Watching {
            origin,
            over,
            nodes: nodes.collect(),
            metrics: metrics.collect(),
            frames: self.frames.clone(),
            calibration: watch.calibration(),
            alerts: alerts[alerts.len().saturating_sub(ALERTS)..].into(),
            notes: watch.notes().into(),
        }
    }
}
