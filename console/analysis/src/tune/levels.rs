//! Does the level of a benchmark still move late in its series? Then a window that ends early sees another machine.
//!
//! Levels are medians over whole cycles, so that neither stalls nor the pattern of a cycle count, relative to the
//! node's own level. Cycles that follow each other resemble each other: standard errors are widened by the lag-1
//! correlation r of the residuals, `(1 + r) / (1 - r)` (Wilks, Statistical Methods in the Atmospheric Sciences, section 5.2).

use muster_wire::Direction;

use crate::sample::median_of_sorted;

/// Standard errors, and relative change, from which a change of the fleet's level counts.
const FLEET: Limits = Limits { errors: 6.0, change: 0.01 };
/// The same for one node of many, which are as many questions.
const NODE: Limits = Limits { errors: 8.0, change: 0.02 };
/// A trend needs fewer: one line is asked about, not the best of all cuts.
const FLEET_TREND: Limits = Limits { errors: 4.5, change: 0.005 };
/// See [`NODE`].
const NODE_TREND: Limits = Limits { errors: 7.0, change: 0.01 };
/// Cycles that a level is taken from at least, before and after a cut.
const LEAST: usize = 2;
/// Cycles a trend needs.
const TREND_CYCLES: usize = 6;
/// Spread of cycles below which rounding decides.
const FLOOR: f64 = 1e-4;

struct Limits {
    errors: f64,
    change: f64,
}

/// A level that changed for good.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// First step at the new level, to a cycle.
    pub(super) from: usize,
    /// Change of the metric, relative.
    pub(super) change: f64,
    /// Nodes it is seen on; all of them where the fleet's median shows it.
    pub(super) nodes: usize,
}

/// A level that still moves at the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drift {
    /// Change of the metric per 1,000 steps, relative.
    pub(super) per_1000: f64,
    /// As in [`Step::nodes`].
    pub(super) nodes: usize,
}

/// Levels of a fleet, cycle by cycle.
pub(super) struct Levels {
    cycle: usize,
    nodes: Vec<Vec<f64>>,
    fleet: Vec<f64>,
}

impl Levels {
    /// Of `traces` in step order, cut to the shortest; `cycle` in steps.
    pub(super) fn of(traces: &[Vec<f64>], cycle: usize) -> Self {
        let nodes: Vec<Vec<f64>> = traces.iter().filter_map(|trace| relative(trace, cycle)).collect();
        let cycles = nodes.iter().map(Vec::len).min().unwrap_or(0);
        let fleet = (0..cycles).map(|c| median(nodes.iter().map(|levels| levels[c]).collect())).collect();
        Self { cycle, nodes, fleet }
    }

    /// The latest level that came to stay in the last two thirds of the series, if one did.
    pub(super) fn step(&self) -> Option<Step> {
        let found = |cut: Cut, nodes| Step { from: cut.at * self.cycle, change: cut.change, nodes };
        if let Some(cut) = cut(&self.fleet, &FLEET) {
            return Some(found(cut, self.nodes.len()));
        }
        let cuts: Vec<Cut> = self.nodes.iter().filter_map(|levels| cut(levels, &NODE)).collect();
        let nodes = cuts.len();
        cuts.into_iter().max_by(|a, b| a.change.abs().total_cmp(&b.change.abs())).map(|cut| found(cut, nodes))
    }

    /// Whether the last third still has a trend.
    pub(super) fn drift(&self) -> Option<Drift> {
        let cycles = self.fleet.len();
        let tail = cycles.div_ceil(3).max(TREND_CYCLES);
        // Without a third to compare with there is no last one.
        if tail > 2 * cycles / 3 {
            return None;
        }
        let lines: Vec<Line> = self.nodes.iter().map(|levels| Line::through(&levels[cycles - tail..cycles])).collect();
        let limits = |line: &Line, limits: &Limits| {
            (line.slope / line.error).abs() >= limits.errors && (line.slope * tail as f64).abs() >= limits.change
        };
        let scale = 1000.0 / self.cycle as f64;
        let fleet = Line::of_all(&lines);
        if limits(&fleet, &FLEET_TREND) {
            return Some(Drift { per_1000: fleet.slope * scale, nodes: lines.len() });
        }
        let moving: Vec<&Line> = lines.iter().filter(|line| limits(line, &NODE_TREND)).collect();
        let most = moving.iter().max_by(|a, b| a.slope.abs().total_cmp(&b.slope.abs()))?;
        Some(Drift { per_1000: most.slope * scale, nodes: moving.len() })
    }
}

impl Step {
    /// `slower by 6 % from step 2,400 on (3 of 64 nodes): a shorter window would not see it`.
    pub(super) fn sentence(&self, of: usize, dir: Direction) -> String {
        let word = if is_worse(self.change, dir) { "slower" } else { "faster" };
        let (percent, from) = (100.0 * self.change.abs(), thousands(self.from));
        format!(
            "{word} by {percent:.1} % from step {from} on{}: a shorter window would not see it",
            who(self.nodes, of)
        )
    }
}

impl Drift {
    /// `still warming up after 3,144 steps: 1.8 % per 1000 steps (3 of 64 nodes)`.
    pub(super) fn sentence(&self, steps: usize, of: usize, dir: Direction) -> String {
        let word = if is_worse(self.per_1000, dir) { "still getting slower" } else { "still warming up" };
        let (percent, steps) = (100.0 * self.per_1000.abs(), thousands(steps));
        format!("{word} after {steps} steps: {percent:.1} % per 1000 steps{}", who(self.nodes, of))
    }
}

fn is_worse(change: f64, dir: Direction) -> bool {
    (change < 0.0) == (dir == Direction::HigherIsBetter)
}

fn who(nodes: usize, of: usize) -> String {
    if nodes == of { String::new() } else { format!(" ({nodes} of {of} nodes)") }
}

pub(super) fn thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", thousands(number / 1000), number % 1000) }
}

/// Medians of whole cycles over the median of them all; `None` where that is zero.
fn relative(trace: &[f64], cycle: usize) -> Option<Vec<f64>> {
    let levels: Vec<f64> = trace.chunks_exact(cycle).map(|chunk| median(chunk.to_vec())).collect();
    let level = median(levels.clone());
    (level > 0.0).then(|| levels.iter().map(|l| l / level).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// Two levels with a cut between them.
struct Cut {
    at: usize,
    change: f64,
}

/// The cut that explains most, if it explains more than a line does. The first sixth may be warm-up, and the cut lies in
/// the last two thirds.
fn cut(levels: &[f64], limits: &Limits) -> Option<Cut> {
    let (skip, n) = (levels.len() / 6, levels.len());
    let first = (n / 3).max(skip + LEAST);
    let two_levels = |at: usize| {
        let (before, after) = (mean(&levels[skip..at]), mean(&levels[at..]));
        let level = |i: usize| if i < at { before } else { after };
        let residuals: Vec<f64> = (skip..n).map(|i| levels[i] - level(i)).collect();
        (squares(&residuals), after - before, residuals)
    };
    let cuts = (first..(n + 1).saturating_sub(LEAST)).map(|at| (at, two_levels(at)));
    let (at, (rest, change, residuals)) = cuts.min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let (before, after) = ((at - skip) as f64, (n - at) as f64);
    let error = spread(rest, (before + after - 2.0).max(1.0), &residuals) * (1.0 / before + 1.0 / after).sqrt();
    let clear = change.abs() / error >= limits.errors && change.abs() >= limits.change;
    (clear && rest < Line::through(&levels[skip..]).rest).then_some(Cut { at, change })
}

/// Least squares.
struct Line {
    /// Per cycle.
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Sum of squared residuals.
    rest: f64,
}

impl Line {
    fn through(levels: &[f64]) -> Self {
        let n = levels.len() as f64;
        let (centre, level) = ((n - 1.0) / 2.0, mean(levels));
        let width: f64 = (0..levels.len()).map(|i| (i as f64 - centre).powi(2)).sum();
        let slope = levels.iter().enumerate().map(|(i, l)| (i as f64 - centre) * (l - level)).sum::<f64>() / width;
        let residual = |(i, l): (usize, &f64)| l - level - slope * (i as f64 - centre);
        let residuals: Vec<f64> = levels.iter().enumerate().map(residual).collect();
        let rest = squares(&residuals);
        Self { slope, error: spread(rest, (n - 2.0).max(1.0), &residuals) / width.sqrt(), rest }
    }

    /// Median slope of all nodes; its error by their own errors or by how they differ, whichever is larger.
    fn of_all(lines: &[Self]) -> Self {
        let n = lines.len().max(1) as f64;
        let slope = median(lines.iter().map(|line| line.slope).collect());
        let within = (lines.iter().map(|line| line.error * line.error).sum::<f64>() / n).sqrt();
        let away = lines.iter().map(|line| (line.slope - slope).powi(2)).sum::<f64>();
        let between = (away / (n - 1.0).max(1.0)).sqrt();
        // A median scatters by a quarter more than a mean.
        let wider = if lines.len() > 2 { 1.25 } else { 1.0 };
        Self { slope, error: wider * within.max(between) / n.sqrt(), rest: 0.0 }
    }
}

/// Standard deviation of the residuals, widened by what neighbours have in common.
fn spread(rest: f64, freedom: f64, residuals: &[f64]) -> f64 {
    let common = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    let r = if rest > 0.0 { (common / rest).clamp(0.0, 0.9) } else { 0.0 };
    ((rest / freedom).sqrt().max(FLOOR)) * ((1.0 + r) / (1.0 - r)).sqrt()
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
