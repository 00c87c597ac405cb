//! What if incidents came at a constant rate? One for all nodes, or one per group of nodes: the baselines of
//! SuperBench (ATC'24, section 4.2), which group by incident count and by hours in service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::risk::{Curves, FitError, Survival, Table};

/// One rate for all: events over time watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exponential {
    rate: f64,
    width: usize,
}

impl Exponential {
    /// Maximum likelihood.
    ///
    /// # Errors
    /// Without an event or without time watched.
    pub fn fit(table: &Table) -> Result<Self, FitError> {
        let watched: f64 = table.duration().iter().sum();
        FitError::check(table)?;
        Ok(Self { rate: table.events() as f64 / watched, width: table.width() })
    }

    /// Incidents per unit of time.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }
}

impl Survival for Exponential {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        same_for_all(self.count(rows), times, |t| (-self.rate * t).exp())
    }

    fn width(&self) -> usize {
        self.width
    }
}

/// The same curve for every row.
pub(super) fn same_for_all(rows: usize, times: &[f64], curve: impl Fn(f64) -> f64) -> Curves {
    let one: Vec<f64> = times.iter().map(|&t| curve(t)).collect();
    Curves::new(times.to_vec(), one.repeat(rows))
}

/// Which rows share a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grouping {
    /// Feature that decides.
    pub column: String,
    /// Whether the feature holds `ln(1 + value)`, as status features do.
    pub log1p: bool,
    /// Values in `[k width, (k + 1) width)` form one group.
    pub width: f64,
}

impl Grouping {
    /// By number of past incidents, as SuperBench counts.
    #[must_use]
    pub fn by_count() -> Self {
        Self { column: "n_all".into(), log1p: true, width: 1.0 }
    }

    /// By ten days of time in service, SuperBench's "per hour" at a resolution that leaves events in each group.
    #[must_use]
    pub fn by_hour() -> Self {
        Self { column: "up_h".into(), log1p: true, width: 240.0 }
    }

    fn of(&self, value: f64) -> i64 {
        let value = if self.log1p { value.exp_m1() } else { value };
        // The small step keeps ln(1 + 3) in group 3 after rounding.
        ((value + 1e-6) / self.width).floor() as i64
    }
}

/// One rate per group of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grouped {
    grouping: Grouping,
    column: usize,
    rates: BTreeMap<i64, f64>,
    pooled: Exponential,
}

impl Grouped {
    /// Rate of each group, drawn towards the rate of all rows as by one more event, so that a group that has seen
    /// none is rare, not immortal; groups not seen in training have the rate of all.
    ///
    /// # Errors
    /// Without the grouping feature, or as [`Exponential::fit`].
    pub fn fit(table: &Table, grouping: &Grouping) -> Result<Self, FitError> {
        let column = table.column(&grouping.column).ok_or_else(|| FitError::NoColumn(grouping.column.clone()))?;
        let pooled = Exponential::fit(table)?;
        let mut groups: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for i in 0..table.len() {
            let (events, watched) = groups.entry(grouping.of(table.row(i)[column])).or_default();
            *events += f64::from(u8::from(table.event()[i]));
            *watched += table.duration()[i];
        }
        let prior = 1.0 / pooled.rate;
        let rates = groups.into_iter().map(|(k, (events, watched))| (k, (events + 1.0) / (watched + prior))).collect();
        Ok(Self { grouping: grouping.clone(), column, rates, pooled })
    }

    fn rate(&self, row: &[f64]) -> f64 {
        let group = row.get(self.column).map(|&v| self.grouping.of(v));
        group.and_then(|g| self.rates.get(&g)).copied().unwrap_or(self.pooled.rate)
    }
}

impl Survival for Grouped {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        let values = rows.chunks_exact(self.width()).flat_map(|row| {
            let rate = self.rate(row);
            times.iter().map(move |t| (-rate * t).exp())
        });
        Curves::new(times.to_vec(), values.collect())
    }

    fn width(&self) -> usize {
        self.pooled.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::sets::{LEUKAEMIA_PLACEBO, LEUKAEMIA_TREATED, survival_set};

    #[test]
    fn rates_of_the_leukaemia_trial_are_the_published_ones() {
        // Freireich et al. 1963: 9 relapses in 359 weeks under 6-MP, 21 in 182 under placebo.
        let treated = Exponential::fit(&survival_set(LEUKAEMIA_TREATED)).unwrap();
        let placebo = Exponential::fit(&survival_set(LEUKAEMIA_PLACEBO)).unwrap();
        assert!((treated.rate() - 9.0 / 359.0).abs() < 1e-12);
        assert!((placebo.rate() - 21.0 / 182.0).abs() < 1e-12);
        let c = treated.survive(&[0.0, 1.0], &[0.0, 10.0]);
        assert_eq!(c.rows(), 2);
        assert_eq!(c.row(0), [1.0, (-90.0 / 359.0_f64).exp()]);
    }

    #[test]
    fn a_group_without_events_is_rare_but_not_immortal() {
        let counts: Vec<f64> = [0.0, 0.0, 3.0, 3.0].iter().map(|n: &f64| n.ln_1p()).collect();
        let t =
            Table::new(vec!["n_all".into()], counts.clone(), vec![10.0; 4], vec![false, false, true, true]).unwrap();
        let m = Grouped::fit(&t, &Grouping::by_count()).unwrap();
        let c = m.survive(&[counts[0], counts[2], 9.0_f64.ln_1p()], &[10.0]);
        assert!(c.row(0)[0] > c.row(2)[0] && c.row(2)[0] > c.row(1)[0], "{c:?}");
        assert!(c.row(0)[0] < 1.0);
        assert!((c.row(2)[0] - (-0.5_f64).exp()).abs() < 1e-12, "an unseen group has the rate of all");
        assert!(matches!(Grouped::fit(&t, &Grouping::by_hour()), Err(FitError::NoColumn(_))));
    }
}
