//! Which node, NIC, leaf or uplink do the slow pairs of a matrix point at?
//!
//! Boolean network tomography with noise: each pair is as good as the worst element on its way (a bottleneck, as in
//! Padmanabhan, Qiu & Wang, *Server-based inference of Internet link lossiness*, INFOCOM 2003; Duffield, *Network
//! tomography of binary network performance characteristics*, IEEE Trans. Inf. Theory 52(12), 2006). Elements are chosen
//! by likelihood instead of set cover, so that noise, missing pairs and several faults at once are weighed alike, and
//! every accusation is put beside the best explanation without it. What cannot be told apart is said, with the pairs
//! that would decide.

mod element;
mod explain;
mod lonely;
mod next;
mod places;
mod report;
mod residual;
mod routes;

use serde::{Deserialize, Serialize};

pub use element::Kind;
pub use residual::Tier;

use super::matrix::NO_UP;
use super::{Cell, Matrix, Topology};
use crate::Params;
use element::{Element, Suspicion, tally};
use explain::{Search, Visits};
use places::{NONE, Places};
use residual::{Residuals, residuals};

/// A visit this many spreads worse than usual is looked at even if nothing else on its way is.
const EXTREME_SPREADS: f32 = 8.0;

/// Confidence from which on a suspect fails what it names; below it the matter is undecided.
pub const SURE: f64 = 0.9;

/// An element that is accused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// What it is.
    pub kind: Kind,
    /// Its name; `src-dst` for a pair.
    pub element: String,
    /// Value of its pairs over the usual value at their distance: 0.31 is 31 % of the usual throughput, or 31 % of the
    /// usual latency; 0 if they failed.
    pub effect: f64,
    /// 95 % interval of the effect, lower end first.
    pub interval: [f64; 2],
    /// Visits that cross it.
    pub pairs: usize,
    /// Of those, the ones clearly worse than usual.
    pub slow: usize,
    /// Probability that it is this element and not the best other explanation, 0 to 1.
    pub confidence: f64,
}

/// Slow pairs with more than one good explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// Elements between which the pairs do not decide, likeliest first.
    pub candidates: Vec<Candidate>,
    /// Why not, and what would help.
    pub reason: String,
    /// Visits concerned.
    pub pairs: usize,
    /// Of those, the ones clearly worse than usual.
    pub slow: usize,
}

/// A possible culprit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub element: String,
}

/// Answer to "what is wrong in this network".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Localisation {
    /// Accused, most certain first.
    pub suspects: Vec<Suspect>,
    /// Slow pairs that several explanations fit.
    pub undecided: Vec<Undecided>,
    /// Pairs `[src, dst]` whose measurement would decide, most useful first; endpoints by name.
    pub next_pairs: Vec<[String; 2]>,
    /// What is usual at each hop distance measured.
    pub tiers: Vec<Tier>,
}

/// Everything known about one matrix.
struct Case<'a> {
    matrix: &'a Matrix,
    places: &'a Places,
    residuals: &'a Residuals,
    /// Least effect that is a fault: `-ln alpha`.
    least: f32,
}

impl Case<'_> {
    fn spread(&self, visit: usize) -> f32 {
        let tier = self.residuals.tiers[usize::from(self.residuals.tier_of[visit])].as_ref();
        tier.map_or(1.0, |t| t.spread as f32)
    }

    /// Whether a visit is clearly worse than usual by itself.
    fn is_slow(&self, visit: usize) -> bool {
        self.residuals.worse[visit] > self.least.max(3.0 * self.spread(visit))
    }

    fn is_extreme(&self, visit: usize) -> bool {
        let tier = self.residuals.tiers[usize::from(self.residuals.tier_of[visit])].as_ref();
        self.residuals.worse[visit] > self.extreme(tier)
    }

    /// Residual beyond which a visit of a tier is extreme.
    fn extreme(&self, tier: Option<&Tier>) -> f32 {
        (2.0 * self.least).max(EXTREME_SPREADS * tier.map_or(1.0, |t| t.spread as f32))
    }
}

/// Names the elements that a matrix points at. Endpoints are looked up in `topology` by their name, NICs (`node:nic`) also
/// by their node; those it does not know have no leaf. A fault is a loss of more than `1 - params.alpha` (5 %). Linear in
/// the visits; a full matrix of 3,000 nodes takes less than a second.
#[must_use]
pub fn localise(matrix: &Matrix, topology: &Topology, params: &Params) -> Localisation {
    localise_with_open(matrix, topology, params, &[]).0
}

/// The same, and the visits that are slow and explained by no suspect. What is usual is learned from all visits, faults
/// are looked for among those that are not `known` to be slow for another reason (empty: none is).
pub(super) fn localise_with_open(
    matrix: &Matrix,
    topology: &Topology,
    params: &Params,
    known: &[bool],
) -> (Localisation, Vec<usize>) {
    if matrix.is_empty() {
        return (Localisation::default(), Vec::new());
    }
    let places = Places::of(matrix, topology);
    let mut residuals = residuals(matrix, &places, params);
    let known = residuals.worse.iter_mut().zip(known).filter(|(_, known)| **known);
    known.for_each(|(worse, _)| *worse = f32::NAN);
    let least = -params.alpha.ln();
    let tallies = tally(matrix, &places, &residuals, least as f32);
    let main = residuals.tiers.iter().flatten().max_by_key(|t| t.pairs);
    let spread = main.map_or(1.0, |t| t.spread);
    // Rare events come as chance has it: sound elements do not lose more than others by nature.
    let natural = if residuals.counts { 0.0 } else { spread };
    let suspicion = Suspicion::new(&places, &tallies, least, natural);
    let elements = suspicion.nics(matrix.endpoints()).elements();
    let case = Case { matrix, places: &places, residuals: &residuals, least: least as f32 };
    let (visits, global, cells) = gather(&case, &elements);
    let mut search = Search { elements: &elements, cells: &cells, visits, picks: Vec::new() };
    search.run();
    report::compose(&case, &mut search, &global)
}

/// Which visits cross one of `suspects`, in the order of the matrix.
pub(super) fn crossing(matrix: &Matrix, topology: &Topology, suspects: &[Suspect]) -> Vec<bool> {
    let places = Places::of(matrix, topology);
    let wanted = element::groups(&places, matrix.endpoints(), suspects);
    let crosses = |group: &u32| *group != NONE && wanted[*group as usize];
    let pair = |cell: &Cell| {
        let [src, dst] = [cell.src, cell.dst].map(|end| &matrix.endpoints()[end as usize]);
        suspects.iter().any(|s| s.kind == Kind::Pair && s.element == format!("{src}-{dst}"))
    };
    let cells = matrix.cells().iter();
    cells.map(|cell| places.groups(cell.src, cell.dst, cell.up).iter().any(crosses) || pair(cell)).collect()
}

/// Visits of the elements, their number in the matrix, and the visits of each element.
fn gather(case: &Case<'_>, elements: &[Element]) -> (Visits, Vec<u32>, Vec<Vec<u32>>) {
    let mut wanted = vec![NONE; case.places.base.count as usize];
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for &group in elements.iter().flat_map(|e| &e.groups) {
        if wanted[group as usize] == NONE {
            wanted[group as usize] = groups.len() as u32;
            groups.push(Vec::new());
        }
    }
    let (sends, receives) = case.places.touched(&wanted);
    let extreme: Vec<f32> = case.residuals.tiers.iter().map(|t| case.extreme(t.as_ref())).collect();
    let (mut visits, mut global) = (Visits::default(), Vec::new());
    for (at, cell) in case.matrix.cells().iter().enumerate() {
        if case.residuals.worse[at].is_nan() {
            continue;
        }
        let mut known = case.residuals.worse[at] > extreme[usize::from(case.residuals.tier_of[at])];
        if sends[cell.src as usize] || receives[cell.dst as usize] {
            for group in case.places.groups(cell.src, cell.dst, cell.up) {
                if group != NONE && wanted[group as usize] != NONE {
                    groups[wanted[group as usize] as usize].push(global.len() as u32);
                    known = true;
                }
            }
        }
        if known {
            visits.push(case.residuals.worse[at], case.spread(at), case.matrix.values(at).len());
            global.push(at as u32);
        }
    }
    let of = |e: &Element| e.groups.iter().flat_map(|g| &groups[wanted[*g as usize] as usize]).copied().collect();
    (visits, global, elements.iter().map(of).collect())
}
