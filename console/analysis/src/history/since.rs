//! Whether a metric shows something else of a node than an earlier run did, and which way it went.
//!
//! A change is a change where the decision says something else, or where the median moved further than it would by chance:
//! nodes of one run differ by the spread of the healthy ones, of which the noise of one node is a part, and runs by an assumed
//! percent ([`Criterion::assumed_spread`]). Nothing here accuses anybody: it says where to look.

use muster_wire::Direction;

use crate::decide::{Settings, student};
use crate::{Criterion, State};

/// Chance that a metric of a node in which nothing changed is called changed.
const CHANCE: f64 = 1e-3;
/// No t-distribution exceeds less than this with [`CHANCE`] on both sides together: it is the normal law's.
const LEAST: f64 = 3.29;
/// Nor does one with the fewest degrees of freedom that a [`Noise`] has exceed more.
const MOST: f64 = 12.93;
/// Degrees of freedom of the fewest nodes whose spread is known.
const FEWEST: f64 = 3.0;

/// What one metric of one node showed in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Showed {
    /// The verdict.
    pub state: State,
    /// Median, in the metric's unit; `None` where nothing valid was measured.
    pub value: Option<f64>,
    /// How far it may come out otherwise by chance; `None` where that is not known.
    pub noise: Option<Noise>,
}

/// How far a node's median may come out otherwise in another run although nothing changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Variance of its logarithm.
    variance: f64,
    /// Degrees of freedom.
    df: f64,
}

impl Noise {
    /// As the criterion of that run knows it; `None` where too few nodes were healthy to know how far they differ.
    #[must_use]
    pub fn of(criterion: &Criterion) -> Option<Self> {
        let known = criterion.assumed_spread()?;
        let part = |spread: f64, df: f64| Self { variance: spread.powi(2), df: df.max(FEWEST) };
        Some(part(known.spread, known.df).and(part(known.run_spread, known.run_df)))
    }

    /// Of a sum; Welch and Satterthwaite for the degrees of freedom.
    fn and(self, other: Self) -> Self {
        let variance = self.variance + other.variance;
        let df = variance.powi(2) / (self.variance.powi(2) / self.df + other.variance.powi(2) / other.df);
        Self { variance, df }
    }

    /// Whether a change of the logarithm is more than chance.
    fn is_exceeded(self, change: f64) -> bool {
        let spreads = change.abs() / self.variance.sqrt();
        // The quantile costs microseconds, and hardly any metric of a fleet comes near it.
        spreads > LEAST && (spreads > MOST || spreads > student::quantile(CHANCE / 2.0, self.df))
    }
}

/// How a metric of a node differs from what it showed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// Not beyond what chance explains.
    Same,
    /// Better than it was.
    Better,
    /// Worse than it was.
    Worse,
    /// Changed, and it cannot be said that it is better or worse.
    Otherwise,
}

/// How `now` differs from `then`, of a metric that is better in `direction`.
///
/// Of two decided verdicts the states count before the values. Where the scatter of neither run is known, only a loss or gain
/// that would forbid a pass ([`Settings::coarsest`], a factor of two) is a change.
#[must_use]
pub fn since(then: &Showed, now: &Showed, direction: Direction) -> Shift {
    let decided = |state: State| matches!(state, State::Pass | State::Warn | State::Fail);
    if decided(then.state) && decided(now.state) && then.state != now.state {
        return if now.state > then.state { Shift::Worse } else { Shift::Better };
    }
    let moved = then.value.zip(now.value).map(|(then, now)| change(then, now));
    match moved.filter(|moved| is_beyond(*moved, [then.noise, now.noise])) {
        // Nobody judges it, so nobody says which way is better.
        Some(_) if then.state == State::NotApplicable && now.state == State::NotApplicable => Shift::Otherwise,
        Some(moved) if (moved > 0.0) == (direction == Direction::HigherIsBetter) => Shift::Better,
        Some(_) => Shift::Worse,
        None if then.state != now.state || then.value.is_some() != now.value.is_some() => Shift::Otherwise,
        None => Shift::Same,
    }
}

/// Logarithm of the ratio; infinite from or to a value that has none.
fn change(then: f64, now: f64) -> f64 {
    match () {
        () if then == now => 0.0,
        () if then > 0.0 && now > 0.0 => (now / then).ln(),
        () if now > then => f64::INFINITY,
        () => f64::NEG_INFINITY,
    }
}

fn is_beyond(moved: f64, noise: [Option<Noise>; 2]) -> bool {
    match noise {
        [Some(then), Some(now)] => then.and(now).is_exceeded(moved),
        [Some(one), None] | [None, Some(one)] => one.and(one).is_exceeded(moved),
        [None, None] => moved.abs() > -(1.0 - Settings::default().coarsest).ln(),
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};
    use muster_wire::{MetricId, Unit};
    use proptest::prelude::*;

    use super::*;
    use crate::{Observation, Params, learn};

    /// The noise that a fleet of so many nodes knows, which differ by about `spread`.
    fn noise(nodes: u32, spread: f64) -> Option<Noise> {
        let observed: Vec<(String, Observation)> = (0..nodes)
            .map(|i| {
                let own = 100.0 * (1.0 + spread * (f64::from(i % 5) - 2.0));
                let values: Vec<f64> = (0..32).map(|step| own * (1.0 + 1e-3 * f64::from(step % 7))).collect();
                (format!("n{i}"), Observation::from_values(&values))
            })
            .collect();
        let id = MetricId::new("cpu-gemm", "fp64", "own");
        Noise::of(&learn(&id, Unit::FlopPerSec, HigherIsBetter, &observed, &Params::default()).criterion)
    }

    fn showed(state: State, value: f64) -> Showed {
        Showed { state, value: Some(value), noise: noise(16, 0.004) }
    }

    #[test]
    fn a_pass_that_lost_a_tenth_of_its_speed_is_worse_and_one_that_lost_a_hundredth_is_the_same() {
        let then = showed(State::Pass, 100.0);
        for (value, shift) in [
            (100.0, Shift::Same),
            (99.0, Shift::Same),
            (101.5, Shift::Same),
            (90.0, Shift::Worse),
            (111.0, Shift::Better),
        ] {
            assert_eq!(since(&then, &showed(State::Pass, value), HigherIsBetter), shift, "{value}");
        }
        assert_eq!(since(&then, &showed(State::Pass, 111.0), LowerIsBetter), Shift::Worse);
    }

    #[test]
    fn what_the_decision_says_counts_before_the_values() {
        let (pass, warn, fail) = (showed(State::Pass, 100.0), showed(State::Warn, 100.0), showed(State::Fail, 120.0));
        assert_eq!(since(&pass, &fail, HigherIsBetter), Shift::Worse, "the fleet became faster still");
        assert_eq!(since(&fail, &warn, HigherIsBetter), Shift::Better);
        assert_eq!(since(&warn, &pass, HigherIsBetter), Shift::Better);
    }

    #[test]
    fn what_was_not_decided_says_nothing_of_better_or_worse_unless_the_value_does() {
        let (pass, open) = (showed(State::Pass, 100.0), showed(State::Unknown, 100.2));
        assert_eq!(since(&pass, &open, HigherIsBetter), Shift::Otherwise);
        assert_eq!(since(&open, &pass, HigherIsBetter), Shift::Otherwise);
        assert_eq!(since(&pass, &showed(State::Unknown, 60.0), HigherIsBetter), Shift::Worse);
    }

    #[test]
    fn an_informational_metric_changes_without_becoming_better_or_worse() {
        let then = showed(State::NotApplicable, 100.0);
        assert_eq!(since(&then, &showed(State::NotApplicable, 60.0), HigherIsBetter), Shift::Otherwise);
        assert_eq!(since(&then, &showed(State::NotApplicable, 100.1), HigherIsBetter), Shift::Same);
    }

    #[test]
    fn a_benchmark_that_fails_or_works_again_has_changed() {
        let crashed = Showed { value: None, ..showed(State::Fail, 0.0) };
        assert_eq!(since(&showed(State::Pass, 100.0), &crashed, HigherIsBetter), Shift::Worse);
        assert_eq!(since(&crashed, &showed(State::Fail, 50.0), HigherIsBetter), Shift::Otherwise);
        assert_eq!(since(&crashed, &crashed, HigherIsBetter), Shift::Same);
    }

    #[test]
    fn fleets_that_scatter_widely_hide_what_quiet_ones_show() {
        let at = |spread: f64| {
            let showed = |value: f64| Showed { state: State::Pass, value: Some(value), noise: noise(16, spread) };
            since(&showed(100.0), &showed(88.0), HigherIsBetter)
        };
        assert_eq!((at(0.004), at(0.1)), (Shift::Worse, Shift::Same));
    }

    #[test]
    fn where_no_scatter_is_known_only_more_than_a_factor_of_two_is_a_change() {
        assert_eq!(noise(3, 0.004), None);
        let showed = |value: f64| Showed { state: State::Unknown, value: Some(value), noise: None };
        for (value, shift) in [(51.0, Shift::Same), (199.0, Shift::Same), (49.0, Shift::Worse), (201.0, Shift::Better)]
        {
            assert_eq!(since(&showed(100.0), &showed(value), HigherIsBetter), shift, "{value}");
        }
        assert_eq!(since(&showed(0.0), &showed(5.0), LowerIsBetter), Shift::Worse, "a counter that began to count");
        assert_eq!(since(&showed(0.0), &showed(0.0), LowerIsBetter), Shift::Same);
    }

    #[test]
    fn the_bounds_that_save_the_quantile_change_no_answer() {
        for df in [FEWEST, 8.0, 12.4, 63.0, 1e6] {
            let quantile = student::quantile(CHANCE / 2.0, df);
            assert!((LEAST..=MOST).contains(&quantile), "{df}: {quantile}");
        }
    }

    proptest! {
        #[test]
        fn forth_and_back_are_opposite(then in 1.0..1e3_f64, now in 1.0..1e3_f64, unknown: bool) {
            let showed = |value: f64| Showed {
                state: State::Pass,
                value: Some(value),
                noise: noise(16, 0.004).filter(|_| !unknown),
            };
            let opposite = match since(&showed(then), &showed(now), HigherIsBetter) {
                Shift::Better => Shift::Worse,
                Shift::Worse => Shift::Better,
                same => same,
            };
            prop_assert_eq!(since(&showed(now), &showed(then), HigherIsBetter), opposite);
        }
    }
}
