//! How many warm-up and measured steps a benchmark needs on this fleet to be as repeatable as with all of them.

use std::collections::BTreeSet;

use muster_wire::Direction;
use serde::{Deserialize, Serialize};

use super::held_out::{held_out, missed};
use super::levels::{Levels, thousands};
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
    /// No shorter setting was found, with the reason in words.
    Kept(String),
    /// The best shorter setting does not do: see [`Tuned::reason`].
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
    /// Upper 95 % confidence limit of the loss on the blocks of steps after the window, which had no part in choosing it;
    /// absent where too few steps follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bound: Option<f64>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A stretch of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Steps before it.
    pub(super) warmup: usize,
    /// Its length.
    pub(super) measured: usize,
}

impl Window {
    /// First step behind it.
    pub(super) fn end(self) -> usize {
        self.warmup + self.measured
    }

    pub(super) fn holds(self, step: usize) -> bool {
        (self.warmup..self.end()).contains(&step)
    }

    /// Its part of a series; `None` where the series is too short.
    pub(super) fn of(self, trace: &[f64]) -> Option<&[f64]> {
        trace.get(self.warmup..self.end())
    }
}

/// Searches over `traces`, one series in step order per node and one metric, warm-up included.
///
/// Every node proposes its first stretch of [`Settings::cycles`] alike cycles; of the proposals the one with the
/// best repeatability over all nodes wins, of equals the shortest. SuperBench, ATC'24, section 5.2; the estimator
/// and the length of a cycle are choices of ours, the paper names neither.
///
/// The winner is refused where the level still moves at the end of the series or changes after the window, where the
/// upper limit of the loss on the steps after the window is above [`Settings::max_loss`], and where the window misses
/// slow steps that the steps after it have.
///
/// # Errors
/// When a trace is not a measurement: its index and what is wrong with it.
pub fn search(traces: &[Vec<f64>], dir: Direction, settings: &Settings) -> Result<Outcome, (usize, BadSample)> {
    for (node, trace) in traces.iter().enumerate() {
        Sample::new(trace).map_err(|why| (node, why))?;
    }
    let steps = traces.iter().map(Vec::len).min().unwrap_or(0);
    let warmup = settings.fixed_warmup;
    let Some(measured) = steps.checked_sub(warmup).filter(|m| *m > 0) else {
        return Ok(Outcome::Kept(format!("{steps} steps are no longer than the warm-up of {warmup}")));
    };
    let fixed = Window { warmup, measured };
    let mut proposals = BTreeSet::new();
    let mut periods = Vec::new();
    for trace in traces {
        let found = period(trace);
        periods.extend(found);
        proposals.extend(propose(trace, found, dir, settings).filter(|(w, n)| w + n <= steps));
    }
    periods.sort_unstable();
    let period = periods.get(periods.len() / 2).copied();
    let fleet = Fleet { traces, dir, settings, fixed, levels: Levels::of(traces, cycle(period)) };
    Ok(fleet.choose(proposals, period))
}

struct Fleet<'a> {
    traces: &'a [Vec<f64>],
    dir: Direction,
    settings: &'a Settings,
    fixed: Window,
    levels: Levels,
}

impl Fleet<'_> {
    fn choose(&self, proposals: BTreeSet<(usize, usize)>, period: Option<usize>) -> Outcome {
        let Some(whole) = self.repeatability(self.fixed) else {
            return Outcome::Kept("repeatability needs two nodes".to_owned());
        };
        let max_loss = self.settings.max_loss;
        let windows = proposals.into_iter().map(|(warmup, measured)| Window { warmup, measured });
        let scored: Vec<_> = windows.filter_map(|window| Some((self.repeatability(window)?, window))).collect();
        let best = scored.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
        // What would be refused is no tie with what would not.
        let enough = best.min(whole * (1.0 - max_loss)).max(best - TIE);
        let equal = scored.into_iter().filter(|s| s.0 >= enough);
        let Some((repeatability, window)) = equal.min_by_key(|s| (s.1.end(), s.1.measured)) else {
            let none = || format!("no node has {} alike cycles in a row", self.settings.cycles);
            return Outcome::Kept(self.moves(self.fixed.warmup).unwrap_or_else(none));
        };
        let mut tuned = Tuned {
            warmup: window.warmup,
            measured: window.measured,
            period,
            saving: 1.0 - window.measured as f64 / self.fixed.measured as f64,
            saving_with_warmup: 1.0 - window.end() as f64 / self.fixed.end() as f64,
            repeatability,
            fixed_repeatability: whole,
            loss: (whole - repeatability) / whole,
            loss_bound: None,
            reason: None,
        };
        let found = held_out(self.traces, self.dir, self.settings, (window, self.fixed));
        tuned.loss_bound = found.as_ref().map(|f| f.bound);
        let allowed = 100.0 * max_loss;
        let lost = |(share, what): (f64, &str)| {
            format!("loses {what}{:.1} % of repeatability, {allowed:.1} % is allowed", 100.0 * share)
        };
        tuned.reason = self.moves(window.warmup).or_else(|| match &found {
            _ if tuned.loss > max_loss => Some(lost((tuned.loss, ""))),
            None => {
                let after = thousands(self.fixed.end() - window.end());
                Some(format!("{after} steps after the window are too few to check it on: measure a longer series"))
            }
            Some(f) => missed(self.traces, self.dir, self.settings, (window, f))
                .or_else(|| (f.bound > max_loss).then(|| lost((f.bound, "up to ")))),
        });
        if tuned.reason.is_some() { Outcome::Refused(tuned) } else { Outcome::Tuned(tuned) }
    }

    /// How the level moves after step `start`, if it does.
    fn moves(&self, start: usize) -> Option<String> {
        let nodes = self.traces.len();
        if let Some(step) = self.levels.step()
            && step.from > start
        {
            return Some(step.sentence(nodes, self.dir));
        }
        self.levels.drift().map(|drift| drift.sentence(self.fixed.end(), nodes, self.dir))
    }

    /// Mean similarity over all pairs of nodes, from the steps in a window.
    fn repeatability(&self, window: Window) -> Option<f64> {
        let samples: Vec<Sample> = self.traces.iter().filter_map(|t| Sample::new(window.of(t)?).ok()).collect();
        repeatability(&samples.iter().collect::<Vec<_>>(), self.dir, self.settings.tau)
    }
}

/// Steps of a cycle that is long enough for a distribution.
fn cycle(period: Option<usize>) -> usize {
    period.map_or(APERIODIC, |p| p * SHORTEST.div_ceil(p))
}

/// First stretch of alike cycles: how many steps lie before it, and how long it is.
fn propose(trace: &[f64], period: Option<usize>, dir: Direction, settings: &Settings) -> Option<(usize, usize)> {
    let cycle = cycle(period);
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
