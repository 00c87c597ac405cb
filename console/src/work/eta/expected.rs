//! How long is a piece of work expected to take on a node, and what is that based on?

use std::collections::HashMap;

use muster_playbook::Phase;

use super::Durations;

/// What an expectation is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Earlier runs.
    Past,
    /// Results of this run.
    Now,
    /// Nothing but the playbook's plan.
    Plan,
}

/// One work of a phase.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its name in the database.
    pub work: String,
    /// Time on each node in earlier runs, milliseconds; empty if nothing is known.
    past: Vec<Option<u32>>,
    /// The mean of these.
    mean: Option<f64>,
    /// The plan's budget for it.
    planned: f64,
    /// Sum and number of its times in this run.
    now: (f64, u32),
}

impl Expected {
    /// The works of `phase`, whose nodes have these numbers.
    pub fn of(phase: &Phase, durations: &Durations, numbers: &HashMap<String, usize>) -> Vec<Self> {
        let works = phase.work_names();
        let expected = |work: &String| {
            let planned = planned(phase, work);
            let Some(known) = durations.of(work) else {
                return Self { work: work.clone(), past: Vec::new(), mean: None, planned, now: (0.0, 0) };
            };
            let mut past = vec![None; numbers.len()];
            for (node, ms) in known {
                if let Some(place) = numbers.get(node).and_then(|nr| past.get_mut(*nr)) {
                    *place = Some(*ms);
                }
            }
            let mean = known.values().map(|ms| f64::from(*ms)).sum::<f64>() / known.len().max(1) as f64;
            Self { work: work.clone(), past, mean: Some(mean), planned, now: (0.0, 0) }
        };
        works.iter().map(expected).collect()
    }

    /// Expected milliseconds on the node with this number, before the pace of the run is taken into account.
    pub fn ms(&self, node: usize) -> (f64, Basis) {
        let own = self.past.get(node).copied().flatten().map(f64::from);
        match (own, self.now, self.mean) {
            (Some(own), ..) => (own, Basis::Past),
            (None, (sum, count @ 1..), _) => (sum / f64::from(count), Basis::Now),
            (None, _, Some(mean)) => (mean, Basis::Past),
            (None, _, None) => (self.planned, Basis::Plan),
        }
    }

    /// Adds its time on a node of this run.
    pub fn took(&mut self, ms: f64) {
        self.now = (self.now.0 + ms, self.now.1 + 1);
    }
}

/// The budget that a piece of work would have as a phase of its own.
fn planned(phase: &Phase, work: &str) -> f64 {
    let one = |names: &[String], prefix: &str| -> Vec<String> {
        let own = work.strip_prefix(prefix);
        names.iter().filter(|name| own == Some(name.as_str())).cloned().collect()
    };
    let alone = Phase {
        collectors: one(&phase.collectors, "collect/"),
        benchmarks: one(&phase.benchmarks, ""),
        ..phase.clone()
    };
    alone.budget().as_secs_f64() * 1e3
}
