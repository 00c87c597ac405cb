//! What is the cheapest subset that finds enough, or the best within a budget? Branch and bound.
//!
//! Gains only shrink as a set grows (coverage is submodular), so the gains at a node of the search, taken as if
//! they added up and could be bought in fractions, bound everything below it.

use std::cmp::Ordering;

use super::instance::better;
use super::{Instance, Set};

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Fewest minutes that find this weight of defects.
    Find(f64),
    /// Largest weight of defects found within these minutes.
    Within(f64),
}

/// How long to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Nodes of the search tree, about a microsecond each.
    pub nodes: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { nodes: 20_000 }
    }
}

/// Best set found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// The set; at worst the one the search started from.
    pub set: Set,
    /// Minutes (of [`Goal::Find`]) no set can be below, or weight (of [`Goal::Within`]) none can exceed.
    pub bound: f64,
    /// Distance of the set from the bound as a share of the bound's better side: 0 when it is proved the best.
    pub gap: f64,
}

/// Searches from `seed`, which must meet the goal, keeping `keep` in every set.
#[must_use]
pub fn solve(instance: &Instance, goal: Goal, seed: Set, keep: Set, effort: Effort) -> Solved {
    let best_value = value(instance, goal, seed);
    let mut search = Search { instance, goal, best: seed, best_value, gains: Vec::new(), useful: Vec::new() };
    let all = Set::first(instance.len());
    let root = Node { set: keep, open: Set(all.0 & !keep.0), bound: f64::NEG_INFINITY, next: 0 };
    let mut stack = Vec::from_iter(search.bounded(root));
    for _ in 0..effort.nodes {
        let Some(node) = stack.pop() else { break };
        if node.bound < search.best_value - 1e-9 {
            search.branch(node, &mut stack);
        }
    }
    // Values are costs to make small; for a budget they are minus the weight found.
    let open = stack.iter().map(|n| n.bound).fold(search.best_value, f64::min);
    let scale = open.abs().max(search.best_value.abs());
    let gap = if scale > 0.0 { (search.best_value - open) / scale } else { 0.0 };
    let bound = if matches!(goal, Goal::Find(_)) { open } else { -open };
    Solved { set: search.best, bound, gap }
}

fn value(instance: &Instance, goal: Goal, set: Set) -> f64 {
    match goal {
        Goal::Find(_) => instance.cost(set),
        Goal::Within(_) => -instance.found(set),
    }
}

/// Sets that hold `set` and some of `open`; none is better than `bound`.
#[derive(Clone, Copy)]
struct Node {
    set: Set,
    open: Set,
    bound: f64,
    /// The benchmark of `open` that is worth most per minute.
    next: usize,
}

struct Search<'a> {
    instance: &'a Instance,
    goal: Goal,
    best: Set,
    best_value: f64,
    /// Gain of each benchmark at the node looked at.
    gains: Vec<f64>,
    /// Gain, minutes and position of those that gain, the best per minute first.
    useful: Vec<(f64, f64, usize)>,
}

impl Search<'_> {
    /// Ranks what `node` may still add, and gives those that gain anything.
    fn rank(&mut self, node: Node) -> Set {
        self.gains.clear();
        self.gains.resize(self.instance.len(), 0.0);
        self.instance.add_gains(node.set, &mut self.gains);
        self.useful.clear();
        for b in node.open.iter().filter(|&b| self.gains[b] > 0.0) {
            self.useful.push((self.gains[b], self.instance.minutes(b), b));
        }
        self.useful.sort_by(|a, b| match (better((a.0, a.1), (b.0, b.1)), better((b.0, b.1), (a.0, a.1))) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => a.2.cmp(&b.2),
        });
        self.useful.iter().map(|u| u.2).collect()
    }

    /// Takes note of the node's own set and gives the node with its bound, unless nothing better can lie below.
    fn bounded(&mut self, mut node: Node) -> Option<Node> {
        node.open = self.rank(node);
        node.next = self.useful.first().map_or(0, |u| u.2);
        let useful = &self.useful;
        let (cost, found) = (self.instance.cost(node.set), self.instance.found(node.set));
        let bound = match self.goal {
            Goal::Find(need) => cost + fewest_minutes(useful, need - found)?,
            Goal::Within(room) if cost <= room + 1e-9 => -(found + most_weight(useful, room - cost)),
            Goal::Within(_) => return None,
        };
        let meets = match self.goal {
            Goal::Find(need) => found >= need - 1e-12,
            Goal::Within(_) => true,
        };
        let own = value(self.instance, self.goal, node.set);
        if meets && own < self.best_value - 1e-9 {
            self.best = node.set;
            self.best_value = own;
        }
        node.bound = bound;
        let closed = matches!(self.goal, Goal::Find(_)) && meets;
        (!closed && bound < self.best_value - 1e-9).then_some(node)
    }

    /// Splits by the benchmark worth most per minute; the side that holds it is searched first.
    fn branch(&mut self, node: Node, stack: &mut Vec<Node>) {
        if node.open.is_empty() {
            return;
        }
        let b = node.next;
        let open = node.open.without(b);
        stack.extend(self.bounded(Node { open, ..node }));
        stack.extend(self.bounded(Node { set: node.set.with(b), open, ..node }));
    }
}

/// Minutes that buy `need` at the best rates, the last in part; none when all together do not reach it.
fn fewest_minutes(useful: &[(f64, f64, usize)], mut need: f64) -> Option<f64> {
    let mut minutes = 0.0;
    for (gain, cost, _) in useful {
        if need <= 1e-12 {
            break;
        }
        let part = (need / gain).min(1.0);
        minutes += part * cost;
        need -= part * gain;
    }
    (need <= 1e-9).then_some(minutes)
}

/// Weight that `room` minutes buy at the best rates, the last in part.
fn most_weight(useful: &[(f64, f64, usize)], mut room: f64) -> f64 {
    let mut weight = 0.0;
    for (gain, cost, _) in useful {
        let part = if *cost > 0.0 { (room / cost).clamp(0.0, 1.0) } else { 1.0 };
        weight += part * gain;
        room -= part * cost;
        if part < 1.0 {
            break;
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use crate::selector::{algorithm1, best_within, reverse_delete};

    fn random(seed: u64, n: usize) -> Instance {
        let mut c = Chance::new(seed);
        let minutes: Vec<f64> = (0..n).map(|_| (1 + c.below(30)) as f64).collect();
        let defects: Vec<(Set, f64)> =
            (0..25).map(|_| ((0..n).filter(|_| c.unit() < 0.2).collect(), 0.1 + c.unit())).collect();
        Instance::new(&minutes, defects)
    }

    #[test]
    fn the_search_finds_what_trying_all_sets_finds() {
        for seed in 0..60 {
            let i = random(seed, 11);
            let all = Set::first(11);
            let need = 0.8 * i.found(all);
            let room = 0.3 * i.cost(all);
            let mut cheapest = f64::INFINITY;
            let mut most = 0.0_f64;
            for bits in 0..1 << 11 {
                let set = Set(bits);
                if i.found(set) >= need - 1e-12 {
                    cheapest = cheapest.min(i.cost(set));
                }
                if i.cost(set) <= room {
                    most = most.max(i.found(set));
                }
            }
            let greedy = algorithm1(&i, need, Set::default());
            let pruned = reverse_delete(&i, &greedy, need, Set::default());
            assert!(i.cost(pruned.set()) <= i.cost(greedy.set()));
            let cover = solve(&i, Goal::Find(need), pruned.set(), Set::default(), Effort::default());
            assert_eq!((i.cost(cover.set), cover.gap), (cheapest, 0.0), "seed {seed}");
            assert!((cover.bound - cheapest).abs() < 1e-9);
            let start = best_within(&i, room, Set::default());
            let budget = solve(&i, Goal::Within(room), start, Set::default(), Effort::default());
            assert!((i.found(budget.set) - most).abs() < 1e-9 && i.cost(budget.set) <= room, "seed {seed}");
        }
    }

    #[test]
    fn a_search_cut_short_says_how_far_it_may_be_off() {
        for seed in 0..30 {
            let i = random(seed, 24);
            let need = 0.9 * i.found(Set::first(24));
            let seed_set = algorithm1(&i, need, Set::default()).set();
            let short = solve(&i, Goal::Find(need), seed_set, Set::default(), Effort { nodes: 3 });
            let long = solve(&i, Goal::Find(need), seed_set, Set::default(), Effort { nodes: 1_000_000 });
            assert_eq!(long.gap, 0.0);
            assert!(short.bound <= i.cost(long.set) + 1e-9, "the bound holds");
            assert!(i.cost(short.set) * (1.0 - short.gap) <= i.cost(long.set) + 1e-9, "and so does the gap");
            assert!(i.cost(long.set) <= i.cost(short.set));
        }
    }

    #[test]
    fn what_must_stay_stays() {
        let i = random(3, 10);
        let need = 0.5 * i.found(Set::first(10));
        let keep = Set(0b11);
        let start = algorithm1(&i, need, keep).set();
        let s = solve(&i, Goal::Find(need), start, keep, Effort::default());
        assert_eq!(s.set.0 & keep.0, keep.0);
    }
}
