//! How often the decision is wrong, over thousands of generated fleets: false findings in healthy runs, faults found
//! by their size and spread, and whether a pass would have seen what it says it would. Prints Markdown.
//!
//! `cargo run --release -p muster-analysis --example decision_campaign [FAMILY,...|all] [FLEETS-PER-FAMILY] [SEED]`

#[path = "../tests/decide/families.rs"]
mod families;
#[path = "../tests/decide/run.rs"]
mod run;

use std::collections::BTreeMap;

use families::{ALL, BURSTS, fleet, pick, slow};
use muster_analysis::{Chance, State};
use run::Run;
use statrs::distribution::{Beta, ContinuousCDF};

/// Values of one fleet, at most: keeps a campaign within minutes.
const LARGEST: usize = 60_000;
const LOSSES: [f64; 5] = [0.05, 0.07, 0.1, 0.2, 0.5];

/// Largest rate that leaves a chance of 5 % to see as few as `seen` of `of` (Clopper and Pearson 1934).
fn upper(seen: usize, of: usize) -> f64 {
    if seen >= of {
        return 1.0;
    }
    Beta::new(seen as f64 + 1.0, (of - seen) as f64).map_or(1.0, |law| law.inverse_cdf(0.95))
}

/// Chance of one fleet.
fn stream(seed: u64, family: &str, number: usize) -> Chance {
    let name = family.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Chance::branch(seed ^ name.rotate_left(32), number as u64)
}

/// Sizes of a fleet: nodes, metrics, steps.
fn sizes(chance: &mut Chance) -> (usize, usize, usize) {
    loop {
        let nodes = pick(chance, &[4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 200]);
        let (metrics, steps) = (pick(chance, &[1, 2, 3, 6, 8, 20, 60]), pick(chance, &[1, 2, 3, 5, 8, 32, 256]));
        if nodes * metrics * steps <= LARGEST {
            return (nodes, metrics, steps);
        }
    }
}

/// Runs, and how many had a fail, a warning; nodes, and how many were unknown.
#[derive(Default)]
struct Tally {
    runs: usize,
    fails: usize,
    warns: usize,
    nodes: usize,
    unknown: usize,
}

impl Tally {
    fn add(&mut self, states: &[State]) {
        self.runs += 1;
        self.fails += usize::from(states.contains(&State::Fail));
        self.warns += usize::from(states.contains(&State::Warn));
        self.nodes += states.len();
        self.unknown += run::count(states, State::Unknown);
    }

    fn row(&self, name: &str) {
        let Self { runs, fails, warns, .. } = *self;
        println!(
            "| {name} | {runs} | {fails} | {:.1e} | {warns} | {:.1e} | {:.1} % |",
            upper(fails, runs),
            upper(warns, runs),
            100.0 * self.unknown as f64 / self.nodes.max(1) as f64
        );
    }
}

fn healthy(families: &[&str], fleets: usize, seed: u64) {
    println!("## Healthy runs\n\nBounds are 95 % upper limits of the share of runs.\n");
    println!("| noise | runs | with a fail | bound | with a warning | bound | nodes unknown |");
    println!("|---|---|---|---|---|---|---|");
    let mut all = Tally::default();
    for family in families {
        let mut of: BTreeMap<&str, Tally> = BTreeMap::new();
        for number in 0..fleets {
            let mut chance = stream(seed, family, number);
            let (nodes, metrics, steps) = sizes(&mut chance);
            let run = Run::of(&fleet(family, &mut chance, nodes, metrics, steps));
            let states = if chance.below(2) == 0 { run.times().states() } else { run.states() };
            of.entry(if steps < 6 { "fewer than 6 steps" } else { "6 steps or more" }).or_default().add(&states);
            all.add(&states);
        }
        of.iter().for_each(|(steps, tally)| tally.row(&format!("{family}, {steps}")));
    }
    all.row("**all**");
}

/// Slow for a while is worth a warning and never a fail. Shorter series do not tell.
fn disturbed(fleets: usize, seed: u64) {
    println!("\n## Runs in which some nodes were slow for a while, of 12 steps or more\n");
    println!("| noise | runs | with a fail | bound | with a warning | bound | nodes unknown |");
    println!("|---|---|---|---|---|---|---|");
    for family in BURSTS {
        let mut tally = Tally::default();
        let mut number = 0;
        while tally.runs < fleets {
            let mut chance = stream(seed, family, number);
            let (nodes, metrics, steps) = sizes(&mut chance);
            number += 1;
            if steps >= 12 {
                tally.add(&Run::of(&fleet(family, &mut chance, nodes, metrics, steps)).states());
            }
        }
        tally.row(family);
    }
}

fn second_runs(families: &[&str], fleets: usize, seed: u64) {
    println!("\n## Healthy runs against criteria frozen from one or three earlier runs\n");
    println!("| noise | runs | with a fail | bound | with a warning | bound | nodes unknown |");
    println!("|---|---|---|---|---|---|---|");
    let mut all = Tally::default();
    for family in families {
        let mut tally = Tally::default();
        for number in 0..fleets {
            let mut chance = stream(seed ^ 0xF0, family, number);
            let (nodes, metrics, steps) = sizes(&mut chance);
            let runs = pick(&mut chance, &[1, 3]);
            let mut next = || Run::of(&fleet(family, &mut chance, nodes, metrics, steps));
            let learned: Vec<Run> = (0..runs).map(|_| next()).collect();
            let states = next().frozen(&learned).states();
            tally.add(&states);
            all.add(&states);
        }
        tally.row(family);
    }
    all.row("**all**");
}

/// Fleets, and the sums of their shares of faulty nodes that failed, that did not pass.
#[derive(Default, Clone, Copy)]
struct Found {
    fleets: f64,
    failed: f64,
    not_passed: f64,
}

/// One fleet with faults.
struct Fault {
    nodes: usize,
    metrics: usize,
    steps: usize,
    faulty: &'static str,
    touched: &'static str,
    loud: usize,
    loss: usize,
}

impl Fault {
    fn draw(chance: &mut Chance) -> Self {
        loop {
            let fault = Self {
                nodes: pick(chance, &[6, 8, 12, 16, 32, 64, 200]),
                metrics: pick(chance, &[4, 8, 20]),
                steps: pick(chance, &[1, 8, 32]),
                faulty: pick(chance, &["1", "2", "10 %", "30 %"]),
                touched: pick(chance, &["one", "half", "all"]),
                loud: pick(chance, &[0, 6]),
                loss: chance.below(LOSSES.len()),
            };
            if fault.nodes * (fault.metrics + fault.loud) * fault.steps <= LARGEST {
                return fault;
            }
        }
    }

    fn count(&self) -> usize {
        match self.faulty {
            "1" => 1,
            "2" => 2,
            "10 %" => self.nodes.div_ceil(10),
            _ => 3 * self.nodes / 10,
        }
    }

    /// The run, its faulty nodes first.
    fn run(&self, family: &str, chance: &mut Chance) -> Run {
        let mut speeds = fleet(family, chance, self.nodes, self.metrics, self.steps);
        let touched = match self.touched {
            "one" => 1,
            "half" => self.metrics / 2,
            _ => self.metrics,
        };
        for metric in 0..touched {
            (0..self.count()).for_each(|node| slow(&mut speeds, node, metric, LOSSES[self.loss]));
        }
        speeds.extend(fleet("noisyln30", chance, self.nodes, self.loud, self.steps));
        Run::of(&speeds)
    }

    fn rows(&self) -> [String; 7] {
        [
            "all".into(),
            format!("nodes {:>3}", self.nodes),
            format!("metrics {:>2}", self.metrics),
            format!("steps {:>2}", self.steps),
            format!("faulty nodes {}", self.faulty),
            format!("metrics touched: {}", self.touched),
            format!("loud metrics beside: {}", self.loud),
        ]
    }
}

fn faults(families: &[&str], fleets: usize, seed: u64) {
    let mut table: BTreeMap<String, [Found; LOSSES.len()]> = BTreeMap::new();
    let mut innocent = Tally::default();
    for (family, number) in families.iter().flat_map(|family| (0..fleets).map(move |number| (family, number))) {
        let mut chance = stream(seed ^ 0xFA, family, number);
        let fault = Fault::draw(&mut chance);
        let states = fault.run(family, &mut chance).states();
        let (faulty, rest) = states.split_at(fault.count());
        innocent.add(rest);
        for row in fault.rows().into_iter().chain([format!("noise {family}")]) {
            let found = &mut table.entry(row).or_default()[fault.loss];
            let share = |count: usize| count as f64 / faulty.len() as f64;
            found.fleets += 1.0;
            found.failed += share(run::count(faulty, State::Fail));
            found.not_passed += 1.0 - share(run::count(faulty, State::Pass));
        }
    }
    println!(
        "\n## Faults found\n\nOf a fleet's faulty nodes, the share that failed / that did not pass, in percent, averaged over fleets.\n"
    );
    println!("| fleets with | -5 % | -7 % | -10 % | -20 % | -50 % |\n|---|---|---|---|---|---|");
    for (row, by_loss) in &table {
        let share = |part: f64, of: f64| 100.0 * part / of.max(1.0);
        let shares =
            by_loss.map(|f| format!("{:.0} / {:.0}", share(f.failed, f.fleets), share(f.not_passed, f.fleets)));
        println!("| {row} | {} |", shares.join(" | "));
    }
    println!("\nHealthy nodes of these fleets:\n");
    println!(
        "| | runs | with a fail | bound | with a warning | bound | nodes unknown |\n|---|---|---|---|---|---|---|"
    );
    innocent.row("beside faulty nodes");
}

fn resolutions(families: &[&str], fleets: usize, seed: u64) {
    let mut table: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for (family, number) in families.iter().flat_map(|family| (0..fleets).map(move |number| (family, number))) {
        let mut chance = stream(seed ^ 0x7E, family, number);
        let (nodes, metrics, steps) = sizes(&mut chance);
        let run = Run::of(&fleet(family, &mut chance, nodes, metrics, steps));
        let node = chance.below(nodes);
        let said = &run.decide().nodes[node];
        let (State::Pass, Some(loss)) = (said.state, said.components[0].resolution) else { continue };
        let seen = [1.0, 0.5].map(|part| {
            let mut slower = run.clone();
            (0..metrics).for_each(|metric| slower.scale(metric, node, 1.0 - part * loss));
            slower.states()[node] != State::Pass
        });
        let few = if steps < 6 { "fewer than 6 steps" } else { "6 steps or more" };
        let size = if nodes <= 10 { "up to 10 nodes" } else { "more than 10 nodes" };
        for row in [format!("{size}, {few}"), format!("noise {family}")] {
            let row = table.entry(row).or_default();
            row[0] += 1;
            row[1] += usize::from(seen[0]);
            row[2] += usize::from(seen[1]);
        }
    }
    println!(
        "\n## Resolution\n\nPassing nodes, slowed by the loss their pass says it would have seen, and by half of it.\n"
    );
    println!("| | nodes | seen | seen at half |\n|---|---|---|---|");
    for (row, [nodes, seen, half]) in &table {
        let share = |part: usize| 100.0 * part as f64 / (*nodes).max(1) as f64;
        println!("| {row} | {nodes} | {:.1} % | {:.1} % |", share(*seen), share(*half));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_else(|| "all".into());
    let fleets = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(500);
    let seed = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let families: Vec<&str> =
        ALL.into_iter().filter(|family| wanted == "all" || wanted.split(',').any(|name| name == *family)).collect();
    println!("# Decision campaign: {fleets} fleets of each of {} kinds of noise, seed {seed}\n", families.len());
    healthy(&families, fleets, seed);
    disturbed(fleets, seed);
    second_runs(&families, fleets / 5, seed);
    faults(&families, fleets / 5, seed);
    resolutions(&families, fleets / 5, seed);
}
