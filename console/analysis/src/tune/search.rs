//! How many warm-up and measured steps a benchmark needs on this fleet to be as repeatable as with all of them.

use std::collections::BTreeSet;

use muster_wire::Direction;
use serde::{Deserialize, Serialize};

use super::period;
use crate::{BadSample, Sample, repeatability, similarity};

/// How the search compares cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Two cycles are alike above this similarity.
    pub alpha: f64,
    /// Tail floor of the distance.
    pub tau: f64,
    /// Cycles in a row that must be alike.
    pub cycles: usize,
    /// Steps of the fixed setting that are warm-up; the rest of a trace is what it measures.
    pub fixed_warmup: usize,
    /// Loss of repeatability from which the shorter setting is refused, as a share.
    pub max_loss: f64,
}

impl Default for Settings {
    /// SuperBench's fixed setting is 72 + 3,072 steps.
    fn default() -> Self {
        Self { alpha: 0.95, tau: 0.01, cycles: 8, fixed_warmup: 72, max_loss: 0.01 }
    }
}

/// Shape of a cycle when nothing repeats: long enough for a distribution.
const APERIODIC: usize = 64;
/// Shortest cycle; shorter periods are taken several at a time.
const SHORTEST: usize = 64;

/// Repeatabilities closer than this are equal, and the shorter setting wins: the difference is noise of the traces,
/// and a quarter of what may be lost.
const TIE: f64 = 2.5e-3;

/// What was found, or why the fixed setting stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Fewer steps do as well.
    Tuned(Tuned),
    /// No stretch of alike cycles on any node, with the reason in words.
    Kept(String),
    /// The best shorter setting loses too much.
    Refused(Tuned),
}

/// A shorter setting and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// Steps to leave out first.
    pub warmup: usize,
    /// Steps to measure after them.
    pub measured: usize,
    /// Median period of the nodes that have one, steps.
    pub period: Option<usize>,
    /// `1 - measured / steps the fixed setting measures`, as table 5 counts it.
    pub saving: f64,
    /// The same with both warm-ups counted.
    pub saving_with_warmup: f64,
    /// Mean similarity over all pairs of nodes with this setting.
    pub repeatability: f64,
    /// The same with the fixed setting.
    pub fixed_repeatability: f64,
    /// Repeatability lost, as a share of the fixed one; negative when the shorter setting is more repeatable.
    pub loss: f64,
}

/// Searches over `traces`, one series in step order per node and one metric, warm-up included.
///
/// Every node proposes its first stretch of [`Settings::cycles`] alike cycles; of the proposals the one with the
/// best repeatability over all nodes wins, of equals the shortest. SuperBench, ATC'24, section 5.2; the estimator
/// and the length of a cycle are choices of ours, the paper names neither.
///
/// # Errors
/// When a trace is not a measurement: its index and what is wrong with it.
pub fn search(traces: &[Vec<f64>], dir: Direction, settings: &Settings) -> Result<Outcome, (usize, BadSample)> {
    for (node, trace) in traces.iter().enumerate() {
        Sample::new(trace).map_err(|why| (node, why))?;
    }
    let steps = traces.iter().map(Vec::len).min().unwrap_or(0);
    let Some(fixed_measured) = steps.checked_sub(settings.fixed_warmup).filter(|m| *m > 0) else {
        return Ok(Outcome::Kept(format!("{steps} steps are no longer than the warm-up of {}", settings.fixed_warmup)));
    };
    let mut proposals = BTreeSet::new();
    let mut periods = Vec::new();
    for trace in traces {
        let found = period(trace);
        periods.extend(found);
        proposals.extend(propose(trace, found, dir, settings).filter(|(w, n)| w + n <= steps));
    }
    periods.sort_unstable();
    let over = |warmup, measured| over_fleet(traces, dir, settings, (warmup, measured));
    let Some(fixed) = over(settings.fixed_warmup, fixed_measured) else {
        return Ok(Outcome::Kept("repeatability needs two nodes".to_owned()));
    };
    let scored: Vec<_> = proposals.into_iter().filter_map(|(w, n)| Some((over(w, n)?, w, n))).collect();
    let best = scored.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
    // What would be refused is no tie with what would not.
    let enough = best.min(fixed * (1.0 - settings.max_loss)).max(best - TIE);
    let equal = scored.into_iter().filter(|s| s.0 >= enough);
    let Some((repeatability, warmup, measured)) = equal.min_by_key(|s| (s.1 + s.2, s.2)) else {
        let why = format!("no node has {} alike cycles in a row", settings.cycles);
        return Ok(Outcome::Kept(why));
    };
    let tuned = Tuned {
        warmup,
        measured,
        period: periods.get(periods.len() / 2).copied(),
        saving: 1.0 - measured as f64 / fixed_measured as f64,
        saving_with_warmup: 1.0 - (warmup + measured) as f64 / steps as f64,
        repeatability,
        fixed_repeatability: fixed,
        loss: (fixed - repeatability) / fixed,
    };
    Ok(if tuned.loss > settings.max_loss { Outcome::Refused(tuned) } else { Outcome::Tuned(tuned) })
}

/// Mean similarity over all pairs of nodes, from the steps the setting measures.
fn over_fleet(
    traces: &[Vec<f64>],
    dir: Direction,
    settings: &Settings,
    (warmup, measured): (usize, usize),
) -> Option<f64> {
    let samples: Vec<Sample> =
        traces.iter().filter_map(|t| Sample::new(t.get(warmup..warmup + measured)?).ok()).collect();
    repeatability(&samples.iter().collect::<Vec<_>>(), dir, settings.tau)
}

/// First stretch of alike cycles: how many steps lie before it, and how long it is.
fn propose(trace: &[f64], period: Option<usize>, dir: Direction, settings: &Settings) -> Option<(usize, usize)> {
    let cycle = period.map_or(APERIODIC, |p| p * SHORTEST.div_ceil(p));
    let cycles: Vec<Sample> = trace.chunks_exact(cycle).filter_map(|c| Sample::new(c).ok()).collect();
    let mut start = 0;
    for end in 0..cycles.len() {
        let unlike =
            (start..end).rev().find(|&j| similarity(&cycles[j], &cycles[end], dir, settings.tau) <= settings.alpha);
        if let Some(j) = unlike {
            start = j + 1;
        }
        if end + 1 - start >= settings.cycles {
            return Some((start * cycle, settings.cycles * cycle));
        }
    }
    None
}
