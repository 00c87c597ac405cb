//! Whose GPUs compute other bits than the fleet, where one piece of work has one right result: finds a GPU on which
//! everything is wrong alike, which has no peer on its own node to say so.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// Nodes without whose votes nobody is accused. GPUs of one node share driver, firmware and host, and are wrong together
/// when one of those is; so nodes vote, not GPUs, and of two that differ either may be the wrong one.
pub const NODES: usize = 3;

/// What one GPU gave for one piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// GPU of the node.
    pub gpu: u32,
    /// Unit that worked, such as `bf16-mma`.
    pub unit: String,
    /// Everything that the result depends on: code, architecture, threads, rounds, seed.
    pub key: String,
    /// What more than half of its multiprocessors gave.
    pub digest: u32,
    /// One answer of the whole GPU, which nobody on its node has held against the others there yet.
    pub whole: bool,
}

/// What votes of nodes say.
#[derive(Clone, Debug, PartialEq)]
pub enum Odd {
    /// A GPU differs from what more than half of the nodes agree on.
    Wrong(Finding),
    /// Nodes differ and this cannot say who is wrong.
    Undecided {
        /// Unit that worked.
        unit: String,
        /// Nodes that voted.
        nodes: usize,
    },
}

impl Golden {
    /// Reads `gpu.3.golden.bf16-mma` and `own burn 9f… sm_90, bf16-mma x 512, 64 rounds of 7210: 9f3a12bc*132`; nothing when
    /// it is something else, or when the multiprocessors themselves do not agree.
    #[must_use]
    pub fn parse(key: &str, text: &str) -> Option<Self> {
        let words: Vec<&str> = key.split('.').collect();
        let ["gpu", gpu, "golden", unit] = words[..] else { return None };
        let (work, counts) = text.rsplit_once(": ")?;
        let count = |word: &str| {
            let (digest, count) = word.split_once('*')?;
            Some((u32::from_str_radix(digest, 16).ok()?, count.parse::<u32>().ok()?))
        };
        let counts = counts.split(' ').map(count).collect::<Option<Vec<_>>>()?;
        let all: u64 = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        let (digest, _) = counts.into_iter().find(|(_, count)| 2 * u64::from(*count) > all)?;
        Some(Self { gpu: gpu.parse().ok()?, unit: unit.to_owned(), key: work.to_owned(), digest, whole: all == 1 })
    }
}

/// Digests of one piece of work, by node and GPU; several where a GPU was asked more than once and does not repeat.
type Work<'a> = BTreeMap<&'a str, BTreeMap<u32, BTreeSet<u32>>>;

/// Holds what GPUs of many nodes gave against each other, each piece of work by itself; the node of every answer.
#[must_use]
pub fn golden<'a>(said: &'a [(&'a str, Golden)]) -> Vec<(&'a str, Odd)> {
    let mut works: BTreeMap<(&str, &str, bool), Work<'_>> = BTreeMap::new();
    for (node, golden) in said {
        let work = works.entry((&golden.unit, &golden.key, golden.whole)).or_default();
        work.entry(node).or_default().entry(golden.gpu).or_default().insert(golden.digest);
    }
    works.iter().flat_map(|((unit, _, whole), work)| judge(unit, *whole, work)).collect()
}

fn judge<'a>(unit: &str, whole: bool, work: &Work<'a>) -> Vec<(&'a str, Odd)> {
    let votes: BTreeMap<&str, u32> =
        work.iter().filter_map(|(node, gpus)| Some((*node, most(gpus.values().flatten().copied())?))).collect();
    let nodes = work.len();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    votes.values().for_each(|digest| *counts.entry(*digest).or_default() += 1);
    // A node that is torn has no vote and counts as one that does not agree.
    let Some((right, agreeing)) = counts.iter().find(|(_, count)| nodes >= NODES && 2 * **count > nodes) else {
        if counts.len() < 2 {
            // Multiprocessors that differ from others of their node are found there.
            return if whole {
                work.iter().flat_map(|(node, gpus)| within(unit, node, gpus)).collect()
            } else {
                Vec::new()
            };
        }
        let undecided = |node: &&'a str| (*node, Odd::Undecided { unit: unit.to_owned(), nodes });
        return votes.keys().map(undecided).collect();
    };
    let (right, nodes) = (*right, *agreeing);
    let all_right = |digests: &BTreeSet<u32>| digests.iter().all(|digest| *digest == right);
    let agree = work.values().flat_map(BTreeMap::values).filter(|digests| all_right(digests)).count();
    let wrong =
        |node: &'a str, gpu| (node, Odd::Wrong(Finding::WrongGpu { gpu, unit: unit.to_owned(), agree, nodes, whole }));
    let odd = |(node, gpus): (&&'a str, &BTreeMap<u32, BTreeSet<u32>>)| {
        let node = *node;
        gpus.iter().filter(|(_, digests)| !all_right(digests)).map(|(gpu, _)| wrong(node, *gpu)).collect::<Vec<_>>()
    };
    work.iter().flat_map(odd).collect()
}

/// Holds the GPUs of one node against each other.
fn within<'a>(unit: &str, node: &'a str, gpus: &BTreeMap<u32, BTreeSet<u32>>) -> Vec<(&'a str, Odd)> {
    let Some(right) = most(gpus.values().flatten().copied()) else {
        return vec![(node, Odd::Undecided { unit: unit.to_owned(), nodes: 1 })];
    };
    let agrees = |digests: &BTreeSet<u32>| digests.iter().all(|digest| *digest == right);
    let agree = gpus.values().filter(|digests| agrees(digests)).count();
    let wrong = |gpu| Odd::Wrong(Finding::WrongGpu { gpu, unit: unit.to_owned(), agree, nodes: 1, whole: true });
    gpus.iter().filter(|(_, digests)| !agrees(digests)).map(|(gpu, _)| (node, wrong(*gpu))).collect()
}

/// The value that more than half have.
fn most(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let all: usize = counts.values().sum();
    counts.into_iter().find(|(_, count)| 2 * count > all).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(digests: &[&[u32]]) -> Vec<(String, Golden)> {
        let gpu = |(gpu, digest): (usize, &u32)| Golden {
            gpu: gpu as u32,
            unit: "bf16-mma".into(),
            key: "own burn 1 sm_90".into(),
            digest: *digest,
            whole: false,
        };
        let node = |(n, gpus): (usize, &&[u32])| {
            gpus.iter().enumerate().map(move |g| (format!("n{n}"), gpu(g))).collect::<Vec<_>>()
        };
        digests.iter().enumerate().flat_map(node).collect()
    }

    fn said(digests: &[&[u32]]) -> Vec<(String, Odd)> {
        let all = of(digests);
        let all: Vec<(&str, Golden)> = all.iter().map(|(node, golden)| (node.as_str(), golden.clone())).collect();
        golden(&all).into_iter().map(|(node, odd)| (node.to_owned(), odd)).collect()
    }

    fn wrong(gpu: u32, agree: usize, nodes: usize) -> Odd {
        Odd::Wrong(Finding::WrongGpu { gpu, unit: "bf16-mma".into(), agree, nodes, whole: false })
    }

    #[test]
    fn a_gpu_that_is_alone_on_its_node_is_named_by_the_others_of_the_fleet() {
        assert_eq!(said(&[&[7], &[7], &[9], &[7]]), [("n2".to_owned(), wrong(0, 3, 3))]);
        assert_eq!(said(&[&[7, 7], &[7, 9], &[7, 7]]), [("n1".to_owned(), wrong(1, 5, 2))]);
    }

    #[test]
    fn a_node_of_many_gpus_that_are_wrong_together_has_one_vote() {
        let found = said(&[&[9; 8], &[7, 7], &[7]]);
        assert_eq!(found.len(), 8);
        assert!(found.iter().all(|(node, odd)| node == "n0" && matches!(odd, Odd::Wrong(_))), "{found:?}");
    }

    #[test]
    fn two_nodes_that_differ_and_votes_without_a_majority_accuse_nobody() {
        let undecided = |nodes| Odd::Undecided { unit: "bf16-mma".into(), nodes };
        assert_eq!(said(&[&[7; 8], &[9; 8]]), [("n0".to_owned(), undecided(2)), ("n1".to_owned(), undecided(2))]);
        assert!(said(&[&[7], &[8], &[9]]).iter().all(|(_, odd)| *odd == undecided(3)));
        assert_eq!(said(&[&[7], &[7]]), []);
        assert_eq!(said(&[&[7, 7, 9]]), [], "one node speaks for itself");
    }

    #[test]
    fn a_gpu_that_answers_as_a_whole_is_held_against_those_of_its_node_where_there_is_no_fleet() {
        let said = |digests: &[&[u32]]| {
            let mut all = of(digests);
            all.iter_mut().for_each(|(_, golden)| golden.whole = true);
            let all: Vec<(&str, Golden)> = all.iter().map(|(node, golden)| (node.as_str(), golden.clone())).collect();
            golden(&all).into_iter().map(|(node, odd)| (node.to_owned(), odd)).collect::<Vec<_>>()
        };
        let wrong = |gpu, agree, nodes| {
            Odd::Wrong(Finding::WrongGpu { gpu, unit: "bf16-mma".into(), agree, nodes, whole: true })
        };
        assert_eq!(said(&[&[7, 7, 9]]), [("n0".to_owned(), wrong(2, 2, 1))]);
        assert_eq!(said(&[&[7, 9]]), [("n0".to_owned(), Odd::Undecided { unit: "bf16-mma".into(), nodes: 1 })]);
        assert_eq!(said(&[&[7, 7], &[7, 9], &[7, 7]]), [("n1".to_owned(), wrong(1, 5, 2))]);
        assert_eq!(said(&[&[7, 7, 7], &[7, 7, 7]]), []);
    }

    #[test]
    fn a_gpu_that_was_asked_twice_is_counted_once() {
        let once = of(&[&[7], &[7], &[9], &[7]]);
        let all: Vec<_> = once.iter().chain(&once).map(|(node, golden)| (node.as_str(), golden.clone())).collect();
        assert_eq!(golden(&all), [("n2", wrong(0, 3, 3))]);
    }

    #[test]
    fn other_code_is_another_piece_of_work() {
        let mut all = of(&[&[7], &[7], &[7], &[9]]);
        all[3].1.key = "own-ptx burn 2 sm_90".into();
        let all: Vec<(&str, Golden)> = all.iter().map(|(node, golden)| (node.as_str(), golden.clone())).collect();
        assert_eq!(golden(&all), []);
    }

    #[test]
    fn what_the_worker_writes_is_read_and_anything_else_is_nothing() {
        let text = "own burn 9f3a12bc sm_90, bf16-mma x 512, 64 rounds of 7210: 9f3a12bc*131 1*1";
        let golden = Golden::parse("gpu.3.golden.bf16-mma", text).unwrap();
        assert_eq!((golden.gpu, golden.digest, golden.unit.as_str()), (3, 0x9f3a_12bc, "bf16-mma"));
        assert!(golden.key.ends_with("64 rounds of 7210"));
        assert_eq!(Golden::parse("gpu.3.golden.bf16-mma", "x: a*2 b*2"), None, "no majority on the GPU itself");
        assert_eq!(Golden::parse("gpu.3.sm.bf16-mma", text), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(any in ".{0,200}") {
            let _ = Golden::parse("gpu.1.golden.x", &any);
        }

        #[test]
        fn a_minority_of_nodes_is_named_and_nobody_else(good in 3usize..12, bad in 0usize..6, gpus in 1usize..9) {
            prop_assume!(bad < good);
            let nodes: Vec<Vec<u32>> = (0..good + bad).map(|n| vec![if n < good { 1 } else { 100 + n as u32 }; gpus]).collect();
            let nodes: Vec<&[u32]> = nodes.iter().map(Vec::as_slice).collect();
            let found = said(&nodes);
            prop_assert_eq!(found.len(), bad * gpus);
            for (node, odd) in found {
                prop_assert!(node[1..].parse::<usize>().unwrap() >= good);
                let Odd::Wrong(Finding::WrongGpu { agree, .. }) = odd else { panic!("{odd:?}") };
                prop_assert_eq!(agree, good * gpus);
            }
        }
    }
}
