//! Frozen criteria: a healthy second run passes, a slow node and a slow run are told apart.

use muster_analysis::decide::{Frozen, Refusal, Why};
use muster_analysis::{Chance, State};

use crate::families::{ALL, Speeds, fleet, pick};
use crate::run::{Run, count, learn};

fn draw(family: &str, seed: u64, nodes: usize, metrics: usize, steps: usize) -> Run {
    Run::of(&fleet(family, &mut Chance::new(seed), nodes, metrics, steps))
}

/// The run with every metric shifted a little, as runs are.
fn shifted(mut run: Run, chance: &mut Chance, sd: f64) -> Run {
    for metric in 0..run.rows.len() {
        let factor = (sd * chance.normal()).exp();
        (0..run.nodes()).for_each(|node| run.scale(metric, node, factor));
    }
    run
}

#[test]
fn healthy_second_runs_of_every_family_have_no_fail_and_next_to_no_warning() {
    let mut warned = 0;
    for seed in 0..560_usize {
        let mut chance = Chance::branch(17, seed as u64);
        let family = ALL[seed % ALL.len()];
        let (nodes, steps) = (pick(&mut chance, &[4, 8, 16, 32, 64]), pick(&mut chance, &[1, 3, 8, 32]));
        let metrics = pick(&mut chance, &[1, 6]);
        let runs = pick(&mut chance, &[1, 3]);
        let mut next = || {
            shifted(
                Run::of(&fleet(family, &mut chance, nodes, metrics, steps)),
                &mut Chance::branch(18, seed as u64),
                0.003,
            )
        };
        let learned: Vec<Run> = (0..runs).map(|_| next()).collect();
        let states = next().frozen(&learned).states();
        assert_eq!(count(&states, State::Fail), 0, "{family} {seed} n={nodes} S={steps} R={runs}");
        warned += usize::from(states.contains(&State::Warn));
    }
    assert!(warned <= 7, "{warned} runs with a warning");
}

#[test]
fn a_second_draw_with_three_percent_noise_fails_nobody_of_252() {
    for seed in 0..10 {
        let single = |seed| {
            let mut chance = Chance::new(seed);
            let speeds: Speeds =
                (0..6).map(|_| (0..252).map(|_| vec![0.03_f64.mul_add(chance.normal(), 1.0)]).collect()).collect();
            Run::of(&speeds)
        };
        let states = single(2 * seed + 1).frozen(&[single(2 * seed)]).states();
        assert_eq!(count(&states, State::Fail), 0, "{seed}");
    }
}

#[test]
fn a_slow_node_fails_in_fleets_of_any_size() {
    let learned = [draw("gauss0.5", 1, 32, 4, 16), draw("gauss0.5", 2, 32, 4, 16)];
    for nodes in [1, 2, 3, 4, 5, 8, 16] {
        let mut run = draw("gauss0.5", 3, nodes, 4, 16);
        (0..4).for_each(|metric| run.scale(metric, 0, 0.8));
        let states = run.frozen(&learned).states();
        assert_eq!(states[0], State::Fail, "{nodes}: {states:?}");
        assert!(states[1..].iter().all(|state| *state == State::Pass), "{nodes}: {states:?}");
    }
}

#[test]
fn a_slow_majority_fails_against_a_frozen_criterion() {
    let learned = [draw("gauss0.5", 1, 32, 4, 16), draw("gauss0.5", 2, 32, 4, 16)];
    let mut run = draw("gauss0.5", 3, 16, 4, 16);
    for node in 0..10 {
        (0..4).for_each(|metric| run.scale(metric, node, 0.8));
    }
    let decision = run.frozen(&learned).decide();
    let states: Vec<State> = decision.nodes.iter().map(|node| node.state).collect();
    assert_eq!(count(&states[..10], State::Fail), 10, "{states:?}");
    assert_eq!(count(&states[10..], State::Pass), 6, "{states:?}");
    assert_eq!(decision.cells[0][0].why, Why::BeyondFrozen);
    // Six of sixteen reach it: it is not the run that is slow.
    assert!(decision.slower_runs.is_empty(), "{:?}", decision.slower_runs);
}

#[test]
fn a_whole_slow_run_is_a_finding_of_its_own_and_fails_nobody() {
    let learned = [draw("gauss0.5", 1, 32, 4, 16), draw("gauss0.5", 2, 32, 4, 16)];
    let mut run = draw("gauss0.5", 3, 16, 4, 16);
    for node in 0..16 {
        (0..4).for_each(|metric| run.scale(metric, node, 0.85));
    }
    let decision = run.frozen(&learned).decide();
    assert_eq!(decision.slower_runs.iter().map(|run| run.metric).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(decision.slower_runs.iter().all(|run| (run.loss - 0.15).abs() < 0.01 && run.limit < 0.1));
    for node in &decision.nodes {
        assert_eq!(node.state, State::Warn);
    }
    assert!(decision.cells.iter().flatten().all(|cell| cell.why == Why::WholeRunSlow));
    let healthy = draw("gauss0.5", 4, 16, 4, 16).frozen(&learned).decide();
    assert!(healthy.slower_runs.is_empty());
}

#[test]
fn a_whole_slow_run_of_few_steps_is_said_to_be_slow_and_not_contested() {
    let learned = [draw("gauss0.5", 1, 32, 3, 2), draw("gauss0.5", 2, 32, 3, 2)];
    let mut run = draw("gauss0.5", 3, 16, 3, 2);
    (0..3).for_each(|metric| (0..16).for_each(|node| run.scale(metric, node, 0.8)));
    let decision = run.frozen(&learned).decide();
    assert_eq!(decision.slower_runs.len(), 3);
    for cell in decision.cells.iter().flatten() {
        assert!(cell.frozen && cell.state < State::Fail && cell.why != Why::Contested, "{cell:?}");
    }
}

#[test]
fn being_slower_never_improves_a_state_against_frozen_criteria() {
    for seed in 0..150 {
        let mut chance = Chance::branch(19, seed);
        let family = pick(&mut chance, &["gauss0.5", "gauss2", "t3", "stall", "bimodal3", "noisy10"]);
        let (nodes, steps) = (pick(&mut chance, &[1, 3, 4, 8, 20]), pick(&mut chance, &[1, 3, 8, 32]));
        let learned = [Run::of(&fleet(family, &mut chance, 16, 3, steps))];
        let mut run = Run::of(&fleet(family, &mut chance, nodes, 3, steps)).frozen(&learned);
        let node = chance.below(nodes);
        let mut before = run.states()[node];
        for _ in 0..4 {
            for metric in 0..3 {
                run.scale(metric, node, pick(&mut chance, &[1.0, 0.99, 0.95, 0.9, 0.7]));
            }
            let after = run.states()[node];
            assert!(after >= before, "seed {seed}: {before:?} became {after:?}");
            before = after;
        }
    }
}

#[test]
fn what_cannot_be_judged_is_not_frozen() {
    let refusal = |run: Run| learn(&[run]).remove(0).unwrap_err();
    assert_eq!(refusal(draw("gauss0.5", 1, 3, 1, 8)), Refusal::TooFewNodes { nodes: 3, needed: 4 });
    let noisy = refusal(draw("noisyln30", 1, 12, 1, 3));
    assert!(matches!(noisy, Refusal::TooNoisy { spread, nodes: 12 } if spread > 0.05), "{noisy}");
    let mut two = draw("gauss0.5", 1, 16, 1, 8);
    (0..7).for_each(|node| two.scale(0, node, 0.7));
    assert_eq!(refusal(two), Refusal::TwoClusters);
    assert_eq!(refusal(Run::of(&vec![vec![vec![0.0; 4]; 8]])), Refusal::NoCentre);
}

#[test]
fn one_run_assumes_how_far_runs_differ_and_three_know_it() {
    let run = |seed| shifted(draw("gauss0.5", seed, 32, 6, 16), &mut Chance::new(seed), 0.02);
    let one = learn(&[run(1)]).remove(0).unwrap();
    assert!(one.assumed && one.runs == 1 && one.run_spread == 0.01, "{one:?}");
    let three = learn(&[run(1), run(2), run(3)]).remove(0).unwrap();
    assert!(!three.assumed && three.runs == 3 && three.run_spread > 0.005, "{three:?}");
    let stored: Frozen = serde_json::from_str(&serde_json::to_string(&three).unwrap()).unwrap();
    assert_eq!(stored, three);
}
