//! What is said about slow pairs that no element explains?

use std::collections::BTreeMap;

use super::chance::Unexplained;
use super::places::NONE;
use super::report::effect;
use super::residual::WORST;
use super::tail::Tail;
use super::{Candidate, Case, Kind, Localisation, Suspect, Undecided, element, tail};
use crate::network::Cell;
use crate::network::schedule::Pair;
use crate::sample::median_of_sorted;

/// Isolated pairs beyond this share of visits (and beyond [`FEW`]) are noise.
const NOISE_SHARE: f64 = 2e-4;
/// So many isolated pairs are never noise by number alone.
const FEW: usize = 2;
/// Visits so far out that the tail of the others lets expect; more are chance.
const CHANCE: f64 = 2e-3;
/// Of a pair that is accused.
const SURE_CHANCE: f64 = 1e-4;
/// Pairs that are held against the tail of all others.
const ASKED: usize = 8;
/// A fault is there at every visit. Those of a pair that differ by more than this factor of their effects (as logarithms)
/// were slow for different reasons, most likely what else the nodes did: so far apart that uneven sharing is no reason.
const ALIKE: f32 = 2.0;
/// Fewer visits have no tail to compare with: so many spreads are needed.
const FAR: f64 = 40.0;
/// Most pairs asked for again.
const AGAIN: usize = 16;
/// Evidence that a leaf's pairs are slow more often than others': `ln 3000` and the number of leaves.
const SHARED: f64 = 8.0;
/// Most leaves with such a share.
const MOST_LEAVES: usize = 8;

/// Visits of one unordered pair.
#[derive(Default)]
struct Isolated {
    extreme: Vec<usize>,
    visits: Vec<usize>,
    /// Of those, the ones from the endpoint of the smaller number.
    there: usize,
    values: usize,
    /// Visits that an element explains.
    explained: Vec<usize>,
}

impl Isolated {
    /// How many pairs of `visits` visits chance puts as far out; a failed visit is no matter of chance.
    fn expected(&self, case: &Case<'_>, tail: Option<&Tail>) -> f64 {
        if self.extreme.iter().any(|at| case.residuals.worse[*at] >= WORST) {
            return 0.0;
        }
        let mut far: Vec<f64> = self.extreme.iter().map(|at| tail::size(case, *at)).collect();
        far.sort_unstable_by(|a, b| b.total_cmp(a));
        let Some(tail) = tail else { return f64::from(far[0] < FAR) };
        let visits = case.matrix.len() as f64;
        // All of several slow visits of a pair must be chance.
        let chance = (1_i32..).zip(&far).map(|(k, far)| visits * (tail.expected(*far) / visits).powi(k));
        chance.fold(f64::INFINITY, f64::min)
    }

    /// Whether two of its slow visits are alike, or its only one has three values.
    fn repeats(&self, case: &Case<'_>) -> bool {
        if self.extreme.len() < 2 {
            return self.values > 2;
        }
        let mut worse: Vec<f32> = self.extreme.iter().map(|&at| case.residuals.worse[at]).collect();
        worse.sort_unstable_by(f32::total_cmp);
        worse.windows(2).any(|two| two[1] <= ALIKE * two[0])
    }

    /// Whether no direction was visited twice: what holds a node up for a while holds up all of one visit.
    fn is_one_visit(&self) -> bool {
        self.there <= 1 && self.visits.len() - self.there <= 1
    }

    /// Whether most visits of one direction are slow.
    fn comes_back(&self, cells: &[Cell]) -> bool {
        let there = self.extreme.iter().filter(|&&at| cells[at].src < cells[at].dst).count();
        2 * there > self.there || 2 * (self.extreme.len() - there) > self.visits.len() - self.there
    }

    /// An explained visit of the way back, if that is the rule there: what the receiver answers waits in the same queue, and
    /// the sender waits with it.
    fn way_back(&self, cells: &[Cell]) -> Option<usize> {
        let src = cells[self.extreme[0]].src;
        let back = |at: usize| cells[at].src != src;
        let all = if src < cells[self.extreme[0]].dst { self.visits.len() - self.there } else { self.there };
        let explained: Vec<usize> = self.explained.iter().copied().filter(|&at| back(at)).collect();
        let one_way = !self.extreme.iter().any(|&at| back(at));
        explained.first().copied().filter(|_| one_way && 2 * explained.len() > all)
    }
}

/// Isolated pairs: slow ones that share no element. Two visits alike or three values make a suspect; a single value may be a hiccup, and is one
/// for certain where there are many such, or where the pair was as good as usual when it was visited again. Returns the pairs to visit again.
pub(super) fn pairs(
    (case, unexplained): (&Case<'_>, &Unexplained<'_>),
    global: &[u32],
    explained: &[bool],
    out: &mut Localisation,
) -> Vec<Pair> {
    let cells = case.matrix.cells();
    let mut found = gathered(case, global, explained);
    if found.is_empty() {
        return Vec::new();
    }
    found.retain(|_, isolated| isolated.comes_back(cells));
    let waiting = found.extract_if(.., |_, isolated| isolated.way_back(cells).is_some());
    out.undecided.extend(waiting.filter_map(|(_, isolated)| behind(case, &isolated, &out.suspects)));
    let tail = Tail::of(case, explained, &asked(case, &found));
    let mut again = Vec::new();
    found.retain(|&pair, isolated| {
        let kept = isolated.expected(case, tail.as_ref()) < CHANCE;
        if !kept && again.len() < AGAIN {
            again.push(pair);
        }
        kept
    });
    let many = found.len() > FEW.max((NOISE_SHARE * cells.len() as f64) as usize);
    for isolated in found.values() {
        let first = cells[isolated.extreme[0]];
        let chance = !isolated.is_one_visit() && unexplained.may_be(&isolated.visits, cells.len().div_ceil(2));
        let strong = isolated.repeats(case) && !chance;
        let rare = isolated.expected(case, tail.as_ref()) < SURE_CHANCE;
        if many || !strong || !rare || isolated.is_one_visit() {
            let both = [(first.src, first.dst), (first.dst, first.src)];
            again.extend(both.into_iter().take((2 * AGAIN).saturating_sub(again.len())));
        }
        if !many {
            out.suspects.push(suspect(case, isolated, strong && rare));
        }
    }
    if many {
        out.undecided.push(Undecided {
            candidates: Vec::new(),
            reason: format!(
                "{} isolated pairs are slow, too many to be faults of their own: measure again",
                found.len()
            ),
            pairs: found.values().map(|i| i.visits.len()).sum(),
            slow: found.values().map(|i| i.extreme.len()).sum(),
        });
    }
    again
}

/// Slow visits that no element explains, by the pair, with all other visits of these pairs.
fn gathered(case: &Case<'_>, global: &[u32], explained: &[bool]) -> BTreeMap<Pair, Isolated> {
    let cells = case.matrix.cells();
    let key = |at: usize| (cells[at].src.min(cells[at].dst), cells[at].src.max(cells[at].dst));
    let mut found: BTreeMap<Pair, Isolated> = BTreeMap::new();
    for at in global.iter().map(|&at| at as usize).filter(|&at| !explained[at] && case.is_extreme(at)) {
        let isolated = found.entry(key(at)).or_default();
        isolated.extreme.push(at);
        isolated.values += case.matrix.values(at).len().max(1);
    }
    if found.is_empty() {
        return found;
    }
    for (at, cell) in cells.iter().enumerate() {
        if let Some(isolated) = found.get_mut(&key(at)) {
            isolated.visits.push(at);
            isolated.there += usize::from(cell.src < cell.dst);
            if explained[at] {
                isolated.explained.push(at);
            }
        }
    }
    found
}

/// A pair that is slow where the way back is bad: the pair itself may be sound.
fn behind(case: &Case<'_>, isolated: &Isolated, suspects: &[Suspect]) -> Option<Undecided> {
    let cells = case.matrix.cells();
    let names = case.matrix.endpoints();
    let (first, back) = (cells[isolated.extreme[0]], cells[isolated.way_back(cells)?]);
    let on_the_way = case.places.groups(back.src, back.dst, back.up);
    let crossed = suspects.iter().find(|suspect| {
        let wanted = element::groups(case.places, names, std::slice::from_ref(suspect));
        on_the_way.iter().any(|group| *group != NONE && wanted[*group as usize])
    });
    let pair = format!("{}-{}", names[first.src as usize], names[first.dst as usize]);
    let bad = crossed.map_or("a slow element", |suspect| &suspect.element);
    Some(Undecided {
        reason: format!("{pair} is slow, but its replies cross {bad}: measure the pair again once that is repaired"),
        candidates: vec![Candidate { kind: Kind::Pair, element: pair }],
        pairs: isolated.visits.len(),
        slow: isolated.extreme.len(),
    })
}

/// Visits of the few pairs that lie farthest out; all others are the tail itself.
fn asked(case: &Case<'_>, found: &BTreeMap<Pair, Isolated>) -> Vec<usize> {
    let worst = |i: &Isolated| i.extreme.iter().map(|&at| tail::size(case, at)).fold(0.0, f64::max);
    let mut order: Vec<&Isolated> = found.values().collect();
    order.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    order.into_iter().take(ASKED).flat_map(|isolated| isolated.extreme.iter().copied()).collect()
}

fn suspect(case: &Case<'_>, isolated: &Isolated, strong: bool) -> Suspect {
    let first = case.matrix.cells()[isolated.extreme[0]];
    let names = case.matrix.endpoints();
    let mut worse: Vec<f64> = isolated.extreme.iter().map(|&at| f64::from(case.residuals.worse[at])).collect();
    worse.sort_unstable_by(f64::total_cmp);
    let middle = median_of_sorted(&worse);
    let spread = f64::from(case.spread(isolated.extreme[0])) * 2.0 / (worse.len() as f64).sqrt();
    // One slow visit beside others that were fine says nothing about the next one.
    let low = if !strong && worse.len() == 1 && isolated.visits.len() > 1 { 0.0 } else { middle - spread };
    let (effect, interval) = effect(case.matrix.direction(), middle, [low, middle + spread]);
    Suspect {
        kind: Kind::Pair,
        element: format!("{}-{}", names[first.src as usize], names[first.dst as usize]),
        effect,
        interval,
        pairs: isolated.visits.len(),
        slow: isolated.extreme.len(),
        confidence: if strong { 0.95 } else { 0.6 },
    }
}

/// Leaves of whose pairs a share is slow, at no node and to no other leaf alone: one of several uplinks, and without
/// known routes nobody can say which. Marks their slow pairs as explained.
pub(super) fn shared_uplinks(case: &Case<'_>, explained: &mut [bool], out: &mut Localisation) -> Vec<Pair> {
    let places = case.places;
    let leaves = places.leaves.len();
    if !places.routes.is_empty() || leaves < 3 {
        return Vec::new();
    }
    let ends = |at: usize| {
        let cell = case.matrix.cells()[at];
        let (a, b) = (places.leaf_of[cell.src as usize], places.leaf_of[cell.dst as usize]);
        (a != b && a != NONE && b != NONE).then_some((a as usize, b as usize))
    };
    let mut count = vec![(0_usize, 0_usize); leaves];
    let (mut slow, mut all) = (Vec::new(), 0_usize);
    for (at, explained) in explained.iter().enumerate() {
        let Some((a, b)) = ends(at).filter(|_| !explained) else { continue };
        all += 1;
        let bad = usize::from(case.is_slow(at));
        for leaf in [a, b] {
            count[leaf].0 += bad;
            count[leaf].1 += 1;
        }
        if bad > 0 {
            slow.push(at);
        }
    }
    let mut again = Vec::new();
    for _ in 0..MOST_LEAVES {
        let weight = |leaf: usize| binomial(count[leaf], (slow.len(), all));
        let Some(leaf) = (0..leaves).max_by(|&a, &b| weight(a).total_cmp(&weight(b))) else { break };
        if weight(leaf) < SHARED + (leaves as f64).ln() {
            break;
        }
        let (own, rest): (Vec<usize>, Vec<usize>) =
            slow.into_iter().partition(|&at| ends(at).is_some_and(|(a, b)| a == leaf || b == leaf));
        out.undecided.push(Undecided {
            candidates: vec![Candidate { kind: Kind::Uplink, element: format!("{}-?", places.leaves[leaf]) }],
            reason: format!(
                "{} of {} visits of {} are slow, by no node: one of its uplinks, but routes are not known; name them in \
                 column `up`, or measure the same pairs again to see whether they stay slow",
                own.len(),
                count[leaf].1,
                places.leaves[leaf],
            ),
            pairs: count[leaf].1,
            slow: own.len(),
        });
        let step = (own.len() / 4).max(1);
        again.extend(own.iter().step_by(step).take(4).map(|&at| case.matrix.cells()[at]).map(|c| (c.src, c.dst)));
        for at in own {
            explained[at] = true;
            if let Some((a, b)) = ends(at) {
                count[a].0 -= 1;
                count[b].0 -= 1;
            }
        }
        slow = rest;
    }
    again
}

/// Log-likelihood ratio of a leaf having its own rate of slow pairs against that of all others.
fn binomial((slow, of): (usize, usize), (all_slow, all): (usize, usize)) -> f64 {
    let rest = all.saturating_sub(of).max(1) as f64;
    let usual = (all_slow.saturating_sub(slow) as f64 / rest).clamp(0.005, 0.995);
    let own = slow as f64 / of.max(1) as f64;
    if slow < 3 || own <= usual {
        return 0.0;
    }
    let own = own.min(0.995);
    slow as f64 * (own / usual).ln() + (of - slow) as f64 * ((1.0 - own) / (1.0 - usual)).ln()
}
