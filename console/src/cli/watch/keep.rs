//! Which alerts become incidents, and as what?

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use muster_store::{Incident, Store};
use muster_watch::Alert;
use muster_wire::{Category, telemetry};

use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::risk::incidents::OWN;
use crate::{database, out};

/// Source of incidents that a watch told.
const SOURCE: &str = "watch";

/// A log that another console holds is tried again after this time.
const PAUSE: Duration = Duration::from_secs(10);

/// The incident log, as far as a watch tells it.
pub(super) struct Keep<'a> {
    config: &'a Config,
    /// Alerts told, by their place, and whether their end was told.
    told: BTreeMap<usize, bool>,
    failed: bool,
    /// Before then it is not tried again.
    again: Instant,
}

impl<'a> Keep<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, told: BTreeMap::new(), failed: false, again: Instant::now() }
    }

    fn write(&self, lines: &[Incident]) -> Result<(), Problem> {
        if lines.is_empty() {
            return Ok(());
        }
        // It waits for the disk.
        tokio::task::block_in_place(|| database::write(self.config)?.record_incidents(lines).code(IO)).map(drop)
    }

    /// The same at the end, whenever it was tried last.
    pub(super) fn finish(&mut self, alerts: &[Alert]) {
        self.again = Instant::now();
        self.take(alerts);
    }

    /// Tells the log of alerts that are new, or over, since the last time. What cannot be written is said once and tried again.
    pub(super) fn take(&mut self, alerts: &[Alert]) {
        if Instant::now() < self.again {
            return;
        }
        let is_news =
            |at: &usize, alert: &Alert| self.told.get(at).is_none_or(|ended| !ended && alert.until_s.is_some());
        let news: Vec<(usize, &Alert)> = alerts.iter().enumerate().filter(|(at, alert)| is_news(at, alert)).collect();
        let lines: Vec<Incident> = news.iter().filter_map(|(_, alert)| incident(alert)).collect();
        if let Err(problem) = self.write(&lines) {
            self.again = Instant::now() + PAUSE;
            if !std::mem::replace(&mut self.failed, true) {
                out::note(format_args!("the incident log does not take the alerts yet: {:#}", problem.error));
            }
            return;
        }
        self.told.extend(news.into_iter().map(|(at, alert)| (at, alert.until_s.is_some())));
    }
}

/// The incident of one machine; a whole group that differs is no incident of the one that differs most.
fn incident(alert: &Alert) -> Option<Incident> {
    let ms = |seconds: f64| (seconds.max(0.0) * 1e3).round() as u64;
    let component = alert.metric.as_deref().and_then(telemetry).map(|known| known.of);
    alert.group.is_none().then(|| Incident {
        node: alert.node.clone(),
        start_ms: ms(alert.since_s),
        end_ms: alert.until_s.map(|until_s| ms(until_s).max(ms(alert.since_s))),
        category: component.map_or(Category::Unknown, Category::of).name().to_owned(),
        reason: alert.sentence.clone(),
        source: SOURCE.to_owned(),
        who: OWN.to_owned(),
        // No benchmark has shown it yet.
        found_by: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_watch::AlertKind;

    #[test]
    fn a_machine_becomes_an_incident_of_the_part_that_the_metric_speaks_of_and_a_group_none() {
        let alert = Alert {
            node: "n3".into(),
            metric: Some("gpu_power_least_w".into()),
            since_s: 1_000.5,
            alerted_s: 1_100.0,
            until_s: None,
            score: 9.0,
            also: Vec::new(),
            peers: 7,
            value: Some(240.0),
            peer_median: Some(610.0),
            unit: "W".into(),
            kind: AlertKind::Odd,
            group: None,
            sentence: "n3: power of the GPU with the least 240 W".into(),
        };
        let line = incident(&alert).unwrap();
        assert_eq!((line.node.as_str(), line.start_ms, line.end_ms), ("n3", 1_000_500, None));
        assert_eq!((line.category.as_str(), line.source.as_str(), &line.reason), ("gpu", "watch", &alert.sentence));
        let ended = incident(&Alert { until_s: Some(1_300.0), ..alert.clone() }).unwrap();
        assert_eq!((ended.start_ms, ended.end_ms), (1_000_500, Some(1_300_000)));
        assert_eq!(incident(&Alert { metric: None, ..alert.clone() }).unwrap().category, "unknown");
        assert_eq!(incident(&Alert { group: Some("leaf3".into()), ..alert }), None);
    }
}
