//! Edge cases of the criteria search, and that verdicts depend on nothing but the values.

use muster_analysis::{
    Criterion, Grain, Learned, Observation, Params, State, Status, compare, fleet_state, judge, learn, learn_below,
    repeatability, similarity,
};
use muster_wire::Direction::{self, HigherIsBetter, LowerIsBetter};
use muster_wire::{MetricId, Unit};
use proptest::prelude::*;

fn metric() -> MetricId {
    MetricId::new("cpu-gemm", "fp32", "own")
}

fn learn_all(fleet: &[Vec<f64>], dir: Direction) -> Learned {
    let nodes: Vec<(String, Observation)> =
        fleet.iter().enumerate().map(|(i, v)| (format!("n{i}"), Observation::from_values(v))).collect();
    learn(&metric(), Unit::FlopPerSec, dir, &nodes, &Params::default())
}

fn scalars(values: &[f64], dir: Direction) -> Learned {
    learn_all(&values.iter().map(|v| vec![*v]).collect::<Vec<_>>(), dir)
}

fn states(learned: &Learned) -> Vec<State> {
    learned.verdicts.iter().map(|v| v.state).collect()
}

fn value(criterion: &Criterion) -> f64 {
    criterion.sample.as_ref().map_or(f64::NAN, |s| s.median())
}

#[test]
fn one_node_is_compared_with_nobody() {
    let learned = scalars(&[100.0], HigherIsBetter);
    assert_eq!(learned.criterion.status, Status::Provisional);
    assert_eq!(learned.criterion.repeatability, None);
    assert_eq!(states(&learned), [State::Unknown]);
}

#[test]
fn of_two_nodes_the_better_one_is_the_criterion_and_the_other_a_warning() {
    for values in [[80.0, 100.0], [100.0, 80.0]] {
        let learned = scalars(&values, HigherIsBetter);
        assert_eq!(value(&learned.criterion), 100.0);
        assert_eq!(learned.criterion.status, Status::Provisional);
        assert_eq!(fleet_state(&learned.verdicts), State::Warn);
        assert_eq!(value(&scalars(&values, LowerIsBetter).criterion), 80.0);
    }
}

#[test]
fn a_faster_node_is_no_defect() {
    let learned = scalars(&[100.0, 80.0, 60.0], HigherIsBetter);
    assert_eq!(value(&learned.criterion), 80.0);
    assert_eq!(states(&learned), [State::Pass, State::Pass, State::Warn]);
}

#[test]
fn when_all_differ_there_is_no_consensus_and_no_verdict() {
    let learned = scalars(&[100.0, 80.0, 64.0, 51.0, 41.0, 33.0], HigherIsBetter);
    assert_eq!(learned.criterion.status, Status::NoConsensus);
    assert!(states(&learned).iter().all(|s| *s == State::Unknown));
}

#[test]
fn of_two_equal_groups_the_better_one_is_the_criterion() {
    for (dir, better) in [(HigherIsBetter, 100.0), (LowerIsBetter, 70.0)] {
        for values in [[100.0, 100.0, 100.0, 70.0, 70.0, 70.0], [70.0, 100.0, 70.0, 100.0, 70.0, 100.0]] {
            let learned = scalars(&values, dir);
            assert_eq!(learned.criterion.status, Status::Bimodal, "{values:?}");
            assert_eq!(value(&learned.criterion), better);
            assert_eq!(fleet_state(&learned.verdicts), State::Warn, "half a fleet is not accused");
        }
    }
}

#[test]
fn zeros_and_broken_runs_are_out_before_the_criterion_is_sought() {
    let nodes: Vec<(String, Observation)> = [
        ("a", Observation::from_values(&[0.0])),
        ("b", Observation::from_values(&[0.0])),
        ("c", Observation::from_values(&[f64::NAN])),
        ("d", Observation::from_values(&[100.0])),
        ("e", Observation::from_values(&[101.0])),
        ("f", Observation::Failed("exit status 1".into())),
        ("g", Observation::Missing("node busy".into())),
        ("h", Observation::from_values(&[99.0, -1.0])),
    ]
    .map(|(name, o)| (name.to_owned(), o))
    .into();
    let learned = learn(&metric(), Unit::FlopPerSec, HigherIsBetter, &nodes, &Params::default());
    assert_eq!((learned.criterion.n, learned.criterion.healthy), (2, 2));
    assert_eq!(value(&learned.criterion), 101.0);
    use State::{Fail, NotRun, Pass};
    assert_eq!(states(&learned), [Fail, Fail, Fail, Pass, Pass, Fail, NotRun, Fail]);
    assert!(learned.verdicts[5].reason.contains("f: cpu-gemm/fp32 failed: exit status 1"), "{:?}", learned.verdicts[5]);
    assert!(learned.verdicts[2].reason.contains("NaN"));
}

#[test]
fn without_a_single_sample_there_is_a_criterion_that_says_so() {
    let nodes = [("a".to_owned(), Observation::Missing("unreachable".into()))];
    let learned = learn(&metric(), Unit::FlopPerSec, HigherIsBetter, &nodes, &Params::default());
    assert_eq!((learned.criterion.n, learned.criterion.sample.clone()), (0, None));
    let verdict = judge("x", &Observation::from_values(&[3.0]), &learned.criterion);
    assert_eq!((verdict.state, verdict.similarity), (State::Unknown, None));
}

/// Nine nodes around 100 with a few percent within, the last as slow as asked.
fn fleet(step: f64, slow: f64) -> Vec<Vec<f64>> {
    (0..9)
        .map(|node| {
            let level = if node == 8 { slow } else { 100.0 + 0.1 * f64::from(node) };
            (0..40).map(|i| level * (1.0 + step * f64::from((i * 7 + node * 3) % 40 - 20) / 20.0)).collect()
        })
        .collect()
}

#[test]
fn a_repeatable_metric_fails_below_alpha_and_passes_above() {
    let learned = learn_all(&fleet(0.003, 93.0), HigherIsBetter);
    assert_eq!((learned.criterion.status, learned.criterion.n, learned.criterion.healthy), (Status::Ok, 9, 8));
    assert!(learned.criterion.repeatability.unwrap() > 0.99);
    assert_eq!(states(&learned)[8], State::Fail);
    assert!(states(&learned)[..8].iter().all(|s| *s == State::Pass));
    let reason = &learned.verdicts[8].reason;
    assert!(reason.starts_with("n8 is 7 % slower than 8 peers (cpu-gemm/fp32, similarity 0.9"), "{reason}");
    assert_eq!(fleet_state(&learn_all(&fleet(0.003, 97.0), HigherIsBetter).verdicts), State::Pass);
}

#[test]
fn where_nothing_repeats_only_a_wide_margin_accuses() {
    // Every node has a level and a tail of its own: neither steps nor means nor medians agree.
    let noisy = |slow: f64| tailed(slow, |node| 0.93 + 0.07 * (node % 3) as f64, |node| 1 + 5 * (node % 4));
    let slightly = noisy(90.0);
    assert_eq!(slightly.criterion.status, Status::NotRepeatable);
    assert!(slightly.criterion.repeatability.unwrap() < 0.95);
    assert!(states(&slightly).iter().all(|s| *s == State::Unknown), "{:?}", states(&slightly));
    let third = noisy(30.0);
    assert_eq!(third.criterion.status, Status::NotRepeatable);
    assert_eq!(states(&third)[8], State::Fail);
    assert!(states(&third)[..8].iter().all(|s| *s == State::Unknown));
    assert!(third.verdicts[8].reason.contains("; beyond "), "{}", third.verdicts[8].reason);
}

/// Nine nodes, the last at `slow`, each at its `level` and with `tail` of its 40 steps at 0.4 of their rate.
fn tailed(slow: f64, level: impl Fn(usize) -> f64, tail: impl Fn(usize) -> usize) -> Learned {
    let mut fleet = fleet(0.02, slow);
    for (node, values) in fleet.iter_mut().enumerate() {
        values.iter_mut().for_each(|v| *v *= level(node));
        values.iter_mut().take(tail(node)).for_each(|v| *v *= 0.4);
    }
    learn_all(&fleet, HigherIsBetter)
}

#[test]
fn where_steps_do_not_repeat_and_means_do_the_means_are_compared() {
    let learned = tailed(80.0, |_| 1.0, |node| 2 + node % 2);
    assert_eq!((learned.criterion.status, learned.criterion.grain), (Status::Ok, Grain::Mean));
    assert!(learned.criterion.repeatability.unwrap() >= 0.95);
    assert_eq!(states(&learned)[8], State::Fail);
    assert!(states(&learned)[..8].iter().all(|s| *s == State::Pass), "{:?}", states(&learned));
    assert!(learned.verdicts[8].reason.contains("by the mean of its steps"), "{}", learned.verdicts[8].reason);
    // The chart still shows the whole sample.
    assert_eq!(learned.criterion.sample.as_ref().unwrap().len(), 40);
    let stored: Criterion = serde_json::from_str(&serde_json::to_string(&learned.criterion).unwrap()).unwrap();
    let again = judge("n8", &Observation::from_values(&[75.0; 40]), &stored);
    assert_eq!(again.state, State::Fail);
}

#[test]
fn learning_briefly_says_the_same_of_those_it_speaks_of() {
    let nodes: Vec<(String, Observation)> = [100.0, 100.3, 99.9, 100.2, 96.5, 80.0, -1.0]
        .iter()
        .enumerate()
        .map(|(n, v)| (format!("n{n}"), Observation::from_values(&[*v])))
        .collect();
    let what = (&metric(), Unit::Count, HigherIsBetter);
    let whole = learn(what.0, what.1, what.2, &nodes, &Params::default());
    let brief = learn_below(what, &nodes, &Params::default(), 0.985);
    let said: Vec<_> = whole.verdicts.iter().filter(|v| ["n4", "n5", "n6"].contains(&&*v.node)).cloned().collect();
    assert_eq!((brief.criterion, brief.verdicts), (whole.criterion, said));
}

#[test]
fn a_stored_criterion_judges_as_the_fresh_one() {
    let learned = learn_all(&fleet(0.003, 90.0), LowerIsBetter);
    let stored: Criterion = serde_json::from_str(&serde_json::to_string(&learned.criterion).unwrap()).unwrap();
    assert_eq!(stored, learned.criterion);
    let slow = Observation::from_values(&[150.0; 20]);
    assert_eq!(judge("x", &slow, &stored).state, State::Fail);
    let nodes = vec![("x".to_owned(), slow), ("y".to_owned(), Observation::from_values(&[100.2; 20]))];
    let compared = compare(&stored, &nodes, &Params::default());
    assert_eq!(states(&compared), [State::Fail, State::Pass]);
    assert_eq!(compared.criterion.id, learned.criterion.id);
}

#[test]
fn words_in_reports_are_those_of_the_contract() {
    for status in [Status::Ok, Status::Provisional, Status::NoConsensus, Status::Bimodal, Status::NotRepeatable] {
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{}\"", status.name()));
    }
    use State::{Fail, NotApplicable, NotRun, Pass, Unknown, Warn};
    for state in [Fail, NotApplicable, NotRun, Pass, Unknown, Warn] {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.name()));
    }
    assert!(Fail > Warn && Warn > Unknown && Unknown > NotRun && NotRun > Pass && Pass > NotApplicable);
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(HigherIsBetter), Just(LowerIsBetter)]
}

fn any_fleet() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop_oneof![
        proptest::collection::vec(proptest::collection::vec(90.0f64..110.0, 1..9), 1..14),
        proptest::collection::vec(proptest::collection::vec((1u8..5).prop_map(f64::from), 1..3), 1..14),
        proptest::collection::vec(proptest::collection::vec(1.0f64..100.0, 1), 1..14),
    ]
}

proptest! {
    #[test]
    fn the_order_of_nodes_changes_nothing(fleet in any_fleet(), dir in direction(), turn in 0usize..14) {
        let before = learn_all(&fleet, dir);
        let n = fleet.len();
        let turned: Vec<Vec<f64>> = (0..n).map(|i| fleet[(i + turn) % n].clone()).collect();
        let after = learn_all(&turned, dir);
        prop_assert_eq!(&before.criterion.sample, &after.criterion.sample);
        prop_assert_eq!(before.criterion.status, after.criterion.status);
        for i in 0..n {
            prop_assert_eq!(before.verdicts[(i + turn) % n].state, after.verdicts[i].state);
        }
    }

    #[test]
    fn another_unit_changes_no_verdict(fleet in any_fleet(), dir in direction(), power in -20i32..20) {
        // Powers of two scale without rounding, so that even ties stay ties.
        let scaled: Vec<Vec<f64>> =
            fleet.iter().map(|v| v.iter().map(|x| x * 2.0_f64.powi(power)).collect()).collect();
        let (before, after) = (learn_all(&fleet, dir), learn_all(&scaled, dir));
        prop_assert_eq!(before.criterion.status, after.criterion.status);
        prop_assert_eq!(states(&before), states(&after));
    }

    #[test]
    fn equal_input_gives_equal_ids_and_another_sample_another_id(fleet in any_fleet(), dir in direction()) {
        let one = learn_all(&fleet, dir).criterion;
        prop_assert_eq!(&one, &learn_all(&fleet, dir).criterion);
        let more: Vec<Vec<f64>> = fleet.iter().map(|v| v.iter().map(|x| x + 1.0).collect()).collect();
        prop_assert_ne!(one.id, learn_all(&more, dir).criterion.id);
    }

    #[test]
    fn repeatability_is_the_mean_over_pairs(values in proptest::collection::vec(0.0f64..9.0, 2..60), dir in direction()) {
        let samples: Vec<_> = values.iter().map(|v| muster_analysis::Sample::new(&[*v]).unwrap()).collect();
        let samples: Vec<_> = samples.iter().collect();
        let mut pairs = Vec::new();
        for i in 0..samples.len() {
            pairs.extend((0..i).map(|j| similarity(samples[i], samples[j], dir, 0.01)));
        }
        let slow = pairs.iter().sum::<f64>() / pairs.len() as f64;
        prop_assert!((repeatability(&samples, dir, 0.01).unwrap() - slow).abs() < 1e-9);
    }
}
