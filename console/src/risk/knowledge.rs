//! What is known of the fleet's past, as the Selector asks for it: incidents, validations, how long benchmarks take.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use muster_analysis::risk::{BadTable, Check, History, Incident, Samples, Sampling, Window, samples};
use muster_analysis::selector::{Benchmark, Validation, p90};
use muster_playbook::{Playbook, plan};
use muster_run::{Run, RunState};
use muster_store::{Store, StoreError};

use super::incidents::{hours, known};
use super::validations::kept_validations;

/// Rows that models learn from, at most about this many.
const ROWS: f64 = 70_000.0;
/// Hours since 1970 from which on a time is a date and not an hour of a log: 1990.
const DATES_H: f64 = 175_000.0;

/// An incident log and the time it covers.
#[derive(Clone, Debug)]
pub struct Log {
    /// By node, then start.
    pub incidents: Vec<Incident>,
    /// Nodes known to have been there, with or without incidents.
    pub nodes: Vec<String>,
    /// Nodes there were in all, where more than the named ones.
    pub count: usize,
    /// From when to when.
    pub window: Window,
    /// What validations found, with the node.
    pub checks: Vec<(String, Check)>,
}

impl Log {
    /// The log of the database with these `runs`, until `now_ms`. It begins with the first incident or run. A validation is full when
    /// it ran every benchmark of `full`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn stored(store: &dyn Store, runs: &[Run], full: &Playbook, now_ms: u64) -> Result<Self> {
        let incidents: Vec<Incident> = store.incidents()?.iter().map(known).collect();
        let now = hours(now_ms);
        let starts = incidents.iter().map(|i| i.start_h).chain(runs.iter().map(|r| hours(r.started_ms)));
        let start_h = starts.fold(now, f64::min);
        let nodes = store.nodes()?.into_iter().map(|n| n.name).collect();
        let full: Vec<String> = plan(full, &[]).phases.into_iter().flat_map(|phase| phase.benchmarks).collect();
        let checks = kept_validations(store, runs, &full)?;
        Ok(Self { incidents, nodes, count: 0, window: Window { start_h, end_h: now }, checks })
    }

    /// The log of a file of `count` nodes, `length_h` hours long; its last incident ends it where nobody says so.
    #[must_use]
    pub fn of_file(mut incidents: Vec<Incident>, count: usize, length_h: Option<f64>) -> Self {
        incidents.sort_by(|a, b| a.node.cmp(&b.node).then(a.start_h.total_cmp(&b.start_h)));
        let first = incidents.iter().map(|i| i.start_h).fold(f64::INFINITY, f64::min);
        let start_h = if first.is_finite() && first > DATES_H { first } else { first.min(0.0) };
        let last = incidents.iter().map(|i| i.end_h.unwrap_or(i.start_h)).fold(start_h, f64::max);
        let end_h = length_h.map_or(last, |length| start_h + length);
        Self { incidents, nodes: Vec::new(), count, window: Window { start_h, end_h }, checks: Vec::new() }
    }

    /// Everybody's past; nodes of `more` that the log does not name have an empty one.
    #[must_use]
    pub fn history(&self, more: &[String]) -> History {
        let nodes: Vec<String> = self.nodes.iter().chain(more).cloned().collect();
        let mut history = History::new(&self.incidents, &nodes, self.window).with_silent(self.count);
        self.checks.iter().for_each(|(node, check)| history.check(node, *check));
        history
    }

    /// Rows to learn from: each node every day, or less often where that would be too many.
    ///
    /// # Errors
    /// When a time is no number.
    pub fn samples(&self, history: &History) -> Result<Samples, BadTable> {
        let node_hours = history.nodes().count() as f64 * (self.window.end_h - self.window.start_h);
        let every_h = (node_hours / ROWS).max(24.0);
        samples(history, &Sampling { every_h, checks: history.validated(), ..Sampling::default() })
    }
}

/// What the stored runs say about benchmarks and validations.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Minutes of each finished piece of work that is asked about, under the profile asked for.
    minutes: BTreeMap<String, Vec<f64>>,
    /// Hour at which each piece of work was last done anywhere.
    last_h: BTreeMap<String, f64>,
    /// Nodes with a result in the database, or with a line in the file that is asked.
    pub nodes: HashSet<String>,
    /// Finished runs of nodes that they did not fail, of nodes that ever had an incident.
    pub validations: Vec<Validation>,
}

impl Measured {
    /// From all stored `runs`, about the benchmarks of `playbook`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn stored(store: &dyn Store, runs: &[Run], playbook: &Playbook) -> Result<Self, StoreError> {
        let incidents = store.incidents()?;
        let failed: HashSet<(&str, &str)> =
            incidents.iter().map(|i| (i.source.trim_start_matches("muster "), i.node.as_str())).collect();
        let sick: HashSet<&str> = incidents.iter().map(|i| i.node.as_str()).collect();
        let asked: HashSet<String> =
            plan(playbook, &[]).phases.into_iter().flat_map(|phase| phase.benchmarks).collect();
        let mut all = Self::default();
        for run in runs {
            let known = store.overview(&run.id)?;
            for work in known.works.iter().filter(|work| asked.contains(&work.work)) {
                let at = hours(work.last_ms);
                let last = all.last_h.entry(work.work.clone()).or_insert(at);
                *last = last.max(at);
                if run.profile == playbook.profile {
                    let minutes = work.elapsed_ns.iter().map(|ns| *ns as f64 / 60e9);
                    all.minutes.entry(work.work.clone()).or_default().extend(minutes);
                }
            }
            let ended = run.ended_ms.filter(|_| run.state == RunState::Finished);
            for name in known.nodes.iter().filter(|node| node.done).map(|node| &node.name) {
                if !all.nodes.contains(name) {
                    all.nodes.insert(name.clone());
                }
                if let Some(ended) = ended
                    && sick.contains(name.as_str())
                    && !failed.contains(&(run.id.as_str(), name.as_str()))
                {
                    all.validations.push(Validation { node: name.clone(), at_h: hours(ended) });
                }
            }
        }
        Ok(all)
    }

    /// Of a file of incidents, which knows of nothing but the nodes it names.
    #[must_use]
    pub fn of_file(log: &Log) -> Self {
        Self { nodes: log.incidents.iter().map(|incident| incident.node.clone()).collect(), ..Self::default() }
    }

    /// The benchmarks of `playbook`, with the minutes that nine of ten runs kept to, or those its plan expects.
    #[must_use]
    pub fn benchmarks(&self, playbook: &Playbook, now_h: f64) -> Vec<Benchmark> {
        let mut found = Vec::new();
        for phase in plan(playbook, &[]).phases {
            let share = phase.budget().as_secs_f64() / 60.0 / phase.benchmarks.len().max(1) as f64;
            found.extend(phase.benchmarks.into_iter().map(|id| Benchmark {
                minutes: self.minutes.get(&id).and_then(|all| p90(all)).unwrap_or(share),
                idle_h: self.last_h.get(&id).map(|at| now_h - at),
                id,
            }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::risk::Category;

    #[test]
    fn a_file_of_hours_begins_at_hour_zero_and_one_of_dates_at_its_first_incident() {
        let log = |start: f64| {
            let all = vec![
                Incident::new("b", start + 50.0, None, Category::Gpu),
                Incident::new("a", start, Some(start + 9.0), Category::Gpu),
            ];
            Log::of_file(all, 5, Some(1000.0))
        };
        assert_eq!(log(20.0).window, Window { start_h: 0.0, end_h: 1000.0 });
        assert_eq!(log(490_000.0).window, Window { start_h: 490_000.0, end_h: 491_000.0 });
        assert_eq!(log(20.0).history(&["c".to_owned()]).nodes().count(), 5);
        let short = Log::of_file(vec![Incident::new("a", 3.0, Some(8.0), Category::Gpu)], 0, None);
        assert_eq!(short.window.end_h, 8.0);
        assert!(Log::of_file(vec![], 3, Some(10.0)).window.start_h.is_finite());
    }
}
