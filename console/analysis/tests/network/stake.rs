//! Whether nobody is accused for another's fault, for a wrong topology or for noise, and small effects are still named.

use super::made::{Fault, Made, Tail, name};
use muster_analysis::Params;
use muster_analysis::network::localise::{Kind, SURE};
use muster_analysis::network::{Localisation, localise};

fn run(made: &Made, seed: u64) -> Localisation {
    localise(&made.matrix(seed), &made.topology(), &Params::default())
}

fn accused(found: &Localisation) -> Vec<&str> {
    found.suspects.iter().filter(|s| s.confidence >= SURE).map(|s| s.element.as_str()).collect()
}

fn names(nodes: impl IntoIterator<Item = usize>) -> Vec<String> {
    nodes.into_iter().map(name).collect()
}

#[test]
fn without_a_topology_a_bad_leaf_is_a_group_and_none_of_its_nodes_is_accused() {
    let mut whole = 0;
    for seed in 0..40 {
        let leaf = (seed % 8) as usize;
        let left = [0.3, 0.5, 0.7, 0.85][(seed / 8 % 4) as usize];
        let made = Made { given: false, faults: vec![Fault::Leaf(leaf, left)], natural: 0.01, ..Made::default() };
        let found = run(&made, seed);
        assert_eq!(accused(&found), [""; 0], "seed {seed}");
        whole += u32::from(found.groups.len() == 1 && found.groups[0].nodes == names(leaf * 8..leaf * 8 + 8));
    }
    assert!(whole >= 39, "{whole} of 40");
}

#[test]
fn a_leaf_fault_in_small_racks_without_a_topology_accuses_no_node() {
    for seed in 0..40 {
        let made = Made {
            nodes: 24,
            per_leaf: [2, 4, 6][(seed % 3) as usize],
            given: false,
            noise: 0.05,
            one_way: seed % 2 == 1,
            faults: vec![Fault::Leaf(1, 0.6)],
            ..Made::default()
        };
        let found = run(&made, seed);
        assert_eq!(accused(&found), [""; 0], "seed {seed}");
        assert!(!found.undecided.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_bad_leaf_beside_hop_distances_is_a_group_without_a_topology() {
    for seed in 0..20 {
        let made = Made { given: false, far: 0.8, faults: vec![Fault::Leaf(3, 0.4)], ..Made::default() };
        let found = run(&made, seed);
        assert_eq!(accused(&found), [""; 0], "seed {seed}");
        assert_eq!(found.groups.len(), 1, "seed {seed} {:?}", found.undecided);
        assert_eq!(found.groups[0].nodes, names(24..32), "seed {seed}");
    }
}

#[test]
fn a_node_is_still_accused_without_a_topology() {
    for seed in 0..20 {
        let bad = (seed * 7 % 64) as usize;
        let made = Made { given: false, faults: vec![Fault::Node(bad, 0.6)], ..Made::default() };
        assert_eq!(accused(&run(&made, seed)), [name(bad)], "seed {seed}");
        let both = vec![Fault::Leaf(2, 0.5), Fault::Node(60, 0.7)];
        let found = run(&Made { given: false, faults: both, ..Made::default() }, seed);
        assert_eq!(accused(&found), [name(60)], "seed {seed}");
        assert_eq!(found.groups.len(), 1, "seed {seed}");
    }
}

#[test]
fn nodes_swapped_in_the_topology_are_said_by_the_measured_paths_and_the_fault_is_still_found() {
    for seed in 0..20 {
        let made =
            Made { routes: true, swapped: Some((16, 32)), faults: vec![Fault::Uplink(5, 1, 0.4)], ..Made::default() };
        let found = run(&made, seed);
        assert_eq!(accused(&found), ["leaf5-spine1"], "seed {seed}");
        let said: Vec<_> = found.misfits.iter().map(|m| (m.node.clone(), m.swapped_with.clone())).collect();
        assert_eq!(said, [(name(16), Some(name(32))), (name(32), Some(name(16)))], "seed {seed}");
        assert_eq!((found.misfits[0].said.as_str(), found.misfits[0].fits.as_deref()), ("leaf4", Some("leaf2")));
    }
}

#[test]
fn nodes_swapped_in_the_topology_are_said_by_what_their_pairs_deliver() {
    for seed in 0..20 {
        let swapped = Some((16, 32));
        let by_leaf = Made { swapped, faults: vec![Fault::Leaf(2, 0.5)], ..Made::default() };
        let by_distance = Made { swapped, far: 0.7, faults: vec![Fault::Node(40, 0.5)], ..Made::default() };
        for (made, expected) in [(by_leaf, "leaf2".to_owned()), (by_distance, name(40))] {
            let found = run(&made, seed);
            assert_eq!(accused(&found), [expected], "seed {seed} {:?}", found.misfits);
            let said: Vec<_> = found.misfits.iter().map(|m| m.node.clone()).collect();
            assert!(said.contains(&name(16)) && said.contains(&name(32)) && said.len() == 2, "seed {seed} {said:?}");
        }
    }
}

#[test]
fn half_of_the_leaves_slow_is_contested_and_both_halves_are_listed() {
    for seed in 0..20 {
        for (given, noise, left) in [(true, 0.03, 0.7), (true, 0.05, 0.85), (false, 0.03, 0.7), (true, 0.02, 0.5)] {
            let faults = (0..4).map(|leaf| Fault::Leaf(2 * leaf, left)).collect();
            let made = Made { given, noise, faults, ..Made::default() };
            let found = run(&made, seed);
            assert_eq!(accused(&found), [""; 0], "seed {seed}");
            let parts =
                found.contested.first().unwrap_or_else(|| panic!("seed {seed} {given} {noise} {left} {found:?}"));
            let (slow, fast) = if given { (4, 4) } else { (32, 32) };
            assert_eq!((parts.slow.len(), parts.fast.len()), (slow, fast), "seed {seed} {parts:?}");
            assert!((parts.effect - left).abs() < 0.05, "seed {seed} {parts:?}");
            assert!(found.undecided[0].reason.starts_with("contested: "), "{:?}", found.undecided);
        }
        let faults = (0..24).map(|node| Fault::Node(node * 2, 0.7)).collect();
        let found = run(&Made { faults, ..Made::default() }, seed);
        assert_eq!((accused(&found).len(), found.contested.len()), (0, 1), "seed {seed}");
        assert_eq!(found.contested[0].kind, Kind::Node);
    }
}

#[test]
fn a_node_that_is_five_per_cent_slow_is_warned_about_with_its_standard_error() {
    for seed in 0..20 {
        let bad = (seed * 5 % 61) as usize;
        let base = Made { nodes: 61, per_leaf: 8, noise: 0.035, ..Made::default() };
        for given in [true, false] {
            let found = run(&Made { given, faults: vec![Fault::Node(bad, 0.95)], ..base.clone() }, seed);
            assert_eq!(accused(&found), [""; 0], "seed {seed}");
            assert_eq!(found.warnings.len(), 1, "seed {seed} {:?}", found.warnings);
            let warning = &found.warnings[0];
            assert_eq!((warning.kind, warning.element.as_str()), (Kind::Node, name(bad).as_str()), "seed {seed}");
            assert!((warning.effect - 0.95).abs() < 4.0 * warning.error && warning.error < 0.006, "{warning:?}");
        }
        let found = run(&Made { faults: vec![Fault::Rx(bad, 0.95)], ..base.clone() }, seed);
        let kinds: Vec<Kind> = found.warnings.iter().map(|w| w.kind).collect();
        assert_eq!(kinds, [Kind::NodeRx], "seed {seed} {:?}", found.warnings);
    }
}

#[test]
fn sound_matrices_of_any_size_and_noise_accuse_and_warn_of_nobody() {
    let draws = if cfg!(debug_assertions) { 600 } else { 3_000 };
    let (mut accusing, mut warning, mut open) = (0, 0, 0);
    for seed in 1..=draws {
        let made = Made::clean(seed);
        let found = run(&made, seed);
        accusing += u64::from(!accused(&found).is_empty());
        warning += u64::from(!found.warnings.is_empty());
        // Of four nodes and fewer a pass is as rash as an accusation.
        open += u64::from(!found.undecided.is_empty() && made.nodes > 4);
    }
    // One in a thousand and one in a hundred; so few draws show none, or a few.
    assert!(accusing * 500 <= draws && warning * 100 <= draws, "{accusing} accuse and {warning} warn of {draws}");
    assert!(open * 50 <= draws, "{open} of {draws} are undecided");
}

#[test]
fn four_nodes_accuse_nobody_without_a_fault() {
    for seed in 0..2_000 {
        let tail = [Tail::Normal, Tail::Student, Tail::Mixed, Tail::Straggling][(seed % 4) as usize];
        let noise = [0.005, 0.02, 0.05, 0.1][(seed / 4 % 4) as usize];
        let made = Made { nodes: 4, per_leaf: 4, given: seed % 3 == 0, noise, tail, ..Made::default() };
        assert_eq!(accused(&run(&made, seed)), [""; 0], "seed {seed}");
    }
    let dead = Made { nodes: 4, per_leaf: 4, noise: 0.01, faults: vec![Fault::Dead(2)], ..Made::default() };
    assert_eq!(accused(&run(&dead, 1)), [name(2)], "what does not work at all needs no statistics");
}

#[test]
fn what_is_accused_is_right_in_nine_of_ten_cases() {
    let (mut right, mut all) = (0, 0);
    for seed in 0..300 {
        let made = Made::faulty(seed);
        let (found, guilty) = (run(&made, seed), made.guilty());
        all += accused(&found).len();
        right += accused(&found).iter().filter(|element| guilty.iter().any(|g| g == *element)).count();
    }
    assert!(all > 150 && right * 100 >= all * 97, "{right} of {all}");
}
