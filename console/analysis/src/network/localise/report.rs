//! How are the explanations found said, and which of them are no accusation?

use muster_wire::Direction;

use super::explain::{Pick, Search};
use super::{Candidate, Case, Kind, Localisation, Suspect, Undecided, lonely, next};

/// Lead over the best other explanation that an accusation needs: `ln 20`.
const LEAD: f64 = 3.0;
/// Views of one element that differ by less than this are not told apart.
const SAME: f64 = 2.0;
/// Worse by this much is a failure: no effect is given.
const FAILED: f64 = 6.9;
/// From this share of accused nodes on the fleet is not one fleet.
const MIXED_SHARE: f64 = 1.0 / 3.0;
/// Smallest fleet to which that applies.
const MIXED_FLEET: usize = 8;
/// Share of pairs far better than usual from which on the usual is in doubt.
const BETTER_SHARE: f64 = 0.05;
/// Pairs proposed at most.
const NEXT_PAIRS: usize = 64;

/// The answer, and the visits that are slow and explained by no suspect.
pub(super) fn compose(case: &Case<'_>, search: &mut Search<'_>, global: &[u32]) -> (Localisation, Vec<usize>) {
    let mut out =
        Localisation { tiers: case.residuals.tiers.iter().flatten().cloned().collect(), ..Default::default() };
    search.picks.sort_by(|a, b| b.lead.total_cmp(&a.lead));
    let picks = search.picks.clone();
    let mut next = Vec::new();
    for pick in &picks {
        let (view, unsure) = best_view(search, pick);
        let suspect = suspect(case, search, global, (view, pick));
        if pick.lead < LEAD {
            out.undecided.push(undecided(search, pick, &suspect));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        if unsure {
            out.undecided.push(direction_open(&suspect));
            next.extend(next::reversed(case, search, global, view));
        }
        out.suspects.push(suspect);
    }
    let accused = picks.iter().filter(|p| p.lead >= LEAD);
    let nodes = accused.filter(|p| is_node(search.elements[p.element].kind)).count();
    let fleet = case.places.nodes.len();
    if fleet >= MIXED_FLEET && nodes as f64 > MIXED_SHARE * fleet as f64 {
        withdraw(&mut out, nodes, fleet);
    }
    let mut explained = vec![false; case.matrix.len()];
    for (local, &at) in global.iter().enumerate() {
        explained[at as usize] = search.visits.owner[local] != super::NONE;
    }
    let sure = |label: u32| picks.iter().any(|p| p.lead >= LEAD && search.elements[p.element].label == label);
    let mut open: Vec<usize> = (0..case.matrix.len()).filter(|&at| !explained[at] && case.is_slow(at)).collect();
    let doubtful = |(local, _): &(usize, &u32)| {
        let owner = search.visits.owner[*local];
        owner != super::NONE && !sure(owner)
    };
    open.extend(global.iter().enumerate().filter(doubtful).map(|(_, &at)| at as usize).filter(|&at| case.is_slow(at)));
    next.extend(lonely::shared_uplinks(case, &mut explained, &mut out));
    next.extend(lonely::pairs(case, global, &explained, &mut out));
    out.undecided.extend(two_groups(case));
    let names = case.matrix.endpoints();
    let mut seen = std::collections::HashSet::new();
    next.retain(|pair| seen.insert(*pair));
    next.truncate(NEXT_PAIRS);
    out.next_pairs = next.into_iter().map(|(a, b)| [names[a as usize].clone(), names[b as usize].clone()]).collect();
    (out, open)
}

fn is_node(kind: Kind) -> bool {
    matches!(kind, Kind::Node | Kind::NodeRx | Kind::NodeTx)
}

/// The view of an element that is reported, and whether its direction is open: the widest that fits as well as any.
fn best_view(search: &mut Search<'_>, pick: &Pick) -> (usize, bool) {
    let views = search.views(pick);
    let best = views.iter().map(|v| v.1).fold(pick.gain, f64::max);
    let close: Vec<usize> = views.iter().filter(|v| v.1 >= best - SAME).map(|v| v.0).collect();
    let view = close.first().copied().unwrap_or(pick.element);
    let kind = search.elements[view].kind;
    let other = |e: &&usize| search.elements[**e].kind != kind || search.cells[**e].len() < search.cells[view].len();
    (view, is_node(kind) && close.iter().find(other).is_some())
}

fn suspect(case: &Case<'_>, search: &Search<'_>, global: &[u32], (view, pick): (usize, &Pick)) -> Suspect {
    let element = &search.elements[view];
    let cells = &search.cells[view];
    let slow = cells.iter().filter(|&&v| case.is_slow(global[v as usize] as usize)).count();
    let own: Vec<u32> = cells.iter().copied().filter(|&v| search.visits.owner[v as usize] == element.label).collect();
    let mut worse: Vec<f32> = own.iter().map(|&v| search.visits.worse[v as usize]).collect();
    worse.sort_unstable_by(f32::total_cmp);
    let error = own.iter().map(|&v| global[v as usize] as usize).map(|at| case.residuals.tier_of[at]);
    let error = error.map(|tier| case.residuals.centre_error[usize::from(tier)]).fold(0.0, f64::max);
    let (middle, low, high) = median_interval(&worse);
    let (effect, interval) = effect(case.matrix.direction(), middle, [low - 2.0 * error, high + 2.0 * error]);
    let confidence = (1.0 + (-pick.lead).exp()).recip();
    Suspect {
        kind: element.kind,
        element: element.name.clone(),
        effect,
        interval,
        pairs: cells.len(),
        slow,
        confidence,
    }
}

/// Median of ascending values and its 95 % interval from order statistics (David & Nagaraja, *Order Statistics*, 7.1).
fn median_interval(sorted: &[f32]) -> (f64, f64, f64) {
    let n = sorted.len();
    if n == 0 {
        return (0.0, 0.0, 0.0);
    }
    let half = 0.98 * (n as f64).sqrt();
    let low = ((n as f64 / 2.0 - half).floor().max(0.0) as usize).min(n - 1);
    let high = ((n as f64 / 2.0 + half).ceil() as usize).min(n - 1);
    (f64::from(sorted[n / 2]), f64::from(sorted[low]), f64::from(sorted[high]))
}

/// Ratio of value to usual value from the logarithm of cost.
pub(super) fn effect(direction: Direction, worse: f64, [low, high]: [f64; 2]) -> (f64, [f64; 2]) {
    let ratio = |worse: f64| match direction {
        Direction::HigherIsBetter if worse >= FAILED => 0.0,
        Direction::HigherIsBetter => (-worse).exp(),
        Direction::LowerIsBetter => worse.exp(),
    };
    let (a, b) = (ratio(low), ratio(high));
    (ratio(worse), [a.min(b), a.max(b)])
}

fn undecided(search: &Search<'_>, pick: &Pick, suspect: &Suspect) -> Undecided {
    let mut candidates = vec![Candidate { kind: suspect.kind, element: suspect.element.clone() }];
    for &rival in &pick.rivals {
        let element = &search.elements[rival];
        let candidate = Candidate { kind: element.kind, element: element.name.clone() };
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    let reason = if pick.rivals.is_empty() {
        format!("{} slow of {} pairs are too few to tell a fault from chance", suspect.slow, suspect.pairs)
    } else {
        "their pairs are nearly the same; pairs that cross only one of them decide".to_owned()
    };
    Undecided { candidates, reason, pairs: suspect.pairs, slow: suspect.slow }
}

fn direction_open(suspect: &Suspect) -> Undecided {
    let candidate = |kind| Candidate { kind, element: suspect.element.clone() };
    Undecided {
        candidates: [Kind::Node, Kind::NodeTx, Kind::NodeRx].map(candidate).to_vec(),
        reason: format!("{} was measured mostly in one direction; the other one decides", suspect.element),
        pairs: suspect.pairs,
        slow: suspect.slow,
    }
}

/// So many bad nodes are two kinds of nodes: nobody is accused, and the screen says why.
fn withdraw(out: &mut Localisation, nodes: usize, fleet: usize) {
    let (accused, others): (Vec<_>, Vec<_>) = out.suspects.drain(..).partition(|s| is_node(s.kind));
    out.suspects = others;
    out.undecided.push(Undecided {
        pairs: accused.iter().map(|s| s.pairs).sum(),
        slow: accused.iter().map(|s| s.slow).sum(),
        candidates: accused.into_iter().map(|s| Candidate { kind: s.kind, element: s.element }).collect(),
        reason: format!("{nodes} of {fleet} nodes differ from the others: two models or link speeds in one scan?"),
    });
}

/// Distances at which many pairs are far better than usual: what is usual there may itself be the fault.
fn two_groups(case: &Case<'_>) -> Vec<Undecided> {
    let tiers = &case.residuals.tiers;
    let limits: Vec<f32> = tiers.iter().map(|t| -case.extreme(t.as_ref())).collect();
    let mut better = vec![0_usize; tiers.len()];
    for (worse, tier) in case.residuals.worse.iter().zip(&case.residuals.tier_of) {
        better[usize::from(*tier)] += usize::from(*worse < limits[usize::from(*tier)]);
    }
    let apart = tiers.iter().zip(better).filter_map(|(tier, better)| Some((tier.as_ref()?, better)));
    apart
        .filter(|(tier, better)| *better as f64 > BETTER_SHARE * tier.pairs as f64)
        .map(|(tier, better)| {
            let place = tier.hops.map_or_else(String::new, |hops| format!(" of {hops} hops"));
            let reason = format!(
                "{better} of {} pairs{place} are far better than the others: most are slow, or there are two link speeds",
                tier.pairs
            );
            Undecided { candidates: Vec::new(), reason, pairs: tier.pairs, slow: tier.pairs - better }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_widens_with_few_values() {
        let values: Vec<f32> = (0..101).map(|i| i as f32).collect();
        assert_eq!(median_interval(&values), (50.0, 40.0, 61.0));
        assert_eq!(median_interval(&values[..3]), (1.0, 0.0, 2.0));
        assert_eq!(median_interval(&[]), (0.0, 0.0, 0.0));
    }

    #[test]
    fn effects_are_ratios_of_values() {
        let (effect, interval) = effect(Direction::HigherIsBetter, 2.0_f64.ln(), [0.0, 4.0_f64.ln()]);
        assert!((effect - 0.5).abs() < 1e-12 && (interval[0] - 0.25).abs() < 1e-12 && interval[1] == 1.0);
        assert_eq!(super::effect(Direction::LowerIsBetter, 2.0_f64.ln(), [0.0, 0.0]).0, 2.0);
    }
}
