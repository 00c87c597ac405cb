//! Matrices that are sparse, one-sided, of several NICs, of rare events, or wrong: what is said, and what is left open.

use super::sim::{Fault, Fleet, Routing, named};
use muster_analysis::Params;
use muster_analysis::network::localise::Kind;
use muster_analysis::network::topology::from_csv;
use muster_analysis::network::{Localisation, Matrix, Topology, direction_of, localise, read_matrix};
use muster_wire::Direction;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const SEEDS: u64 = if cfg!(debug_assertions) { 20 } else { 200 };

fn run(matrix: &Matrix, topology: &Topology) -> Localisation {
    localise(matrix, topology, &Params::default())
}

#[test]
fn a_file_of_pairs_and_a_file_of_leaves_name_the_uplink() {
    let fleet = Fleet::default();
    let faults = [Fault::Uplink(2, 1, 0.3)];
    let matrix = fleet.matrix(&faults, 7);
    let names = matrix.endpoints();
    for bare in [false, true] {
        let rows: String = matrix
            .cells()
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let spine = format!("spine{}", fleet.spine(cell.src, cell.dst));
                let up = if bare { spine } else { fleet.up(cell.src, cell.dst).unwrap_or_default() };
                format!("{},{},bw,{},{up}\n", names[cell.src as usize], names[cell.dst as usize], matrix.values(at)[0])
            })
            .collect();
        let read =
            read_matrix(&format!("src,dst,metric,value,up\n{rows}"), direction_of).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(named(&run(&read["bw"], &fleet.topology())), fleet.expected(&faults));
    }
}

#[test]
fn one_direction_leaves_the_direction_open() {
    let fleet = Fleet::default();
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let offsets = fleet.offsets(&mut rng);
        let mut matrix = fleet.empty();
        // The bad node only ever sends: nobody can say whether it would receive well.
        for (src, dst) in (0..16).flat_map(|a| (a + 1..16).map(move |b| (a, b))) {
            let value = fleet.value(&mut rng, &offsets, &[Fault::Node(0, 0.5)], (src, dst));
            matrix.push(src, dst, &[value], fleet.up(src, dst).as_deref());
        }
        let found = run(&matrix, &fleet.topology());
        assert_eq!(named(&found), ["node n0"], "{found:?}");
        assert!(
            found.undecided.iter().any(|u| u.candidates.iter().any(|c| c.kind == Kind::NodeTx)),
            "{:?}",
            found.undecided
        );
        assert!(
            found.next_pairs.iter().all(|[_, dst]| dst == "n0") && !found.next_pairs.is_empty(),
            "{:?}",
            found.next_pairs
        );
    }
}

#[test]
fn a_leaf_of_one_node_is_not_told_from_its_node() {
    let rows: String = (0..9).map(|i| format!("n{i},leaf{}\n", if i == 8 { 9 } else { i / 4 })).collect();
    let topology = from_csv(&rows).unwrap_or_else(|e| panic!("{e}"));
    let mut matrix = Matrix::new("bw", Direction::HigherIsBetter);
    for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let value = if a == 8 || b == 8 { 50.0 } else { 100.0 } + f64::from(a * 3 + b) * 0.1;
        matrix.push_named(&format!("n{a}"), &format!("n{b}"), &[value], None);
    }
    let found = run(&matrix, &topology);
    assert!(found.suspects.is_empty(), "{:?}", found.suspects);
    let open: Vec<&str> = found.undecided.iter().flat_map(|u| &u.candidates).map(|c| c.element.as_str()).collect();
    assert!(open.contains(&"n8") && open.contains(&"leaf9"), "{open:?}");
}

#[test]
fn a_bad_nic_is_not_a_bad_node() {
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (bad, all) = ((seed % 8) as u32, seed % 2 == 1);
        let mut matrix = Matrix::new("bw", Direction::HigherIsBetter);
        for (a, b, nic) in (0..8).flat_map(|a| (0..8).flat_map(move |b| (0..4).map(move |nic| (a, b, nic)))) {
            let hit = (a == bad || b == bad) && (all || nic == 2);
            let value = if hit { 40.0 } else { 100.0 } * (0.03 * super::sim::normal(&mut rng)).exp();
            if a != b {
                matrix.push_named(&format!("n{a}:mlx{nic}"), &format!("n{b}:mlx{nic}"), &[value], None);
            }
        }
        let found = run(&matrix, &Topology::flat(&["n0"]));
        let expected = if all { format!("node n{bad}") } else { format!("nic n{bad}:mlx2") };
        assert_eq!(named(&found), [expected], "{found:?}");
    }
}

#[test]
fn retransmits_name_the_lossy_uplink_though_most_counts_are_zero() {
    let fleet = Fleet { racks: 4, per_rack: 4, ..Fleet::default() };
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let fault = [Fault::Uplink((seed % 4) as u32, (seed / 4 % 2) as u32, 0.5)];
        let mut matrix = Matrix::new("retransmits", Direction::LowerIsBetter);
        for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let lossy = fleet.share(&fault, a, b) < 1.0;
            let count = if lossy {
                rng.random_range(30..300)
            } else {
                i32::from(rng.random::<f64>() < 0.1) * rng.random_range(1..4)
            };
            matrix.push_named(&format!("n{a}"), &format!("n{b}"), &[f64::from(count)], fleet.up(a, b).as_deref());
        }
        let found = run(&matrix, &fleet.topology());
        assert_eq!(named(&found), fleet.expected(&fault), "seed {seed} {found:?}");
    }
}

#[test]
fn flows_that_share_a_slow_uplink_unevenly_still_point_at_it() {
    let fleet = Fleet::default();
    let mut right = 0;
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let offsets = fleet.offsets(&mut rng);
        let fault = [Fault::Uplink((seed % 4) as u32, (seed / 4 % 2) as u32, 0.5)];
        let mut matrix = fleet.empty();
        for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let flows = if fleet.share(&fault, a, b) < 1.0 { f64::from(rng.random_range(1..3)) } else { 1.0 };
            let value = fleet.value(&mut rng, &offsets, &fault, (a, b)) / flows;
            matrix.push(a, b, &[value], fleet.up(a, b).as_deref());
        }
        right += u64::from(named(&run(&matrix, &fleet.topology())) == fleet.expected(&fault));
    }
    println!("{right} of {SEEDS}");
    assert!(right * 100 >= SEEDS * 97, "{right} of {SEEDS}");
}

#[test]
fn hiccups_accuse_nobody() {
    let fleet = Fleet { racks: 6, per_rack: 6, noise: 0.03, routing: Routing::EcmpUnknown, ..Fleet::default() };
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let offsets = fleet.offsets(&mut rng);
        let mut matrix = fleet.empty();
        for (a, b) in (0..36).flat_map(|a| (0..36).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let hiccup = if rng.random::<f64>() < 0.02 { rng.random_range(0.1..0.9) } else { 1.0 };
            matrix.push(a, b, &[fleet.value(&mut rng, &offsets, &[], (a, b)) * hiccup], None);
        }
        let found = run(&matrix, &fleet.topology());
        assert!(found.suspects.is_empty(), "seed {seed} {:?}", found.suspects);
        assert!(!found.next_pairs.is_empty(), "hiccups are asked for again");
    }
}

#[test]
fn two_kinds_of_nodes_are_not_half_a_fleet_of_faults() {
    let fleet = Fleet { racks: 4, per_rack: 4, ..Fleet::default() };
    let slow: Vec<Fault> = (0..7).map(|i| Fault::Node(i * 2, 0.5)).collect();
    let found = run(&fleet.matrix(&slow, 3), &fleet.topology());
    assert!(found.suspects.iter().all(|s| s.kind != Kind::Node), "{:?}", found.suspects);
    assert!(!found.undecided.is_empty());
}

#[test]
fn a_single_slow_value_is_asked_for_again() {
    let fleet = Fleet { noise: 0.02, ..Fleet::default() };
    let mut rng = SmallRng::seed_from_u64(1);
    let offsets = fleet.offsets(&mut rng);
    let mut matrix = fleet.empty();
    for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let left = if (a, b) == (4, 9) { 0.3 } else { 1.0 };
        matrix.push(a, b, &[left * fleet.value(&mut rng, &offsets, &[], (a, b))], fleet.up(a, b).as_deref());
    }
    let found = run(&matrix, &fleet.topology());
    assert_eq!(named(&found), ["pair n4-n9"]);
    assert!(found.suspects[0].confidence < 0.9);
    assert_eq!(found.next_pairs[0], ["n4", "n9"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_matrix_makes_it_panic_or_gives_numbers_that_are_none(
        cells in proptest::collection::vec((0u32..9, 0u32..9, proptest::collection::vec(prop_oneof![Just(0.0), -1.0f64..1e12], 0..3), 0u8..5), 0..80),
        leaves in 1u32..5, lower: bool,
    ) {
        let direction = if lower { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
        let rows: String = (0..7).map(|i| format!("n{i},l{}\n", i % leaves)).collect();
        let mut matrix = Matrix::new("x", direction);
        for (a, b, values, up) in &cells {
            if a != b {
                let up = ["", "s1", "l0-s1", "l0-s1-l2", "cable"][usize::from(*up)];
                matrix.push_named(&format!("n{a}"), &format!("n{b}"), values, Some(up).filter(|u| !u.is_empty()));
            }
        }
        let found = run(&matrix, &from_csv(&rows).unwrap());
        for s in &found.suspects {
            prop_assert!(s.effect.is_finite() && s.interval[0] <= s.interval[1] && (0.0..=1.0).contains(&s.confidence), "{s:?}");
        }
        prop_assert!(serde_json::to_string(&found).is_ok());
        prop_assert_eq!(&run(&matrix, &from_csv(&rows).unwrap()), &found);
    }
}

#[test]
fn an_uplink_that_loses_one_packet_in_a_hundred_is_named_among_four_leaves_and_two_spines() {
    // Half of all uplinks share the spine of the bad one, so a third of their pairs lose packets too.
    let topology = muster_analysis::network::topology::from_csv(
        &(0..16).map(|n| format!("n{n},leaf{}\n", n / 4)).collect::<String>(),
    )
    .unwrap();
    let mut matrix = Matrix::new("retransmits", muster_wire::Direction::LowerIsBetter);
    for (src, dst) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let (from, to, spine) = (src / 4, dst / 4, dst % 2);
        let crosses = from != to && spine == 1 && (from == 3 || to == 3);
        let share = if crosses { 0.006 + 0.0004 * f64::from((src * 7 + dst * 3) % 20) } else { 0.0 };
        let up = (from != to).then(|| format!("leaf{from}-spine{spine}-leaf{to}"));
        matrix.push_named(&format!("n{src}"), &format!("n{dst}"), &[share], up.as_deref());
    }
    let found = localise(&matrix, &topology, &Params::default());
    let named: Vec<&str> = found.suspects.iter().map(|s| s.element.as_str()).collect();
    assert_eq!(named, ["leaf3-spine1"], "{found:#?}");
}
