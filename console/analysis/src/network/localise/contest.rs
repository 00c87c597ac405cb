//! Is so much of the fabric slow that nobody knows which part is the sound one?
//!
//! A pair is as slow as the worse of its ends, so an end is known by its better pairs: the best quarter of a sound one is
//! fine as long as a quarter of all ends are. Where these best quarters fall into two clear groups and the slower holds
//! a third of all leaves or nodes, the two are put beside each other instead of calling either usual.

use super::found::{Candidate, Contested, Undecided};
use super::places::NONE;
use super::report::effect;
use super::sides::{MEDIAN_ERROR, Sides};
use super::{Case, Kind};
use crate::network::change::against;
use crate::network::names::folded;
use crate::network::otsu::split;

/// Least share of slower ends; fewer are faults of their own.
const LEAST_SHARE: f64 = 1.0 / 3.0;
/// `-ln 0.95`: groups closer than this are one.
const LEAST_GAP: f64 = 0.05;
/// Standard deviations within the groups that they must lie apart; halves of one normal group lie 2.6 apart.
const APART: f64 = 5.0;
/// Standard errors of one end that they must lie apart.
const ERRORS: f64 = 6.0;
/// Least nodes, and leaves, of which this is asked.
const NODES: usize = 8;
const LEAVES: usize = 4;
/// Visits of one end that are looked at.
const MOST: usize = 2_000;

/// What one end is known by.
struct End {
    best: f64,
    error: f64,
}

/// The parts that differ, and what is said of them.
pub(super) fn contested(case: &Case<'_>, sides: &Sides) -> Option<(Contested, Undecided)> {
    let places = case.places;
    let (leaves, groups) = (leaves(case), places.leaves.len());
    let names: Vec<&str> = places.leaves.iter().map(String::as_str).collect();
    let by_leaf =
        (groups >= LEAVES).then(|| parts(&leaves)).flatten().map(|(slow, gap)| (Kind::Leaf, slow, gap, names));
    let found = by_leaf.or_else(|| {
        let (slow, gap) = parts(&nodes(sides)).filter(|_| places.nodes.len() >= NODES)?;
        let leaf = |node: usize| places.leaf_of[places.endpoints[node][0] as usize];
        let first = leaf(*slow.first()?);
        // One leaf, however large, is a fault of its own.
        let one = first != NONE && slow.iter().all(|&node| leaf(node) == first);
        let names = places.nodes.iter().map(String::as_str).collect();
        (!one).then_some((Kind::Node, slow, gap, names))
    });
    let (kind, slow, gap, names) = found?;
    let is_slow = |at: &usize| slow.contains(at);
    let of =
        |wanted: bool| (0..names.len()).filter(|at| is_slow(at) == wanted).map(|at| names[at].to_owned()).collect();
    let direction = case.matrix.direction();
    let out = Contested { kind, slow: of(true), fast: of(false), effect: effect(direction, gap, [gap, gap]).0 };
    let undecided = said(case, &out);
    Some((out, undecided))
}

fn said(case: &Case<'_>, found: &Contested) -> Undecided {
    let (slow, all) = (found.slow.len(), found.slow.len() + found.fast.len());
    let word = if found.kind == Kind::Leaf { "leaves" } else { "nodes" };
    let question = if 2 * slow > all {
        "most of the fabric is slow, or the others are a faster kind"
    } else {
        "a fault of theirs, or two link speeds in one scan"
    };
    Undecided {
        reason: format!(
            "contested: {slow} of {all} {word} ({}) are at {} the other {} ({}): {question}? Nothing in the matrix says what these \
             links should deliver: compare with their rated speed or an earlier scan",
            folded(&found.slow),
            against(found.effect),
            all - slow,
            folded(&found.fast),
        ),
        candidates: found.slow.iter().map(|name| Candidate { kind: found.kind, element: name.clone() }).collect(),
        pairs: case.matrix.len(),
        slow: (0..case.matrix.len()).filter(|&at| case.is_slow(at)).count(),
    }
}

/// The best quarter of an end's visits, whichever direction is the worse.
fn nodes(sides: &Sides) -> Vec<Option<End>> {
    let side = |worse: &[f32]| {
        let best = f64::from(*worse.get(worse.len() / 4)?);
        Some((best, worse.len()))
    };
    let ends = sides.tx.iter().zip(&sides.rx).map(|(tx, rx)| {
        let (a, b) = (side(&tx.worse), side(&rx.worse));
        let worst = match (a, b) {
            (Some(a), Some(b)) => (a.0.max(b.0), a.1.min(b.1)),
            (one, other) => one.or(other)?,
        };
        let spread = if tx.worse.is_empty() { rx } else { tx };
        let error = spread.error * (spread.worse.len() as f64 / worst.1 as f64).sqrt();
        (worst.1 >= 4).then_some(End { best: worst.0, error })
    });
    ends.collect()
}

/// The same for leaves, over the visits that leave or enter them.
fn leaves(case: &Case<'_>) -> Vec<Option<End>> {
    let places = case.places;
    let count = places.leaves.len();
    let mut worse: Vec<Vec<f32>> = vec![Vec::new(); count];
    let step = (case.matrix.len() / count.max(1) / MOST).max(1) as u32;
    let mut spread = 0.0_f64;
    for (at, cell) in case.matrix.cells().iter().enumerate() {
        let (a, b) = (places.leaf_of[cell.src as usize], places.leaf_of[cell.dst as usize]);
        let taken = (cell.src + cell.dst).is_multiple_of(step) && !case.residuals.worse[at].is_nan();
        if taken && a != b && a != NONE && b != NONE {
            spread = spread.max(f64::from(case.spread(at)));
            [a, b].iter().for_each(|&leaf| worse[leaf as usize].push(case.residuals.worse[at]));
        }
    }
    let end = |mut worse: Vec<f32>| {
        worse.sort_unstable_by(f32::total_cmp);
        let best = f64::from(*worse.get(worse.len() / 4)?);
        (worse.len() >= 8).then(|| End { best, error: MEDIAN_ERROR * spread / (worse.len() as f64).sqrt() })
    };
    worse.into_iter().map(end).collect()
}

/// The slower ends, if they are clearly apart and a third or more, and by how much; `None` unless all ends are known.
fn parts(ends: &[Option<End>]) -> Option<(Vec<usize>, f64)> {
    let ends: Vec<&End> = ends.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let mut best: Vec<f64> = ends.iter().map(|end| end.best).collect();
    best.sort_unstable_by(f64::total_cmp);
    let found = split(&best)?;
    let error = ends.iter().map(|end| end.error).fold(0.0, f64::max);
    let limit = f64::midpoint(best[found.cut - 1], best[found.cut]);
    let slow: Vec<usize> = (0..ends.len()).filter(|&at| ends[at].best > limit).collect();
    let clear = found.apart >= LEAST_GAP.max(APART * found.within).max(ERRORS * error);
    let many = slow.len() >= 2 && slow.len() as f64 >= LEAST_SHARE * ends.len() as f64;
    (clear && many && slow.len() < ends.len()).then_some((slow, found.apart))
}
