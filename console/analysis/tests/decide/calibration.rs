//! Healthy runs are free of false findings; the thousands are in `examples/decision_campaign.rs`.

use muster_analysis::{Chance, State};

use crate::families::{ALL, BURSTS, fleet, pick};
use crate::run::{Run, count};

#[test]
fn healthy_runs_of_every_family_have_no_fail_and_next_to_no_warning() {
    let mut warned = 0;
    for seed in 0..1400_usize {
        let mut chance = Chance::branch(31, seed as u64);
        let family = ALL[seed % ALL.len()];
        let nodes = pick(&mut chance, &[4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64]);
        let metrics = pick(&mut chance, &[1, 2, 3, 6, 8, 20]);
        let steps = pick(&mut chance, &[1, 2, 3, 5, 8, 32]);
        let states = Run::of(&fleet(family, &mut chance, nodes, metrics, steps)).states();
        assert_eq!(count(&states, State::Fail), 0, "{family} seed {seed} n={nodes} m={metrics} S={steps}");
        warned += usize::from(states.contains(&State::Warn));
    }
    // 4e-3 of 1,400 runs are 5.6; more than 14 have a chance below one in a thousand.
    assert!(warned <= 14, "{warned} runs with a warning");
}

#[test]
fn a_node_that_was_slow_for_a_while_never_fails() {
    for seed in 0..400_usize {
        let mut chance = Chance::branch(37, seed as u64);
        let family = BURSTS[seed % BURSTS.len()];
        let nodes = pick(&mut chance, &[4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64]);
        let metrics = pick(&mut chance, &[1, 2, 3, 6, 8, 20]);
        let steps = pick(&mut chance, &[12, 16, 32, 100, 256]);
        let states = Run::of(&fleet(family, &mut chance, nodes, metrics, steps)).states();
        assert_eq!(count(&states, State::Fail), 0, "{family} seed {seed} n={nodes} m={metrics} S={steps}");
    }
}
