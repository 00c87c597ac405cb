//! What does every incident model answer? How likely each row is to be without incident until each of some times.

/// Probabilities of having had no event: rows x times, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    times: Vec<f64>,
    values: Vec<f64>,
}

impl Curves {
    /// Curves at `times` (ascending) from `values`, `times.len()` per row.
    #[must_use]
    pub fn new(times: Vec<f64>, values: Vec<f64>) -> Self {
        debug_assert!(times.is_empty() || values.len().is_multiple_of(times.len()));
        Self { times, values }
    }

    /// The times asked for, ascending.
    #[must_use]
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.times.len()).unwrap_or(0)
    }

    /// Survival of row `i` at each time.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.times.len()..(i + 1) * self.times.len()]
    }

    /// Survival of row `i` at `time`: between two times geometric, that is a constant hazard; 1 at time 0; beyond
    /// the last time the last value.
    #[must_use]
    pub fn at(&self, i: usize, time: f64) -> f64 {
        interpolate(&self.times, self.row(i), time)
    }

    /// Restricted mean of row `i`: the integral of the curve from 0 to `cap`, by the trapezoid rule.
    #[must_use]
    pub fn restricted_mean(&self, i: usize, cap: f64) -> f64 {
        let mut points = vec![(0.0, 1.0)];
        points
            .extend(self.times.iter().copied().zip(self.row(i).iter().copied()).filter(|(t, _)| *t > 0.0 && *t < cap));
        points.push((cap, self.at(i, cap)));
        points.windows(2).map(|w| (w[1].0 - w[0].0) * 0.5 * (w[0].1 + w[1].1)).sum()
    }

    /// First time at which the curve of row `i` is at most one half, and `cap` when it never is before.
    #[must_use]
    pub fn median(&self, i: usize, cap: f64) -> f64 {
        let below = self.row(i).iter().position(|s| *s <= 0.5);
        below.map_or(cap, |k| self.times[k].min(cap))
    }
}

fn interpolate(times: &[f64], values: &[f64], time: f64) -> f64 {
    let after = times.partition_point(|t| *t <= time);
    let (t0, s0) = if after == 0 { (0.0, 1.0) } else { (times[after - 1], values[after - 1]) };
    let Some((&t1, &s1)) = times.get(after).zip(values.get(after)) else { return s0 };
    if time <= t0 || s0 <= 0.0 || t1 <= t0 {
        return if time < 0.0 { 1.0 } else { s0 };
    }
    let part = (time - t0) / (t1 - t0);
    if s1 > 0.0 { s0 * (s1 / s0).powf(part) } else { s0 * (1.0 - part) }
}

/// A fitted model of the time to the next event.
pub trait Survival {
    /// Curves for `rows` (rows x features, row-major, unscaled as in the training table) at `times` (ascending,
    /// in the unit of the training durations). Values lie in `[0, 1]` and do not rise with time.
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves;

    /// Number of features of a row, at least 1: models that use none still count rows by it.
    fn width(&self) -> usize;

    /// Number of rows in `rows`.
    fn count(&self, rows: &[f64]) -> usize {
        rows.len() / self.width().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_between_times_follow_a_constant_hazard() {
        let grid = vec![10.0, 20.0];
        let c = Curves::new(grid, vec![(-1.0_f64).exp(), (-2.0_f64).exp()]);
        for t in [0.0, 3.0, 10.0, 14.0, 20.0] {
            assert!((c.at(0, t) - (-t / 10.0_f64).exp()).abs() < 1e-12, "{t}");
        }
        assert_eq!(c.at(0, 99.0), c.at(0, 20.0));
        assert_eq!(c.median(0, 50.0), 10.0);
        assert_eq!(c.median(0, 5.0), 5.0);
        assert!((c.restricted_mean(0, 5.0) - 5.0 * 0.5 * (1.0 + (-0.5_f64).exp())).abs() < 1e-12);
    }
}
