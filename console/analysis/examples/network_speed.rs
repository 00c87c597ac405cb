//! How long schedules and localisation take, and how often localisation is right where single cells are judged instead:
//! simulated 3,000-node matrices with planted uplink and node faults and 5 % noise.
//!
//! `cargo run --release -p muster-analysis --example network_speed`

#![expect(clippy::disallowed_methods, reason = "measures time and reads it from /proc, which the library never does")]

#[path = "../tests/network/sim.rs"]
mod network_sim;

use std::collections::BTreeSet;
use std::time::Duration;

use muster_analysis::Params;
use muster_analysis::network::schedule::{FullScan, SampledScan, quick_scan};
use muster_analysis::network::topology::from_csv;
use muster_analysis::network::{Matrix, localise};
use network_sim::{Fault, Fleet, Routing, named};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// CPU time of this process: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

fn since(start: Duration) -> f64 {
    (now() - start).as_secs_f64()
}

/// Most memory this process ever held, in MB.
fn peak_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn schedules() {
    let start = now();
    let scan = FullScan::new(10_000);
    let mut sum = 0_u64;
    for round in scan.rounds() {
        sum += round.pairs().map(|(a, b)| u64::from(a ^ b)).sum::<u64>();
    }
    println!(
        "full scan, 10,000 nodes: {} rounds, {} pairs in {:.3} s, peak {} MB ({sum})",
        scan.len(),
        scan.pairs(),
        since(start),
        peak_mb()
    );
    let start = now();
    let sampled = SampledScan::new(10_000, 40, 1);
    let pairs: usize = sampled.rounds().map(|round| round.len()).sum();
    println!(
        "sampled scan, 40 rounds: {pairs} pairs, coverage {:.4} in {:.3} s",
        sampled.coverage().share(),
        since(start)
    );
    let rows: String = (0..10_000).map(|i| format!("n{i},l{},p{}\n", i / 20, i / 400)).collect();
    let start = now();
    let topology = from_csv(&rows).unwrap_or_else(|e| panic!("{e}"));
    let read = since(start);
    let tiers = quick_scan(&topology);
    println!(
        "quick scan, 10,000 nodes under 500 leaves and 25 aggregates: {:.3} s (topology read in {read:.3} s), peak {} MB",
        since(start) - read,
        peak_mb()
    );
    for tier in tiers {
        println!("  {} hops: {} pairs, {} unpaired", tier.hops, tier.pairs.len(), tier.unpaired.len());
    }
}

/// Cells that share a fault's fate, and the elements a person would read off a thresholded matrix: rows and columns of
/// which most cells are red.
fn by_threshold(fleet: &Fleet, matrix: &Matrix) -> BTreeSet<String> {
    let mut values: Vec<f32> =
        (0..matrix.len()).step_by(97).filter_map(|at| matrix.values(at).first().copied()).collect();
    values.sort_unstable_by(f32::total_cmp);
    let limit = 0.8 * values[values.len() / 2];
    let n = fleet.len() as usize;
    let (mut rows, mut columns) = (vec![(0_u32, 0_u32); n], vec![(0_u32, 0_u32); n]);
    for (at, cell) in matrix.cells().iter().enumerate() {
        let red = u32::from(matrix.values(at).first().is_none_or(|v| *v < limit));
        for count in [&mut rows[cell.src as usize], &mut columns[cell.dst as usize]] {
            count.0 += red;
            count.1 += 1;
        }
    }
    let bad = |count: (u32, u32)| 2 * count.0 > count.1;
    (0..n)
        .filter_map(|i| match (bad(rows[i]), bad(columns[i])) {
            (true, true) => Some(format!("node n{i}")),
            (true, false) => Some(format!("node_tx n{i}")),
            (false, true) => Some(format!("node_rx n{i}")),
            (false, false) => None,
        })
        .collect()
}

#[derive(Default)]
struct Score {
    right: usize,
    named: usize,
    planted: usize,
}

impl Score {
    fn add(&mut self, found: &BTreeSet<String>, planted: &BTreeSet<String>) {
        self.right += found.intersection(planted).count();
        self.named += found.len();
        self.planted += planted.len();
    }

    fn show(&self, who: &str) {
        let share = |of: usize| if of == 0 { f64::NAN } else { self.right as f64 / of as f64 };
        println!(
            "{who}: precision {:.4} recall {:.4} ({} right, {} named, {} planted)",
            share(self.named),
            share(self.planted),
            self.right,
            self.named,
            self.planted
        );
    }
}

fn planted(fleet: &Fleet, seed: u64) -> Vec<Fault> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut nodes: BTreeSet<u32> = BTreeSet::new();
    while nodes.len() < 10 {
        nodes.insert(rng.random_range(0..fleet.len()));
    }
    let mut links: BTreeSet<(u32, u32)> = BTreeSet::new();
    while links.len() < 5 {
        links.insert((rng.random_range(0..fleet.racks), rng.random_range(0..fleet.spines)));
    }
    let mut faults: Vec<Fault> =
        links.into_iter().map(|(l, s)| Fault::Uplink(l, s, rng.random_range(0.2..0.8))).collect();
    for (at, node) in nodes.into_iter().enumerate() {
        let left = rng.random_range(0.2..0.85);
        faults.push(match at % 3 {
            0 => Fault::Node(node, left),
            1 => Fault::Tx(node, left),
            _ => Fault::Rx(node, left),
        });
    }
    faults
}

fn localisation(routing: Routing) {
    let fleet = Fleet { racks: 100, per_rack: 30, spines: 8, routing, ..Fleet::default() };
    let topology = fleet.topology();
    let (mut ours, mut threshold) = (Score::default(), Score::default());
    for seed in 0..3 {
        let faults = planted(&fleet, seed);
        let matrix = fleet.matrix(&faults, seed);
        let start = now();
        let found = localise(&matrix, &topology, &Params::default());
        let seconds = since(start);
        let expected: BTreeSet<String> = fleet.expected(&faults).into_iter().collect();
        let names: BTreeSet<String> = named(&found).into_iter().collect();
        println!(
            "  {routing:?}: {} visits, {seconds:.3} s, {} suspects, {} undecided, peak {} MB",
            matrix.len(),
            names.len(),
            found.undecided.len(),
            peak_mb()
        );
        for wrong in names.symmetric_difference(&expected) {
            println!("    {} {wrong}", if names.contains(wrong) { "false" } else { "missed" });
        }
        ours.add(&names, &expected);
        threshold.add(&by_threshold(&fleet, &matrix), &expected);
    }
    ours.show("  localisation");
    threshold.show("  thresholded cells, rows and columns mostly red");
}

fn main() {
    schedules();
    println!("localisation, 3,000 nodes, 100 leaves, 8 spines, 5 uplinks and 10 nodes bad, 5 % noise");
    localisation(Routing::DestinationMod);
    localisation(Routing::Ecmp);
}
