//! Which nodes are slow towards everyone else, but fine among themselves?
//!
//! Such nodes share something: a leaf, its uplinks. Where the topology does not say what, they are one finding, and none
//! of them is accused. Where it does, a group that cuts through its leaves says that the topology is wrong.

use std::collections::BTreeMap;

use super::Case;
use super::places::NONE;
use super::sides::{Side, Sides};

/// Least median residual of a member: 3 %.
const LEAST: f64 = 0.03;
/// Standard errors between a member's median and nothing.
const ERRORS: f64 = 4.0;
/// Relative spread of an effect over the pairs of one element.
const UNEVEN: f64 = 0.15;
/// Most evidence that one visit gives.
const CLIP: f64 = 8.0;
/// Evidence that a group needs: one fault is likelier than several from the start.
const SURE: f64 = 2.0;
/// Share of the other nodes that a node must have been measured with.
const MEASURED: f64 = 0.6;
/// More suspicious nodes than this are not compared with each other.
const MOST: usize = 2_048;
/// Passes over the members.
const PASSES: usize = 3;
/// Share of a group's pairs that must be fine.
const FINE: f64 = 0.6;

/// Nodes by number, and their median residual towards the others.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) nodes: Vec<u32>,
    pub(super) effect: f64,
}

/// How each suspicious node is slow.
struct Slow {
    node: u32,
    tx: f64,
    rx: f64,
}

/// Groups of two nodes and more.
pub(super) fn groups(case: &Case<'_>, sides: &Sides) -> Vec<Found> {
    let nodes = case.places.nodes.len();
    let least = [natural(&sides.tx), natural(&sides.rx)].map(|natural| LEAST.max(ERRORS * natural));
    let effect = |side: &Side, least: f64| {
        Some(side.median).filter(|median| *median >= least.max(ERRORS * side.error)).unwrap_or(0.0)
    };
    let slow: Vec<Slow> = (0..nodes)
        .filter(|&node| sides.partners[node] as f64 >= MEASURED * (nodes - 1) as f64)
        .map(|node| Slow {
            node: node as u32,
            tx: effect(&sides.tx[node], least[0]),
            rx: effect(&sides.rx[node], least[1]),
        })
        .filter(|slow| slow.tx.max(slow.rx) > 0.0)
        .collect();
    if slow.len() < 2 || slow.len() > MOST || nodes < 5 {
        return Vec::new();
    }
    let (together, fine) = evidence(case, &slow);
    let of = assign(slow.len(), &together);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    of.iter().enumerate().for_each(|(at, group)| members.entry(*group).or_default().push(at));
    let k = slow.len();
    let holds = |m: &Vec<usize>| {
        let pairs = || m.iter().flat_map(|&a| m.iter().map(move |&b| a * k + b)).filter(|at| at / k != at % k);
        let sum: f64 = pairs().map(|at| together[at]).sum::<f64>() / 2.0;
        let good = pairs().filter(|&at| fine[at]).count();
        // Beyond half of the nodes nobody knows which part is the slow one.
        m.len() > 1 && 2 * m.len() <= nodes && sum >= SURE && good as f64 >= FINE * pairs().count() as f64
    };
    let found = |m: Vec<usize>| {
        let mut effects: Vec<f64> = m.iter().map(|&at| slow[at].tx.max(slow[at].rx)).collect();
        effects.sort_unstable_by(f64::total_cmp);
        Found { effect: effects[effects.len() / 2], nodes: m.into_iter().map(|at| slow[at].node).collect() }
    };
    members.into_values().filter(holds).map(found).collect()
}

/// Spread of the medians of sound nodes, from those that are better than the middle one.
fn natural(sides: &[Side]) -> f64 {
    let mut medians: Vec<f64> = sides.iter().filter(|side| !side.worse.is_empty()).map(|side| side.median).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let Some(&centre) = medians.get(medians.len() / 2) else { return 0.0 };
    let mut better: Vec<f64> = medians[..=medians.len() / 2].iter().map(|median| centre - median).collect();
    better.sort_unstable_by(f64::total_cmp);
    1.4826 * better[better.len() / 2]
}

/// How much more likely the visits between two suspicious nodes are if both share one fault than if each is slow by
/// itself, and whether these visits are fine; both row-major.
fn evidence(case: &Case<'_>, slow: &[Slow]) -> (Vec<f64>, Vec<bool>) {
    let k = slow.len();
    let mut number = vec![NONE; case.places.nodes.len()];
    (0_u32..).zip(slow).for_each(|(at, slow)| number[slow.node as usize] = at);
    let mut together = vec![0.0; k * k];
    for (at, cell) in case.matrix.cells().iter().enumerate() {
        let worse = f64::from(case.residuals.worse[at]);
        let [src, dst] = [cell.src, cell.dst].map(|end| number[case.places.node_of[end as usize] as usize]);
        if worse.is_nan() || src == NONE || dst == NONE || src == dst {
            continue;
        }
        let apart = slow[src as usize].tx.max(slow[dst as usize].rx);
        if apart == 0.0 {
            continue;
        }
        let spread = f64::from(case.spread(at));
        let variance = spread * spread + UNEVEN * UNEVEN * apart * apart;
        let from = (worse - apart).min(0.0);
        let ratio = ((from * from - worse.max(0.0).powi(2)) / (2.0 * variance)).clamp(-CLIP, CLIP);
        together[src as usize * k + dst as usize] += ratio;
        together[dst as usize * k + src as usize] += ratio;
    }
    let fine = together.iter().map(|ratio| *ratio > 0.0).collect();
    (together, fine)
}

/// Group of each of `k` things, by where they fit best.
fn assign(k: usize, together: &[f64]) -> Vec<usize> {
    let mut of: Vec<usize> = (0..k).collect();
    for _ in 0..PASSES {
        for at in 0..k {
            let mut gain: BTreeMap<usize, f64> = BTreeMap::new();
            for other in (0..k).filter(|other| *other != at) {
                *gain.entry(of[other]).or_default() += together[at * k + other];
            }
            let best = gain.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            of[at] = best.filter(|(_, gain)| *gain > 0.0).map_or(k + at, |(group, _)| group);
        }
    }
    of
}
