//! Which slow pairs are slow because something on their way loses packets?
//!
//! A flow over a lossy element is slow by chance: by much on one pair, hardly on the next. What such pairs have in common is
//! then easily another element that a few of them happen to cross. So losses are localised first, and what else is
//! accused of slowness must stand without the pairs that losses explain.

use super::localise::{Kind, SURE, Suspect, crossing, localise_but};
use super::{Localisation, Matrix, Topology, localise};
use crate::Params;

/// What `matrix` points at, beside the `losses` of the same visits where they were measured. As [`localise()`] where they
/// point at nothing, or are the matrix itself.
#[must_use]
pub fn localise_beside(matrix: &Matrix, losses: Option<&Matrix>, topology: &Topology, params: &Params) -> Localisation {
    let found = localise(matrix, topology, params);
    let Some(losses) = losses.filter(|losses| losses.metric() != matrix.metric()) else { return found };
    if found.suspects.is_empty() && found.undecided.is_empty() {
        return found;
    }
    let mut lossy = localise(losses, topology, params).suspects;
    lossy.retain(|suspect| suspect.confidence >= SURE);
    let known = |suspect: &Suspect| lossy.iter().any(|other| alike(suspect, other));
    if lossy.is_empty() || found.suspects.iter().all(known) && found.undecided.is_empty() {
        return found;
    }
    let crossed = crossing(matrix, topology, &lossy);
    let rest = localise_but(matrix, topology, params, &crossed);
    let mut suspects: Vec<Suspect> = found.suspects.into_iter().filter(known).collect();
    let more: Vec<Suspect> = rest.suspects.into_iter().filter(|s| !suspects.iter().any(|o| alike(s, o))).collect();
    suspects.extend(more);
    suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Localisation { suspects, ..rest }
}

/// Whether two suspects are one thing, perhaps seen in one direction and in both.
fn alike(a: &Suspect, b: &Suspect) -> bool {
    let node = |kind: Kind| matches!(kind, Kind::Node | Kind::NodeRx | Kind::NodeTx);
    a.element == b.element && (a.kind == b.kind || node(a.kind) && node(b.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{direction_of, topology::from_labels};

    /// A quick scan of 16 nodes in four racks as it was measured: `leaf2-spine1` lost packets, and every pair over
    /// `leaf1-spine1` went over it too.
    const VISITS: [(usize, usize, f64, f64, &str); 20] = [
        (1, 2, 95.0, 0.0, ""),
        (1, 5, 85.0, 0.008, "leaf1-spine1-leaf2"),
        (5, 1, 88.0, 0.009, "leaf2-spine1-leaf1"),
        (2, 6, 95.0, 0.0, "leaf1-spine2-leaf2"),
        (3, 4, 95.0, 0.0, ""),
        (3, 7, 87.0, 0.009, "leaf1-spine1-leaf2"),
        (7, 3, 76.0, 0.010, "leaf2-spine1-leaf1"),
        (8, 3, 79.0, 0.009, "leaf2-spine1-leaf1"),
        (5, 6, 95.0, 0.0, ""),
        (5, 11, 55.0, 0.012, "leaf2-spine1-leaf3"),
        (11, 5, 83.0, 0.008, "leaf3-spine1-leaf2"),
        (7, 9, 93.0, 0.008, "leaf2-spine1-leaf3"),
        (9, 7, 58.0, 0.011, "leaf3-spine1-leaf2"),
        (9, 13, 95.0, 0.0, "leaf3-spine1-leaf4"),
        (13, 9, 94.0, 0.0, "leaf4-spine1-leaf3"),
        (11, 15, 94.0, 0.0, "leaf3-spine1-leaf4"),
        (10, 14, 95.0, 0.0, "leaf3-spine2-leaf4"),
        (12, 16, 95.0, 0.0, "leaf3-spine2-leaf4"),
        (14, 10, 96.0, 0.0, "leaf4-spine2-leaf3"),
        (6, 2, 95.0, 0.0, "leaf2-spine2-leaf1"),
    ];

    fn fabric() -> Topology {
        let places: Vec<(String, Vec<String>)> =
            (1..=16).map(|n| (format!("n{n:03}"), vec![format!("leaf{}", (n - 1) / 4 + 1)])).collect();
        let places: Vec<(&str, Vec<&str>)> =
            places.iter().map(|(n, up)| (n.as_str(), up.iter().map(String::as_str).collect())).collect();
        from_labels(&places).unwrap()
    }

    fn matrix(metric: &str, value: impl Fn(&(usize, usize, f64, f64, &str)) -> f64) -> Matrix {
        let mut matrix = Matrix::new(metric, direction_of(metric));
        for visit in &VISITS {
            let name = |n: usize| format!("n{n:03}");
            let up = (!visit.4.is_empty()).then_some(visit.4);
            matrix.push_named(&name(visit.0), &name(visit.1), &[value(visit)], up);
        }
        matrix
    }

    fn named(found: &Localisation) -> Vec<&str> {
        found.suspects.iter().filter(|s| s.confidence >= SURE).map(|s| s.element.as_str()).collect()
    }

    #[test]
    fn a_link_whose_slow_pairs_all_cross_a_lossy_one_is_not_accused() {
        let (flow, loss) = (matrix("throughput", |v| v.2 * 1e6), matrix("retransmits", |v| v.3));
        let params = Params::default();
        let alone = localise(&flow, &fabric(), &params);
        let open = alone.undecided.iter().flat_map(|u| &u.candidates).any(|c| c.element == "leaf1-spine1");
        assert!(open, "without the losses nobody can say: {alone:?}");
        assert_eq!(named(&localise(&loss, &fabric(), &params)), ["leaf2-spine1"]);
        let found = localise_beside(&flow, Some(&loss), &fabric(), &params);
        assert!(named(&found).iter().all(|element| *element == "leaf2-spine1"), "{found:?}");
        assert!(found.undecided.is_empty(), "{found:?}");
    }

    #[test]
    fn what_is_slow_without_loss_is_not_lost_beside_what_loses() {
        let slow = |v: &(usize, usize, f64, f64, &str)| if v.0.max(v.1) > 12 { 30e6 } else { v.2 * 1e6 };
        let (flow, loss) = (matrix("throughput", slow), matrix("retransmits", |v| v.3));
        let found = localise_beside(&flow, Some(&loss), &fabric(), &Params::default());
        // All sound pairs of leaf4 end in leaf3, so only further pairs tell which of the two it is.
        let candidates: Vec<&str> =
            found.undecided.iter().flat_map(|u| &u.candidates).map(|c| c.element.as_str()).collect();
        assert!(candidates.contains(&"leaf4") && !found.next_pairs.is_empty(), "{found:?}");
        assert_eq!(named(&found), [""; 0]);
        let itself = localise_beside(&loss, Some(&loss), &fabric(), &Params::default());
        assert_eq!(named(&itself), ["leaf2-spine1"]);
    }
}
