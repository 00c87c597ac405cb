//! How does a node's past change its hazard over the time to come? Cox-Time (Kvamme, Borgan and Scheel 2019,
//! JMLR 20-129, sections 4 and 5), the incident model of SuperBench (ATC'24, section 4.2).

mod adam;
mod hazard;
mod net;
mod pairs;
mod parallel;
mod pass;
mod train;

use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::risk::{Curves, FitError, Scale, Survival, Table};
use hazard::{Baseline, Grid};
use net::{Folded, Net};
use pairs::{Clock, Pairs};
use parallel::in_parallel;
use train::train;

/// How a Cox-Time network is trained. The default is that of pycox's benchmark: 2 x 32 units, Adam 0.01.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Learning rate.
    pub rate: f64,
    /// Events per mini-batch, each with one control.
    pub batch: usize,
    /// Share of units left out at random in each training pass.
    pub dropout: f64,
    /// Weight of the mean absolute output in the loss.
    pub shrink: f64,
    /// Passes over the events without a lower held-out loss before training ends.
    pub patience: usize,
    /// Passes over the events at most.
    pub epochs: usize,
    /// Points of the baseline hazard, at quantiles of the event times.
    pub knots: usize,
    /// Rows the baseline hazard is estimated from, at most.
    pub baseline_rows: usize,
    /// Seed of weights, order, controls and dropout.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: 0.01,
            batch: 256,
            dropout: 0.1,
            shrink: 0.0,
            patience: 10,
            epochs: 512,
            knots: 200,
            baseline_rows: 4000,
            seed: 0,
        }
    }
}

/// Trained Cox-Time model: hazard `h0(t) exp(g(t, x))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoxTime {
    scale: Scale,
    clock: Clock,
    net: Net,
    baseline: Baseline,
    epochs: usize,
}

impl CoxTime {
    /// Trains on `table`, stops by `held_out`, then estimates the baseline hazard on `table`. Deterministic: the
    /// same rows, settings and seed give the same weights.
    ///
    /// # Errors
    /// Without two events in `table` and one in `held_out`, or when their features differ.
    pub fn fit(table: &Table, held_out: &Table, settings: &Settings) -> Result<Self, FitError> {
        FitError::check(table)?;
        FitError::check(held_out)?;
        if table.names() != held_out.names() {
            return Err(FitError::Columns);
        }
        if table.events() < 2 {
            return Err(FitError::NoEvents);
        }
        let (scale, clock) = (Scale::of(table), Clock::of(table));
        let rows = Pairs::of(table, &scale, clock);
        let held_out = Pairs::of(held_out, &scale, clock);
        let (net, epochs) = train(&rows, &held_out, settings);
        let baseline = Baseline::of(table, &rows, clock, &net.folded(), settings);
        Ok(Self { scale, clock, net, baseline, epochs })
    }

    /// Passes over the events until training ended.
    #[must_use]
    pub fn epochs(&self) -> usize {
        self.epochs
    }
}

impl CoxTime {
    /// A decision asks for few times and many nodes: the knots are then merged.
    const FEW_TIMES: usize = 4;
    const FEW_KNOTS: usize = 48;
    /// Rows that are not worth another thread, at least.
    const ALONE: usize = 64;
}

/// Curves of some rows, in the widest vectors there are.
struct Ask<'a> {
    model: &'a CoxTime,
    net: &'a Folded,
    grid: &'a Grid,
    rows: &'a [f64],
    times: &'a [f64],
}

impl WithSimd for Ask<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f64> {
        let width = self.model.width();
        let mut values = Vec::with_capacity(self.rows.len() / width * self.times.len());
        let (mut scaled, mut cumulative) = (Vec::with_capacity(width), Vec::new());
        for row in self.rows.chunks_exact(width) {
            scaled.clear();
            scaled.extend(self.model.scale.apply(row).map(|v| v as f32));
            self.grid.cumulate(self.net, &self.net.enter(&scaled), &mut cumulative);
            self.grid.survival(&cumulative, self.times, &mut values);
        }
        values
    }
}

impl Survival for CoxTime {
    /// Costs rows x knots up to the last time asked, about 0.1 microseconds each; for up to four times the knots
    /// are merged to 48, which moves probabilities by thousandths, at the sparse far
    /// end by a hundredth.
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        let net = self.net.folded();
        let until = times.last().copied().unwrap_or(0.0);
        let limit = if times.len() <= Self::FEW_TIMES { Self::FEW_KNOTS } else { usize::MAX };
        let grid = self.baseline.grid(self.clock, until, limit);
        let ask = |rows: &[f64]| Arch::new().dispatch(Ask { model: self, net: &net, grid: &grid, rows, times });
        // A few rows are not worth a thread.
        let few = rows.len() < Self::ALONE * self.width();
        let values = if few { ask(rows) } else { in_parallel(rows, self.width(), ask) };
        Curves::new(times.to_vec(), values)
    }

    fn width(&self) -> usize {
        self.scale.width()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    /// Hazard `0.02 exp(x0)` for the first half, `0.02 exp(-x0)` after time 30: crossing hazards, which a linear
    /// Cox model cannot see.
    fn crossing(seed: u64, n: usize) -> Table {
        let mut c = Chance::new(seed);
        let (mut x, mut time, mut event) = (vec![], vec![], vec![]);
        for _ in 0..n {
            let x0 = c.normal().clamp(-2.0, 2.0);
            let (early, late) = (0.02 * x0.exp(), 0.02 * (-x0).exp());
            let need = c.exponential();
            let t = if need < early * 30.0 { need / early } else { 30.0 + (need - early * 30.0) / late };
            let stop = 100.0 * c.unit() + 20.0;
            x.extend([x0, c.normal()]);
            time.push(t.min(stop));
            event.push(t <= stop);
        }
        Table::new(vec!["x0".into(), "noise".into()], x, time, event).unwrap()
    }

    #[test]
    fn crossing_hazards_are_learnt_and_curves_are_curves() {
        let model = CoxTime::fit(&crossing(1, 3000), &crossing(2, 1000), &Settings::default()).unwrap();
        let times: Vec<f64> = (0..=100).map(f64::from).collect();
        let curves = model.survive(&[-1.5, 0.0, 1.5, 0.0], &times);
        for i in 0..2 {
            assert!((curves.row(i)[0] - 1.0).abs() < 1e-12);
            assert!(curves.row(i).windows(2).all(|w| w[1] <= w[0] && w[1] >= 0.0));
        }
        let truth = |x0: f64, t: f64| {
            let (early, late) = (0.02 * x0.exp(), 0.02 * (-x0).exp());
            (-(early * t.min(30.0) + late * (t - 30.0).max(0.0))).exp()
        };
        for (i, x0) in [-1.5, 1.5].into_iter().enumerate() {
            for t in [10.0, 30.0, 60.0, 90.0] {
                let (got, want) = (curves.at(i, t), truth(x0, t));
                assert!((got - want).abs() < 0.09, "x0 {x0} t {t}: {got} {want}");
            }
        }
    }

    #[test]
    fn few_times_are_asked_cheaply_and_nearly_as_well() {
        let model = CoxTime::fit(&crossing(1, 3000), &crossing(2, 1000), &Settings::default()).unwrap();
        let rows = crossing(3, 300);
        let fine: Vec<f64> = (1..=100).map(f64::from).collect();
        let all = model.survive(rows.values(), &fine);
        for time in [10.0, 55.0, 100.0] {
            let one = model.survive(rows.values(), &[time]);
            let errors: Vec<f64> = (0..300).map(|i| (one.row(i)[0] - all.at(i, time)).abs()).collect();
            let worst = errors.iter().copied().fold(0.0, f64::max);
            let mean = errors.iter().sum::<f64>() / 300.0;
            assert!(worst < 0.06 && mean < 0.02, "{time}: mean {mean}, worst {worst}");
        }
    }

    #[test]
    fn a_seed_fixes_the_model_and_a_file_keeps_it() {
        let settings = Settings { epochs: 5, ..Settings::default() };
        let (a, b) = (crossing(1, 300), crossing(2, 100));
        let model = CoxTime::fit(&a, &b, &settings).unwrap();
        assert_eq!(model, CoxTime::fit(&a, &b, &settings).unwrap());
        assert_ne!(model, CoxTime::fit(&a, &b, &Settings { seed: 1, ..settings }).unwrap());
        let text = serde_json::to_string(&model).unwrap();
        assert_eq!(serde_json::from_str::<CoxTime>(&text).unwrap(), model);
    }

    #[test]
    fn a_table_that_teaches_nothing_is_refused() {
        let a = crossing(1, 50);
        let none = Table::new(a.names().to_vec(), vec![0.0; 4], vec![1.0; 2], vec![false; 2]).unwrap();
        assert_eq!(CoxTime::fit(&none, &a, &Settings::default()), Err(FitError::NoEvents));
        assert_eq!(CoxTime::fit(&a, &none, &Settings::default()), Err(FitError::NoEvents));
    }
}
