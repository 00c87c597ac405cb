//! What is decided of made fleets with faults that are seen by several metrics together, or by some of a node's steps, as it stands in
//! `faults.txt`.
//!
//! With `MUSTER_BLESS=1` it is written there instead; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fmt::Write;
use std::ops::Range;

use muster_analysis::decide::Why;
use muster_analysis::{Chance, Sample};
use muster_wire::Component;

use crate::families::{Speeds, fleet, pick};
use crate::run::Run;
use crate::said::told;

const QUIET: [&str; 4] = ["gauss0.5", "gauss2", "bimodal3", "t3"];

fn drawn(seed: usize, (nodes, metrics, steps): (usize, usize, usize)) -> (Speeds, Chance) {
    let mut chance = Chance::branch(71, seed as u64);
    (fleet(QUIET[seed % QUIET.len()], &mut chance, nodes, metrics, steps), chance)
}

fn slower(speeds: &mut Speeds, (node, metric): (usize, usize), steps: Range<usize>, loss: f64) {
    speeds[metric][node][steps].iter_mut().for_each(|speed| *speed *= 1.0 - loss);
}

/// As rates, or with an odd seed as times.
fn run(speeds: &Speeds, seed: usize) -> Run {
    let run = Run::of(speeds);
    if seed.is_multiple_of(2) { run } else { run.times() }
}

/// n2 loses a little in every metric: throughout, for a while, and both; n4 half as much.
fn a_little_in_many_metrics(text: &mut String) {
    for seed in 0..18 {
        let (nodes, metrics, steps) = ([10, 14, 24, 150][seed / 3 % 4], 8, [16, 40][seed % 2]);
        let (mut speeds, _) = drawn(seed, (nodes, metrics, steps));
        let loss = [0.01, 0.03, 0.06, 0.12][seed % 4];
        for metric in 0..metrics {
            let a_while = steps / 4 + metric..steps * 3 / 4;
            match seed % 3 {
                0 => slower(&mut speeds, (2, metric), 0..steps, loss),
                1 => slower(&mut speeds, (2, metric), a_while, 8.0 * loss.min(0.1)),
                _ => {
                    slower(&mut speeds, (2, metric), 0..steps, loss);
                    slower(&mut speeds, (2, metric), a_while, 0.5);
                }
            }
            slower(&mut speeds, (4, metric), 0..steps, loss / 2.0);
        }
        writeln!(text, "{loss} in {metrics} metrics of {nodes} nodes, seed {seed}").unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// Four disks with two metrics each: n1 loses a little in all of them, n3 much in one.
fn one_of_several_parts(text: &mut String) {
    for seed in 0..6 {
        let (mut speeds, _) = drawn(seed, (9, 8, [5, 12][seed % 2]));
        let steps = speeds[0][0].len();
        (0..8).for_each(|metric| slower(&mut speeds, (1, metric), 0..steps, [0.02, 0.05, 0.1][seed % 3]));
        slower(&mut speeds, (3, 5), 0..steps, 0.4);
        let disk = |at: usize| Component::Disk(Some(["sda", "sdb", "sdc", "sdd"][at / 2].into()));
        let run = run(&speeds, seed).with(|at, row| {
            row.component = disk(at);
            row.aggregated = seed == 3;
            // One disk is not in every node.
            if at / 2 == 3 {
                row.samples[6..].iter_mut().for_each(|sample| *sample = None);
            }
        });
        writeln!(text, "four disks, seed {seed}").unwrap();
        *text += &told(&run.decide());
    }
}

/// Series too short for a mean: n2 has slow steps in each of many metrics, n5 in some, and single ones lie about.
fn slow_steps_of_short_series(text: &mut String) {
    for seed in 0..20 {
        let steps = [1, 2, 3, 5, 7][seed % 5];
        let metrics = [4, 8, 12][seed % 3];
        let (mut speeds, mut chance) = drawn(seed, (12, metrics, steps));
        for metric in 0..metrics {
            slower(&mut speeds, (2, metric), 0..(steps - steps / 2).min(3), 0.5);
            if metric % 3 == 0 {
                slower(&mut speeds, (5, metric), 0..steps.div_ceil(3), 0.5);
            }
            if seed % 4 == 1 && metric % 2 == 1 {
                let (node, at) = (pick(&mut chance, &[7, 8, 9]), chance.below(steps));
                slower(&mut speeds, (node, metric), at..at + 1, 0.5);
            }
        }
        writeln!(text, "{steps} steps, {metrics} metrics, seed {seed}").unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// n3 stands still in some steps of long series, and is slow in the last hundredth of them.
fn stops_and_slow_ends(text: &mut String) {
    for seed in 0..8 {
        let (mut speeds, mut chance) = drawn(seed, (10, 3, [64, 400][seed % 2]));
        let steps = speeds[0][0].len();
        for metric in 0..3 {
            let stops = [2, 5, 12, 30][seed % 4].min(steps / 3);
            for _ in 0..stops {
                let at = chance.below(steps);
                slower(&mut speeds, (3, metric), at..at + 1, [0.6, 0.95][metric % 2]);
            }
        }
        writeln!(text, "{steps} steps with stops, seed {seed}").unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// Values of few digits; n1 is one or two units slower.
fn coarse_values(text: &mut String) {
    for seed in 0..24 {
        let (nodes, steps) = ([6, 9, 30][seed % 3], [1, 4, 9][seed / 3 % 3]);
        let (mut speeds, _) = drawn(seed, (nodes, 2, steps));
        (0..2).for_each(|metric| slower(&mut speeds, (1, metric), 0..steps, [0.0, 0.1, 0.25][seed / 9]));
        let unit = [0.02, 0.1, 0.2, 0.005][seed % 4];
        speeds.iter_mut().flatten().flatten().for_each(|speed| *speed = ((*speed / unit).round() * unit).max(unit));
        let run = run(&speeds, seed).with(|_, row| {
            // A tool that prints whole units: nothing that is divided.
            for sample in row.samples.iter_mut().flatten() {
                let digits: Vec<f64> = sample.values().iter().map(|value| (value / 400.0 / unit).round()).collect();
                if seed % 4 == 2 {
                    *sample = Sample::new(&digits).unwrap();
                }
            }
        });
        writeln!(text, "units of {unit}, {nodes} nodes, {steps} steps, seed {seed}").unwrap();
        *text += &told(&run.decide());
    }
}

/// One node in four is slower, few of them by much, so that the fleet thins out towards its slow end; and n1.
fn wide_distributions(text: &mut String) {
    for seed in 0..8 {
        let nodes = [40, 90][seed % 2];
        let (mut speeds, mut chance) = drawn(seed, (nodes, 2, [4, 12][seed / 2 % 2]));
        let steps = speeds[0][0].len();
        for metric in 0..2 {
            for node in (2..nodes).filter(|node| node % 4 == 0) {
                let loss = 0.02 / chance.unit().max(0.05).powf([0.6, 0.9][metric]);
                slower(&mut speeds, (node, metric), 0..steps, loss);
            }
            slower(&mut speeds, (1, metric), 0..steps, [0.08, 0.15, 0.3, 0.5][seed / 2]);
        }
        writeln!(text, "a wide distribution of {nodes} nodes, seed {seed}").unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// Some nodes have fewer steps than others; n1, and then n4, is slow throughout, n5 and n7 now and then.
fn series_of_several_lengths(text: &mut String) {
    for seed in 0..6 {
        let (mut speeds, _) = drawn(seed, (12, 3, 40));
        for metric in 0..3 {
            slower(&mut speeds, ([1, 4][seed % 2], metric), 0..40, 0.1);
            for node in [5, 7] {
                (0..40).step_by(5).for_each(|at| slower(&mut speeds, (node, metric), at..at + 1, 0.8));
            }
            for node in (0..12).filter(|node| node % 3 == seed % 3) {
                speeds[metric][node].truncate([3, 6, 10][(metric + seed) % 3]);
            }
        }
        writeln!(text, "series of several lengths, seed {seed}").unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// A third of the nodes and more are equally slow in metrics of one or two steps.
fn a_crowd_in_short_series(text: &mut String) {
    for seed in 0..6 {
        let (mut speeds, _) = drawn(seed, (9, 6, 1 + seed % 2));
        for metric in 0..6 {
            (0..2 + seed / 2).for_each(|node| slower(&mut speeds, (node, metric), 0..1 + seed % 2, 0.3));
        }
        writeln!(text, "{} of 9 nodes slow in short series", 2 + seed / 2).unwrap();
        *text += &told(&run(&speeds, seed).decide());
    }
}

/// Fleets of all sizes against earlier runs of the same size.
fn against_earlier_runs(text: &mut String) {
    for (seed, nodes) in [2, 3, 4, 5, 6, 7, 9, 11, 17, 25, 64].into_iter().enumerate() {
        let draw = |at: usize| run(&drawn(100 * seed + at, (nodes, 2, [6, 20][seed % 2])).0, seed);
        let before: Vec<Run> = (1..2 + seed % 3).map(draw).collect();
        let mut now = draw(0);
        now.scale(0, 1, 0.85);
        if seed % 2 == 1 {
            (0..nodes).for_each(|node| now.scale(1, node, 0.9));
        }
        writeln!(text, "{nodes} nodes against {} runs", before.len()).unwrap();
        *text += &told(&now.frozen(&before).decide());
    }
}

#[test]
fn of_faults_of_every_kind_the_same_is_said_number_for_number() {
    let mut text = String::new();
    a_little_in_many_metrics(&mut text);
    one_of_several_parts(&mut text);
    slow_steps_of_short_series(&mut text);
    stops_and_slow_ends(&mut text);
    coarse_values(&mut text);
    wide_distributions(&mut text);
    series_of_several_lengths(&mut text);
    a_crowd_in_short_series(&mut text);
    against_earlier_runs(&mut text);
    muster_golden::hold(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decide/faults.txt")), &text);
}

#[test]
fn four_nodes_that_measure_nothing_have_no_reference_and_three_are_too_few() {
    let why = |nodes: usize| {
        let speeds: Speeds = vec![vec![vec![1e-300; 8]; nodes]];
        let zeros = Run::of(&speeds).with(|_, row| row.samples.fill(Some(Sample::new(&[0.0; 8]).unwrap())));
        zeros.decide().cells[0][0].why
    };
    assert_eq!([why(3), why(4), why(5)], [Why::TooFewNodes, Why::NoReference, Why::NoReference]);
}
