//! How often does an average row fail at each time? Breslow's estimate of the baseline hazard, on a grid.
//!
//! The exact estimate asks the network for every event time and every row at risk. Here events fall into as many
//! intervals as there are knots (quantiles of the event times); each interval's hazard is asked at its end, over
//! at most a few thousand rows, and the cumulative hazard is linear within the interval. With 200 knots the
//! scores of the reference data sets do not change (`examples/survival_reference.rs`).

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use super::Settings;
use super::net::{Folded, Units};
use super::pairs::{Clock, Pairs};
use super::parallel::in_parallel;
use crate::Chance;
use crate::risk::Table;

/// Knots (rising) and the baseline's increment up to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Baseline {
    times: Vec<f64>,
    steps: Vec<f64>,
}

impl Baseline {
    pub(super) fn of(table: &Table, rows: &Pairs, clock: Clock, net: &Folded, settings: &Settings) -> Self {
        let duration: Vec<f64> = table.by_duration().iter().map(|&i| table.duration()[i]).collect();
        let events: Vec<f64> = rows.cases.iter().map(|case| duration[case.0]).collect();
        let mut chosen: Vec<usize> = (0..rows.len()).collect();
        if chosen.len() > settings.baseline_rows {
            Chance::branch(settings.seed, 2).shuffle(&mut chosen);
            chosen.truncate(settings.baseline_rows);
            chosen.sort_unstable();
        }
        let share = rows.len() as f64 / chosen.len() as f64;
        let entered: Vec<Units> = chosen.iter().map(|&k| net.enter(rows.row(k))).collect();
        let times = knots(&events, settings.knots.max(1));
        let mut counted = 0;
        let asks: Vec<_> = times
            .iter()
            .map(|knot| {
                let until = events.partition_point(|t| t <= knot);
                // The risk set in the middle of the interval's events stands for all of them.
                let middle = events[counted + (until - counted) / 2];
                let inside = (until - counted) as f64;
                counted = until;
                let first = chosen.partition_point(|&k| duration[k] < middle);
                (inside, AtRisk { net, entered: &entered[first..], t: clock.scaled(*knot) })
            })
            .collect();
        let step = |(inside, ask): &(f64, AtRisk<'_>)| {
            let at_risk = Arch::new().dispatch(*ask) * share;
            if at_risk > 0.0 { inside / at_risk } else { 0.0 }
        };
        let steps = in_parallel(&asks, 1, |part| part.iter().map(step).collect());
        Self { times, steps }
    }

    /// The knots up to the first one past `until`, merged so that there are at most `limit`.
    pub(super) fn grid(&self, clock: Clock, until: f64, limit: usize) -> Grid {
        let knots = (self.times.partition_point(|t| *t < until) + 1).min(self.times.len());
        let size = knots.div_ceil(limit.max(1)).max(1);
        let groups = self.times[..knots].chunks(size).zip(self.steps[..knots].chunks(size));
        let mut grid = Grid { times: Vec::new(), asked: Vec::new(), steps: Vec::new() };
        for (times, steps) in groups {
            grid.times.push(times[times.len() - 1]);
            grid.asked.push(clock.scaled(times[times.len() / 2]));
            grid.steps.push(steps.iter().sum());
        }
        grid
    }
}

/// Sum of the relative hazards of entered rows at one time.
#[derive(Clone, Copy)]
struct AtRisk<'a> {
    net: &'a Folded,
    entered: &'a [Units],
    t: f32,
}

impl WithSimd for AtRisk<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let mut sum = 0.0;
        for row in self.entered {
            sum += relative(self.net.ask(row, self.t));
        }
        sum
    }
}

/// Where the hazard of one row is asked for.
pub(super) struct Grid {
    times: Vec<f64>,
    asked: Vec<f32>,
    steps: Vec<f64>,
}

impl Grid {
    /// Cumulative hazard of an entered row at each time of the grid, into `into`.
    #[inline(always)]
    pub(super) fn cumulate(&self, net: &Folded, entered: &Units, into: &mut Vec<f64>) {
        into.clear();
        let mut total = 0.0;
        for (t, step) in self.asked.iter().zip(&self.steps) {
            total += step * relative(net.ask(entered, *t));
            into.push(total);
        }
    }

    /// Survival at `times` (rising) from a cumulative hazard: linear between times of the grid.
    #[inline(always)]
    pub(super) fn survival(&self, cumulative: &[f64], times: &[f64], into: &mut Vec<f64>) {
        let mut knot = 0;
        for &time in times {
            while knot < cumulative.len() && self.times[knot] <= time {
                knot += 1;
            }
            let (t0, h0) = if knot == 0 { (0.0, 0.0) } else { (self.times[knot - 1], cumulative[knot - 1]) };
            let hazard = match cumulative.get(knot) {
                Some(h1) if self.times[knot] > t0 => h0 + (h1 - h0) * ((time - t0) / (self.times[knot] - t0)).max(0.0),
                _ => h0,
            };
            into.push((-hazard).exp());
        }
    }
}

#[inline(always)]
fn relative(g: f32) -> f64 {
    f64::from(g.clamp(-30.0, 30.0)).exp()
}

/// At most `count` distinct quantiles of the sorted `events`, the last event included.
fn knots(events: &[f64], count: usize) -> Vec<f64> {
    let n = events.len();
    let mut all: Vec<f64> = (1..=count).map(|k| events[(k * n).div_ceil(count).max(1) - 1]).collect();
    all.dedup();
    all
}
