//! Whether localisation names exactly the planted faults, over many seeds, and nobody where nothing is planted.

use super::sim::{Fault, Fleet, Routing, named};
use muster_analysis::Params;
use muster_analysis::network::localise::SURE;
use muster_analysis::network::schedule::quick_scan;
use muster_analysis::network::topology::from_csv;
use muster_analysis::network::{Localisation, Matrix, localise};
use muster_wire::Direction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Fewer where the compiler does not optimise.
const SEEDS: u64 = if cfg!(debug_assertions) { 30 } else { 300 };

fn run(fleet: &Fleet, faults: &[Fault], seed: u64) -> Localisation {
    localise(&fleet.matrix(faults, seed), &fleet.topology(), &Params::default())
}

/// Runs of which the verdict is exactly the planted faults.
fn exact(fleet: &Fleet, faults: impl Fn(u64) -> Vec<Fault>) -> u64 {
    let mut right = 0;
    let mut shown = 0;
    for seed in 0..SEEDS {
        let faults = faults(seed);
        let found = run(fleet, &faults, seed);
        let ok = named(&found) == fleet.expected(&faults);
        right += u64::from(ok);
        if !ok && shown < 3 {
            shown += 1;
            println!(
                "seed {seed} planted {faults:?}\n  suspects {:?}\n  undecided {:?}",
                found.suspects, found.undecided
            );
        }
    }
    println!("{right} of {SEEDS} exact");
    right
}

fn assert_all(right: u64) {
    assert_eq!(right, SEEDS);
}

/// A different element for every seed.
fn at(seed: u64, of: u32) -> u32 {
    (seed * 7 % u64::from(of)) as u32
}

#[test]
fn nobody_is_accused_without_a_fault() {
    for noise in [0.0, 0.01, 0.05, 0.2] {
        for routing in [Routing::DestinationMod, Routing::EcmpUnknown] {
            let fleet = Fleet { noise, routing, missing: 0.1, ..Fleet::default() };
            assert_all(exact(&fleet, |_| Vec::new()));
        }
    }
}

#[test]
fn a_bad_uplink_is_named_and_no_node_behind_it() {
    for routing in [Routing::DestinationMod, Routing::Ecmp] {
        for missing in [0.0, 0.3] {
            let fleet = Fleet { routing, missing, ..Fleet::default() };
            assert_all(exact(&fleet, |s| vec![Fault::Uplink(at(s, 4), at(s / 4, 2), 0.3)]));
        }
    }
}

#[test]
fn bad_nodes_are_named_by_direction() {
    let fleet = Fleet::default();
    assert_all(exact(&fleet, |s| vec![Fault::Node(at(s, 16), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Rx(at(s, 16), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Tx(at(s, 16), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Dead(at(s, 16))]));
}

#[test]
fn leaves_and_isolated_pairs_are_named() {
    let fleet = Fleet { racks: 6, ..Fleet::default() };
    assert_all(exact(&fleet, |s| vec![Fault::Leaf(at(s, 6), 0.6)]));
    assert_all(exact(&fleet, |s| vec![Fault::Pair(at(s, 12), 12 + at(s, 12), 0.3)]));
}

#[test]
fn a_pair_whose_replies_cross_a_bad_uplink_is_not_accused_and_one_that_is_bad_both_ways_is() {
    let fleet = Fleet::default();
    // What n1 sends to n4 takes spine 0, the replies take spine 1.
    let uplink = Fault::Uplink(0, 1, 0.3);
    for seed in 0..SEEDS {
        let mut matrix = fleet.matrix(&[uplink], seed);
        [0.0, 20.0].into_iter().for_each(|value| matrix.push(1, 4, &[value], fleet.up(1, 4).as_deref()));
        let found = localise(&matrix, &fleet.topology(), &Params::default());
        assert_eq!(named(&found), fleet.expected(&[uplink]), "seed {seed}");
        let open: Vec<&str> = found.undecided.iter().map(|open| open.reason.as_str()).collect();
        let said = "n1-n4 is slow, but its replies cross leaf0-spine1: measure the pair again once that is repaired";
        assert_eq!(open, [said], "seed {seed}");
    }
    assert_all(exact(&fleet, |s| vec![uplink, Fault::Pair(4 + at(s, 4), 8 + at(s, 8), 0.1)]));
}

#[test]
fn quick_scans_in_which_one_visit_of_eight_is_slow_by_chance_accuse_hardly_anybody() {
    let fleet = Fleet { noise: 0.01, ..Fleet::default() };
    let accuses = |seed: &u64| {
        let mut rng = SmallRng::seed_from_u64(*seed);
        let (offsets, mut matrix) = (fleet.offsets(&mut rng), fleet.empty());
        for (a, b) in quick_scan(&fleet.topology()).into_iter().flat_map(|tier| tier.pairs) {
            // What holds a node up holds up both directions.
            let slowed = if rng.random_bool(0.125) { 0.6 } else { 1.0 };
            for (src, dst) in [(a, b), (b, a)] {
                let value = slowed * fleet.value(&mut rng, &offsets, &[], (src, dst));
                matrix.push(src, dst, &[value], fleet.up(src, dst).as_deref());
            }
        }
        let found = localise(&matrix, &fleet.topology(), &Params::default());
        found.suspects.iter().any(|suspect| suspect.confidence >= SURE)
    };
    let accused = (0..10 * SEEDS).filter(accuses).count() as u64;
    println!("{accused} of {} accuse somebody", 10 * SEEDS);
    assert!(accused <= SEEDS / 2, "{accused} of {} accuse somebody", 10 * SEEDS);
}

#[test]
fn a_pair_is_named_with_confidence_if_two_of_its_visits_are_alike() {
    let fleet = Fleet { noise: 0.02, ..Fleet::default() };
    // What n1 sends to n6, of the usual 80: a flow that stood still and one that was held up are no fault of the pair.
    let cases: [(&[f64], bool); 4] =
        [(&[0.0, 58.0], false), (&[0.0, 25.0, 28.0], true), (&[0.0, 0.0], true), (&[20.0, 58.0], false)];
    for seed in 0..SEEDS {
        for (visits, sure) in cases {
            let (sound, mut matrix) = (fleet.matrix(&[], seed), fleet.empty());
            for (at, cell) in sound.cells().iter().enumerate().filter(|(_, c)| (c.src, c.dst) != (1, 6)) {
                let value = f64::from(sound.values(at)[0]);
                matrix.push(cell.src, cell.dst, &[value], fleet.up(cell.src, cell.dst).as_deref());
            }
            visits.iter().for_each(|value| matrix.push(1, 6, &[*value], fleet.up(1, 6).as_deref()));
            let found = localise(&matrix, &fleet.topology(), &Params::default());
            assert_eq!(named(&found), ["pair n1-n6"], "{visits:?}, seed {seed}");
            assert_eq!(found.suspects[0].confidence >= SURE, sure, "{visits:?}, seed {seed}: {:?}", found.suspects);
            assert!(sure || !found.next_pairs.is_empty(), "{visits:?} are looked at again");
        }
    }
}

#[test]
fn two_and_three_faults_at_once_are_named() {
    let fleet = Fleet { racks: 6, per_rack: 4, spines: 3, missing: 0.1, ..Fleet::default() };
    assert_all(exact(&fleet, |s| vec![Fault::Uplink(at(s, 6), at(s, 3), 0.3), Fault::Node(at(s, 24), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Uplink(0, at(s, 3), 0.3), Fault::Uplink(4, at(s / 2, 3), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Dead(at(s, 24)), Fault::Rx((at(s, 24) + 5) % 24, 0.4)]));
    assert_all(exact(&fleet, |s| {
        vec![Fault::Tx(at(s, 8), 0.5), Fault::Uplink(3, at(s, 3), 0.4), Fault::Node(16 + at(s, 8), 0.6)]
    }));
}

#[test]
fn latencies_are_read_the_other_way() {
    let fleet = Fleet { direction: Direction::LowerIsBetter, ..Fleet::default() };
    assert_all(exact(&fleet, |s| vec![Fault::Uplink(at(s, 4), at(s / 4, 2), 0.5)]));
    assert_all(exact(&fleet, |s| vec![Fault::Rx(at(s, 16), 0.5)]));
    let found = run(&fleet, &[Fault::Rx(3, 0.5)], 1);
    let suspect = &found.suspects[0];
    assert!(
        (1.9..2.1).contains(&suspect.effect) && suspect.interval[0] < 2.0 && suspect.interval[1] > 2.0,
        "{suspect:?}"
    );
}

#[test]
fn unknown_routes_leave_the_uplink_open_but_not_the_leaf() {
    let fleet = Fleet { routing: Routing::EcmpUnknown, racks: 6, ..Fleet::default() };
    for seed in 0..SEEDS {
        let found = run(&fleet, &[Fault::Uplink(at(seed, 6), 0, 0.3)], seed);
        assert!(found.suspects.is_empty(), "{:?}", found.suspects);
        let open: Vec<&str> = found.undecided.iter().flat_map(|u| &u.candidates).map(|c| c.element.as_str()).collect();
        assert_eq!(open, [format!("leaf{}-?", at(seed, 6))], "{:?}", found.undecided);
        assert!(!found.next_pairs.is_empty());
    }
}

#[test]
fn the_effect_and_its_pairs_are_told() {
    let fleet = Fleet::default();
    let found = run(&fleet, &[Fault::Uplink(3, 1, 0.31)], 5);
    let suspect = &found.suspects[0];
    assert_eq!((suspect.pairs, suspect.slow), (48, 48));
    assert!(suspect.interval[0] < 0.31 && 0.31 < suspect.interval[1], "{suspect:?}");
    assert!(suspect.confidence > 0.95);
}

#[test]
fn a_nic_a_node_and_a_link_of_one_rail_are_told_apart() {
    let fleet = Fleet { racks: 4, per_rack: 4, spines: 2, noise: 0.05, ..Fleet::default() };
    for seed in 0..SEEDS {
        let (bad, node) = (at(seed, 16), (at(seed, 16) + 7) % 16);
        let link = Fault::Uplink(at(seed, 4), at(seed / 4, 2), 0.4);
        // Each rail is a fabric of its own: of rail 1 a NIC and a link are bad, of a node all rails.
        let faults = |rail| match rail {
            1 => vec![Fault::Node(bad, 0.5), link, Fault::Node(node, 0.6)],
            _ => vec![Fault::Node(node, 0.6)],
        };
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        let mut rows = String::new();
        for rail in 0..3 {
            let of = fleet.matrix(&faults(rail), 10 * seed + rail);
            let name = |at: u32| format!("{}:rail{rail}", of.endpoints()[at as usize]);
            for (at, cell) in of.cells().iter().enumerate() {
                let values: Vec<f64> = of.values(at).iter().map(|v| f64::from(*v)).collect();
                let up = of.up(at).map(|up| format!("r{rail}{up}"));
                matrix.push_named(&name(cell.src), &name(cell.dst), &values, up.as_deref());
            }
            rows.extend((0..fleet.len()).map(|i| format!("{},r{rail}leaf{}\n", name(i), fleet.rack(i))));
        }
        let topology = from_csv(&rows).unwrap();
        let mut expected = vec![
            format!("nic n{bad}:rail1"),
            format!("node n{node}"),
            format!("uplink r1leaf{}-spine{}", at(seed, 4), at(seed / 4, 2)),
        ];
        expected.sort();
        let found = localise(&matrix, &topology, &Params::default());
        assert_eq!(named(&found), expected, "seed {seed}: {:?} {:?}", found.suspects, found.undecided);
    }
}
