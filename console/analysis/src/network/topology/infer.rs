//! Which nodes seem to share a leaf, where nothing is known but how long messages take between them?
//!
//! Latencies through one switch and through several form separate groups. The split that leaves the least variance
//! within two groups (Otsu 1979, on logarithms) must be a clear gap, and nearly all pairs must
//! agree with the leaves it implies; else nothing is claimed. The same once more between leaves gives aggregates.

use std::collections::{BTreeMap, HashMap};

use super::tree::Builder;
use super::{Source, Topology};
use crate::network::names::folded;
use crate::network::otsu::split;

/// `ln 1.1`: groups whose latencies lie closer are one group.
const LEAST_GAP: f64 = 0.095;
/// The gap between the groups' means in standard deviations within groups.
const GAP_SPREADS: f64 = 3.0;
/// Share of pairs that must agree with the leaves found.
const AGREEMENT: f64 = 0.9;

/// Leaves (and aggregates, where a second gap shows) from `(node, node, latency)` with nodes numbered as in `names`
/// and latencies in any one unit, missing pairs allowed. `None` when the latencies form no clear groups. The result
/// says [`Source::Latency`]. O(pairs log pairs).
#[must_use]
pub fn infer<S: AsRef<str>>(names: &[S], latency: &[(u32, u32, f64)]) -> Option<Topology> {
    let mut pairs: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for &(a, b, value) in latency {
        if a != b && (a.max(b) as usize) < names.len() && value.is_finite() && value > 0.0 {
            let least = pairs.entry((a.min(b), a.max(b))).or_insert(f64::INFINITY);
            *least = least.min(value.ln());
        }
    }
    let (leaf_of, pod_of) = two_levels(names.len(), pairs)?;
    let mut tree = Builder::default();
    for (name, leaf) in names.iter().zip(&leaf_of) {
        let leaf_name = format!("group{leaf}");
        match &pod_of {
            Some(pods) => tree.add(name.as_ref(), &[&format!("pod{}", pods[*leaf as usize]), &leaf_name]),
            None => tree.add(name.as_ref(), &[&leaf_name]),
        };
    }
    Some(tree.finish(Source::Latency))
}

/// Leaves that what pairs cost suggests where no topology is given, if they are [`alike`]; named after their nodes. Costs
/// are logarithms.
pub(in crate::network) fn levels(names: &[String], costs: &[(u32, u32, f64)]) -> Option<Topology> {
    let mut pairs: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for &(a, b, cost) in costs.iter().filter(|(_, _, cost)| cost.is_finite()) {
        // The worse direction: what is slow one way only must not look near.
        let most = pairs.entry((a.min(b), a.max(b))).or_insert(f64::NEG_INFINITY);
        *most = most.max(cost);
    }
    let (leaf_of, _) = two_levels(names.len(), pairs)?;
    let mut members: BTreeMap<u32, usize> = BTreeMap::new();
    leaf_of.iter().for_each(|leaf| *members.entry(*leaf).or_default() += 1);
    alike(members.values().copied()).then(|| of_leaves(names, &leaf_of))
}

/// Whether blocks of so many nodes may be leaves: two nodes and more each, none of them more than half of all or twice the
/// middle one, since such a block may as well be the sound rest beside slow ones.
pub(in crate::network) fn alike(sizes: impl Iterator<Item = usize>) -> bool {
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    let (all, middle) = (sizes.iter().sum::<usize>(), sizes.get(sizes.len() / 2).copied().unwrap_or(0));
    sizes.first().is_some_and(|least| *least > 1)
        && sizes.last().is_some_and(|most| 2 * most <= all && *most <= 2 * middle)
}

/// Endpoints under numbered leaves, which are named after what hangs there.
pub(in crate::network) fn of_leaves(names: &[String], leaf_of: &[u32]) -> Topology {
    let mut members: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    leaf_of.iter().zip(names).for_each(|(leaf, name)| members.entry(*leaf).or_default().push(name));
    let mut tree = Builder::default();
    for (leaf, name) in leaf_of.iter().zip(names) {
        tree.add(name, &[&folded(&members[leaf])]);
    }
    tree.finish(Source::Latency)
}

/// Leaf of each node, and pod of each leaf where a second gap shows, be it within the groups of the first or above.
fn two_levels(n: usize, pairs: BTreeMap<(u32, u32), f64>) -> Option<(Vec<u32>, Option<Vec<u32>>)> {
    let coarse = clusters(n, &pairs)?;
    let within = pairs.iter().filter(|((a, b), _)| coarse[*a as usize] == coarse[*b as usize]);
    if let Some(fine) = clusters(n, &within.map(|(k, v)| (*k, *v)).collect()) {
        let mut pod_of = vec![0; fine.iter().max().map_or(0, |m| *m as usize + 1)];
        fine.iter().zip(&coarse).for_each(|(leaf, pod)| pod_of[*leaf as usize] = *pod);
        return Some((fine, Some(pod_of)));
    }
    let leaves = coarse.iter().max().map_or(0, |m| *m as usize + 1);
    let pods = clusters(leaves, &between(&coarse, &pairs));
    Some((coarse, pods))
}

/// Median latency between every two leaves.
fn between(leaf_of: &[u32], pairs: &BTreeMap<(u32, u32), f64>) -> BTreeMap<(u32, u32), f64> {
    let mut all: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for (&(a, b), &value) in pairs {
        let (a, b) = (leaf_of[a as usize], leaf_of[b as usize]);
        if a != b {
            all.entry((a.min(b), a.max(b))).or_default().push(value);
        }
    }
    all.into_iter()
        .map(|(key, mut values)| {
            let middle = values.len() / 2;
            (key, *values.select_nth_unstable_by(middle, f64::total_cmp).1)
        })
        .collect()
}

/// Number of the cluster of each of `n` things; `None` without a clear gap or where the pairs contradict it.
fn clusters(n: usize, pairs: &BTreeMap<(u32, u32), f64>) -> Option<Vec<u32>> {
    let threshold = gap(pairs.values().copied().collect())?;
    let mut near: Vec<Vec<(u32, bool)>> = vec![Vec::new(); n];
    for (&(a, b), &value) in pairs {
        // `a` is smaller, so it has its cluster when `b` asks.
        near[b as usize].push((a, value < threshold));
    }
    let mut own: Vec<u32> = Vec::with_capacity(n);
    let mut next = 0;
    for asked in &near {
        let mut votes: HashMap<u32, (u32, u32)> = HashMap::new();
        for (other, is_near) in asked {
            let vote = votes.entry(own[*other as usize]).or_default();
            vote.0 += u32::from(*is_near);
            vote.1 += 1;
        }
        let best = votes
            .into_iter()
            .filter(|(_, (near, of))| 2 * near > *of)
            .max_by_key(|(c, (near, _))| (*near, u32::MAX - c));
        own.push(best.map_or(next, |(cluster, _)| cluster));
        next = next.max(own[own.len() - 1] + 1);
    }
    let agree = pairs.iter().filter(|((a, b), v)| (own[*a as usize] == own[*b as usize]) == (**v < threshold)).count();
    (next > 1 && agree as f64 >= AGREEMENT * pairs.len() as f64).then_some(own)
}

/// Value between two clearly separate groups.
fn gap(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let found = split(&values)?;
    let clear = found.apart >= LEAST_GAP.max(GAP_SPREADS * found.within);
    clear.then(|| f64::midpoint(values[found.cut - 1], values[found.cut]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nodes `i` under leaf `i % leaves`, pods of two leaves; one pair in eight is missing.
    fn measured(n: u32, leaves: u32, wobble: f64) -> Vec<(u32, u32, f64)> {
        let all = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        all.filter(|(a, b)| a != b && (a * 7 + b) % 8 != 0)
            .map(|(a, b)| {
                let level = match () {
                    () if a % leaves == b % leaves => 5.0,
                    () if a % leaves / 2 == b % leaves / 2 => 8.0,
                    () => 13.0,
                };
                (a, b, level * (1.0 + wobble * (f64::from(a * 31 + b * 17).sin())))
            })
            .collect()
    }

    #[test]
    fn leaves_and_pods_are_found_in_noisy_latencies() {
        let names: Vec<String> = (0..24).map(|i| format!("n{i}")).collect();
        let topology = infer(&names, &measured(24, 4, 0.03)).unwrap();
        assert_eq!(topology.source(), Source::Latency);
        for a in 0..24 {
            for b in 0..24 {
                let expected = if a == b {
                    0
                } else if a % 4 == b % 4 {
                    2
                } else if a % 4 / 2 == b % 4 / 2 {
                    4
                } else {
                    6
                };
                assert_eq!(topology.hops(a, b), Some(expected), "{a} {b}");
            }
        }
    }

    #[test]
    fn nothing_is_claimed_without_a_gap() {
        let names: Vec<String> = (0..12).map(|i| format!("n{i}")).collect();
        let even: Vec<_> = measured(12, 4, 0.0).into_iter().map(|(a, b, _)| (a, b, 10.0 + f64::from(a + b))).collect();
        assert!(infer(&names, &even).is_none());
        assert!(infer(&names, &[]).is_none());
        assert!(infer(&names, &[(0, 1, f64::NAN), (0, 99, 1.0)]).is_none());
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(pairs in proptest::collection::vec((0u32..9, 0u32..9, -1.0f64..1e9), 0..60)) {
            let _ = infer(&["a", "b", "c", "d", "e", "f", "g"], &pairs);
        }
    }
}
