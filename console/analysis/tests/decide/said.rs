//! What is decided of made fleets of every kind, number for number, as it stands in `said.txt`.
//!
//! With `MUSTER_BLESS=1` it is written there instead; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fmt::Write;

use muster_analysis::decide::{Average, Cell, Decision};
use muster_analysis::{Chance, State};
use muster_wire::Component;

use crate::families::{ALL, BURSTS, fleet, slow};
use crate::run::Run;

/// Three digits tell what changed, and hide how another machine rounds.
pub fn short(value: f64) -> String {
    format!("{value:.2e}")
}

fn cell(cell: &Cell) -> String {
    let numbers = [cell.loss, cell.scale, cell.limit, cell.warn_limit, cell.resolution].map(short).join(" ");
    format!("{:?} {:?} {:?} {numbers} peers {} alike {}", cell.state, cell.why, cell.view, cell.peers, cell.alike)
}

fn average(of: &Average) -> String {
    let numbers = [of.loss, of.scale, of.limit].map(short).join(" ");
    format!("average of {} in {:?}: {:?} {numbers} alike {}", of.metrics, of.band, of.state, of.alike)
}

/// The cells that do not pass and the first of each metric, then every component that is not sound, and the first.
pub fn told(decision: &Decision) -> String {
    let mut text = String::new();
    for (metric, cells) in decision.cells.iter().enumerate() {
        let shown = cells.iter().enumerate().filter(|(node, of)| *node == 0 || of.state != State::Pass);
        shown.take(5).for_each(|(node, of)| writeln!(text, "  m{metric} n{node} {}", cell(of)).unwrap());
    }
    for (at, node) in decision.nodes.iter().enumerate() {
        let shown = node.components.iter().filter(|of| at == 0 || of.state != State::Pass);
        for of in shown {
            let limiting = of.limiting.as_ref().map(|by| (by.metric, short(by.scale), short(by.resolution), by.nodes));
            let means = of.average.as_ref().map(average);
            let (resolution, undecided) = (of.resolution.map(short), of.undecided);
            writeln!(
                text,
                "  n{at} {:?} {:?} undecided {undecided} {resolution:?} {limiting:?} {means:?}",
                of.component, of.state
            )
            .unwrap();
        }
        for of in node.kinds.iter().filter(|of| at == 0 || of.state != State::Pass) {
            let (resolution, means) = (of.resolution.map(short), of.average.as_ref().map(average));
            writeln!(
                text,
                "  n{at} all {:?} {:?} undecided {} {resolution:?} {means:?}",
                of.kind, of.state, of.undecided
            )
            .unwrap();
        }
    }
    for run in &decision.slower_runs {
        let numbers = [run.loss, run.limit, run.centre, run.scale].map(short).join(" ");
        writeln!(text, "  the whole run is slower in m{}: {numbers}", run.metric).unwrap();
    }
    text
}

/// A fleet with that noise. In the first half of the metrics node 2 is slower, and with an even seed node 5 by half as much.
fn made(family: &str, (nodes, metrics, steps): (usize, usize, usize), seed: usize) -> Run {
    let mut speeds = fleet(family, &mut Chance::new(seed as u64), nodes, metrics, steps);
    let loss = [0.0, 0.06, 0.2, 0.5][seed % 4];
    for metric in 0..metrics.div_ceil(2) {
        slow(&mut speeds, 2, metric, loss);
        if seed.is_multiple_of(2) {
            slow(&mut speeds, 5 % nodes, metric, loss / 2.0);
        }
    }
    let run = Run::of(&speeds);
    if seed.is_multiple_of(3) { run.times() } else { run }
}

fn of_every_noise() -> String {
    let sizes = [(6, 3, 1), (7, 6, 5), (9, 2, 7), (12, 4, 32), (70, 3, 8), (16, 8, 3), (5, 2, 16), (10, 2, 256)];
    let mut text = String::new();
    for (at, family) in ALL.iter().chain(&BURSTS).enumerate() {
        for (of, size) in sizes.iter().enumerate() {
            let seed = at * 9 + of;
            writeln!(text, "{family} {size:?} seed {seed}").unwrap();
            text += &told(&made(family, *size, seed).decide());
        }
    }
    text
}

/// Metrics of two disks and of the CPU, some values missing, some averages.
fn of_several_components() -> String {
    let mut text = String::new();
    for seed in 0..6 {
        let run = made("gauss2", (10, 6, 4), seed).with(|at, row| {
            row.component = [Component::Cpu, Component::Disk(Some("sda".into())), Component::Disk(Some("sdb".into()))]
                [at / 2]
                .clone();
            row.aggregated = seed % 2 == 1;
            row.samples[(at + seed) % 10] = None;
        });
        writeln!(text, "components, seed {seed}").unwrap();
        text += &told(&run.decide());
    }
    text
}

/// Against one run before and against three, the whole run as fast as these and slower.
fn against_earlier_runs() -> String {
    let mut text = String::new();
    for (seed, family) in ALL.iter().enumerate() {
        let before: Vec<Run> =
            (0..1 + 2 * (seed % 2)).map(|run| made(family, (8, 3, 8), 4 * (100 * seed + run))).collect();
        let mut run = made(family, (8, 3, 8), seed);
        if seed % 3 == 1 {
            (0..8).for_each(|node| run.scale(0, node, 0.7));
        }
        writeln!(text, "{family} against {} runs", before.len()).unwrap();
        text += &told(&run.frozen(&before).decide());
    }
    text
}

/// A third, two fifths and a half of the nodes equally slow.
fn of_two_clusters() -> String {
    let mut text = String::new();
    for (slow_nodes, nodes) in [(2, 8), (3, 8), (4, 8), (4, 12), (5, 12), (6, 12), (24, 70), (28, 70), (35, 70)] {
        let mut speeds = fleet("gauss0.5", &mut Chance::new(nodes as u64), nodes, 2, 8);
        (0..slow_nodes).for_each(|node| slow(&mut speeds, node, 0, 0.3));
        writeln!(text, "{slow_nodes} of {nodes} slow").unwrap();
        text += &told(&Run::of(&speeds).decide());
    }
    text
}

#[test]
fn of_every_made_fleet_the_same_is_said_number_for_number() {
    let text = [of_every_noise(), of_several_components(), against_earlier_runs(), of_two_clusters()].concat();
    muster_golden::hold(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decide/said.txt")), &text);
}
