//! What is said of a machine, in the published form.

use serde::Serialize;

/// Why a machine is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// It is unlike its peers.
    Odd,
    /// It stopped sending telemetry as the job stopped.
    Silent,
    /// It left its peers before the whole job slowed, by more than what is uncertain about either.
    FirstMover,
}

/// A further metric that speaks against the same machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Also {
    /// Its name.
    pub metric: String,
    /// Deviation in standard deviations.
    pub score: f64,
}

/// A machine, or a group of machines, unlike the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    /// The machine; of a group, the one that differs most.
    pub node: String,
    /// The metric that leads; nothing for a machine that fell silent.
    pub metric: Option<String>,
    /// When it began, epoch seconds.
    pub since_s: f64,
    /// When it was told: from a recording, when it would have been.
    pub alerted_s: f64,
    /// When the machine was like its peers again; nothing while it is not.
    pub until_s: Option<f64>,
    /// Deviation of the leading metric in standard deviations; 9 where a standstill shows it.
    pub score: f64,
    /// Other metrics that speak against it, the strongest first.
    pub also: Vec<Also>,
    /// Others that it was compared with.
    pub peers: usize,
    /// What the metric showed, in `unit`.
    pub value: Option<f64>,
    /// What the others showed.
    pub peer_median: Option<f64>,
    /// Unit of both; empty for a plain number.
    pub unit: String,
    /// Why it is named.
    pub kind: AlertKind,
    /// What the machines have in common, where a whole group differs.
    pub group: Option<String>,
    /// The alert for people.
    pub sentence: String,
}

/// Alerts kept; past it they are only counted, so that a flapping fleet fills no memory.
const MOST: usize = 65_536;

/// Alerts in the order they were told.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) alerts: Vec<Alert>,
    pub(super) not_kept: u64,
}

impl Log {
    /// Keeps an alert; where.
    pub(super) fn add(&mut self, alert: Alert) -> usize {
        if self.alerts.len() >= MOST {
            self.not_kept += 1;
            return usize::MAX;
        }
        self.alerts.push(alert);
        self.alerts.len() - 1
    }

    /// The order of things is known now: the alert at `at` is of a machine that moved first.
    pub(super) fn learn_order(&mut self, at: usize, known: Alert) {
        if let Some(alert) = self.alerts.get_mut(at) {
            (alert.kind, alert.sentence) = (known.kind, known.sentence);
            alert.since_s = alert.since_s.min(known.since_s);
        }
    }

    /// The machine is like its peers again.
    pub(super) fn end(&mut self, at: usize, until_s: f64) {
        if let Some(alert) = self.alerts.get_mut(at) {
            alert.until_s = Some(until_s.max(alert.alerted_s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(alerted_s: f64) -> Alert {
        Alert {
            node: "n1".to_owned(),
            metric: None,
            since_s: 50.0,
            alerted_s,
            until_s: None,
            score: 9.0,
            also: Vec::new(),
            peers: 7,
            value: None,
            peer_median: None,
            unit: String::new(),
            kind: AlertKind::Odd,
            group: None,
            sentence: "it is odd".to_owned(),
        }
    }

    #[test]
    fn alerts_past_the_most_that_are_kept_are_counted_only() {
        let mut log = Log { alerts: vec![alert(1.0); 65_535], not_kept: 0 };
        assert_eq!((log.add(alert(2.0)), log.not_kept), (65_535, 0));
        assert_eq!((log.add(alert(3.0)), log.add(alert(4.0)), log.not_kept), (usize::MAX, usize::MAX, 2));
        assert_eq!(log.alerts.len(), 65_536);
        log.end(usize::MAX, 9.0);
        log.learn_order(usize::MAX, alert(9.0));
        assert!(log.alerts.iter().all(|alert| alert.until_s.is_none()), "one that was not kept has no end");
    }

    #[test]
    fn an_alert_never_ends_before_it_was_told() {
        for (like_s, until_s) in [(200.0, 200.0), (100.0, 100.0), (70.0, 100.0)] {
            let mut log = Log::default();
            let at = log.add(alert(100.0));
            log.end(at, like_s);
            assert_eq!(log.alerts[at].until_s, Some(until_s));
        }
    }

    #[test]
    fn who_turns_out_to_have_moved_first_keeps_his_alert_and_the_earlier_begin() {
        for (since_s, kept) in [(20.0, 20.0), (80.0, 50.0)] {
            let mut log = Log::default();
            let at = log.add(alert(100.0));
            let known =
                Alert { since_s, kind: AlertKind::FirstMover, sentence: "it moved first".into(), ..alert(300.0) };
            log.learn_order(at, known);
            let found = &log.alerts[at];
            assert_eq!((found.kind, found.sentence.as_str()), (AlertKind::FirstMover, "it moved first"));
            assert_eq!((found.since_s, found.alerted_s), (kept, 100.0));
        }
    }
}
