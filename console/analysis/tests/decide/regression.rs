//! Fleets that earlier ways of deciding got wrong.

use muster_analysis::decide::Why;
use muster_analysis::{Chance, State};
use muster_wire::Component;

use crate::families::{fleet, slow};
use crate::run::{Run, count};

/// Nodes `0..group` lose `loss` in the first `touched` of `metrics`.
fn planted((nodes, group): (usize, usize), loss: f64, metrics: usize, touched: usize, seed: u64) -> Run {
    let mut speeds = fleet("gauss0.5", &mut Chance::new(seed), nodes, metrics, 16);
    for metric in 0..touched {
        (0..group).for_each(|node| slow(&mut speeds, node, metric, loss));
    }
    Run::of(&speeds)
}

fn only_the_planted_fail(run: &Run, group: usize) {
    let states = run.states();
    assert_eq!(count(&states[..group], State::Fail), group, "{states:?}");
    assert_eq!(count(&states[group..], State::Pass), states.len() - group, "{states:?}");
}

#[test]
fn several_equally_slow_nodes_do_not_vouch_for_each_other() {
    for seed in 0..5 {
        only_the_planted_fail(&planted((16, 2), 0.2, 6, 6, seed), 2);
        only_the_planted_fail(&planted((64, 8), 0.15, 6, 6, seed), 8);
        only_the_planted_fail(&planted((8, 2), 0.3, 6, 6, seed), 2);
    }
}

/// Speeds that are exactly equal but for the planted loss: a few lines of CSV.
#[test]
fn equally_slow_nodes_among_exactly_equal_ones_fail_and_the_others_pass() {
    for ((nodes, group), loss) in [((16, 1), 0.2), ((16, 2), 0.2), ((64, 8), 0.15), ((20, 3), 0.5), ((16, 1), 0.05)] {
        for steps in [1, 16] {
            let speed = |node: usize| if node < group { 1.0 - loss } else { 1.0 };
            let speeds = (0..6).map(|_| (0..nodes).map(|node| vec![speed(node); steps]).collect()).collect::<Vec<_>>();
            only_the_planted_fail(&Run::of(&speeds), group);
        }
    }
}

#[test]
fn half_speed_in_one_quiet_metric_fails_beside_noisy_disks() {
    for seed in 0..5 {
        let mut chance = Chance::new(seed);
        let mut cpu = fleet("gauss0.5", &mut chance, 8, 4, 16);
        slow(&mut cpu, 3, 0, 0.5);
        let disk =
            Run::of(&fleet("noisyln30", &mut chance, 8, 3, 4)).with(|_, row| row.component = Component::Disk(None));
        let decision = Run::of(&cpu).and(disk).decide();
        for (node, of) in decision.nodes.iter().enumerate() {
            let [cpu, disk] = &of.components[..] else { panic!("{of:?}") };
            assert_eq!(cpu.state, if node == 3 { State::Fail } else { State::Pass }, "{cpu:?}");
            assert!(disk.state == State::Unknown || disk.state == State::Pass && disk.resolution.is_some(), "{disk:?}");
            assert_eq!(of.undecided, disk.undecided, "{of:?}");
        }
    }
}

#[test]
fn a_fifth_slower_fails_in_however_many_metrics() {
    for nodes in [8, 16] {
        for touched in 1..=8 {
            only_the_planted_fail(&planted((nodes, 1), 0.2, 8, touched, touched as u64), 1);
        }
        for seed in 0..5 {
            only_the_planted_fail(&planted((nodes, 1), 0.05, 8, 8, seed), 1);
        }
    }
}

#[test]
fn loud_metrics_take_nothing_from_quiet_ones() {
    for seed in 0..5 {
        let quiet = planted((16, 1), 0.08, 20, 1, seed);
        let loud = Run::of(&fleet("noisyln30", &mut Chance::new(seed), 16, 6, 16))
            .with(|_, row| row.id.parts_mut().benchmark.insert(0, 'z'));
        let (alone, beside) = (quiet.decide(), quiet.clone().and(loud).decide());
        assert_eq!(alone.nodes[0].state, State::Fail);
        assert_eq!(alone.cells, beside.cells[..20]);
    }
}

#[test]
fn a_noisy_metric_on_ten_nodes_accuses_nobody_and_is_named() {
    for seed in 0..20 {
        let run = Run::of(&fleet("noisyln30", &mut Chance::new(seed), 10, 1, 3));
        for node in &run.decide().nodes {
            assert_eq!((node.state, node.undecided), (State::Unknown, true));
            let limiting = node.components[0].limiting.unwrap();
            assert!(limiting.metric == 0 && limiting.nodes == 10 && limiting.scale > 0.05, "{limiting:?}");
        }
    }
}

#[test]
fn single_noisy_values_accuse_nobody() {
    for (seed, family) in (0..60).flat_map(|seed| [(seed, "gauss2"), (seed, "gauss4")]) {
        let states = Run::of(&fleet(family, &mut Chance::new(seed), 64, 6, 1)).states();
        assert_eq!(count(&states, State::Fail) + count(&states, State::Warn), 0, "{family} {seed}");
    }
}

#[test]
fn two_to_four_nodes_are_not_warned_about() {
    for nodes in 1..=4 {
        for seed in 0..30 {
            let mut speeds = fleet("gauss2", &mut Chance::new(seed), nodes, 4, 8);
            slow(&mut speeds, 0, 0, 0.1);
            let decision = Run::of(&speeds).decide();
            for node in &decision.nodes {
                assert!(node.state <= State::Unknown && node.components[0].limiting.is_some(), "{nodes}: {node:?}");
            }
            if nodes < 4 {
                assert!(decision.nodes.iter().all(|node| node.state == State::Unknown));
                assert_eq!(decision.cells[0][0].why, Why::TooFewNodes);
            }
        }
    }
}

#[test]
fn one_slow_gpu_of_eight_fails_and_no_other() {
    for seed in 0..5 {
        let mut speeds = fleet("gauss0.5", &mut Chance::new(seed), 12, 32, 8);
        // Metrics 3, 11, 19 and 27 are those of GPU 3.
        [3, 11, 19, 27].iter().for_each(|metric| slow(&mut speeds, 5, *metric, 0.12));
        let run = Run::of(&speeds).with(|at, row| row.component = Component::Gpu(at as u32 % 8));
        for (node, of) in run.decide().nodes.iter().enumerate() {
            for part in &of.components {
                let expected =
                    if (node, &part.component) == (5, &Component::Gpu(3)) { State::Fail } else { State::Pass };
                assert_eq!(part.state, expected, "node {node}: {part:?}");
            }
            assert_eq!(of.state, if node == 5 { State::Fail } else { State::Pass });
        }
    }
}

#[test]
fn a_small_loss_in_everything_is_seen_in_the_mean_of_noisy_metrics() {
    for seed in 0..5 {
        let mut speeds = fleet("gauss4", &mut Chance::new(seed), 64, 40, 8);
        (0..40).for_each(|metric| slow(&mut speeds, 9, metric, 0.06));
        let decision = Run::of(&speeds).decide();
        assert_eq!(decision.nodes[9].state, State::Fail);
        let average = decision.nodes[9].components[0].average.unwrap();
        assert!(average.metrics > 1 && (average.loss - 0.06).abs() < 0.02, "{average:?}");
        assert_eq!(decision.nodes.iter().filter(|node| node.state == State::Pass).count(), 63);
    }
}

#[test]
fn a_component_without_values_is_not_run_and_not_passed() {
    let cpu = planted((8, 0), 0.0, 2, 0, 1);
    let disk = planted((8, 0), 0.0, 2, 0, 2).with(|_, row| {
        row.component = Component::Disk(None);
        row.samples[2] = None;
    });
    let decision = cpu.and(disk).decide();
    let [cpu, disk] = &decision.nodes[2].components[..] else { panic!() };
    assert_eq!((cpu.state, disk.state, disk.resolution), (State::Pass, State::NotRun, None));
    assert_eq!(decision.nodes[2].state, State::NotRun);
    assert_eq!(decision.nodes[3].state, State::Pass);
    assert_eq!(decision.cells[2][2].why, Why::NotMeasured);
}

#[test]
fn zeros_and_single_values_are_survived() {
    let zero = vec![vec![vec![0.0; 8]; 8], vec![vec![1.0; 8]; 8]];
    let rates = Run::of(&zero).decide();
    assert!(rates.cells[0].iter().all(|cell| cell.why == Why::NoReference));
    assert_eq!(rates.cells[1][0].state, State::Pass);
    let mut times = Run::of(&vec![vec![vec![1.0; 8]; 8]]).times();
    times.rows[0].samples[0] = Some(muster_analysis::Sample::new(&[0.0; 8]).unwrap());
    let decision = times.decide();
    assert!(decision.nodes.iter().all(|node| node.state <= State::Unknown), "{:?}", decision.nodes);
    let mut slow = Run::of(&vec![fleet("gauss0.5", &mut Chance::new(1), 16, 1, 8).remove(0)]);
    slow.rows[0].samples[4] = Some(muster_analysis::Sample::new(&[0.0; 8]).unwrap());
    assert_eq!(slow.states()[4], State::Fail);
}

#[test]
fn a_tail_of_slow_steps_warns_and_fails_nobody() {
    for seed in 0..5 {
        let mut chance = Chance::new(seed);
        let mut speeds = fleet(["gauss0.5", "stall"][seed as usize % 2], &mut chance, 16, 3, 3000);
        (0..3000).step_by(110).for_each(|step| speeds[1][4][step] *= 0.1);
        let decision = Run::of(&speeds).decide();
        assert_eq!((decision.cells[1][4].state, decision.cells[1][4].why), (State::Warn, Why::SlowSteps));
        let others = decision.nodes.iter().enumerate().filter(|(node, _)| *node != 4);
        assert!(others.map(|(_, of)| of.state).all(|state| state == State::Pass));
    }
}

#[test]
fn a_node_that_stands_still_twice_in_each_of_many_metrics_warns_and_in_one_or_like_all_others_does_not() {
    for seed in 0..3 {
        let speeds = fleet("gauss0.5", &mut Chance::new(seed), 16, 12, 32);
        let stopped = |touched: usize, nodes: &[usize]| {
            let mut speeds = speeds.clone();
            for metric in &mut speeds[..touched] {
                nodes.iter().for_each(|node| [9, 22].iter().for_each(|step: &usize| metric[*node][*step] *= 0.1));
            }
            Run::of(&speeds).decide()
        };
        let decision = stopped(12, &[5]);
        for metric in &decision.cells {
            assert_eq!((metric[5].state, metric[5].why), (State::Warn, Why::SlowSteps));
            let others = metric.iter().enumerate().filter(|(node, _)| *node != 5);
            assert!(others.map(|(_, cell)| cell.state).all(|state| state == State::Pass));
        }
        let all: Vec<usize> = (0..16).collect();
        for decision in [stopped(1, &[5]), stopped(12, &all)] {
            assert!(decision.cells.iter().flatten().all(|cell| cell.why != Why::SlowSteps));
        }
    }
}

/// Six metrics of 32 steps; node 2 is half as fast in the steps `slow` of the first `touched` of them.
fn slow_in(nodes: usize, touched: usize, slow: impl Fn(usize) -> bool) -> Run {
    let mut speeds = fleet("gauss0.5", &mut Chance::new(nodes as u64), nodes, 6, 32);
    for metric in &mut speeds[..touched] {
        metric[2].iter_mut().enumerate().filter(|(step, _)| slow(*step)).for_each(|(_, v)| *v *= 0.5);
    }
    Run::of(&speeds)
}

#[test]
fn slow_for_a_while_warns_and_slow_throughout_or_in_every_second_step_fails() {
    for nodes in [8, 16, 140] {
        for touched in [1, 6] {
            let run = slow_in(nodes, touched, |step| (12..31).contains(&step));
            let found = run.decide();
            let why = Why::SlowForAWhile { from: 13, to: 31, slow: 19, steps: 32 };
            for cells in &found.cells[..touched] {
                assert_eq!((cells[2].state, cells[2].why), (State::Warn, why), "{nodes} nodes");
            }
            assert_eq!(found.nodes[2].state, State::Warn, "{nodes} nodes, {touched} metrics");
            let twice = slow_in(nodes, touched, |step| step < 8 || (20..31).contains(&step));
            assert_eq!(twice.states()[2], State::Warn, "{nodes} nodes, {touched} metrics");
            for slow in [|_| true, |step| step % 2 == 0, |step| step > 2] {
                let states = slow_in(nodes, touched, slow).states();
                assert_eq!(states[2], State::Fail, "{nodes} nodes, {touched} metrics");
            }
        }
    }
}

#[test]
fn a_node_that_is_slow_and_for_a_while_even_slower_fails() {
    let mut run = slow_in(16, 6, |step| (12..31).contains(&step));
    (0..6).for_each(|metric| run.scale(metric, 2, 0.8));
    assert_eq!(run.states()[2], State::Fail);
}

#[test]
fn against_frozen_criteria_slow_for_a_while_warns_too() {
    let healthy = |seed| Run::of(&fleet("gauss0.5", &mut Chance::new(seed), 16, 6, 32));
    let learned = [healthy(1), healthy(2), healthy(3)];
    assert_eq!(slow_in(16, 6, |step| (12..31).contains(&step)).frozen(&learned).states()[2], State::Warn);
    assert_eq!(slow_in(16, 6, |_| true).frozen(&learned).states()[2], State::Fail);
    let few = |slow: fn(usize) -> bool| {
        slow_in(16, 6, slow).with(|_, row| row.samples.truncate(3)).frozen(&learned).states()[2]
    };
    assert_eq!([few(|step| (12..31).contains(&step)), few(|_| true)], [State::Warn, State::Fail]);
}

#[test]
fn who_is_warned_of_among_contested_camps_is_undecided_too() {
    for group in 6..=8 {
        let decision = planted((16, group), 0.15, 6, 6, 3).decide();
        assert!(decision.nodes.iter().all(|node| node.undecided && node.state < State::Fail), "{group} of 16");
    }
}
