//! How are the explanations found said, and which of them are no accusation?

use std::collections::HashSet;

use muster_wire::Direction;

use super::chance::Unexplained;
use super::explain::{Pick, Search};
use super::open::{as_others, direction_open, is_node, no_effect, or_its_pair, too_few, undecided, withdraw};
use super::peers::{Peers, Standing, own_nodes};
use super::{Case, Kind, Localisation, Suspect, Undecided, isolated, next, slight};
use crate::network::schedule::Pair;

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
/// Visits that an accusation needs, unless they failed.
const VISITS: usize = 3;
/// In fabrics of so many nodes only half the rate, `ln 2`, is enough to accuse.
const SMALL: usize = 4;
const HALVED: f64 = std::f64::consts::LN_2;
/// Pairs proposed at most.
const NEXT_PAIRS: usize = 64;

/// The answer, and the visits that are slow and explained by no suspect.
pub(super) fn compose(case: &Case<'_>, search: &mut Search<'_>, global: &[u32]) -> (Localisation, Vec<usize>) {
    let mut out =
        Localisation { tiers: case.residuals.tiers.iter().flatten().cloned().collect(), ..Default::default() };
    search.picks.sort_by(|a, b| b.lead.total_cmp(&a.lead));
    let picks = search.picks.clone();
    let mut next = Vec::new();
    let mut explained = vec![false; case.matrix.len()];
    for (local, &at) in global.iter().enumerate() {
        explained[at as usize] = search.visits.owner[local] != super::NONE;
    }
    let peers = Peers::of(case, &explained);
    let sure = owned(search, (case.matrix.len(), global));
    let unexplained = Unexplained::new(case, &sure);
    let said = weigh_picks((case, global, (&peers, &unexplained)), search, &mut out, &mut next);
    let accused = picks.iter().filter(|p| p.lead >= LEAD);
    let nodes = accused.filter(|p| is_node(search.elements[p.element].kind)).count();
    let fleet = case.places.nodes.len();
    if fleet >= MIXED_FLEET && nodes as f64 > MIXED_SHARE * fleet as f64 {
        withdraw(&mut out, nodes, fleet);
    }
    let mut open: Vec<usize> = (0..case.matrix.len()).filter(|&at| !explained[at] && case.is_slow(at)).collect();
    let doubtful = |(local, at): &(usize, &u32)| search.visits.owner[*local] != super::NONE && !sure[**at as usize];
    open.extend(global.iter().enumerate().filter(doubtful).map(|(_, &at)| at as usize).filter(|&at| case.is_slow(at)));
    next.extend(isolated::shared_uplinks(case, &mut explained, &mut out));
    next.extend(isolated::pairs((case, &unexplained), global, &explained, &mut out));
    out.undecided.extend(two_groups(case));
    for (local, &at) in global.iter().enumerate() {
        // What was weighed and dropped is still to be warned about.
        let owner = search.visits.owner[local];
        explained[at as usize] &= owner == super::NONE || said.contains(&owner);
    }
    out.warnings = slight::warnings(case, &explained, &out.suspects);
    let names = case.matrix.endpoints();
    let mut seen = HashSet::new();
    next.retain(|pair| seen.insert(*pair));
    next.truncate(NEXT_PAIRS);
    out.next_pairs = next.into_iter().map(|(a, b)| [names[a as usize].clone(), names[b as usize].clone()]).collect();
    (out, open)
}

/// Which visits a sure pick explains; `all` are those of the matrix, `global` their numbers.
fn owned(search: &Search<'_>, (all, global): (usize, &[u32])) -> Vec<bool> {
    let picks = search.picks.iter().filter(|pick| pick.lead >= LEAD);
    let labels: HashSet<u32> = picks.map(|pick| search.elements[pick.element].label).collect();
    let mut owned = vec![false; all];
    for (owner, &at) in search.visits.owner.iter().zip(global) {
        owned[at as usize] = labels.contains(owner);
    }
    owned
}

/// Adds what each pick comes to beside its peers, and the labels of those that are mentioned.
fn weigh_picks(
    (case, global, (peers, unexplained)): (&Case<'_>, &[u32], (&Peers, &Unexplained<'_>)),
    search: &mut Search<'_>,
    out: &mut Localisation,
    next: &mut Vec<Pair>,
) -> Vec<u32> {
    let mut said = Vec::new();
    for pick in &search.picks.clone() {
        let (view, unsure) = best_view(search, pick);
        let (suspect, standing) = suspect(case, search, global, (view, pick), peers);
        if standing == Standing::Usual {
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        said.push(search.elements[pick.element].label);
        if pick.lead < LEAD {
            out.undecided.push(undecided(search, pick, &suspect));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        if let Some(pair) = only_pair(case, search, global, pick) {
            out.undecided.push(or_its_pair(&suspect, pair));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        if holds_zero(&suspect) {
            out.undecided.push(no_effect(&suspect));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        let own: Vec<usize> = search.cells[view].iter().map(|&v| global[v as usize] as usize).collect();
        if unexplained.may_be(&own, family(case, suspect.kind)) {
            out.undecided.push(as_others(&suspect));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        if standing == Standing::Rare {
            out.undecided.push(too_few(case, &suspect));
            next.extend(next::deciding(case, search, global, pick));
            continue;
        }
        if unsure {
            out.undecided.push(direction_open(&suspect));
            next.extend(next::reversed(case, search, global, view));
        }
        out.suspects.push(suspect);
    }
    said
}

/// Whether the interval of a suspect's effect allows that there is none.
fn holds_zero(suspect: &Suspect) -> bool {
    suspect.interval[0] <= 1.0 && suspect.interval[1] >= 1.0
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

fn suspect(
    case: &Case<'_>,
    search: &Search<'_>,
    global: &[u32],
    (view, pick): (usize, &Pick),
    peers: &Peers,
) -> (Suspect, Standing) {
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
    let ends = own_nodes(case, own.iter().map(|&v| global[v as usize] as usize));
    let standing = match family(case, element.kind) {
        // Noise does not make visits fail.
        _ if middle >= FAILED && own.len() > 1 => Standing::Beyond,
        family => {
            let lower = f64::from(worse.get(worse.len().saturating_sub(1) / 2).copied().unwrap_or(0.0));
            let standing = peers.standing(lower, (own.len(), ends), family);
            let overwhelming = case.places.nodes.len() > SMALL || lower >= HALVED;
            if own.len() < VISITS || !overwhelming { standing.min(Standing::Rare) } else { standing }
        }
    };
    let (kind, element, pairs) = (element.kind, element.name.clone(), cells.len());
    (Suspect { kind, element, effect, interval, pairs, slow, confidence }, standing)
}

/// The two nodes between which all visits of a pick are, if they are only two.
fn only_pair(case: &Case<'_>, search: &Search<'_>, global: &[u32], pick: &Pick) -> Option<String> {
    let label = search.elements[pick.element].label;
    let own = search.cells[pick.element].iter().filter(|&&v| search.visits.owner[v as usize] == label);
    let mut pairs =
        own.map(|&v| case.matrix.cells()[global[v as usize] as usize]).map(|c| (c.src.min(c.dst), c.src.max(c.dst)));
    let first = pairs.next()?;
    let name = |end: u32| case.matrix.endpoints()[end as usize].as_str();
    pairs.all(|pair| pair == first).then(|| format!("{}-{}", name(first.0), name(first.1)))
}

/// How many elements of a kind there are.
fn family(case: &Case<'_>, kind: Kind) -> usize {
    let places = case.places;
    match kind {
        Kind::Node | Kind::NodeRx | Kind::NodeTx => places.nodes.len(),
        Kind::Nic | Kind::Pair => places.node_of.len(),
        Kind::Leaf => places.leaves.len(),
        Kind::Uplink => {
            places.leaves.len().max(1) * (places.routes.spines().len() + places.routes.opaque().len()).max(1)
        }
    }
}

/// Takes back everything but what does not work at all.
pub(super) fn only_failures(out: &mut Localisation, direction: Direction) {
    let failed = effect(direction, FAILED, [FAILED; 2]).0;
    out.suspects.retain(|suspect| match direction {
        Direction::HigherIsBetter => suspect.effect <= failed,
        Direction::LowerIsBetter => suspect.effect >= failed,
    });
    out.undecided.clear();
    out.warnings.clear();
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
    fn an_interval_that_holds_zero_is_no_accusation() {
        let suspect = |interval| Suspect {
            kind: super::super::Kind::Leaf,
            element: "leaf2".to_owned(),
            effect: 0.61,
            interval,
            pairs: 16,
            slow: 3,
            confidence: 1.0,
        };
        assert!(holds_zero(&suspect([0.51, 1.07])) && !holds_zero(&suspect([0.51, 0.97])));
        let said = no_effect(&suspect([0.51, 1.07])).reason;
        assert!(said.contains("leaf2 is at -39 %") && said.contains("(-49 to +7 %)"), "{said}");
    }

    #[test]
    fn effects_are_ratios_of_values() {
        let (effect, interval) = effect(Direction::HigherIsBetter, 2.0_f64.ln(), [0.0, 4.0_f64.ln()]);
        assert!((effect - 0.5).abs() < 1e-12 && (interval[0] - 0.25).abs() < 1e-12 && interval[1] == 1.0);
        assert_eq!(super::effect(Direction::LowerIsBetter, 2.0_f64.ln(), [0.0, 0.0]).0, 2.0);
    }
}
