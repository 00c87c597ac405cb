//! How does each feature multiply the hazard? Cox's proportional hazards model (1972): Newton's method on the
//! partial likelihood with Efron's or Breslow's ties, and Breslow's baseline.

use serde::{Deserialize, Serialize};

use crate::risk::linear::solve;
use crate::risk::{Curves, FitError, Scale, Survival, Table};

/// How equal event times share their risk set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Efron (1977): the closer approximation.
    Efron,
    /// Breslow (1974): the plain one.
    Breslow,
}

/// Linear Cox model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cox {
    scale: Scale,
    beta: Vec<f64>,
    times: Vec<f64>,
    cumulative: Vec<f64>,
}

impl Cox {
    /// Maximises the mean partial log likelihood less `ridge / 2` times the squared coefficients (of scaled
    /// features, see [`Scale`]). About 10 passes over the rows, each rows x features squared.
    ///
    /// # Errors
    /// Without events, or when no step improves the likelihood.
    pub fn fit(table: &Table, ridge: f64, ties: Ties) -> Result<Self, FitError> {
        FitError::check(table)?;
        let scale = Scale::of(table);
        let data = Sorted::of(table, &scale);
        let mut beta = vec![0.0; table.width()];
        let mut now = data.derivatives(&beta, ridge, ties);
        for _ in 0..50 {
            let step = solve(now.hessian.clone(), now.gradient.clone()).ok_or(FitError::Diverged)?;
            let mut factor = 1.0;
            let next = loop {
                let trial: Vec<f64> = beta.iter().zip(&step).map(|(b, s)| b + factor * s).collect();
                let found = data.derivatives(&trial, ridge, ties);
                if found.value >= now.value - 1e-12 {
                    beta = trial;
                    break found;
                }
                factor *= 0.5;
                if factor < 1e-8 {
                    return Err(FitError::Diverged);
                }
            };
            let gain = next.value - now.value;
            now = next;
            if gain < 1e-11 {
                break;
            }
        }
        let (times, cumulative) = data.baseline(&beta);
        Ok(Self { scale, beta, times, cumulative })
    }

    /// Log hazard ratio per scaled unit of each feature.
    #[must_use]
    pub fn coefficients(&self) -> &[f64] {
        &self.beta
    }

    fn score(&self, row: &[f64]) -> f64 {
        self.scale.apply(row).zip(&self.beta).map(|(x, b)| x * b).sum::<f64>().clamp(-50.0, 50.0)
    }
}

impl Survival for Cox {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        let baseline: Vec<f64> = times
            .iter()
            .map(|time| {
                let steps = self.times.partition_point(|t| t <= time);
                if steps == 0 { 0.0 } else { self.cumulative[steps - 1] }
            })
            .collect();
        let values = rows.chunks_exact(self.width()).flat_map(|row| {
            let ratio = self.score(row).exp();
            baseline.iter().map(move |h| (-h * ratio).exp())
        });
        Curves::new(times.to_vec(), values.collect())
    }

    fn width(&self) -> usize {
        self.scale.width()
    }
}

/// Mean penalised log likelihood with its gradient and negative Hessian (row-major).
struct Derivatives {
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

/// Scaled rows from the longest watched to the shortest, so that risk sets grow as one walks.
struct Sorted {
    x: Vec<f64>,
    time: Vec<f64>,
    event: Vec<bool>,
    width: usize,
}

/// Sums over a risk set, or over the events tied in it.
#[derive(Clone)]
struct Sums {
    weight: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    fn zero(width: usize) -> Self {
        Self { weight: 0.0, first: vec![0.0; width], second: vec![0.0; width * width] }
    }

    fn add(&mut self, x: &[f64], weight: f64) {
        self.weight += weight;
        for (i, xi) in x.iter().enumerate() {
            let wx = weight * xi;
            self.first[i] += wx;
            // The lower triangle only; `mirror` fills the rest at the end.
            for (cell, xj) in self.second[i * x.len()..].iter_mut().zip(&x[..=i]) {
                *cell += wx * xj;
            }
        }
    }
}

impl Sorted {
    fn of(table: &Table, scale: &Scale) -> Self {
        let mut order = table.by_duration();
        order.reverse();
        Self {
            x: order.iter().flat_map(|&i| scale.apply(table.row(i)).collect::<Vec<_>>()).collect(),
            time: order.iter().map(|&i| table.duration()[i]).collect(),
            event: order.iter().map(|&i| table.event()[i]).collect(),
            width: table.width(),
        }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.width..(i + 1) * self.width]
    }

    fn score(&self, i: usize, beta: &[f64]) -> f64 {
        self.row(i).iter().zip(beta).map(|(x, b)| x * b).sum()
    }

    /// Ranges of rows with equal time.
    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let time = *self.time.get(start)?;
            let end = start + self.time[start..].iter().take_while(|t| **t == time).count();
            let block = start..end;
            start = end;
            Some(block)
        })
    }

    fn derivatives(&self, beta: &[f64], ridge: f64, ties: Ties) -> Derivatives {
        let (n, width) = (self.time.len() as f64, self.width);
        let mut risk = Sums::zero(width);
        let mut out = Derivatives { value: 0.0, gradient: vec![0.0; width], hessian: vec![0.0; width * width] };
        for block in self.blocks() {
            let mut tied = Sums::zero(if self.event[block.clone()].contains(&true) { width } else { 0 });
            let mut events = 0;
            for i in block {
                let score = self.score(i, beta);
                let weight = score.clamp(-300.0, 300.0).exp();
                risk.add(self.row(i), weight);
                if self.event[i] {
                    events += 1;
                    out.value += score;
                    out.gradient.iter_mut().zip(self.row(i)).for_each(|(g, x)| *g += x);
                    tied.add(self.row(i), weight);
                }
            }
            for k in 0..events {
                let share = if ties == Ties::Efron { f64::from(k) / f64::from(events) } else { 0.0 };
                out.subtract(&risk, &tied, share);
            }
        }
        out.finish(beta, ridge, n)
    }

    /// Breslow's estimate of the cumulative hazard of a row of all zeros, at rising event times.
    fn baseline(&self, beta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut steps = Vec::new();
        let mut at_risk = 0.0;
        for block in self.blocks() {
            let time = self.time[block.start];
            let events = self.event[block.clone()].iter().filter(|e| **e).count();
            at_risk += block.map(|i| self.score(i, beta).clamp(-50.0, 50.0).exp()).sum::<f64>();
            if events > 0 {
                steps.push((time, events as f64 / at_risk));
            }
        }
        steps.reverse();
        let mut total = 0.0;
        steps
            .into_iter()
            .map(|(time, step)| {
                total += step;
                (time, total)
            })
            .unzip()
    }
}

impl Derivatives {
    /// Takes away the log of one event's risk set, of which `share` of the tied events has left.
    fn subtract(&mut self, risk: &Sums, tied: &Sums, share: f64) {
        let width = self.gradient.len();
        let weight = risk.weight - share * tied.weight;
        self.value -= weight.ln();
        let mean: Vec<f64> = risk.first.iter().zip(&tied.first).map(|(r, t)| (r - share * t) / weight).collect();
        for i in 0..width {
            self.gradient[i] -= mean[i];
            for j in 0..=i {
                let k = i * width + j;
                self.hessian[k] += (risk.second[k] - share * tied.second[k]) / weight - mean[i] * mean[j];
            }
        }
    }

    fn finish(mut self, beta: &[f64], ridge: f64, n: f64) -> Self {
        let width = beta.len();
        self.value = self.value / n - 0.5 * ridge * beta.iter().map(|b| b * b).sum::<f64>();
        for (i, b) in beta.iter().enumerate() {
            self.gradient[i] = self.gradient[i] / n - ridge * b;
            for j in 0..=i {
                let value = self.hessian[i * width + j] / n;
                self.hessian[i * width + j] = value;
                self.hessian[j * width + i] = value;
            }
            // A trace of ridge keeps a constant feature from making the matrix singular.
            self.hessian[i * width + i] += ridge.max(1e-10);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::sets::{LEUKAEMIA_PLACEBO, LEUKAEMIA_TREATED};

    fn trial() -> Table {
        let arms = LEUKAEMIA_PLACEBO.iter().map(|o| (o, 0.0)).chain(LEUKAEMIA_TREATED.iter().map(|o| (o, 1.0)));
        let (mut x, mut time, mut event) = (vec![], vec![], vec![]);
        for ((t, e), arm) in arms {
            x.push(arm);
            time.push(*t);
            event.push(*e);
        }
        Table::new(vec!["treated".into()], x, time, event).unwrap()
    }

    #[test]
    fn the_leukaemia_trial_gives_the_published_coefficients() {
        // R coxph(Surv(time, relapse) ~ arm): Efron 1.5721, Breslow 1.5092 (sign of the other arm).
        for (ties, expected) in [(Ties::Efron, -1.5721), (Ties::Breslow, -1.5092)] {
            let cox = Cox::fit(&trial(), 0.0, ties).unwrap();
            assert!((cox.coefficients()[0] - expected).abs() < 1e-4, "{ties:?} {:?}", cox.coefficients());
            let curves = cox.survive(&[0.0, 1.0], &[0.0, 5.0, 23.0]);
            assert_eq!(curves.row(0)[0], 1.0);
            assert!(curves.row(0)[2] < curves.row(1)[2]);
            let ratio = curves.row(1)[1].ln() / curves.row(0)[1].ln();
            assert!((ratio.ln() - cox.coefficients()[0]).abs() < 1e-9, "hazards are proportional");
        }
    }

    #[test]
    fn derivatives_agree_with_finite_differences() {
        let table = trial();
        let table = Table::new(
            vec!["a".into(), "b".into()],
            (0..table.len()).flat_map(|i| [table.row(i)[0], ((i * 37) % 11) as f64]).collect(),
            table.duration().to_vec(),
            table.event().to_vec(),
        )
        .unwrap();
        let data = Sorted::of(&table, &Scale::of(&table));
        let (beta, step) = (vec![0.3, -0.2], 1e-5);
        for ties in [Ties::Efron, Ties::Breslow] {
            let here = data.derivatives(&beta, 0.01, ties);
            for j in 0..2 {
                let moved = |by: f64| {
                    let mut b = beta.clone();
                    b[j] += by;
                    data.derivatives(&b, 0.01, ties)
                };
                let (up, down) = (moved(step), moved(-step));
                assert!((here.gradient[j] - (up.value - down.value) / (2.0 * step)).abs() < 1e-8);
                for i in 0..2 {
                    let curvature = -(up.gradient[i] - down.gradient[i]) / (2.0 * step);
                    assert!((here.hessian[i * 2 + j] - curvature).abs() < 1e-7);
                }
            }
        }
    }
}
