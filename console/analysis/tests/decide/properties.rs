//! Properties that hold whatever the noise: slower is never better, metrics do not disturb each other, order and units
//! play no part, groups are named or contested, and a pass says what it would have seen.

use muster_analysis::decide::{ComponentDecision, Decision};
use muster_analysis::{Chance, Sample, State};
use muster_wire::{Component, MetricId};

use crate::families::{Speeds, fleet, pick, slow};
use crate::run::{Run, changed, count};

const MIXED: [&str; 10] =
    ["gauss0.5", "gauss0.5", "gauss2", "noisyln30", "noisy10", "bimodal3", "quant2", "t3", "stall", "offset2"];

/// A fleet in which every metric has its own kind of noise, some nodes are slow, and some values are missing.
fn mixed(chance: &mut Chance, families: &[&str]) -> Run {
    let nodes = pick(chance, &[4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 40, 70, 140]);
    let metrics = pick(chance, &[1, 2, 3, 6, 12]);
    let steps = pick(chance, &[1, 2, 5, 8, 32]);
    let mut speeds: Speeds = Vec::new();
    for _ in 0..metrics {
        let family = pick(chance, families);
        speeds.extend(fleet(family, chance, nodes, 1, steps));
    }
    let (group, loss) = (chance.below(nodes / 2 + 1), pick(chance, &[0.04, 0.06, 0.1, 0.2, 0.5]));
    let touched = pick(chance, &[0.3, 1.0]);
    for metric in (0..metrics).filter(|_| chance.unit() < touched).collect::<Vec<_>>() {
        (0..group).for_each(|node| slow(&mut speeds, node, metric, loss));
    }
    let mut run = parts(Run::of(&speeds), chance);
    let holes = pick(chance, &[0.0, 0.0, 0.05, 0.3]);
    for row in &mut run.rows {
        row.samples.iter_mut().filter(|_| chance.unit() < holes).for_each(|sample| *sample = None);
    }
    run
}

/// One component, two of a kind, or each metric anywhere.
fn parts(run: Run, chance: &mut Chance) -> Run {
    let layout = chance.below(3);
    run.with(|at, row| {
        row.component = match layout {
            0 => Component::Cpu,
            1 => Component::Gpu(at as u32 % 2),
            _ => [Component::Cpu, Component::Disk(None), Component::Gpu(0), Component::Gpu(1)][at % 4].clone(),
        };
    })
}

/// How bad a state is, of those that were measured.
fn rank(state: State) -> u8 {
    match state {
        State::NotApplicable | State::NotRun => 0,
        State::Pass => 1,
        State::Unknown => 2,
        State::Warn => 3,
        State::Fail => 4,
    }
}

fn states(of: &Decision, node: usize) -> Vec<u8> {
    let node_of = &of.nodes[node];
    let cells = of.cells.iter().map(|row| row[node].state);
    let parts = node_of.components.iter().map(|c| c.state).chain(node_of.kinds.iter().map(|k| k.state));
    cells.chain(parts).chain([node_of.state]).map(rank).collect()
}

#[test]
fn being_slower_in_any_metrics_never_improves_a_state() {
    for seed in 0..250 {
        let mut chance = Chance::branch(1, seed);
        let mut run = mixed(&mut chance, &MIXED);
        let node = chance.below(run.nodes());
        let mut before = states(&run.decide(), node);
        for step in 0..4 {
            let sure = chance.below(run.rows.len());
            for metric in 0..run.rows.len() {
                if metric == sure || chance.unit() < 0.5 {
                    run.scale(metric, node, pick(&mut chance, &[0.999, 0.99, 0.97, 0.95, 0.9, 0.8, 0.5]));
                }
            }
            let after = states(&run.decide(), node);
            let better = before.iter().zip(&after).position(|(before, after)| after < before);
            assert_eq!(better, None, "seed {seed} step {step} node {node}: {before:?} became {after:?}");
            before = after;
        }
    }
}

#[test]
fn single_slow_steps_never_improve_a_state() {
    for seed in 0..150 {
        let mut chance = Chance::branch(2, seed);
        let mut run = mixed(&mut chance, &MIXED);
        let node = chance.below(run.nodes());
        let before = states(&run.decide(), node);
        for row in &mut run.rows {
            if let Some(sample) = &mut row.samples[node] {
                let share = pick(&mut chance, &[0.05, 0.3, 0.8]);
                *sample = changed(sample, |v| if chance.unit() < share { v * 0.3 } else { v });
            }
        }
        let after = states(&run.decide(), node);
        assert!(before.iter().zip(&after).all(|(before, after)| after >= before), "seed {seed}: {before:?} {after:?}");
    }
}

/// A metric noisier than all of `run`.
fn noisy(run: &Run, chance: &mut Chance, component: Component) -> Run {
    let sd = pick(chance, &[0.6, 1.2]);
    let steps = run.rows[0].samples.iter().flatten().next().map_or(0, Sample::len);
    let speeds = vec![
        (0..run.nodes())
            .map(|_| {
                let level = (sd * chance.normal()).exp();
                (0..steps).map(|_| level * (sd * chance.normal()).exp()).collect()
            })
            .collect(),
    ];
    Run::of(&speeds).with(|_, row| {
        row.id = MetricId::new("loud", "metric", "own");
        row.component = component.clone();
    })
}

#[test]
fn a_noisy_metric_changes_nothing_that_quieter_ones_say() {
    for seed in 0..250 {
        let mut chance = Chance::branch(3, seed);
        let run = mixed(&mut chance, &["gauss0.5", "gauss2", "bimodal3", "quant2", "t3", "stall", "offset2"]);
        let before = run.decide();
        let component = pick(&mut chance, &[0, 1, 2]);
        let component = [run.rows[0].component.clone(), Component::Memory, Component::Gpu(7)][component].clone();
        let after = run.clone().and(noisy(&run, &mut chance, component)).decide();
        for (metric, row) in before.cells.iter().enumerate() {
            for (node, cell) in row.iter().enumerate() {
                let (now, loud) = (&after.cells[metric][node], &after.cells[before.cells.len()][node]);
                if loud.scale < cell.scale {
                    // A group of slow nodes can make a quiet metric the noisier one.
                    continue;
                }
                assert_eq!((cell.state, cell.why), (now.state, now.why), "seed {seed} metric {metric} node {node}");
                assert!(cell.limit == now.limit, "seed {seed}: {} {}", cell.limit, now.limit);
            }
        }
        for (node, (before, after)) in before.nodes.iter().zip(&after.nodes).enumerate() {
            for part in &before.components {
                let now = after.components.iter().find(|c| c.component == part.component).unwrap();
                // More metrics can show more, of their own part only, and never less.
                assert!(rank(now.state) >= rank(part.state), "seed {seed} node {node}: {part:?} {now:?}");
                let own = |c: &ComponentDecision| c.average.map(|a| (a.state, a.metrics));
                assert!(part.average.is_none() || own(part) == own(now), "seed {seed} node {node}: {part:?} {now:?}");
            }
        }
    }
}

#[test]
fn order_of_nodes_and_metrics_units_and_direction_play_no_part() {
    for seed in 0..150 {
        let mut chance = Chance::branch(4, seed);
        // Reciprocals of values on a grid lie on none.
        let run = mixed(&mut chance, &["gauss0.5", "gauss2", "noisyln30", "noisy10", "bimodal3", "t3", "stall"]);
        let decided = run.decide();
        let mirrored = run.clone().times().decide();
        let mut nodes: Vec<usize> = (0..run.nodes()).collect();
        let mut metrics: Vec<usize> = (0..run.rows.len()).collect();
        chance.shuffle(&mut nodes);
        chance.shuffle(&mut metrics);
        let mut moved = run.clone();
        for (to, &from) in metrics.iter().enumerate() {
            let (unit, row) = (chance.between(0.001, 1000.0), &run.rows[from]);
            let sample = |node: &usize| {
                let values = |s: &Sample| s.values().iter().map(|v| v * unit).collect::<Vec<_>>();
                row.samples[*node].as_ref().map(|s| Sample::new(&values(s)).unwrap())
            };
            moved.rows[to] = row.clone();
            moved.rows[to].samples = nodes.iter().map(sample).collect();
        }
        let moved = moved.decide();
        for (to, &from) in nodes.iter().enumerate() {
            let of = |d: &Decision, node: usize| {
                let parts: Vec<_> = d.nodes[node].components.iter().map(|c| (c.component.clone(), c.state)).collect();
                (d.nodes[node].state, parts)
            };
            assert_eq!(of(&decided, from), of(&moved, to), "seed {seed}: moved");
            assert_eq!(of(&decided, from), of(&mirrored, from), "seed {seed}: mirrored");
        }
    }
}

#[test]
fn up_to_a_third_equally_slow_are_all_named_and_up_to_half_nobody_passes() {
    let mut chance = Chance::new(5);
    for nodes in [5, 6, 7, 8, 9, 10, 12, 16, 24, 30, 64, 200] {
        for group in 1..=nodes / 2 {
            if nodes > 30 && ![1, nodes / 4, nodes / 3, nodes / 3 + 1, nodes / 2].contains(&group) {
                continue;
            }
            let mut speeds = fleet("gauss0.5", &mut chance, nodes, 6, 16);
            for metric in 0..6 {
                (0..group).for_each(|node| slow(&mut speeds, node, metric, if nodes < 8 { 0.4 } else { 0.2 }));
            }
            let decision = Run::of(&speeds).decide();
            let states: Vec<State> = decision.nodes.iter().map(|node| node.state).collect();
            if 3 * group <= nodes {
                let named = if nodes < 8 { State::Warn } else { State::Fail };
                assert!(states[..group].iter().all(|s| *s >= named), "{group} of {nodes}: {states:?}");
                // Of up to seven nodes, a slow peer is too many to leave out: the others may remain unknown.
                let innocent = if nodes < 8 { State::Unknown } else { State::Pass };
                assert!(states[group..].iter().all(|s| *s <= innocent), "{group} of {nodes}: {states:?}");
                let failed =
                    decision.cells.iter().flat_map(|row| &row[..group]).filter(|cell| cell.loss > 1.2 * cell.limit);
                assert!(failed.clone().all(|cell| cell.alike as usize == group - 1), "{group} of {nodes}");
                assert!(nodes < 16 || failed.count() == 6 * group, "{group} of {nodes}");
            } else {
                assert_eq!(count(&states, State::Pass), 0, "{group} of {nodes}: {states:?}");
                assert_eq!(count(&states[group..], State::Fail), 0, "{group} of {nodes}: {states:?}");
            }
        }
    }
}

#[test]
fn a_loss_of_the_resolution_given_does_not_pass() {
    let (mut tried, mut passed) = (0, 0);
    for seed in 0..900 {
        let mut chance = Chance::branch(6, seed);
        let family = pick(&mut chance, &crate::families::ALL);
        let nodes = pick(&mut chance, &[5, 6, 8, 10, 12, 16, 24, 64]);
        let metrics = pick(&mut chance, &[1, 3, 8]);
        let steps = pick(&mut chance, &[1, 3, 8, 32]);
        let mut run = Run::of(&fleet(family, &mut chance, nodes, metrics, steps));
        let node = chance.below(nodes);
        let of = &run.decide().nodes[node];
        if of.state != State::Pass {
            continue;
        }
        let loss = of.components[0].resolution.unwrap();
        assert!(loss > 0.0 && loss <= 0.5, "{loss}");
        (0..metrics).for_each(|metric| run.scale(metric, node, 1.0 - loss));
        tried += 1;
        passed += usize::from(run.states()[node] == State::Pass);
    }
    assert!(tried > 400, "{tried}");
    assert!(passed * 20 <= tried, "{passed} of {tried} passed");
}

#[test]
fn every_unknown_names_a_metric_its_noise_and_the_nodes() {
    let mut unknown = 0;
    for seed in 0..200 {
        let run = mixed(&mut Chance::branch(7, seed), &MIXED);
        let decision = run.decide();
        let parts = decision.nodes.iter().zip(0..).flat_map(|(node, at)| node.components.iter().map(move |c| (at, c)));
        for (node, part) in parts.filter(|(_, part)| part.undecided) {
            unknown += 1;
            let limiting = part.limiting.unwrap_or_else(|| panic!("seed {seed}: {part:?}"));
            assert_eq!(run.rows[limiting.metric].component, part.component);
            assert!(limiting.nodes > 0 && (limiting.nodes < 4 || limiting.scale > 0.0), "seed {seed}: {limiting:?}");
            let cell = &decision.cells[limiting.metric][node];
            let [said, seen] = [(limiting.scale, limiting.resolution), (cell.scale, cell.resolution)]
                .map(|(scale, resolution)| [scale.to_bits(), resolution.to_bits()]);
            assert_eq!(said, seen, "seed {seed}: {limiting:?} {cell:?}");
        }
    }
    assert!(unknown > 100, "{unknown}");
}
