//! Which nodes, or which way between nodes, a failure needs: halves of the job's nodes, cut where the fabric is, run a reference job
//! (Aegis, NSDI'25, section 4.3: topology-aware offline diagnosis).
//!
//! The paper halves and says that a failure that no half shows is the fault of a tier-2 or tier-3 switch. Here such a failure is
//! followed through quarters of both halves down to the two nodes or leaves between which it shows, and each end is then tried with
//! nodes that are known to be sound, which tells a bad node from a bad way.

use std::collections::BTreeSet;

/// Nodes, by their place in the list that is searched.
pub type Nodes = BTreeSet<usize>;

/// What came of the reference job on some nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// On whom.
    pub nodes: Nodes,
    /// Whether it failed as the whole did.
    pub fails: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run the reference job on each of these at the same time; no node is in two of them.
    Try(Vec<Nodes>),
    /// The search is over.
    End(Found),
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Each by itself makes the job fail.
    pub culprits: Vec<Culprit>,
    /// Why it ended before the rest was shown to be sound.
    pub open: Option<Open>,
}

/// Where the fault is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// These fail with whoever else: a node, or the way from several to everybody else.
    One(Nodes),
    /// Only these with those, and each runs by itself or with others: the way between.
    Between(Nodes, Nodes),
    /// Two single nodes, and nobody sound was left to try each with: one of them, or the way between.
    Either(Nodes, Nodes),
}

/// Why a search ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// These nodes failed together, and no part of them did: it does not fail every time, or only at that size.
    Vanished,
    /// So many trials led nowhere.
    TooMany,
}

/// Faults of one search; more of them are another kind of trouble.
const FAULTS: usize = 8;

/// What to try after `trials` among nodes at `places`, each from the top of the fabric down to the leaf (all empty where nothing is
/// known of it). The first trial is that of all nodes.
///
/// Each set is tried once, and a way between two nodes a second time before it is named. A search among n nodes with one fault takes
/// at most about 2 log2(n) + 4 rounds.
#[must_use]
pub fn next(places: &[Vec<String>], trials: &[Trial]) -> Next {
    let search = Search { places, trials };
    search.all().map_or_else(Next::Try, Next::End)
}

/// Sets that must be tried before the search can go on.
type Wanted = Vec<Nodes>;

struct Search<'a> {
    places: &'a [Vec<String>],
    trials: &'a [Trial],
}

impl Search<'_> {
    fn all(&self) -> Result<Found, Wanted> {
        let mut left: Nodes = (0..self.places.len()).collect();
        let mut found = Found::default();
        while left.len() > 1 && self.fails(&left)? {
            if found.culprits.len() == FAULTS {
                found.open = Some(Open::TooMany);
                break;
            }
            let Some(culprit) = self.one(left.clone())? else {
                found.open = Some(Open::Vanished);
                break;
            };
            left = left.difference(culprit.smaller()).copied().collect();
            found.culprits.push(culprit);
        }
        Ok(found)
    }

    /// One fault among nodes that fail together.
    fn one(&self, mut among: Nodes) -> Result<Option<Culprit>, Wanted> {
        loop {
            let Some((a, b)) = self.halves(&among) else { return Ok(None) };
            match self.both(&a, &b)? {
                (true, _) => among = a,
                (false, true) => among = b,
                (false, false) => return self.between(a, b),
            }
        }
    }

    /// A fault of nodes that fail together and not on either side alone.
    fn between(&self, mut a: Nodes, mut b: Nodes) -> Result<Option<Culprit>, Wanted> {
        loop {
            if a.len() > b.len() {
                (a, b) = (b, a);
            }
            let Some((b1, b2)) = self.halves(&b) else { return self.settled(a, b) };
            let Some((a1, a2)) = self.halves(&a) else {
                // One node against many: its two trials share it, and cannot run at once.
                match (self.fails(&joined(&a, &b1))?, self.fails(&joined(&a, &b2))?) {
                    (true, true) => return Ok(Some(Culprit::One(a))),
                    (true, false) => b = b1,
                    (false, true) => b = b2,
                    (false, false) => return Ok(None),
                }
                continue;
            };
            let (f11, f22) = self.both(&joined(&a1, &b1), &joined(&a2, &b2))?;
            let (f12, f21) = self.both(&joined(&a1, &b2), &joined(&a2, &b1))?;
            match (f11, f12, f21, f22) {
                (true, true, true, true) => return self.settled(a, b),
                (true, true, ..) => a = a1,
                (_, _, true, true) => a = a2,
                (true, _, true, _) => b = b1,
                (_, true, _, true) => b = b2,
                (true, ..) => (a, b) = (a1, b1),
                (_, true, ..) => (a, b) = (a1, b2),
                (_, _, true, _) => (a, b) = (a2, b1),
                (.., true) => (a, b) = (a2, b2),
                _ => return Ok(None),
            }
        }
    }

    /// Whose fault it is that `a` and `b` fail with each other: each is tried with somebody else.
    fn settled(&self, a: Nodes, b: Nodes) -> Result<Option<Culprit>, Wanted> {
        let here = joined(&a, &b);
        let sound = self.sound(&here);
        let mut others = sound.iter().copied().chain((0..self.places.len()).filter(|node| !here.contains(node)));
        let with = |side: &Nodes, node: usize| joined(side, &Nodes::from([node]));
        let (first, second) = (others.next(), others.find(|_| sound.len() > 1));
        let fails = match (first, second) {
            (Some(p), Some(q)) => self.both(&with(&a, p), &with(&b, q))?,
            (Some(p), None) => (self.fails(&with(&a, p))?, self.fails(&with(&b, p))?),
            (None, _) => (self.at_fault(&a, &b), self.at_fault(&b, &a)),
        };
        // Of the third that both fail with, nothing is known.
        let unknown = fails == (true, true) && sound.is_empty();
        Ok(match fails {
            (true, _) if !unknown => Some(Culprit::One(a)),
            (false, true) => Some(Culprit::One(b)),
            // Of nodes that are several, all parts failed; two nodes did so once, and what fails once is not broken.
            (false, false) if here.len() == 2 && !self.again(&here)? => None,
            _ if here.len() == 2 && (unknown || first.is_none()) => Some(Culprit::Either(a, b)),
            _ => Some(Culprit::Between(a, b)),
        })
    }

    /// Whether the way is at fault by which `a` reaches all others, as these, on several leaves, reach each other.
    fn at_fault(&self, a: &Nodes, others: &Nodes) -> bool {
        let leaves = |nodes: &Nodes| nodes.iter().map(|node| &self.places[*node]).collect::<BTreeSet<_>>().len();
        leaves(a) == 1 && leaves(others) > 1
    }

    /// Nodes beyond `those` that were in a trial that went well.
    fn sound(&self, those: &Nodes) -> Nodes {
        let well = self.trials.iter().filter(|trial| !trial.fails && trial.nodes.is_disjoint(those));
        well.flat_map(|trial| &trial.nodes).copied().collect()
    }

    /// Two parts, cut between switches as high up as there are several, as near to the middle as there; `None` for a single node.
    fn halves(&self, of: &Nodes) -> Option<(Nodes, Nodes)> {
        let mut ordered: Vec<usize> = of.iter().copied().collect();
        ordered.sort_by(|a, b| self.places[*a].cmp(&self.places[*b]).then(a.cmp(b)));
        let middle = ordered.len().div_ceil(2);
        let depth = ordered.iter().map(|node| self.places[*node].len()).max().unwrap_or(0);
        let top = |node: usize, level: usize| self.places[node].get(..=level).unwrap_or(&self.places[node]);
        let cut = (0..depth).find_map(|level| {
            let edge = |at: &usize| top(ordered[*at - 1], level) != top(ordered[*at], level);
            (1..ordered.len()).filter(edge).min_by_key(|at| at.abs_diff(middle))
        });
        let b = ordered.split_off(cut.unwrap_or(middle));
        (!b.is_empty()).then(|| (ordered.into_iter().collect(), b.into_iter().collect()))
    }

    fn tried(&self, nodes: &Nodes) -> impl Iterator<Item = bool> {
        // One node alone runs no job of several.
        let alone = (nodes.len() < 2).then_some(false);
        alone.into_iter().chain(self.trials.iter().filter(|trial| trial.nodes == *nodes).map(|trial| trial.fails))
    }

    fn fails(&self, nodes: &Nodes) -> Result<bool, Wanted> {
        self.tried(nodes).next().ok_or_else(|| vec![nodes.clone()])
    }

    /// Two that share no node, at the same time.
    fn both(&self, a: &Nodes, b: &Nodes) -> Result<(bool, bool), Wanted> {
        match (self.fails(a), self.fails(b)) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (a, b) => Err([a, b].into_iter().filter_map(Result::err).flatten().collect()),
        }
    }

    /// Whether they failed a second time too.
    fn again(&self, nodes: &Nodes) -> Result<bool, Wanted> {
        self.tried(nodes).nth(1).ok_or_else(|| vec![nodes.clone()])
    }
}

fn joined(a: &Nodes, b: &Nodes) -> Nodes {
    a.union(b).copied().collect()
}

impl Culprit {
    /// Without whom the rest may be sound.
    fn smaller(&self) -> &Nodes {
        match self {
            Self::Between(a, b) | Self::Either(a, b) if b.len() < a.len() => b,
            Self::One(a) | Self::Between(a, _) | Self::Either(a, _) => a,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `n` nodes, so many on each leaf, four leaves under each switch above.
    fn places(n: usize, per_leaf: usize) -> Vec<Vec<String>> {
        (0..n).map(|node| node / per_leaf).map(|leaf| vec![format!("s{}", leaf / 4), format!("l{leaf:02}")]).collect()
    }

    /// Follows the search with a job that fails where `fails` says so; also how many rounds it took.
    fn follow(places: &[Vec<String>], mut fails: impl FnMut(&Nodes) -> bool) -> (Found, usize) {
        let mut trials = Vec::new();
        for round in 0..500 {
            match next(places, &trials) {
                Next::End(found) => return (found, round),
                Next::Try(sets) => {
                    let mut seen = Nodes::new();
                    for nodes in sets {
                        assert!(nodes.len() > 1 && nodes.iter().all(|node| seen.insert(*node)));
                        let fails = fails(&nodes);
                        trials.push(Trial { nodes, fails });
                    }
                }
            }
        }
        panic!("a search without an end");
    }

    fn most(n: usize) -> usize {
        2 * (n as f64).log2().ceil() as usize + 4
    }

    #[test]
    fn a_job_that_fails_nowhere_takes_one_trial_and_names_nobody() {
        assert_eq!(follow(&places(16, 4), |_| false), (Found::default(), 1));
    }

    #[test]
    fn every_single_bad_node_of_every_fleet_is_named_and_nobody_else() {
        for (n, per_leaf) in (3..=33).flat_map(|n| [1, 3, 4, 64].map(|per| (n, per))) {
            for bad in 0..n {
                let (found, rounds) = follow(&places(n, per_leaf), |nodes| nodes.contains(&bad));
                assert_eq!(found.culprits, [Culprit::One([bad].into())], "{bad} of {n}, {per_leaf} a leaf");
                assert!(found.open.is_none() && rounds <= most(n), "{bad} of {n}: {rounds} rounds");
            }
        }
    }

    #[test]
    fn of_two_nodes_alone_nobody_can_say_which() {
        let (found, _) = follow(&places(2, 1), |_| true);
        assert_eq!(found.culprits, [Culprit::Either([0].into(), [1].into())]);
    }

    #[test]
    fn every_bad_way_between_two_nodes_is_named_with_both_ends() {
        for n in 3..=17 {
            for (a, b) in (0..n).flat_map(|b| (0..b).map(move |a| (a, b))) {
                let (found, rounds) = follow(&places(n, 4), |nodes| nodes.contains(&a) && nodes.contains(&b));
                let [Culprit::Between(x, y)] = &found.culprits[..] else { panic!("{a}-{b} of {n}: {found:?}") };
                assert_eq!(x | y, [a, b].into(), "{a}-{b} of {n}");
                assert!(found.open.is_none() && rounds <= 2 * most(n), "{a}-{b} of {n}: {rounds} rounds");
            }
        }
    }

    #[test]
    fn a_leaf_whose_uplink_fails_is_named_whole() {
        for (leaves, bad) in (3..9).flat_map(|leaves| (0..leaves).map(move |bad| (leaves, bad))) {
            let of = |node: &usize| node / 4 == bad;
            let crosses = |nodes: &Nodes| nodes.iter().any(of) && !nodes.iter().all(of);
            let (found, _) = follow(&places(leaves * 4, 4), crosses);
            let leaf: Nodes = (bad * 4..bad * 4 + 4).collect();
            assert_eq!(found, Found { culprits: vec![Culprit::One(leaf)], open: None }, "leaf {bad} of {leaves}");
        }
    }

    #[test]
    fn between_two_leaves_alone_it_is_the_way() {
        let (found, rounds) =
            follow(&places(8, 4), |nodes| nodes.iter().any(|n| *n < 4) && nodes.iter().any(|n| *n > 3));
        let leaf = |leaf: usize| (leaf * 4..leaf * 4 + 4).collect::<Nodes>();
        assert_eq!((found.culprits, rounds), (vec![Culprit::Between(leaf(0), leaf(1))], 4));
    }

    #[test]
    fn a_way_between_two_leaves_is_named_with_both() {
        let of = |nodes: &Nodes, leaf: usize| nodes.iter().any(|node| node / 4 == leaf);
        for (a, b) in (0..6).flat_map(|b| (0..b).map(move |a| (a, b))) {
            let (found, _) = follow(&places(24, 4), |nodes| of(nodes, a) && of(nodes, b));
            let leaf = |leaf: usize| (leaf * 4..leaf * 4 + 4).collect::<Nodes>();
            let [Culprit::Between(x, y)] = &found.culprits[..] else { panic!("{a}-{b}: {found:?}") };
            assert_eq!(x | y, &leaf(a) | &leaf(b));
        }
    }

    #[test]
    fn a_failure_that_happened_once_ends_open() {
        for (nodes, per_leaf) in [(16, 4), (2, 1), (2, 2)] {
            let mut first = true;
            let (found, _) = follow(&places(nodes, per_leaf), |_| std::mem::take(&mut first));
            assert_eq!(found, Found { culprits: Vec::new(), open: Some(Open::Vanished) }, "{nodes} nodes");
        }
    }

    proptest! {
        #[test]
        fn several_bad_nodes_are_all_named_and_nobody_else(
            n in 5..33_usize, per_leaf in 1..9_usize, bad in prop::collection::btree_set(0..33_usize, 1..5),
        ) {
            let bad: Nodes = bad.into_iter().filter(|node| *node < n).collect();
            prop_assume!(!bad.is_empty() && bad.len() + 2 <= n);
            let (found, _) = follow(&places(n, per_leaf), |nodes| !nodes.is_disjoint(&bad));
            let mut named = Nodes::new();
            for culprit in &found.culprits {
                match culprit {
                    Culprit::One(nodes) => prop_assert!(nodes.len() == 1 && nodes.is_subset(&bad)),
                    // Where two of them met before anybody was known to be sound.
                    Culprit::Either(a, b) | Culprit::Between(a, b) => {
                        prop_assert!((a | b).len() == 2 && !(a | b).is_disjoint(&bad));
                    }
                }
                named.extend(match culprit {
                    Culprit::One(a) => a.clone(),
                    Culprit::Either(a, b) | Culprit::Between(a, b) => a | b,
                });
            }
            prop_assert!(bad.is_subset(&named), "{:?} of {:?}", found, bad);
            prop_assert!(found.open.is_none());
        }

        #[test]
        fn a_node_that_fails_now_and_then_never_has_another_one_named(
            n in 4..33_usize, bad in 0..33_usize, seed in any::<u64>(), often in 0.05..1.0_f64,
        ) {
            let bad = bad % n;
            let mut rng = fastrand(seed);
            let (found, _) = follow(&places(n, 4), |nodes| nodes.contains(&bad) && rng() < often);
            for culprit in &found.culprits {
                match culprit {
                    Culprit::One(nodes) => prop_assert_eq!(nodes, &Nodes::from([bad])),
                    Culprit::Either(a, b) | Culprit::Between(a, b) => {
                        prop_assert!(a.contains(&bad) || b.contains(&bad));
                    }
                }
            }
        }
    }

    /// Numbers in 0..1 from a seed.
    fn fastrand(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }
}
