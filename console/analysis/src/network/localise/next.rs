//! Which pairs, measured next, would tell two explanations apart?

use std::collections::{BTreeMap, HashMap, HashSet};

use super::explain::{Pick, Search};
use super::places::{Groups, NONE};
use super::routes::Route;
use super::{Case, NO_UP};
use crate::network::schedule::Pair;

/// Pairs proposed per open question.
const EACH: usize = 8;
/// Endpoints of the question, and good ones beside them, that are tried.
const TRIED: usize = 24;
/// Visits looked at to learn who is concerned.
const LOOKED_AT: usize = 2_000;

/// Pairs that one of a pick and its rivals predicts slow and the other does not.
pub(super) fn deciding(case: &Case<'_>, search: &Search<'_>, global: &[u32], pick: &Pick) -> Vec<Pair> {
    let mut asked = Question::new(case, search, global);
    asked.concern(pick.element);
    pick.rivals.iter().for_each(|&rival| asked.concern(rival));
    let own = &search.elements[pick.element].groups;
    let others: Vec<u32> = pick.rivals.iter().flat_map(|&r| search.elements[r].groups.iter().copied()).collect();
    let hit = |groups: &Groups, of: &[u32]| groups.iter().any(|g| *g != NONE && of.contains(g));
    asked.propose(|groups| hit(groups, own) != hit(groups, &others))
}

/// The pairs of an element the other way round.
pub(super) fn reversed(case: &Case<'_>, search: &Search<'_>, global: &[u32], element: usize) -> Vec<Pair> {
    let cells = &search.cells[element];
    let mut measured = HashSet::new();
    let mut out = Vec::new();
    for cell in cells.iter().take(LOOKED_AT).map(|&v| case.matrix.cells()[global[v as usize] as usize]) {
        measured.insert((cell.src, cell.dst));
        out.push((cell.dst, cell.src));
    }
    out.retain(|pair| !measured.contains(pair));
    out.truncate(EACH);
    out
}

struct Question<'a> {
    case: &'a Case<'a>,
    search: &'a Search<'a>,
    global: &'a [u32],
    /// Endpoints on concerned visits, and on how many.
    concerned: BTreeMap<u32, usize>,
    measured: HashSet<Pair>,
}

impl<'a> Question<'a> {
    fn new(case: &'a Case<'a>, search: &'a Search<'a>, global: &'a [u32]) -> Self {
        Self { case, search, global, concerned: BTreeMap::new(), measured: HashSet::new() }
    }

    fn concern(&mut self, element: usize) {
        for &visit in self.search.cells[element].iter().take(LOOKED_AT) {
            let cell = self.case.matrix.cells()[self.global[visit as usize] as usize];
            *self.concerned.entry(cell.src).or_default() += 1;
            *self.concerned.entry(cell.dst).or_default() += 1;
            self.measured.insert((cell.src, cell.dst));
        }
    }

    /// Unmeasured pairs first, then measured ones, which a second visit makes surer.
    fn propose(&self, decides: impl Fn(&Groups) -> bool) -> Vec<Pair> {
        let mut ends: Vec<(usize, u32)> = self.concerned.iter().map(|(e, n)| (*n, *e)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.truncate(TRIED);
        let good = self.good(&ends);
        let routes = self.known_routes(&ends);
        let places = self.case.places;
        let mut out: Vec<(bool, Pair)> = Vec::new();
        let mut blind: Vec<(bool, Pair)> = Vec::new();
        for &(_, end) in &ends {
            for (a, b) in good.iter().flat_map(|&g| [(end, g), (g, end)]) {
                let (la, lb) = (places.leaf_of[a as usize], places.leaf_of[b as usize]);
                let up = if la == lb { Some(NO_UP) } else { routes.get(&(la, b)).copied() };
                let measured = self.measured.contains(&(a, b));
                let Some(up) = up.or(places.routes.is_empty().then_some(NO_UP)) else {
                    // Nobody knows its route, so what it would say about uplinks is only known afterwards.
                    blind.extend((a != b && !measured).then_some((false, (a, b))));
                    continue;
                };
                if a != b && decides(&places.groups(a, b, up)) {
                    out.push((measured, (a, b)));
                }
            }
        }
        if out.iter().all(|(measured, _)| *measured) {
            out.append(&mut blind);
        }
        out.sort_by_key(|(measured, _)| *measured);
        let mut times: HashMap<u32, usize> = HashMap::new();
        let mut chosen = Vec::new();
        for (_, (a, b)) in out {
            let (x, y) = (times.get(&a).copied().unwrap_or(0), times.get(&b).copied().unwrap_or(0));
            // Spread over endpoints, so that the pairs fit into few rounds.
            if x.min(y) < 2 && x.max(y) < 4 && chosen.len() < EACH && !chosen.contains(&(a, b)) {
                chosen.push((a, b));
                *times.entry(a).or_default() += 1;
                *times.entry(b).or_default() += 1;
            }
        }
        chosen
    }

    /// Endpoints that no explanation touches: neighbours of those concerned first, then some of everywhere.
    fn good(&self, ends: &[(usize, u32)]) -> Vec<u32> {
        let places = self.case.places;
        let mut blamed = vec![false; places.node_of.len()];
        for pick in &self.search.picks {
            let groups = &self.search.elements[pick.element].groups;
            groups.iter().filter(|g| **g < places.base.out).for_each(|&g| blamed[(g % places.base.rx) as usize] = true);
        }
        let leaves: HashSet<u32> = ends.iter().map(|(_, e)| places.leaf_of[*e as usize]).collect();
        let all: Vec<u32> = (0..places.node_of.len() as u32).filter(|e| !blamed[*e as usize]).collect();
        let near = all.iter().copied().filter(|e| leaves.contains(&places.leaf_of[*e as usize])).take(TRIED);
        let step = (all.len() / TRIED).max(1);
        near.chain(all.iter().copied().step_by(step)).collect()
    }

    /// Uplinks of pairs not measured, where all measured pairs from one leaf to one receiver took the same: routing by
    /// destination.
    fn known_routes(&self, ends: &[(usize, u32)]) -> HashMap<(u32, u32), u32> {
        let places = self.case.places;
        let mut out: HashMap<(u32, u32), u32> = HashMap::new();
        if places.routes.is_empty() {
            return out;
        }
        let leaves: HashSet<u32> = ends.iter().map(|(_, e)| places.leaf_of[*e as usize]).collect();
        for cell in self.case.matrix.cells().iter().filter(|c| c.up != NO_UP) {
            let leaf = places.leaf_of[cell.src as usize];
            if !leaves.contains(&leaf) && !leaves.contains(&places.leaf_of[cell.dst as usize]) {
                continue;
            }
            let known = out.entry((leaf, cell.dst)).or_insert(cell.up);
            let same = |a: u32, b: u32| places.routes.route(a) == places.routes.route(b);
            if *known != NO_UP && !same(*known, cell.up) {
                *known = NO_UP;
            }
        }
        out.retain(|_, up| *up != NO_UP && places.routes.route(*up) != Route::Unknown);
        out
    }
}
