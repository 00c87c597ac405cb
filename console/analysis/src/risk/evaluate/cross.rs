//! How good is a model on average, over splits and seeds, and how fast?

use serde::Serialize;

use super::scores::ask;
use super::{Plan, Scores, Split, score};
use crate::risk::{FitError, Kind, Settings, fit};

/// One fit on one split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Model.
    pub kind: Kind,
    /// Index of the split.
    pub split: usize,
    /// Seed of the network.
    pub seed: u64,
    /// Scores on the test rows.
    pub scores: Scores,
    /// Time to fit, in seconds of the caller's clock.
    pub fit_s: f64,
    /// Time to predict all curves of the test rows, in seconds.
    pub predict_s: f64,
}

/// Fits `kind` on each split, the network once per seed `0..seeds`, and scores it by `plan(split)`. `clock` gives
/// seconds; it is the caller's, since this crate has none, and has no influence on scores.
///
/// # Errors
/// The first fit that fails.
pub fn cross_validate(
    kind: Kind,
    splits: &[Split],
    settings: &Settings,
    seeds: u64,
    bench: &mut Bench<'_>,
) -> Result<Vec<Run>, FitError> {
    let seeds = if kind == Kind::CoxTime { seeds.max(1) } else { 1 };
    let mut runs = Vec::new();
    for (k, split) in splits.iter().enumerate() {
        let plan = (bench.plan)(split);
        for seed in 0..seeds {
            let mut settings = settings.clone();
            settings.cox_time.seed = seed;
            let start = (bench.clock)();
            let model = fit(kind, &split.train, &split.held_out, &settings)?;
            let fitted = (bench.clock)();
            let curves = ask(&model, &split.test, &plan);
            let predicted = (bench.clock)();
            runs.push(Run {
                kind,
                split: k,
                seed,
                scores: score(&split.test, &curves, &plan),
                fit_s: fitted - start,
                predict_s: predicted - fitted,
            });
        }
    }
    Ok(runs)
}

/// What a cross-validation is measured with.
pub struct Bench<'a> {
    /// Times of the scores for a split.
    pub plan: &'a dyn Fn(&Split) -> Plan,
    /// Seconds of any monotone clock.
    pub clock: &'a mut dyn FnMut() -> f64,
}

/// Means over runs of one model, as reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Model.
    pub name: &'static str,
    /// Mean concordance over the runs that have one.
    pub ctd: Option<f64>,
    /// Its standard deviation over runs.
    pub ctd_sd: Option<f64>,
    /// Mean integrated Brier score.
    pub ibs: f64,
    /// Its standard deviation over runs.
    pub ibs_sd: f64,
    /// Mean integrated negative binomial log likelihood.
    pub inbll: f64,
    /// Mean Brier score per horizon.
    pub brier: Vec<f64>,
    /// Mean calibration error per horizon.
    pub calibration: Vec<f64>,
    /// Mean lift of the riskiest tenth per horizon, over the runs that have one.
    pub lift: Vec<Option<f64>>,
    /// Mean accuracy by the median.
    pub accuracy_median: Option<f64>,
    /// Mean accuracy by the restricted mean.
    pub accuracy_mean: Option<f64>,
    /// Mean seconds to fit.
    pub fit_s: f64,
    /// Mean seconds to predict.
    pub predict_s: f64,
    /// Number of runs.
    pub runs: usize,
}

/// Summary of `runs`, all of one model; none when there are none.
#[must_use]
pub fn summarise(runs: &[Run]) -> Option<Summary> {
    let first = runs.first()?;
    let all = |f: &dyn Fn(&Run) -> Option<f64>| moments(&runs.iter().filter_map(f).collect::<Vec<_>>());
    let mean = |f: &dyn Fn(&Run) -> f64| all(&|r| Some(f(r))).map_or(0.0, |m| m.0);
    let horizons = 0..first.scores.brier.len();
    let ctd = all(&|r| r.scores.ctd);
    let ibs = all(&|r| Some(r.scores.ibs)).unwrap_or_default();
    Some(Summary {
        name: first.kind.name(),
        ctd: ctd.map(|m| m.0),
        ctd_sd: ctd.map(|m| m.1),
        ibs: ibs.0,
        ibs_sd: ibs.1,
        inbll: mean(&|r| r.scores.inbll),
        brier: horizons.clone().map(|h| mean(&|r| r.scores.brier[h])).collect(),
        calibration: horizons.clone().map(|h| mean(&|r| r.scores.calibration[h])).collect(),
        lift: horizons.map(|h| all(&|r| r.scores.lift[h].map(|l| l.lift)).map(|m| m.0)).collect(),
        accuracy_median: all(&|r| r.scores.accuracy_median).map(|m| m.0),
        accuracy_mean: all(&|r| r.scores.accuracy_mean).map(|m| m.0),
        fit_s: mean(&|r| r.fit_s),
        predict_s: mean(&|r| r.predict_s),
        runs: runs.len(),
    })
}

/// Mean and sample standard deviation.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (!values.is_empty()).then(|| (mean, spread.sqrt()))
}
