//! Criteria frozen from earlier runs: what a metric should be, how far nodes differ, and how far whole runs do.

use serde::{Deserialize, Serialize};

use super::reference::of_all;
use super::sorted::Sums;
use super::views::{Column, speed};
use super::{Metric, Settings, budget, clusters, student};

/// What earlier runs say of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frozen {
    /// Centre of the nodes, in the metric's own unit; the geometric mean over the runs.
    pub centre: f64,
    /// Relative standard deviation between nodes of one run, at least rounding and step noise.
    pub spread: f64,
    /// Degrees of freedom of `spread`.
    pub df: f64,
    /// Nodes kept in the reference, over all runs.
    pub nodes: usize,
    /// Relative standard deviation between the centres of runs.
    pub run_spread: f64,
    /// Degrees of freedom of `run_spread`.
    pub run_df: f64,
    /// How many runs.
    pub runs: usize,
    /// Whether `run_spread` is assumed, since there was one run only.
    pub assumed: bool,
    /// Relative step of the grid the values lie on, 0 where none is visible.
    pub grid: f64,
    /// Relative error of a node's median, from its own steps.
    pub error: f64,
}

impl Frozen {
    /// Of the healthy nodes of one run: their centre in the metric's own unit, their relative standard deviation, and how many
    /// there were. How far runs differ is assumed.
    #[must_use]
    pub const fn of_one_run(centre: f64, spread: f64, nodes: usize) -> Self {
        let (run_spread, run_df) = ASSUMED;
        let df = nodes as f64 - 1.0;
        Self { centre, spread, df, nodes, run_spread, run_df, runs: 1, assumed: true, grid: 0.0, error: 0.0 }
    }
}

/// Why a metric cannot be frozen.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Not enough nodes in any run.
    #[error("only {nodes} nodes have it in one run; a frozen criterion needs {needed}")]
    TooFewNodes {
        /// The most nodes of any run.
        nodes: usize,
        /// How many it takes.
        needed: usize,
    },
    /// Zero or not finite.
    #[error("its centre is zero or not a number")]
    NoCentre,
    /// No loss of a factor of two could be detected.
    #[error("its nodes differ by {:.0} % (n = {nodes}): not even a node at half speed could be detected", spread * 100.0)]
    TooNoisy {
        /// Relative standard deviation between nodes.
        spread: f64,
        /// Nodes it was learned from.
        nodes: usize,
    },
    /// A fleet of two kinds has no one centre.
    #[error("its nodes form two clusters: label them and freeze each group")]
    TwoClusters,
}

/// Between runs, a centre is taken to move by 1 % where there was one run only, as if eight more had shown it.
const ASSUMED: (f64, f64) = (0.01, 8.0);
/// Weight of the metrics' common spread between runs, in degrees of freedom, beside a metric's own few runs.
const COMMON: f64 = 4.0;
/// A common spread below this is not believed.
const COMMON_LEAST: f64 = 0.002;
/// Nodes one run must have.
const FEWEST: usize = 4;
/// Part of a grid's step that counts as spread.
const GRID: f64 = 0.6;

/// Learns what a metric should be, for every metric of `runs`: the same metrics in the same order in each run, on
/// whichever nodes.
///
/// # Errors
/// Per metric, when nothing calibrated could be decided with it.
#[must_use]
pub fn freeze(runs: &[Vec<Metric<'_>>], settings: &Settings) -> Vec<Result<Frozen, Refusal>> {
    let metrics = runs.first().map_or(0, Vec::len);
    let learned: Vec<_> = (0..metrics)
        .map(|metric| learn(&runs.iter().filter_map(|run| run.get(metric)).collect::<Vec<_>>(), settings))
        .collect();
    let common = common_spread(learned.iter().flatten());
    learned.into_iter().map(|learned| learned.and_then(|l| l.freeze(common, settings))).collect()
}

/// One metric over the runs.
struct Learned {
    direction: muster_wire::Direction,
    /// Logarithm of the centre (as a speed) of each run.
    centres: Vec<f64>,
    spread: f64,
    kept: usize,
    /// Nodes of the largest run.
    nodes: usize,
    grid: f64,
    error: f64,
}

fn learn(runs: &[&Metric<'_>], settings: &Settings) -> Result<Learned, Refusal> {
    let direction = runs.first().map_or(muster_wire::Direction::HigherIsBetter, |metric| metric.direction);
    let mut learned = Learned { direction, centres: vec![], spread: 0.0, kept: 0, nodes: 0, grid: 0.0, error: 0.0 };
    let mut variance = 0.0;
    for metric in runs {
        let column = Column::of(metric, settings);
        learned.nodes = learned.nodes.max(column.median.len());
        if column.median.len() < FEWEST {
            continue;
        }
        let sorted = &column.median.sorted;
        let grid = |index: usize| column.grid(index);
        if clusters::of(&Sums::of(sorted), settings.effect, settings.floor, &grid).contains(&true) {
            return Err(Refusal::TwoClusters);
        }
        let found = of_all(sorted, settings.floor);
        if !(found.centre > 0.0 && found.centre.is_finite() && found.scale.is_finite()) {
            return Err(Refusal::NoCentre);
        }
        learned.centres.push(found.centre.ln());
        variance += found.scale.powi(2);
        learned.kept += found.kept;
        learned.grid = column.grid.iter().copied().fold(learned.grid, f64::max);
        learned.error = column.errors.iter().copied().fold(learned.error, f64::max);
    }
    if learned.centres.is_empty() {
        return Err(Refusal::TooFewNodes { nodes: learned.nodes, needed: FEWEST });
    }
    let spread = (variance / learned.centres.len() as f64).sqrt();
    learned.spread = spread.max(learned.error).hypot(GRID * learned.grid);
    Ok(learned)
}

impl Learned {
    /// Variance between the centres of runs.
    fn between(&self) -> Option<f64> {
        let runs = self.centres.len() as f64;
        let mean = self.centres.iter().sum::<f64>() / runs;
        (runs > 1.0).then(|| self.centres.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (runs - 1.0))
    }

    fn freeze(self, common: f64, settings: &Settings) -> Result<Frozen, Refusal> {
        let runs = self.centres.len();
        let more = runs as f64 - 1.0;
        let (run_spread, run_df) = self.between().map_or(ASSUMED, |own| {
            let least = common.max(COMMON_LEAST.powi(2));
            (((COMMON * least + more * own) / (COMMON + more)).sqrt(), COMMON + more)
        });
        let df = (self.kept - runs) as f64;
        let chance = settings.fail / self.nodes as f64 * budget::MEDIAN * budget::share(1);
        let seen = (student::quantile(chance, df.max(1.0)) + student::quantile(0.05, df.max(1.0))) * self.spread;
        if seen > settings.coarsest {
            return Err(Refusal::TooNoisy { spread: self.spread, nodes: self.nodes });
        }
        let centre = (self.centres.iter().sum::<f64>() / runs as f64).exp();
        Ok(Frozen {
            centre: speed(centre, self.direction),
            spread: self.spread,
            df,
            nodes: self.kept,
            run_spread,
            run_df,
            runs,
            assumed: runs == 1,
            grid: self.grid,
            error: self.error,
        })
    }
}

/// What the variance between runs is in most metrics: its median, corrected for that of so few runs.
fn common_spread<'a>(learned: impl Iterator<Item = &'a Learned>) -> f64 {
    let (mut variances, mut runs) = (Vec::new(), 0);
    for metric in learned {
        runs = runs.max(metric.centres.len());
        variances.extend(metric.between());
    }
    variances.sort_unstable_by(f64::total_cmp);
    let median = crate::sample::median_of_sorted(&variances);
    // Median of chi-square over its mean: 0.45 with one degree of freedom, 0.7 with two.
    let share = if runs == 2 { 0.45 } else { 0.7 };
    if median.is_finite() { median / share } else { 0.0 }
}
