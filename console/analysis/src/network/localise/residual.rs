//! How much worse is each pair than pairs of its hop distance usually are?
//!
//! The criterion of a distance is found among a sample of its pairs with the crate's own search (SuperBench's
//! Algorithm 2, [`crate::criterion_of`]); around it a robust centre and spread are taken. What is left is the logarithm
//! of cost: `ln 2` at half the throughput or twice the latency.

use muster_wire::{Direction, MetricId, Unit};
use serde::Serialize;

use super::places::Places;
use crate::network::Matrix;
use crate::network::measured::{LOSS, LOSS_FLOOR};
use crate::network::otsu::split;
use crate::sample::median_of_sorted;
use crate::{Chance, Criterion, Params, Sample, criterion_of};

/// `ln 1000`: worse is not told apart from failed.
pub(super) const WORST: f32 = 6.907_755;
/// Pairs whose similarity is compared per distance.
const COMPARED: usize = 1_500;
/// Pairs that the centre and spread are taken from.
const CENTRED: usize = 20_000;
/// Spreads within two groups of pairs that their means must lie apart: halves of one normal group lie 2.6 apart.
const CLEAR_GAP: f64 = 4.0;
/// Spreads around the centre within which a pair is usual.
const NEAR: f64 = 4.0;
/// Pairs' worth of weight that the common spread has at every distance.
const LENT: f64 = 200.0;
/// Least relative spread of pairs; see [`crate::Spread`].
const LEAST_SPREAD: f64 = 0.01;
/// Least spread of metrics that are mostly zero: a count of one or two is nothing.
const LEAST_SPREAD_OF_COUNTS: f64 = 0.5;
/// Share of zeros from which on a metric is taken for a count of rare events.
const ZEROS: f64 = 0.05;

/// What is usual at one hop distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Links between the nodes; absent where the topology does not say.
    pub hops: Option<u16>,
    /// Visits measured.
    pub pairs: usize,
    /// The criterion, learned from up to 1,500 pairs.
    pub criterion: Criterion,
    /// Usual value, in the metric's unit.
    pub centre: f64,
    /// Robust relative standard deviation of the pairs around it.
    pub spread: f64,
}

/// Costs of all visits, relative to the usual one.
pub(super) struct Residuals {
    /// Logarithm of cost over usual cost, at most [`WORST`]; one per visit.
    pub(super) worse: Vec<f32>,
    pub(super) tier_of: Vec<u8>,
    /// By tier index; `None` where nothing was measured.
    pub(super) tiers: Vec<Option<Tier>>,
    /// Standard error of each tier's centre, as a logarithm.
    pub(super) centre_error: Vec<f64>,
}

/// Turns values into the logarithm of cost.
#[derive(Clone, Copy)]
struct Cost {
    sign: f32,
    /// Added before the logarithm, so that counts may be zero.
    offset: f32,
}

impl Cost {
    /// `None` for a failed visit.
    fn of(self, values: &[f32]) -> Option<f32> {
        let value = match values {
            [] => return None,
            [one] => *one,
            several => {
                let mut sorted = several.to_vec();
                sorted.sort_unstable_by(f32::total_cmp);
                let n = sorted.len();
                f32::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
            }
        };
        // A rate of zero did no work.
        if self.sign < 0.0 && value <= 0.0 { None } else { Some(self.sign * (value + self.offset).ln()) }
    }

    fn value(self, log: f64) -> f64 {
        (f64::from(self.sign) * log).exp() - f64::from(self.offset)
    }
}

pub(super) fn residuals(matrix: &Matrix, places: &Places, params: &Params) -> Residuals {
    let (cost, counts) = cost(matrix);
    let mut worse = Vec::with_capacity(matrix.len());
    let mut tier_of = Vec::with_capacity(matrix.len());
    let mut members = vec![0_usize; places.hops.len()];
    for (at, cell) in matrix.cells().iter().enumerate() {
        let tier = places.tier(cell);
        members[usize::from(tier)] += 1;
        tier_of.push(tier);
        worse.push(cost.of(matrix.values(at)).unwrap_or(f32::INFINITY));
    }
    let picked = pick(&tier_of, &members);
    let least = if counts { LEAST_SPREAD_OF_COUNTS } else { LEAST_SPREAD };
    let mut out = Residuals { worse, tier_of, tiers: Vec::new(), centre_error: Vec::new() };
    for (tier, picked) in picked.iter().enumerate() {
        let found = learn_tier(matrix, picked, &out.worse, (cost, least), params);
        let (tier, error) = found.map_or((None, 0.0), |(criterion, centre, spread)| {
            let error = 1.25 * spread / (picked.len().min(CENTRED) as f64).sqrt();
            let known =
                Tier { hops: places.hops[tier], pairs: members[tier], criterion, centre: cost.value(centre), spread };
            (Some((known, centre)), error)
        });
        out.centre_error.push(error);
        out.tiers.push(tier.map(|(mut tier, centre)| {
            // Kept as a logarithm until the residuals are taken.
            tier.centre = centre;
            tier
        }));
    }
    let centres: Vec<f32> = out.tiers.iter().map(|t| t.as_ref().map_or(f32::INFINITY, |t| t.centre as f32)).collect();
    for (worse, tier) in out.worse.iter_mut().zip(&out.tier_of) {
        let centre = centres[usize::from(*tier)];
        // A distance at which everything failed is as bad as it gets.
        *worse = if centre.is_finite() { (*worse - centre).min(WORST) } else { WORST };
    }
    out.tiers.iter_mut().flatten().for_each(|tier| tier.centre = cost.value(tier.centre));
    lend(&mut out.tiers);
    out
}

/// Distances with few pairs borrow from all: a spread estimated from a dozen pairs is easily half of what it is.
fn lend(tiers: &mut [Option<Tier>]) {
    let all: f64 = tiers.iter().flatten().map(|t| t.pairs as f64).sum();
    let pooled = tiers.iter().flatten().map(|t| t.pairs as f64 * t.spread * t.spread).sum::<f64>() / all.max(1.0);
    for tier in tiers.iter_mut().flatten() {
        let own = tier.pairs as f64;
        let mixed = (own * tier.spread * tier.spread + LENT * pooled.max(tier.spread * tier.spread)) / (own + LENT);
        tier.spread = mixed.sqrt() * (1.0 + 2.0 / all.sqrt());
    }
}

/// How values become costs, and whether the metric counts rare events.
fn cost(matrix: &Matrix) -> (Cost, bool) {
    if matrix.direction() == Direction::HigherIsBetter {
        return (Cost { sign: -1.0, offset: 0.0 }, false);
    }
    if matrix.metric() == LOSS {
        return (Cost { sign: 1.0, offset: LOSS_FLOOR }, true);
    }
    let step = (matrix.len() / CENTRED).max(1);
    let mut values: Vec<f32> = (0..matrix.len()).step_by(step).flat_map(|at| matrix.values(at)).copied().collect();
    let zeros = values.iter().filter(|v| **v == 0.0).count();
    if (zeros as f64) < ZEROS * values.len() as f64 || values.is_empty() {
        return (Cost { sign: 1.0, offset: f32::MIN_POSITIVE }, false);
    }
    let whole = values.iter().all(|v| v.fract() == 0.0);
    values.retain(|v| *v > 0.0);
    values.sort_unstable_by(f32::total_cmp);
    let least = values.get(values.len() / 20).copied().unwrap_or(1.0);
    (Cost { sign: 1.0, offset: if whole { 1.0 } else { least } }, true)
}

/// Up to [`CENTRED`] visits of each tier, spread over the matrix by a fixed generator so that no pattern in the order of
/// visits can bias them.
fn pick(tier_of: &[u8], members: &[usize]) -> Vec<Vec<u32>> {
    let mut chance = Chance::plain(0x6d75_7374_6572);
    let mut picked: Vec<Vec<u32>> = vec![Vec::new(); members.len()];
    let keep: Vec<u64> =
        members.iter().map(|&n| if n <= CENTRED { u64::MAX } else { (u64::MAX / n as u64) * CENTRED as u64 }).collect();
    for (at, &tier) in tier_of.iter().enumerate() {
        let tier = usize::from(tier);
        if keep[tier] == u64::MAX || chance.bits() < keep[tier] {
            picked[tier].push(at as u32);
        }
    }
    picked
}

/// Criterion, centre and spread, the latter two of the logarithm of cost; `None` where every visit failed.
fn learn_tier(
    matrix: &Matrix,
    picked: &[u32],
    logs: &[f32],
    (cost, least): (Cost, f64),
    params: &Params,
) -> Option<(Criterion, f64, f64)> {
    let mut finite: Vec<f64> =
        picked.iter().map(|&at| f64::from(logs[at as usize])).filter(|l| l.is_finite()).collect();
    finite.sort_unstable_by(f64::total_cmp);
    let (centre, spread) = centre_and_spread(&finite, best_mode(&finite)?, least);
    let metric = MetricId::new("pairs", matrix.metric(), "own");
    let learn = |visits: &[u32]| {
        let step = visits.len().div_ceil(COMPARED).max(1);
        let sample = |&at: &u32| {
            let values: Vec<f64> = matrix.values(at as usize).iter().map(|v| f64::from(v + cost.offset)).collect();
            Sample::new(&values).ok().filter(|s| s.median() > 0.0)
        };
        let compared: Vec<Sample> = visits.iter().step_by(step).filter_map(sample).collect();
        let compared: Vec<&Sample> = compared.iter().collect();
        criterion_of(&metric, Unit::Count, matrix.direction(), &compared, params)
    };
    let usual = |log: f64| (log - centre).abs() <= NEAR * spread;
    let criterion = learn(picked);
    let medoid = criterion.sample.as_ref().map(|s| f64::from(cost.sign) * s.median().ln());
    if medoid.is_some_and(usual) {
        return Some((criterion, centre, spread));
    }
    // So many pairs are slow that they agree with each other best: what they agree on is not what is usual.
    let near: Vec<u32> = picked.iter().copied().filter(|&at| usual(f64::from(logs[at as usize]))).collect();
    Some((learn(&near), centre, spread))
}

/// Middle of the best-performing clearly separate group that holds a quarter of the costs: slow pairs may be the majority
/// of a small scan, and what is usual is what an undisturbed pair does. Ascending costs; `None` without any.
fn best_mode(sorted: &[f64]) -> Option<f64> {
    let least = sorted.len().div_ceil(4).max(3);
    let mut group = sorted;
    while let Some(found) = split(group).filter(|s| s.cut >= least && s.apart >= CLEAR_GAP * s.within) {
        group = &group[..found.cut];
    }
    (!group.is_empty()).then(|| median_of_sorted(group))
}

/// Median of the costs near `start`, and their spread on the better side, which faults do not widen.
fn centre_and_spread(logs: &[f64], start: f64, least: f64) -> (f64, f64) {
    let (mut centre, mut spread) = (start, least);
    for _ in 0..4 {
        let mut better: Vec<f64> = logs.iter().filter(|l| **l <= centre).map(|l| centre - l).collect();
        better.sort_unstable_by(f64::total_cmp);
        spread = if better.len() < 3 { least } else { (median_of_sorted(&better) * 1.4826).max(least) };
        let mut near: Vec<f64> = logs.iter().filter(|l| (*l - centre).abs() <= 3.0 * spread).copied().collect();
        near.sort_unstable_by(f64::total_cmp);
        if near.len() >= 3 {
            centre = median_of_sorted(&near);
        }
    }
    (centre, spread)
}
