//! What is known of each node's past at a given hour? Incidents and validations in order of time, and nothing
//! from after that hour.

use std::collections::BTreeMap;

use super::{Category, Incident, KaplanMeier};

/// Hours during which the fleet was watched; incidents outside are cut to it or left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Start, in hours of the log's origin. Nodes are taken to be in service from here.
    pub start_h: f64,
    /// End: what happened later is unknown, not absent.
    pub end_h: f64,
}

/// A time during which a node was down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// First hour of it.
    pub start_h: f64,
    /// End; infinite while it lasts.
    pub end_h: f64,
    /// What broke.
    pub category: Category,
}

/// One validation of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// When it ended, in hours.
    pub at_h: f64,
    /// Whether the full set was run.
    pub full: bool,
    /// `alpha - similarity` of its worst metric, which is what the paper calls the minimum margin: positive is worse than
    /// allowed.
    pub margin: f64,
    /// Benchmarks that failed.
    pub failed: u32,
}

/// Past of one node, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    pub(super) outages: Vec<Outage>,
    pub(super) checks: Vec<Check>,
}

impl Past {
    /// Outages by start.
    #[must_use]
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// Outages that have begun by `at_h`.
    pub(super) fn until(&self, at_h: f64) -> &[Outage] {
        &self.outages[..self.outages.partition_point(|o| o.start_h <= at_h)]
    }

    /// Whether an outage lasts at `at_h`.
    #[must_use]
    pub fn down(&self, at_h: f64) -> bool {
        self.until(at_h).iter().any(|o| o.end_h > at_h)
    }

    /// Start of the first outage after `at_h`.
    #[must_use]
    pub fn next(&self, at_h: f64) -> Option<f64> {
        self.outages.get(self.until(at_h).len()).map(|o| o.start_h)
    }
}

/// Pasts of a fleet, by node.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    window: Window,
    nodes: BTreeMap<String, Past>,
}

impl History {
    /// History of `nodes` and of every node an incident names, during `window`. Incidents that fail
    /// [`Incident::check`] or lie outside are left out.
    #[must_use]
    pub fn new(incidents: &[Incident], nodes: &[String], window: Window) -> Self {
        let mut pasts: BTreeMap<String, Past> = nodes.iter().map(|n| (n.clone(), Past::default())).collect();
        for i in incidents.iter().filter(|i| i.check().is_ok()) {
            let past = pasts.entry(i.node.clone()).or_default();
            let end_h = i.end_h.unwrap_or(f64::INFINITY);
            if i.start_h <= window.end_h && end_h >= window.start_h {
                let start_h = i.start_h.max(window.start_h);
                past.outages.push(Outage { start_h, end_h, category: i.category });
            }
        }
        for past in pasts.values_mut() {
            past.outages.sort_by(|a, b| a.start_h.total_cmp(&b.start_h).then(a.end_h.total_cmp(&b.end_h)));
        }
        Self { window, nodes: pasts }
    }

    /// Adds nodes without incidents until there are `count`, named by their number or, where that name is taken,
    /// by the next free one.
    #[must_use]
    pub fn with_silent(mut self, count: usize) -> Self {
        let mut next = self.nodes.len();
        while self.nodes.len() < count {
            self.nodes.entry(next.to_string()).or_default();
            next += 1;
        }
        self
    }

    /// Adds what a validation of `node` found.
    pub fn check(&mut self, node: &str, check: Check) {
        let checks = &mut self.nodes.entry(node.to_owned()).or_default().checks;
        let at = checks.partition_point(|c| c.at_h <= check.at_h);
        checks.insert(at, check);
    }

    /// Hours watched.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Nodes by name, with their pasts.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &Past)> {
        self.nodes.iter().map(|(name, past)| (name.as_str(), past))
    }

    /// Past of `node`.
    #[must_use]
    pub fn past(&self, node: &str) -> Option<&Past> {
        self.nodes.get(node)
    }

    /// How long nodes went without an incident, since the last one or since the window began: Kaplan-Meier over
    /// all nodes' gaps.
    #[must_use]
    pub fn gaps(&self) -> KaplanMeier {
        let (mut duration, mut event) = (Vec::new(), Vec::new());
        for past in self.nodes.values() {
            let mut from = self.window.start_h;
            for outage in &past.outages {
                if outage.start_h > from {
                    duration.push(outage.start_h - from);
                    event.push(true);
                }
                from = from.max(outage.end_h);
            }
            if self.window.end_h > from {
                duration.push(self.window.end_h - from);
                event.push(false);
            }
        }
        KaplanMeier::of(&duration, &event)
    }

    /// Whether validations say enough for a model to learn from them: 20 incidents came after one of their node, as
    /// many as coverage asks for. With fewer, rows from before the first validation would teach what its features mean.
    #[must_use]
    pub fn validated(&self) -> bool {
        let after = |past: &Past| {
            let first = past.checks.first().map_or(f64::INFINITY, |check| check.at_h);
            past.outages.iter().filter(|outage| outage.start_h > first).count()
        };
        self.nodes.values().map(after).sum::<usize>() >= 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(node: &str, start_h: f64, end_h: Option<f64>) -> Incident {
        Incident::new(node, start_h, end_h, Category::Gpu)
    }

    #[test]
    fn incidents_are_ordered_cut_and_counted_by_time() {
        let log = [
            incident("a", 50.0, Some(60.0)),
            incident("a", -5.0, Some(3.0)),
            incident("a", 20.0, Some(30.0)),
            incident("a", 200.0, None),
            incident("b", 90.0, None),
            incident("b", 9.0, Some(1.0)),
        ];
        let h = History::new(&log, &["c".to_owned()], Window { start_h: 0.0, end_h: 100.0 }).with_silent(6);
        assert_eq!(h.nodes().count(), 6);
        let a = h.past("a").unwrap();
        assert_eq!(a.outages().iter().map(|o| o.start_h).collect::<Vec<_>>(), [0.0, 20.0, 50.0]);
        assert!(a.down(0.0) && a.down(25.0) && !a.down(30.0) && !a.down(40.0));
        assert_eq!((a.next(25.0), a.next(50.0)), (Some(50.0), None));
        assert_eq!(h.past("b").unwrap().outages().len(), 1);
        // Gaps of a: 17 and 20 to incidents, 40 to the end; of b: 90; the other four nodes: 100 to the end.
        let steps: Vec<_> = h.gaps().steps().map(|(t, _, n)| (t, n)).collect();
        assert_eq!(steps, [(17.0, 8), (20.0, 7), (90.0, 5)]);
        assert!(h.past("b").unwrap().down(95.0));
    }
}
