//! Drift of a node and of a fleet, and what two versions of a criterion say otherwise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_analysis::history::{Change, Drift, Past, diff, fleet_drift, node_drift};
use muster_analysis::{Criterion, Observation, Params, Sample, State, Status, learn};
use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};
use muster_wire::{MetricId, Unit};

const DAY: i64 = 86_400;

/// A steady run around `level`, without randomness.
fn run(level: f64) -> Sample {
    let values: Vec<f64> = (0..64).map(|i| level * (1.0 + f64::from(i % 7 - 3) * 0.001)).collect();
    Sample::new(&values).unwrap()
}

fn past(levels: &[f64]) -> Vec<Past> {
    (0..).zip(levels).map(|(day, level)| Past { at: day * DAY, sample: run(*level) }).collect()
}

#[test]
fn a_node_that_was_the_best_and_is_average_is_worse_than_itself() {
    let params = Params::default();
    let before = past(&[110.0, 110.5, 109.8, 110.2]);
    let now = Past { at: 4 * DAY, sample: run(100.0) };
    let trend = node_drift(&before, &now, HigherIsBetter, &params);
    assert_eq!(trend.drift, Drift::Worse);
    assert!(trend.similarity.unwrap() < 0.95 && (trend.is - 100.0).abs() < 1.0, "{trend:?}");
    assert_eq!(node_drift(&before, &now, LowerIsBetter, &params).drift, Drift::Improved);
    let same = Past { at: 4 * DAY, sample: run(110.1) };
    assert_eq!(node_drift(&before, &same, HigherIsBetter, &params).drift, Drift::Steady);
}

#[test]
fn a_past_that_is_short_or_scatters_decides_nothing() {
    let params = Params::default();
    let now = Past { at: 9 * DAY, sample: run(50.0) };
    assert_eq!(node_drift(&[], &now, HigherIsBetter, &params).drift, Drift::Undecided);
    assert_eq!(node_drift(&past(&[100.0, 100.0]), &now, HigherIsBetter, &params).drift, Drift::Undecided);
    let wild = past(&[100.0, 60.0, 140.0, 90.0]);
    assert_eq!(node_drift(&wild, &now, HigherIsBetter, &params).drift, Drift::Undecided);
}

#[test]
fn the_slope_is_a_loss_per_day_whatever_the_direction_and_one_bad_day_does_not_bend_it() {
    let params = Params::default();
    let mut levels: Vec<f64> = (0..10).map(|day| 100.0 - 0.2 * f64::from(day)).collect();
    levels[4] = 70.0;
    let now = Past { at: 10 * DAY, sample: run(98.0) };
    let loss = node_drift(&past(&levels), &now, HigherIsBetter, &params).per_day.unwrap();
    assert!((loss - 0.002).abs() < 3e-4, "{loss}");
    let times: Vec<f64> = (0..10).map(|day| 100.0 + 0.2 * f64::from(day)).collect();
    let slower = Past { at: 10 * DAY, sample: run(102.0) };
    let loss = node_drift(&past(&times), &slower, LowerIsBetter, &params).per_day.unwrap();
    assert!((loss - 0.002).abs() < 3e-4, "{loss}");
}

#[test]
fn points_less_than_a_day_apart_are_no_trend() {
    let params = Params::default();
    let trend = |hours: &[i64]| {
        let past: Vec<Past> = hours.iter().map(|at| Past { at: at * 3600, sample: run(100.0) }).collect();
        let now = Past { at: hours[hours.len() - 1] * 3600 + 1800, sample: run(99.0) };
        node_drift(&past, &now, HigherIsBetter, &params).per_day
    };
    assert_eq!(trend(&[0, 1, 2, 3]), None);
    assert_eq!(trend(&[0, 1, 2, 26]), None, "two days are no trend either");
    assert!(trend(&[0, 1, 24, 48]).is_some());
}

fn fleet(level: f64, nodes: usize) -> Vec<(String, Observation)> {
    (0..nodes).map(|i| (format!("n{i}"), Observation::Sample(run(level * (1.0 + 0.0005 * (i % 5) as f64))))).collect()
}

fn criterion(level: f64, nodes: usize, alpha: f64) -> Criterion {
    let metric = MetricId::new("cpu-stream", "triad", "own");
    let params = Params { alpha, ..Params::default() };
    learn(&metric, Unit::BytesPerSec, HigherIsBetter, &fleet(level, nodes), &params).criterion
}

#[test]
fn a_fleet_in_agreement_and_slower_than_last_month_has_drifted() {
    let frozen = criterion(100.0, 12, 0.95);
    assert_eq!(frozen.status, Status::Ok);
    assert_eq!(fleet_drift(&frozen, &criterion(92.0, 12, 0.95)).unwrap().drift, Drift::Worse);
    assert_eq!(fleet_drift(&frozen, &criterion(99.0, 12, 0.95)).unwrap().drift, Drift::Steady);
    assert_eq!(fleet_drift(&frozen, &criterion(110.0, 12, 0.95)).unwrap().drift, Drift::Improved);
    // Three nodes are no fleet.
    assert_eq!(fleet_drift(&frozen, &criterion(50.0, 3, 0.95)).unwrap().drift, Drift::Undecided);
    let other = Criterion { metric: MetricId::new("cpu-stream", "triad", "stream"), ..frozen.clone() };
    assert_eq!(fleet_drift(&frozen, &other), None);
}

#[test]
fn a_difference_names_what_moved_and_who_flips() {
    let (old, new) = (criterion(100.0, 12, 0.95), criterion(108.0, 12, 0.97));
    let mut nodes = fleet(104.0, 2);
    nodes.push(("slow".to_owned(), Observation::Sample(run(60.0))));
    let found = diff(&old, &new, &nodes);
    assert_eq!(found.changes[0], Change::Alpha(0.95, 0.97));
    let Some(Change::Centre(moved)) = found.changes.last() else { panic!("{found:?}") };
    assert!(moved.similarity.unwrap() < 0.96 && moved.worse == Some(0.0), "{moved:?}");
    // 104 is fine by the old version and 4 % short by the new one; 60 is slow by both.
    assert_eq!(found.flips, [("n0".to_owned(), State::Pass, State::Fail), ("n1".to_owned(), State::Pass, State::Fail)]);
    assert_eq!(diff(&old, &old, &nodes), Default::default());
    let other = Criterion { unit: Unit::Count, ..new };
    assert!(matches!(diff(&old, &other, &nodes).changes[..], [Change::Incomparable(_)]));
}
