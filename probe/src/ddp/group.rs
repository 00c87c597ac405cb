//! Which communicators does a job have, and who is in which?

use serde::{Deserialize, Serialize};

/// An operation that all ranks of a communicator take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Op {
    AllReduce,
    AllGather,
}

impl Op {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
        }
    }
}

/// Who a communicator is made of.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Unique among all groups of the job.
    pub(super) name: String,
    pub(super) about: String,
    pub(super) hash: u64,
    /// Ranks of the job, in the order of the ring.
    pub(super) ranks: Vec<usize>,
}

/// The groups that rank `me` belongs to: all ranks, and those of its node where these are several but not all.
pub(super) fn groups(me: usize, world: usize, per_node: usize, job: &[u8; 32]) -> Vec<Group> {
    let of = |name: String, about: &str, ranks: Vec<usize>| {
        let words: Vec<u8> = ranks.iter().flat_map(|rank| rank.to_be_bytes()).collect();
        Group { hash: hash(&[job, name.as_bytes(), &words]), name, about: about.to_owned(), ranks }
    };
    let mut groups = vec![of("0".to_owned(), "world", (0..world).collect())];
    let node = me / per_node;
    let mates: Vec<usize> = (node * per_node..((node + 1) * per_node).min(world)).collect();
    if mates.len() > 1 && mates.len() < world {
        groups.push(of((node + 1).to_string(), "node", mates));
    }
    groups
}

/// A number of some words (FNV-1a), the same on every rank.
pub(super) fn hash(words: &[&[u8]]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.iter().chain(&[0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_in_the_world_and_with_its_mates_and_names_of_groups_are_unique() {
        let names = |me, world, per_node| -> Vec<(String, Vec<usize>)> {
            groups(me, world, per_node, &[0; 32]).into_iter().map(|group| (group.name, group.ranks)).collect()
        };
        assert_eq!(names(3, 6, 2), [("0".into(), vec![0, 1, 2, 3, 4, 5]), ("2".into(), vec![2, 3])]);
        assert_eq!(names(0, 3, 1), [("0".into(), vec![0, 1, 2])]);
        assert_eq!(names(1, 4, 4), [("0".into(), vec![0, 1, 2, 3])]);
        // The last node may have fewer.
        assert_eq!(names(4, 5, 2).len(), 1);
        let hashes = |me| groups(me, 6, 2, &[0; 32]).iter().map(|group| group.hash).collect::<Vec<_>>();
        assert_eq!(hashes(2), hashes(3));
        assert_ne!(hashes(2)[1], hashes(0)[1]);
    }
}
