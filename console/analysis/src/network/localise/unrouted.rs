//! Where routes are unknown, is a node slow, or an uplink of its leaf that all its visits from other leaves cross?

use super::found::{Candidate, Localisation, Suspect, Undecided};
use super::places::NONE;
use super::{Case, Kind};
use crate::sample::median_of_sorted;

/// Visits inside the leaf that lost less than this share of the effect (as logarithms) are fine.
const FINE: f64 = 0.5;
/// Logarithm of an effect of nothing left.
const FAILED: f64 = 6.9;

/// Takes back accusations of nodes that are slow across the boundary of their leaf only: an uplink explains them as well.
pub(super) fn instead_of_sides(case: &Case<'_>, out: &mut Localisation) {
    if !case.places.routes.is_empty() {
        return;
    }
    let mut kept = Vec::new();
    for suspect in std::mem::take(&mut out.suspects) {
        match leaf_behind(case, &suspect) {
            Some(leaf) => fold(&case.places.leaves[leaf as usize], &suspect, out),
            None => kept.push(suspect),
        }
    }
    out.suspects = kept;
}

/// The leaf whose uplinks explain the slow visits of a node as well as the node does.
fn leaf_behind(case: &Case<'_>, suspect: &Suspect) -> Option<u32> {
    let (sends, receives) = match suspect.kind {
        Kind::Node | Kind::Nic => (true, true),
        Kind::NodeTx => (true, false),
        Kind::NodeRx => (false, true),
        Kind::Leaf | Kind::Uplink | Kind::Pair => return None,
    };
    let places = case.places;
    let own = |end: u32| match suspect.kind {
        Kind::Nic => case.matrix.endpoints()[end as usize] == suspect.element,
        _ => places.nodes[places.node_of[end as usize] as usize] == suspect.element,
    };
    let leaf = |end: u32| places.leaf_of[end as usize];
    let mut ends = (0..places.node_of.len() as u32).filter(|&end| own(end)).map(leaf);
    let home = ends.next().filter(|&home| home != NONE)?;
    let neighbours = (0..places.node_of.len() as u32).any(|end| !own(end) && leaf(end) == home);
    if !neighbours || ends.any(|other| other != home) {
        return None;
    }
    let mut inside: Vec<f64> = Vec::new();
    for (cell, &worse) in case.matrix.cells().iter().zip(&case.residuals.worse) {
        let asked = sends && own(cell.src) || receives && own(cell.dst);
        if asked && !worse.is_nan() && leaf(cell.src) == home && leaf(cell.dst) == home {
            inside.push(f64::from(worse));
        }
    }
    inside.sort_unstable_by(f64::total_cmp);
    let effect = suspect.effect.ln().abs().min(FAILED);
    // A node that answers nobody is dropped before it is measured inside its leaf.
    let fine = if inside.is_empty() { effect < FAILED } else { median_of_sorted(&inside) < FINE * effect };
    fine.then_some(home)
}

/// Adds a node to what is undecided about the uplinks of its leaf.
fn fold(leaf: &str, suspect: &Suspect, out: &mut Localisation) {
    let uplink = Candidate { kind: Kind::Uplink, element: format!("{leaf}-?") };
    let node = Candidate { kind: suspect.kind, element: suspect.element.clone() };
    let name = &suspect.element;
    if let Some(known) = out.undecided.iter_mut().find(|known| known.candidates.contains(&uplink)) {
        known.reason += &format!("; {name} is slow across the boundary of {leaf} only as well");
        known.candidates.push(node);
        known.pairs += suspect.pairs;
        known.slow += suspect.slow;
        return;
    }
    let reason = format!(
        "{name} is slow across the boundary of {leaf} only: one of the uplinks of {leaf} explains that as well, but routes are \
         not known; name them in column `up`"
    );
    let (pairs, slow) = (suspect.pairs, suspect.slow);
    out.undecided.push(Undecided { candidates: vec![uplink, node], reason, pairs, slow });
}

#[cfg(test)]
mod tests {
    use muster_wire::Direction;

    use super::super::localise;
    use super::*;
    use crate::Params;
    use crate::network::{Matrix, topology};

    /// Twelve nodes under three leaves; what n6 receives from other leaves is slow, and inside its leaf as told.
    fn found(inside: f64) -> Localisation {
        let rows: String = (0..12).map(|node| format!("n{node},leaf{}\n", node / 4)).collect();
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        for (src, dst) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let far = src / 4 != dst / 4;
            let share = if dst != 6 {
                1.0
            } else if far {
                0.5
            } else {
                inside
            };
            let value = 200.0 * share * (1.0 + 0.004 * f64::from((src * 7 + dst * 3) % 10));
            matrix.push_named(&format!("n{src}"), &format!("n{dst}"), &[value], None);
        }
        localise(&matrix, &topology::from_csv(&rows).unwrap(), &Params::default())
    }

    fn names(open: &Undecided) -> Vec<&str> {
        open.candidates.iter().map(|candidate| candidate.element.as_str()).collect()
    }

    #[test]
    fn a_node_that_is_slow_from_other_leaves_only_is_not_accused() {
        let found = found(1.0);
        assert!(found.suspects.iter().all(|suspect| suspect.element != "n6"), "{:?}", found.suspects);
        assert!(found.undecided.iter().any(|open| names(open).contains(&"leaf1-?")), "{:?}", found.undecided);
    }

    #[test]
    fn nodes_of_one_leaf_join_what_is_undecided_about_its_uplinks() {
        let suspect = |element: &str| Suspect {
            kind: Kind::NodeRx,
            element: element.to_owned(),
            effect: 0.5,
            interval: [0.4, 0.6],
            pairs: 8,
            slow: 4,
            confidence: 1.0,
        };
        let mut out = Localisation::default();
        for name in ["n6", "n7"] {
            fold("leaf1", &suspect(name), &mut out);
        }
        fold("leaf2", &suspect("n8"), &mut out);
        assert_eq!(
            out.undecided.iter().map(names).collect::<Vec<_>>(),
            [vec!["leaf1-?", "n6", "n7"], vec!["leaf2-?", "n8"]]
        );
        assert_eq!((out.undecided[0].pairs, out.undecided[0].slow), (16, 8));
    }

    #[test]
    fn a_node_that_is_slow_inside_its_leaf_too_stays_accused() {
        let found = found(0.5);
        assert_eq!(
            found.suspects.iter().map(|s| (s.kind, s.element.as_str())).collect::<Vec<_>>(),
            [(Kind::NodeRx, "n6")]
        );
    }
}
