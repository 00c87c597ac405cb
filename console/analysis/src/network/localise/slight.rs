//! Which nodes and leaves are surely slower than their peers, by less than an accusation takes?
//!
//! The residual of a pair is taken for the sum of its sender's effect, its receiver's and noise, and the effects are fitted
//! with clipped residuals (Huber, *Robust estimation of a location parameter*, Ann. Math. Stat. 35(1), 1964). An effect
//! of 3 % is worth a warning if it is beyond its own standard error and beyond what peers differ by, for all elements
//! asked about together.

use super::Case;
use super::element::Kind;
use super::found::{Suspect, Warning};
use super::peers::student;
use super::places::NONE;
use super::report::effect;

/// `-ln 0.97`.
const LEAST: f64 = 0.030_459;
/// Chance per matrix that a sound element of one family is warned about.
const CHANCE: f64 = 1e-3;
/// Residuals are clipped at this many standard deviations around their fit.
const CLIP: f64 = 2.5;
/// Passes of the fit.
const PASSES: usize = 12;
/// Fewest visits of a direction, nodes, leaves and members of a leaf.
const VISITS: f64 = 6.0;
const NODES: usize = 6;
const LEAVES: usize = 4;
const MEMBERS: usize = 3;
/// Spreads of the peers beyond which one is no peer.
const NO_PEER: f64 = 2.5;

/// A fitted effect.
#[derive(Clone, Copy, Default)]
struct Fit {
    /// Logarithm of cost.
    effect: f64,
    visits: f64,
}

/// Sending and receiving effects of all nodes, and the standard deviation of what is left of a visit.
struct Effects {
    tx: Vec<Fit>,
    rx: Vec<Fit>,
    noise: f64,
}

/// Elements to warn about, most certain first. `explained` visits belong to what was accused already.
pub(super) fn warnings(case: &Case<'_>, explained: &[bool], accused: &[Suspect]) -> Vec<Warning> {
    if case.residuals.counts || case.places.nodes.len() < NODES {
        return Vec::new();
    }
    let effects = fit(case, explained);
    let both: Vec<Fit> = effects.tx.iter().zip(&effects.rx).map(|(a, b)| joint(*a, *b)).collect();
    let known = |name: &str| accused.iter().any(|suspect| suspect.element == name);
    let mut out = leaves(case, &both, effects.noise);
    let views = [(Kind::Node, &both), (Kind::NodeTx, &effects.tx), (Kind::NodeRx, &effects.rx)];
    let scales = views.map(|(_, fits)| Scale::of(case, fits, effects.noise));
    let mut nodes: Vec<(f64, Warning)> = Vec::new();
    for (node, name) in case.places.nodes.iter().enumerate().filter(|(_, name)| !known(name)) {
        let sure: Vec<bool> = (0..3).map(|view| scales[view].beyond(node, views[view].1[node])).collect();
        let (tx, rx) = (effects.tx[node], effects.rx[node]);
        let alike = tx.effect.min(rx.effect) > 0.5 * tx.effect.max(rx.effect);
        let view = match (sure[0], sure[1], sure[2]) {
            (_, true, true) => 0,
            (true, ..) if alike => 0,
            (_, true, false) => 1,
            (_, false, true) => 2,
            _ => continue,
        };
        let found = views[view].1[node];
        let error = effects.noise / found.visits.sqrt();
        nodes.push((found.effect / error, said(case, views[view].0, name, found, error)));
    }
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0));
    out.extend(nodes.into_iter().map(|(_, warning)| warning));
    out
}

fn said(case: &Case<'_>, kind: Kind, name: &str, found: Fit, error: f64) -> Warning {
    let (share, [low, high]) =
        effect(case.matrix.direction(), found.effect, [found.effect - error, found.effect + error]);
    Warning { kind, element: name.to_owned(), effect: share, error: (high - low) / 2.0, pairs: found.visits as usize }
}

/// Effects by alternating clipped means, in units of logarithm of cost.
fn fit(case: &Case<'_>, explained: &[bool]) -> Effects {
    let places = case.places;
    let n = places.nodes.len();
    let (mut tx, mut rx) = (vec![Fit::default(); n], vec![Fit::default(); n]);
    let mut noise = case.residuals.tiers.iter().flatten().map(|t| t.spread).fold(0.0, f64::max);
    for _ in 0..PASSES {
        let (mut sums, mut squares, mut count) = (vec![[0.0_f64; 2]; n], 0.0, 0.0);
        for (at, cell) in case.matrix.cells().iter().enumerate() {
            let worse = f64::from(case.residuals.worse[at]);
            if worse.is_nan() || explained[at] {
                continue;
            }
            let (src, dst) = (places.node_of[cell.src as usize] as usize, places.node_of[cell.dst as usize] as usize);
            let left = (worse - tx[src].effect - rx[dst].effect).clamp(-CLIP * noise, CLIP * noise);
            sums[src][0] += left;
            sums[dst][1] += left;
            (squares, count) = (squares + left * left, count + 1.0);
            tx[src].visits += 1.0;
            rx[dst].visits += 1.0;
        }
        for (at, sum) in sums.iter().enumerate() {
            // Half a step each, since both sides answer to the same residuals.
            tx[at].effect += 0.5 * sum[0] / tx[at].visits.max(1.0);
            rx[at].effect += 0.5 * sum[1] / rx[at].visits.max(1.0);
        }
        centre(&mut tx);
        centre(&mut rx);
        let free = f64::max(count - 2.0 * n as f64, 1.0);
        noise = (squares / free).sqrt().max(1e-4);
        tx.iter_mut().chain(&mut rx).for_each(|fit| fit.visits = 0.0);
    }
    for (at, cell) in case.matrix.cells().iter().enumerate() {
        if !case.residuals.worse[at].is_nan() && !explained[at] {
            tx[places.node_of[cell.src as usize] as usize].visits += 1.0;
            rx[places.node_of[cell.dst as usize] as usize].visits += 1.0;
        }
    }
    Effects { tx, rx, noise }
}

/// Takes the middle effect from all.
fn centre(fits: &mut [Fit]) {
    let mut effects: Vec<f64> = fits.iter().filter(|fit| fit.visits > 0.0).map(|fit| fit.effect).collect();
    if effects.is_empty() {
        return;
    }
    effects.sort_unstable_by(f64::total_cmp);
    let middle = effects[effects.len() / 2];
    fits.iter_mut().for_each(|fit| fit.effect -= middle);
}

fn joint(a: Fit, b: Fit) -> Fit {
    let visits = a.visits + b.visits;
    Fit { effect: (a.effect * a.visits + b.effect * b.visits) / visits.max(1.0), visits }
}

/// What effects of one kind are held against.
struct Scale {
    /// Mean and prediction limit of the peers.
    limit: f64,
    /// Quantile for the standard error of one effect.
    errors: f64,
    noise: f64,
    /// Middle effect under each node's leaf, without itself; 0 where it has too few others.
    beside: Vec<f64>,
}

impl Scale {
    fn of(case: &Case<'_>, fits: &[Fit], noise: f64) -> Self {
        let effects: Vec<f64> = fits.iter().filter(|f| f.visits >= VISITS).map(|f| f.effect).collect();
        let chance = CHANCE / (3 * fits.len().max(1)) as f64;
        let visits: f64 = fits.iter().map(|f| f.visits).sum();
        Self {
            limit: limit(&effects, chance),
            errors: student(chance, visits as usize),
            noise,
            beside: beside(case, fits),
        }
    }

    fn beyond(&self, node: usize, fit: Fit) -> bool {
        let error = self.noise / fit.visits.max(1.0).sqrt();
        let least = LEAST.max(self.errors * error).max(self.limit);
        // Among nodes that are all slow the leaf is, not each of them.
        fit.visits >= VISITS && fit.effect >= least && fit.effect - self.beside[node].max(0.0) >= least
    }
}

/// Mean of the peers and Student's quantile times their spread; those far above are no peers.
fn limit(effects: &[f64], chance: f64) -> f64 {
    let mut kept = effects.to_vec();
    kept.sort_unstable_by(f64::total_cmp);
    loop {
        let n = kept.len();
        if n < 4 {
            return f64::INFINITY;
        }
        let mean = kept.iter().sum::<f64>() / n as f64;
        let spread = (kept.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / (n - 1) as f64).sqrt();
        // Leaving out the worst one must change the picture, or it was a peer.
        let rest = &kept[..n - 1];
        let middle = rest.iter().sum::<f64>() / rest.len() as f64;
        let own = (rest.iter().map(|e| (e - middle) * (e - middle)).sum::<f64>() / (rest.len() - 1) as f64).sqrt();
        if 3 * (effects.len() - n + 1) < effects.len() && kept[n - 1] - middle > 2.0 * NO_PEER * own {
            kept.pop();
            continue;
        }
        return mean + student(chance, n) * spread * (1.0 + (n as f64).recip()).sqrt();
    }
}

fn leaf_of(case: &Case<'_>, node: usize) -> u32 {
    case.places.leaf_of[case.places.endpoints[node][0] as usize]
}

fn members(case: &Case<'_>, fits: &[Fit]) -> Vec<Vec<(usize, f64)>> {
    let mut of = vec![Vec::new(); case.places.leaves.len()];
    for (node, fit) in fits.iter().enumerate().filter(|(_, fit)| fit.visits >= VISITS) {
        let leaf = leaf_of(case, node);
        if leaf != NONE {
            of[leaf as usize].push((node, fit.effect));
        }
    }
    of
}

fn beside(case: &Case<'_>, fits: &[Fit]) -> Vec<f64> {
    let mut out = vec![0.0; fits.len()];
    for leaf in members(case, fits).iter().filter(|leaf| leaf.len() >= MEMBERS) {
        for &(node, _) in leaf {
            let mut others: Vec<f64> = leaf.iter().filter(|(other, _)| *other != node).map(|(_, e)| *e).collect();
            others.sort_unstable_by(f64::total_cmp);
            out[node] = others[(others.len() - 1) / 2];
        }
    }
    out
}

/// Leaves all of whose nodes are slower than those of other leaves.
fn leaves(case: &Case<'_>, both: &[Fit], noise: f64) -> Vec<Warning> {
    let members = members(case, both);
    let middle = |leaf: &Vec<(usize, f64)>| {
        let mut effects: Vec<f64> = leaf.iter().map(|(_, effect)| *effect).collect();
        effects.sort_unstable_by(f64::total_cmp);
        effects[(effects.len() - 1) / 2]
    };
    let known: Vec<(usize, f64)> = (0..members.len())
        .filter(|&leaf| members[leaf].len() >= MEMBERS)
        .map(|leaf| (leaf, middle(&members[leaf])))
        .collect();
    if known.len() < LEAVES {
        return Vec::new();
    }
    let effects: Vec<f64> = known.iter().map(|(_, effect)| *effect).collect();
    let limit = limit(&effects, CHANCE / effects.len() as f64);
    let mut out = Vec::new();
    for &(leaf, effect) in &known {
        let visits: f64 = members[leaf].iter().map(|(node, _)| both[*node].visits).sum();
        let error = noise / visits.sqrt();
        if effect >= LEAST.max(limit).max(student(CHANCE / effects.len() as f64, 1_000) * error) {
            out.push(said(case, Kind::Leaf, &case.places.leaves[leaf], Fit { effect, visits }, error));
        }
    }
    out
}
