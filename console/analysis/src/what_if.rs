//! Which nodes flip when alpha moves: verdicts are thresholds on similarities, so nothing is measured or learned anew.
//!
//! The criteria stay what they are. Learning them again with another alpha may move a centre as well, which only
//! [`crate::learn`] can tell; on a fleet that agrees with itself the two answers are the same.

use muster_wire::{Direction, MetricId};

use crate::{Criterion, Learned, Sample, Status, is_defect, one_sided};

/// How alike the nodes are to one criterion, worst first.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Metric.
    pub metric: MetricId,
    /// Whether the criterion decides by itself ([`Status::Ok`]); the others flag nobody.
    pub decides: bool,
    /// Rows there are, measured or not.
    rows: usize,
    /// One-sided similarity (0 to 1) and row, ascending; rows that are as good as the criterion are left out, since
    /// no alpha flags them.
    ranked: Vec<(f64, u32)>,
}

impl Standing {
    /// From verdicts that were given: rows are the nodes in the order they were learned from.
    #[must_use]
    pub fn of(learned: &Learned) -> Self {
        let similarity = learned.verdicts.iter().map(|v| v.similarity.unwrap_or(f64::NAN));
        Self::ranked_by(&learned.criterion, similarity)
    }

    /// From one value per row, NaN where there is none, in the criterion's unit after multiplication by `factor`.
    /// What cannot be measured (less than nothing, infinite) is as unlike as can be: such a run failed.
    #[must_use]
    pub fn of_values(criterion: &Criterion, values: &[f64], factor: f64) -> Self {
        let (dir, tau) = (criterion.direction, criterion.tau);
        match criterion.sample.as_ref().map(|s| (s, s.values())) {
            None => Self::ranked_by(criterion, values.iter().map(|_| f64::NAN)),
            Some((_, [centre])) => Self::ranked_by(criterion, values.iter().map(|v| scalar(v * factor, *centre, dir))),
            Some((reference, _)) => {
                let one = |v: &f64| match Sample::new(&[v * factor]) {
                    _ if v.is_nan() => f64::NAN,
                    Err(_) => 0.0,
                    Ok(own) => one_sided(&own, reference, dir, tau),
                };
                Self::ranked_by(criterion, values.iter().map(one))
            }
        }
    }

    fn ranked_by(criterion: &Criterion, similarity: impl ExactSizeIterator<Item = f64>) -> Self {
        let rows = similarity.len();
        // NaN is below nothing.
        let mut ranked: Vec<(f64, u32)> = similarity.zip(0..).filter(|(s, _)| *s < 1.0).collect();
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Self { metric: criterion.metric.clone(), decides: criterion.status == Status::Ok, rows, ranked }
    }

    /// Similarity and row of those at `alpha` or below it, worst first; nobody where the criterion does not decide.
    #[must_use]
    pub fn below(&self, alpha: f64) -> &[(f64, u32)] {
        let end = if self.decides { self.ranked.partition_point(|(s, _)| is_defect(*s, alpha)) } else { 0 };
        &self.ranked[..end]
    }
}

/// [`one_sided`] of two single values, without making samples of them.
fn scalar(own: f64, centre: f64, dir: Direction) -> f64 {
    if own.is_nan() {
        return f64::NAN;
    }
    if own < 0.0 || own.is_infinite() {
        return 0.0;
    }
    let worse = if dir == Direction::HigherIsBetter { centre - own } else { own - centre };
    if worse <= 0.0 { 1.0 } else { 1.0 - (worse / own.max(centre)).min(1.0) }
}

/// What one alpha says of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Metrics at or below alpha, by row.
    pub by_row: Vec<u32>,
    /// Rows at or below alpha, by metric.
    pub by_metric: Vec<u32>,
}

/// One cell that another alpha judges otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flip {
    /// Row.
    pub row: usize,
    /// Index of the metric.
    pub metric: usize,
    /// At or below the new alpha; it was above the old one, or the other way round.
    pub flagged: bool,
}

/// Counts what lies at or below `alpha`. O(metrics log rows + flagged cells).
#[must_use]
pub fn flags(standings: &[Standing], alpha: f64) -> Flags {
    let rows = standings.iter().map(|s| s.rows).max().unwrap_or(0);
    let mut flags = Flags { by_row: vec![0; rows], by_metric: Vec::with_capacity(standings.len()) };
    for standing in standings {
        let below = standing.below(alpha);
        below.iter().for_each(|(_, row)| flags.by_row[*row as usize] += 1);
        flags.by_metric.push(below.len() as u32);
    }
    flags
}

/// Cells that are judged otherwise at `to` than at `from`, by metric and then worst first. O(metrics log rows +
/// flips).
#[must_use]
pub fn flips(standings: &[Standing], from: f64, to: f64) -> Vec<Flip> {
    let mut found = Vec::new();
    for (metric, standing) in standings.iter().enumerate() {
        let (fewer, more) = (standing.below(from.min(to)).len(), standing.below(from.max(to)));
        found.extend(more[fewer..].iter().map(|(_, row)| Flip { row: *row as usize, metric, flagged: to > from }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observation, Params, State, learn};
    use muster_wire::Unit;
    use proptest::prelude::*;

    fn learned(values: &[f64], dir: Direction, alpha: f64) -> Learned {
        let nodes: Vec<(String, Observation)> =
            values.iter().enumerate().map(|(i, v)| (format!("n{i}"), Observation::from_values(&[*v]))).collect();
        learn(&MetricId::new("a", "b", "own"), Unit::Count, dir, &nodes, &Params { alpha, ..Params::default() })
    }

    #[test]
    fn what_flips_is_what_learning_anew_would_say() {
        let values = [100.0, 100.3, 99.9, 100.2, 99.8, 100.1, 96.0, 93.0, 80.0];
        let standing = [Standing::of(&learned(&values, Direction::HigherIsBetter, 0.95))];
        assert_eq!(flags(&standing, 0.95).by_metric, [2]);
        let found = flips(&standing, 0.95, 0.97);
        assert_eq!(found, [Flip { row: 6, metric: 0, flagged: true }]);
        assert_eq!(flips(&standing, 0.97, 0.90).iter().filter(|f| !f.flagged).count(), 2);
        let anew = learned(&values, Direction::HigherIsBetter, 0.97);
        let fails = anew.verdicts.iter().filter(|v| v.state == State::Fail).count();
        assert_eq!(fails as u32, flags(&standing, 0.97).by_metric[0]);
        assert_eq!(flags(&standing, 0.97).by_row, [0, 0, 0, 0, 0, 0, 1, 1, 1]);
    }

    proptest! {
        #[test]
        fn values_and_verdicts_give_the_same_standing(
            values in proptest::collection::vec(0.1f64..200.0, 5..30), higher in any::<bool>(),
        ) {
            let dir = if higher { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
            let learned = learned(&values, dir, 0.95);
            let by_verdict = Standing::of(&learned);
            let by_value = Standing::of_values(&learned.criterion, &values, 1.0);
            prop_assert_eq!(by_verdict, by_value);
        }
    }

    #[test]
    fn what_was_not_measured_flips_nowhere_and_a_failed_run_is_flagged() {
        let learned = learned(&[100.0; 6], Direction::HigherIsBetter, 0.95);
        let standing = [Standing::of_values(&learned.criterion, &[f64::NAN, 0.0, -1.0, 100.0], 1.0)];
        assert_eq!(flags(&standing, 0.95).by_row, [0, 1, 1, 0]);
        assert_eq!(flips(&standing, 0.95, 1.0), []);
    }
}
