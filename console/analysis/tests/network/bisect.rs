//! Whether the adaptive scan names the same faults as a full scan, with fewer pairs, in about log2 n rounds.

use std::collections::HashSet;

use super::sim::{Fault, Fleet, named};
use muster_analysis::Params;
use muster_analysis::network::Localisation;
use muster_analysis::network::schedule::{Bisection, Step, Visit};
use rand::SeedableRng;
use rand::rngs::SmallRng;

const SEEDS: u64 = if cfg!(debug_assertions) { 30 } else { 300 };

struct Outcome {
    found: Localisation,
    rounds: u32,
    pairs: usize,
}

fn scan(fleet: &Fleet, faults: &[Fault], seed: u64) -> Outcome {
    let mut rng = SmallRng::seed_from_u64(seed);
    let offsets = fleet.offsets(&mut rng);
    let mut scan = Bisection::new(&fleet.topology(), ("throughput", fleet.direction), &Params::default(), seed);
    loop {
        match scan.step() {
            Step::Done(found) => return Outcome { found: *found, rounds: scan.rounds(), pairs: scan.pairs() },
            Step::Measure(pairs) => {
                let mut busy = HashSet::new();
                for (a, b) in pairs {
                    assert!(busy.insert(a) && busy.insert(b), "a node is in two pairs of a round");
                    for (src, dst) in [(a, b), (b, a)] {
                        let values = [fleet.value(&mut rng, &offsets, faults, (src, dst))];
                        let up = fleet.up(src, dst);
                        scan.visited(&[Visit { src, dst, values: &values, up: up.as_deref() }]);
                    }
                }
            }
        }
    }
}

/// Checks that nearly all runs are exact; prints what they cost.
fn check(what: &str, fleet: &Fleet, faults: impl Fn(u64) -> Vec<Fault>) {
    let (mut right, mut rounds, mut pairs, mut wrong) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let planted = faults(seed);
        let outcome = scan(fleet, &planted, seed);
        let (names, expected) = (named(&outcome.found), fleet.expected(&planted));
        let ok = names == expected;
        right += u64::from(ok);
        wrong += names.iter().filter(|n| !expected.contains(n)).count();
        rounds += u64::from(outcome.rounds);
        pairs += outcome.pairs as u64;
        if !ok {
            println!(
                "  seed {seed} {planted:?}: {names:?}, open {:?}",
                outcome.found.undecided.iter().map(|u| &u.candidates).collect::<Vec<_>>()
            );
        }
        let most = 3 + 2 * f64::from(fleet.len()).log2().ceil() as u32 + 3;
        assert!(outcome.rounds <= most, "{} rounds", outcome.rounds);
    }
    let full = u64::from(fleet.len()) * u64::from(fleet.len() - 1) / 2;
    println!(
        "{what}: {right} of {SEEDS} exact, {wrong} false, mean {:.1} rounds and {:.1} of {full} pairs",
        rounds as f64 / SEEDS as f64,
        pairs as f64 / SEEDS as f64
    );
    assert!(right * 100 >= SEEDS * 96, "{what}: {right} of {SEEDS}");
    assert!(wrong as u64 * 100 <= SEEDS, "{what}: {wrong} falsely accused");
    assert!(pairs < SEEDS * full, "no pair saved");
}

fn at(seed: u64, of: u32) -> u32 {
    (seed * 7 % u64::from(of)) as u32
}

#[test]
fn single_faults_of_a_small_fleet() {
    let fleet = Fleet::default();
    check("none", &fleet, |_| Vec::new());
    check("uplink at 30 %", &fleet, |s| vec![Fault::Uplink(at(s, 4), at(s / 4, 2), 0.3)]);
    check("node at 50 %", &fleet, |s| vec![Fault::Node(at(s, 16), 0.5)]);
    check("receives at 50 %", &fleet, |s| vec![Fault::Rx(at(s, 16), 0.5)]);
    check("sends at 50 %", &fleet, |s| vec![Fault::Tx(at(s, 16), 0.5)]);
    check("dead", &fleet, |s| vec![Fault::Dead(at(s, 16))]);
}

#[test]
fn two_faults_of_a_small_fleet() {
    let fleet = Fleet::default();
    check("uplink and node", &fleet, |s| {
        vec![Fault::Uplink(at(s, 4), at(s / 4, 2), 0.3), Fault::Node((4 * at(s, 4) + 6) % 16, 0.5)]
    });
    check("two nodes", &fleet, |s| vec![Fault::Node(at(s, 16), 0.5), Fault::Dead((at(s, 16) + 5) % 16)]);
}

#[test]
fn larger_fleets_take_a_few_more_rounds() {
    let fleet = Fleet { racks: 16, per_rack: 16, spines: 4, ..Fleet::default() };
    check("256 nodes, none", &fleet, |_| Vec::new());
    check("256 nodes, uplink", &fleet, |s| vec![Fault::Uplink(at(s, 16), at(s / 4, 4), 0.3)]);
    check("256 nodes, two nodes and an uplink", &fleet, |s| {
        vec![
            Fault::Uplink(at(s, 16), at(s / 4, 4), 0.3),
            Fault::Rx(at(s, 256), 0.5),
            Fault::Node((at(s, 256) + 77) % 256, 0.6),
        ]
    });
}
