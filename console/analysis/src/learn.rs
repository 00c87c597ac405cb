//! What a fleet says about one metric: its criterion, how far that may be trusted, and a verdict per node.

use std::sync::Arc;

use muster_wire::{Direction, MetricId, MetricRole, Unit, role};
use serde::{Deserialize, Serialize};

use crate::algorithm2::{Found, search};
use crate::distance::{is_defect, one_sided};
use crate::medoid::better;
use crate::scatter::{Place, clusters, limit, separated};
use crate::spread::{Offset, against_peers, log_cost};
use crate::verdict::{Margin, judge_with};
use crate::{Cluster, Criterion, Grain, NodeVerdict, Observation, Params, Sample, Spread, Status, repeatability};

/// Robust spreads beyond which a node's median is not part of the fleet whose repeatability is asked for.
const OUTLIER_SPREADS: f64 = 6.0;
/// Nodes that only their tails set apart may be left out of it up to this share, or one; more of them are the
/// fleet.
const TAIL_SHARE: f64 = 0.1;

/// Result of learning one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The criterion.
    pub criterion: Criterion,
    /// One verdict per node given, in the order given.
    pub verdicts: Vec<NodeVerdict>,
}

/// Finds the criterion of `metric` over `nodes` and judges every node by it.
#[must_use]
pub fn learn(
    metric: &MetricId,
    unit: Unit,
    dir: Direction,
    nodes: &[(impl Into<Arc<str>> + Clone, Observation)],
    params: &Params,
) -> Learned {
    learn_below((metric, unit, dir), nodes, params, f64::INFINITY)
}

/// [`learn`] for files of millions of values: verdicts of those nodes only of which there is something to
/// say, because they do not pass or because their similarity is below `below`.
#[must_use]
pub fn learn_below(
    (metric, unit, dir): (&MetricId, Unit, Direction),
    nodes: &[(impl Into<Arc<str>> + Clone, Observation)],
    params: &Params,
    below: f64,
) -> Learned {
    let (criterion, near) = find(metric, unit, dir, &valid(nodes, dir), params);
    verdicts(criterion, near, nodes, (params, Tell { below, reasons: true }))
}

/// [`learn`] without a word on what was measured, for who decides by more than one metric and says it then: millions of
/// sentences take longer than millions of values.
#[must_use]
pub fn learn_silently(
    (metric, unit, dir): (&MetricId, Unit, Direction),
    nodes: &[(impl Into<Arc<str>> + Clone, Observation)],
    params: &Params,
) -> Learned {
    let (criterion, near) = find(metric, unit, dir, &valid(nodes, dir), params);
    verdicts(criterion, near, nodes, (params, Tell { below: f64::INFINITY, reasons: false }))
}

/// Judges every node by a criterion found before, with the nodes given as its peers: for runs against a stored criterion.
#[must_use]
pub fn compare(
    criterion: &Criterion,
    nodes: &[(impl Into<Arc<str>> + Clone, Observation)],
    params: &Params,
) -> Learned {
    let near = offsets(&valid(nodes, criterion.direction), criterion.direction);
    verdicts(criterion.clone(), near, nodes, (params, Tell { below: f64::INFINITY, reasons: true }))
}

/// What is told of the nodes of a metric.
#[derive(Clone, Copy)]
struct Tell {
    /// Nodes that pass with a similarity of at least this are left out.
    below: f64,
    /// Why nodes that were measured do not pass.
    reasons: bool,
}

fn valid<N>(nodes: &[(N, Observation)], dir: Direction) -> Vec<&Sample> {
    nodes.iter().filter_map(|(_, observed)| observed.valid(dir).ok()).collect()
}

/// `near` holds one entry per valid node, in their order.
fn verdicts(
    criterion: Criterion,
    near: Vec<Offset>,
    nodes: &[(impl Into<Arc<str>> + Clone, Observation)],
    (params, tell): (&Params, Tell),
) -> Learned {
    let peers = near.len().saturating_sub(1);
    // One or two peers say nothing about how far is far.
    let role = role(&criterion.metric);
    let judged = peers + 1 >= params.quorum && role != MetricRole::Informational;
    let mut near = near.into_iter().map(|e| judged.then_some(e));
    let mut learned = Learned { criterion, verdicts: Vec::new() };
    for (node, observed) in nodes {
        let criterion = &learned.criterion;
        let offset = observed.valid(criterion.direction).ok().and_then(|_| near.next().flatten());
        if fine(observed, criterion, tell.below) {
            continue;
        }
        let margin = offset.map(|e| Margin { ratio: e.slowdown.exp(), spreads: e.spreads(), peers });
        let verdict = judge_with(&node.clone().into(), observed, criterion, margin, (params, role, tell.reasons));
        learned.verdicts.push(verdict);
    }
    // Those of all metrics are held until the last is judged.
    learned.verdicts.shrink_to_fit();
    learned
}

/// Whether nothing is to be said of a node.
fn fine(observed: &Observation, criterion: &Criterion, below: f64) -> bool {
    let (Ok(sample), Some(centre)) = (observed.valid(criterion.direction), &criterion.sample) else { return false };
    if below > 1.0 || criterion.status != Status::Ok {
        return false;
    }
    let grain = criterion.grain;
    let similarity = one_sided(&grain.of(sample), &grain.of(centre), criterion.direction, criterion.tau);
    similarity >= below && !is_defect(similarity, criterion.alpha)
}

/// The criterion alone, without a verdict per node: for large fleets and for speed.
#[must_use]
pub fn criterion_of(metric: &MetricId, unit: Unit, dir: Direction, samples: &[&Sample], params: &Params) -> Criterion {
    find(metric, unit, dir, samples, params).0
}

fn find(
    metric: &MetricId,
    unit: Unit,
    dir: Direction,
    samples: &[&Sample],
    params: &Params,
) -> (Criterion, Vec<Offset>) {
    let near = offsets(samples, dir);
    let medians: Vec<f64> = samples.iter().map(|s| s.median()).collect();
    let mut criterion = Criterion {
        id: String::new(),
        metric: metric.clone(),
        unit,
        direction: dir,
        alpha: params.alpha,
        tau: params.tau,
        grain: Grain::Steps,
        n: samples.len(),
        healthy: 0,
        status: Status::Provisional,
        repeatability: None,
        sample: None,
        spread: Spread::of(&medians),
        scatter: None,
        clusters: Vec::new(),
    };
    if let Some((grain, centre, trust)) = settle(samples, dir, &near, params) {
        criterion.grain = grain;
        criterion.sample = Some(samples[centre].clone());
        criterion.status = trust.status;
        criterion.healthy = trust.healthy;
        criterion.repeatability = trust.repeatability;
        criterion.scatter = trust.scatter;
        criterion.clusters = trust.clusters;
    }
    (criterion.identified(), near)
}

/// The criterion's node at the finest grain at which the metric repeats; step by step where it does at none.
fn settle(samples: &[&Sample], dir: Direction, near: &[Offset], params: &Params) -> Option<(Grain, usize, Trust)> {
    let mut settled = None;
    let single = samples.iter().all(|s| s.len() == 1);
    for grain in Grain::ALL.into_iter().take(if single { 1 } else { 3 }) {
        let seen: Vec<Sample> = samples.iter().map(|s| grain.of(s)).collect();
        let seen: Vec<&Sample> = seen.iter().collect();
        let found = search(&seen, dir, params)?;
        let trust = trust(&seen, dir, &found, near, params);
        let repeats = !matches!(trust.status, Status::NotRepeatable | Status::NoConsensus);
        // Nodes alike at a coarse grain are told apart by their steps, so that their order decides nothing.
        let alike = (0..samples.len()).filter(|&i| seen[i] == seen[found.centre]);
        let centre = alike.min_by(|&a, &b| better(samples[a], samples[b], dir)).unwrap_or(found.centre);
        if grain == Grain::Steps || trust.status == Status::Ok {
            settled = Some((grain, centre, trust));
        }
        if repeats {
            break;
        }
    }
    settled
}

/// How far each node's median step lies from its peers'.
fn offsets(samples: &[&Sample], dir: Direction) -> Vec<Offset> {
    against_peers(&samples.iter().map(|s| log_cost(s.median(), dir)).collect::<Vec<_>>())
}

struct Trust {
    status: Status,
    healthy: usize,
    repeatability: Option<f64>,
    scatter: Option<f64>,
    clusters: Vec<Cluster>,
}

/// Decides how far the criterion may be trusted.
///
/// Repeatability over the nodes that passed the alpha test would be high by selection, however noisy the fleet.
/// The question is therefore asked first of the *core*: all nodes but those whose median lies far outside, and those
/// of a smaller cluster.
fn trust(samples: &[&Sample], dir: Direction, found: &Found, near: &[Offset], params: &Params) -> Trust {
    let n = samples.len();
    let centre = samples[found.centre];
    let alike = found.similarity.iter().filter(|s| !is_defect(**s, params.alpha)).count();
    let places: Vec<Place> = samples.iter().map(|s| Place::of(s, centre, dir, params.tau)).collect();
    let passing: Vec<usize> = (0..n).filter(|&i| !is_defect(places[i].similarity(), params.alpha)).collect();
    let large = n > crate::repeatability::BY_PAIRS;
    // The search swept large sets already; the sets asked for here are mostly among them.
    let over = |nodes: &[usize]| match found.swept.iter().find(|(set, _)| large && set == nodes) {
        Some((_, mean)) => *mean,
        None => repeatability(&nodes.iter().map(|&i| samples[i]).collect::<Vec<_>>(), dir, params.tau),
    };
    let groups = found.groups.as_ref().filter(|groups| n >= params.quorum && separated(&places, groups));
    let clusters = groups.map_or_else(Vec::new, |groups| clusters(samples, groups));
    let trusted = |status, scatter| Trust {
        status,
        healthy: passing.len(),
        repeatability: over(&passing),
        scatter,
        clusters: clusters.clone(),
    };
    if n < params.quorum {
        return trusted(Status::Provisional, None);
    }
    if groups.is_some_and(|[_, second]| 3 * second.len() > n) {
        return trusted(Status::Bimodal, None);
    }
    let mut core = core(found, near, &passing, params);
    if let Some([_, second]) = groups {
        core.retain(|i| !second.contains(i));
    }
    if 2 * alike < n && !overlapping(samples, centre) {
        return trusted(Status::NoConsensus, None);
    }
    let core_repeatability = over(&core);
    let steady = steady(&core, near, n);
    let second = groups.map_or(0, |[_, second]| second.len());
    let places: Vec<Place> = steady.iter().map(|&i| places[i]).collect();
    let scatter = limit(&places, places.len() + second < n);
    let beyond = scatter.is_some_and(|limit| is_defect(1.0 - limit, params.alpha));
    if core_repeatability.is_none_or(|r| r < params.alpha) || 2 * alike < n || scatter.is_none() || beyond {
        let (healthy, repeatability) = (core.len(), core_repeatability);
        return Trust { status: Status::NotRepeatable, healthy, repeatability, scatter, clusters };
    }
    if core == passing {
        return Trust {
            status: Status::Ok,
            healthy: passing.len(),
            repeatability: core_repeatability,
            scatter,
            clusters,
        };
    }
    trusted(Status::Ok, scatter)
}

/// Nodes whose median is not far outside the fleet. Defects by their tails are left out only where they are few:
/// in a small fleet a burst on two nodes is the noise of the place, not their fault.
fn core(found: &Found, near: &[Offset], passing: &[usize], params: &Params) -> Vec<usize> {
    let inlier = |i: usize| near[i].spreads().abs() <= OUTLIER_SPREADS || !is_defect(found.similarity[i], params.alpha);
    let inliers: Vec<usize> = (0..near.len()).filter(|&i| inlier(i)).collect();
    let mut passes = vec![false; near.len()];
    passing.iter().for_each(|&i| passes[i] = true);
    let tails = inliers.iter().filter(|&&i| !passes[i]).count();
    if tails <= few(near.len()) { inliers.into_iter().filter(|&i| passes[i]).collect() } else { inliers }
}

/// The core without nodes whose median lies far outside though alpha lets them pass, where they are few: one node at
/// 4 % less among quiet ones is not how the others scatter.
fn steady(core: &[usize], near: &[Offset], n: usize) -> Vec<usize> {
    let inside: Vec<usize> = core.iter().copied().filter(|&i| near[i].spreads().abs() <= OUTLIER_SPREADS).collect();
    if core.len() - inside.len() <= few(n) { inside } else { core.to_vec() }
}

fn few(n: usize) -> usize {
    ((TAIL_SHARE * n as f64) as usize).max(1)
}

/// Whether the steps within nodes scatter as widely as the nodes among each other: noise, not disagreement.
fn overlapping(samples: &[&Sample], centre: &Sample) -> bool {
    let middle = centre.median();
    let holding = samples.iter().filter(|s| s.quantile(0.1) <= middle && middle <= s.quantile(0.9)).count();
    2 * holding >= samples.len()
}
