//! Which shorter settings are refused: generated series of every kind that a window may miss.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_analysis::tune::{Outcome, Settings, search};
use muster_wire::Direction::{self, HigherIsBetter, LowerIsBetter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const STEPS: usize = 3144;

fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Costs of steps around one: nodes 0.3 % apart, steps 0.4 % with `memory` from one to the next, times `shape` of node and
/// step.
fn fleet(
    nodes: usize,
    seed: u64,
    memory: f64,
    mut shape: impl FnMut(&mut SmallRng, usize, usize) -> f64,
) -> Vec<Vec<f64>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    (0..nodes)
        .map(|node| {
            let level = 1.0 + 0.003 * normal(&mut rng);
            let mut noise = 0.0;
            (0..STEPS)
                .map(|i| {
                    noise = memory * noise + (1.0 - memory * memory).sqrt() * normal(&mut rng);
                    level * (1.0 + 0.004 * noise) * shape(&mut rng, node, i)
                })
                .collect()
        })
        .collect()
}

fn as_measured(costs: &[Vec<f64>], dir: Direction) -> Vec<Vec<f64>> {
    let value = |cost: &f64| if dir == HigherIsBetter { 500.0 / cost } else { 20.0 * cost };
    costs.iter().map(|trace| trace.iter().map(value).collect()).collect()
}

fn searched(costs: &[Vec<f64>], dir: Direction) -> Outcome {
    search(&as_measured(costs, dir), dir, &Settings::default()).unwrap()
}

/// Why it is refused or kept, in both directions.
#[track_caller]
fn refused(costs: &[Vec<f64>], wanted: &str) {
    for dir in [HigherIsBetter, LowerIsBetter] {
        let why = match searched(costs, dir) {
            Outcome::Refused(tuned) => tuned.reason.unwrap(),
            Outcome::Kept(why) => why,
            Outcome::Tuned(tuned) => panic!("{dir:?}: {tuned:?}"),
        };
        println!("{dir:?}: {why}");
        assert!(why.contains(wanted), "{dir:?}: {why}");
    }
}

#[test]
fn steady_series_are_tuned_whatever_their_steps_remember() {
    let mut refusals = Vec::new();
    for seed in 0..12 {
        for memory in [0.0, 0.5, 0.95] {
            for nodes in [4, 16] {
                match searched(&fleet(nodes, seed, memory, |_, _, _| 1.0), HigherIsBetter) {
                    Outcome::Tuned(tuned) => {
                        let bound = tuned.loss_bound.unwrap();
                        assert!(bound <= 0.01 && bound >= tuned.loss - 0.01 && tuned.reason.is_none(), "{tuned:?}");
                    }
                    other => refusals.push(format!("{nodes} nodes, memory {memory}: {other:?}")),
                }
            }
        }
    }
    println!("{} of 72 refused: {refusals:#?}", refusals.len());
    assert!(refusals.len() <= 2, "{refusals:#?}");
}

#[test]
fn a_level_that_still_moves_at_the_end_is_refused_with_its_rate() {
    // 10 % slow at the start, less by a factor e every 2,500 steps: 1.3 % per 1,000 steps over the last third.
    let warming = |_: &mut SmallRng, _: usize, i: usize| 1.0 + 0.1 * (-(i as f64) / 2500.0).exp();
    for memory in [0.0, 0.9] {
        refused(&fleet(16, 1, memory, warming), "still warming up after 3,144 steps: 1.");
    }
    let slowing = |_: &mut SmallRng, _: usize, i: usize| 1.0 + 0.02 * i as f64 / 1000.0;
    refused(&fleet(8, 2, 0.3, slowing), "still getting slower after 3,144 steps: ");
}

#[test]
fn one_node_that_still_warms_up_is_named_in_number() {
    let one = |_: &mut SmallRng, node: usize, i: usize| {
        if node == 5 { 1.0 + 0.15 * (-(i as f64) / 2500.0).exp() } else { 1.0 }
    };
    refused(&fleet(16, 3, 0.3, one), "(1 of 16 nodes)");
}

#[test]
fn throttling_that_starts_late_is_refused_with_the_step_it_starts_at() {
    let all = |_: &mut SmallRng, _: usize, i: usize| if i >= 2400 { 1.0 / 0.94 } else { 1.0 };
    let costs = fleet(16, 4, 0.3, all);
    refused(&costs, ": a shorter window would not see it");
    let Outcome::Refused(tuned) = searched(&costs, HigherIsBetter) else { panic!("not refused") };
    let why = tuned.reason.unwrap();
    assert!(["slower by 5.", "slower by 6."].iter().any(|start| why.starts_with(start)), "{why}");
    let from: usize =
        why.split("from step ").nth(1).unwrap().split(" on").next().unwrap().replace(',', "").parse().unwrap();
    assert!(from.abs_diff(2400) <= 128, "{why}");
    let two = |_: &mut SmallRng, node: usize, i: usize| if node < 2 && i >= 2400 { 1.0 / 0.94 } else { 1.0 };
    refused(&fleet(16, 5, 0.3, two), "(2 of 16 nodes): a shorter window would not see it");
}

#[test]
fn rare_stalls_are_kept_in_the_loss() {
    // One step of a thousand takes ten times as long, at random: a window holds one on this node and none on that.
    let stalls = |rng: &mut SmallRng, _: usize, _: usize| if rng.random::<f64>() < 0.001 { 10.0 } else { 1.0 };
    for nodes in [8, 64] {
        let why = match searched(&fleet(nodes, 6, 0.3, stalls), HigherIsBetter) {
            Outcome::Refused(tuned) => tuned.reason.unwrap(),
            other => panic!("{other:?}"),
        };
        println!("{nodes} nodes: {why}");
        assert!(why.contains("of repeatability, 1.0 % is allowed") || why.contains("misses slow steps"), "{why}");
    }
}

#[test]
fn stalls_that_all_fall_behind_the_window_are_missed_and_said() {
    // A checkpoint every thousand steps on all nodes: windows without one are as repeatable as can be.
    let saves = |_: &mut SmallRng, _: usize, i: usize| if i % 1000 == 999 { 10.0 } else { 1.0 };
    for nodes in [4, 16] {
        refused(&fleet(nodes, 7, 0.3, saves), "the window misses slow steps of the ");
    }
}

#[test]
fn a_series_with_nothing_behind_the_window_is_too_short_to_check_it() {
    let costs: Vec<Vec<f64>> = fleet(8, 8, 0.3, |_, _, _| 1.0).iter().map(|trace| trace[..600].to_vec()).collect();
    let found = search(&costs, LowerIsBetter, &Settings { fixed_warmup: 0, ..Settings::default() }).unwrap();
    let Outcome::Refused(tuned) = found else { panic!("{found:?}") };
    assert_eq!(tuned.loss_bound, None);
    assert!(tuned.reason.unwrap().contains("steps after the window are too few to check it on"));
}
