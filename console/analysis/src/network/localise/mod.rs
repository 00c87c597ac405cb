//! Which node, NIC, leaf or uplink do the slow pairs of a matrix point at?
//!
//! Boolean network tomography with noise: each pair is as good as the worst element on its way (a bottleneck, as in
//! Padmanabhan, Qiu & Wang, *Server-based inference of Internet link lossiness*, INFOCOM 2003; Duffield, *Network
//! tomography of binary network performance characteristics*, IEEE Trans. Inf. Theory 52(12), 2006). Elements are chosen
//! by likelihood instead of set cover, so that noise, missing pairs and several faults at once are weighed alike, and
//! every accusation is put beside the best explanation without it. What cannot be told apart is said, with the pairs
//! that would decide.

mod chance;
mod contest;
mod element;
mod explain;
mod fit;
mod found;
mod group;
mod isolated;
mod minority;
mod next;
mod open;
mod peers;
mod places;
mod report;
mod residual;
mod routes;
mod sides;
mod slight;
mod small;
mod tail;
mod unnamed;
mod unrouted;

use std::borrow::Cow;
use std::collections::BTreeSet;

pub use element::Kind;
pub use found::{Candidate, Contested, Group, Localisation, Misfit, SURE, Suspect, Undecided, Warning};
pub use residual::Tier;

use super::matrix::NO_UP;
use super::topology::{Source, node_name};
use super::{Cell, Matrix, Topology};
use crate::Params;
use element::{Element, Suspicion, tally};
use explain::{Search, Visits};
use minority::Minority;
use places::{NONE, Places};
use residual::{Residuals, residuals};
use sides::Sides;

/// A visit this many spreads worse than usual is looked at even if nothing else on its way is.
const EXTREME_SPREADS: f32 = 8.0;
/// Times that the topology is mended by what the pairs show.
const MENDED: usize = 2;

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
/// the visits; a full matrix of 3,000 nodes takes about two seconds.
///
/// Nodes that the topology has in the wrong place are moved first ([`Localisation::misfits`]). Without a topology nodes
/// that are slow together are a [`Group`]; if a third of the fabric differs, the matter is [`Contested`].
#[must_use]
pub fn localise(matrix: &Matrix, topology: &Topology, params: &Params) -> Localisation {
    localise_but(matrix, topology, params, &[])
}

/// The same, but for visits that are `known` to be slow for another reason (empty: none is). What is usual is learned from all.
pub(super) fn localise_but(matrix: &Matrix, topology: &Topology, params: &Params, known: &[bool]) -> Localisation {
    let Answer { mut found, minority, .. } = answer(matrix, topology, params, known);
    if let Some(minority) = minority {
        minority.say(&mut found);
    }
    found
}

/// What stands out so far, and the visits that are slow and explained by no suspect.
pub(super) fn localise_with_open(matrix: &Matrix, topology: &Topology, params: &Params) -> (Localisation, Vec<usize>) {
    let Answer { found, open, .. } = answer(matrix, topology, params, &[]);
    (found, open)
}

/// What one topology makes of a matrix.
#[derive(Default)]
struct Answer {
    found: Localisation,
    /// Visits that are slow and explained by no suspect.
    open: Vec<usize>,
    minority: Option<Minority>,
}

fn answer(matrix: &Matrix, topology: &Topology, params: &Params, known: &[bool]) -> Answer {
    if matrix.is_empty() {
        return Answer::default();
    }
    let (mut fitted, mut misfits) = fit::fitted(matrix, topology);
    let mut mended = 0;
    loop {
        match attempt((matrix, &fitted), params, known, mended < MENDED) {
            Ok(mut answer) => {
                let out = &mut answer.found;
                out.misfits = misfits;
                out.nodes = matrix.endpoints().iter().map(|end| node_name(end)).collect::<BTreeSet<_>>().len();
                small::open(matrix, 1.0 - params.alpha, out);
                return answer;
            }
            Err(other) => {
                misfits.extend(other.misfits);
                fitted = Cow::Owned(other.topology);
                mended += 1;
            }
        }
    }
}

/// The answer by one topology, or, where it may be mended, one that fits the pairs better.
fn attempt(
    (matrix, topology): (&Matrix, &Topology),
    params: &Params,
    known: &[bool],
    mend: bool,
) -> Result<Answer, Box<fit::Fitted>> {
    let places = Places::of(matrix, topology);
    let mut residuals = residuals(matrix, &places, params);
    let marked = residuals.worse.iter_mut().zip(known).filter(|(_, known)| **known);
    marked.for_each(|(worse, _)| *worse = f32::NAN);
    let least = -params.alpha.ln();
    let case = Case { matrix, places: &places, residuals: &residuals, least: least as f32 };
    let minority = Minority::of(&case);
    let sides = Sides::of(&case);
    let groups = group::groups(&case, &sides);
    if mend && let Some(other) = fit::by_pairs(&case, topology, &groups) {
        return Err(other);
    }
    let contested = if residuals.counts { None } else { contest::contested(&case, &sides) };
    let nameless = if contested.is_some() { Vec::new() } else { unnamed::unnamed(&case, &groups) };
    let crossing = unnamed::crossing(&case, &nameless);
    crossing.iter().for_each(|&at| residuals.worse[at] = f32::NAN);
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
    let (mut found, open) = report::compose(&case, &mut search, &global);
    let out = &mut found;
    if topology.source() == Source::Latency {
        unnamed::instead_of_leaves(&case, out);
    }
    unnamed::instead_of_members(&case, &groups, out);
    unrouted::instead_of_sides(&case, out);
    unnamed::say(&case, &nameless, out);
    if let Some((parts, undecided)) = contested {
        report::only_failures(out, matrix.direction());
        out.undecided.insert(0, undecided);
        out.contested.push(parts);
    }
    Ok(Answer { found, open, minority })
}

/// Which visits cross one of `suspects`, in the order of the matrix.
#[must_use]
pub fn crossing(matrix: &Matrix, topology: &Topology, suspects: &[Suspect]) -> Vec<bool> {
    let (fitted, _) = fit::fitted(matrix, topology);
    let places = Places::of(matrix, &fitted);
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
