//! Everything said about one model on one set of unseen rows.

use serde::Serialize;

use super::{Forecast, Lift, accuracy, brier, calibration, calibration_error, concordance, integrated, lift};
use crate::risk::{Curves, Survival, Table};

/// Horizons of decisions, in hours: a day, a week, a month.
pub const HORIZONS_H: [f64; 3] = [24.0, 168.0, 720.0];

/// At which times a model is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Grid of the integrated scores, rising.
    pub grid: Vec<f64>,
    /// Horizons of Brier score, calibration and lift.
    pub horizons: Vec<f64>,
    /// Cap of the paper's accuracy; none leaves it out.
    pub cap: Option<f64>,
}

impl Plan {
    /// Plan for incident logs, in hours: integrated from 24 h to `cap - 24` h each day, [`HORIZONS_H`].
    #[must_use]
    pub fn hours(cap: f64) -> Self {
        let days = (cap / 24.0).floor() as usize;
        let grid = (1..days).map(|d| 24.0 * d as f64).collect();
        Self { grid, horizons: HORIZONS_H.to_vec(), cap: Some(cap) }
    }

    /// Plan for survival data of any unit: 100 points from the shortest to the longest duration, as pycox.
    #[must_use]
    pub fn hundred(table: &Table) -> Self {
        let low = table.duration().iter().copied().fold(f64::INFINITY, f64::min);
        let high = table.duration().iter().copied().fold(0.0, f64::max);
        let grid = (0..100).map(|k| low + (high - low) * f64::from(k) / 99.0).collect();
        Self { grid, horizons: Vec::new(), cap: None }
    }

    /// The times a model is asked for: those of the plan and up to 300 quantiles of the event times, between which
    /// curves are interpolated.
    #[must_use]
    pub fn times(&self, table: &Table) -> Vec<f64> {
        let mut events: Vec<f64> =
            (0..table.len()).filter(|&i| table.event()[i]).map(|i| table.duration()[i]).collect();
        events.sort_by(f64::total_cmp);
        events.dedup();
        let step = events.len().div_ceil(300).max(1);
        let mut times: Vec<f64> = self.grid.iter().chain(&self.horizons).chain(&self.cap).copied().collect();
        times.extend(events.iter().step_by(step).chain(events.last()));
        times.sort_by(f64::total_cmp);
        times.dedup();
        times
    }
}

/// The scores; those a plan does not ask for, or the rows cannot give, are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Time-dependent concordance.
    pub ctd: Option<f64>,
    /// Integrated Brier score.
    pub ibs: f64,
    /// Integrated negative binomial log likelihood.
    pub inbll: f64,
    /// Brier score per horizon of the plan.
    pub brier: Vec<f64>,
    /// Calibration error per horizon, ten groups.
    pub calibration: Vec<f64>,
    /// Lift of the riskiest tenth per horizon.
    pub lift: Vec<Option<Lift>>,
    /// The paper's accuracy, by the median.
    pub accuracy_median: Option<f64>,
    /// The paper's accuracy, by the restricted mean.
    pub accuracy_mean: Option<f64>,
}

/// Scores of `curves` (at [`Plan::times`]) on `table`.
#[must_use]
pub fn score(table: &Table, curves: &Curves, plan: &Plan) -> Scores {
    let whole = integrated(table, curves, &plan.grid);
    let per = |f: &dyn Fn(f64) -> f64| plan.horizons.iter().map(|&h| f(h)).collect();
    let capped = |forecast| plan.cap.and_then(|cap| accuracy(table, curves, cap, forecast));
    Scores {
        ctd: concordance(table, curves),
        ibs: whole.brier,
        inbll: whole.log_likelihood,
        brier: per(&|h| brier(table, curves, h)),
        calibration: per(&|h| calibration_error(&calibration(table, curves, h, 10))),
        lift: plan.horizons.iter().map(|&h| lift(table, curves, h, 0.1)).collect(),
        accuracy_median: capped(Forecast::Median),
        accuracy_mean: capped(Forecast::Mean),
    }
}

/// Asks `model` for the curves that `plan` needs on `table`.
pub(super) fn ask(model: &dyn Survival, table: &Table, plan: &Plan) -> Curves {
    model.survive(table.values(), &plan.times(table))
}
