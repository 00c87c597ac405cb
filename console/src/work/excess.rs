//! Does a node send far more for a work than its peers do for the same?
//!
//! What a work may send is bounded by its profile, in the longest ones by tens of megabytes: an honest node with many cores needs
//! them. A node that sent as much for every work could cost the console more memory than all the others together. Only its peers tell
//! it from an honest one, so a large result waits on disk until enough of them have finished the same work.

use std::collections::{BTreeMap, HashMap};

use muster_wire::Profile;

/// A node may send up to this many times what its peers sent: in a fleet without labels, it may have more cores or GPUs than they.
const TIMES: usize = 4;
/// Bytes beyond that which a node may send in a run: one with a fault has more to tell, and that is wanted.
const ALLOWANCE: usize = 1 << 20;
/// Others that sent about as much are enough to believe a node.
const PEERS: usize = 3;

/// A work and the profile it was ordered in.
pub(super) type Ordered = (Profile, String);

/// What the nodes of a run sent for their works.
#[derive(Debug, Default)]
pub(super) struct Excess {
    nodes: HashMap<String, Place>,
    /// Nodes of each group.
    sizes: Vec<usize>,
    /// By group.
    sent: HashMap<(usize, Ordered), Sent>,
    /// Of each node the works that were kept although they are larger than those of its peers, as far as these are there.
    spent: HashMap<String, Vec<(Ordered, usize)>>,
}

/// The group of a node, and its number there.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: usize,
    nr: usize,
}

/// What the nodes of a group sent for a work that they have done.
#[derive(Debug, Default)]
struct Sent {
    /// Bytes, by number of the node.
    all: Vec<Option<u32>>,
    /// The largest, with the numbers of their nodes: enough to find, for any node, the third largest among the others.
    largest: Vec<(u32, usize)>,
}

/// Whether what a node sent for a work is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// It is.
    Kept,
    /// Not decided yet: too few peers have finished the work.
    Waits,
    /// It is not, and why.
    Refused(String),
}

impl Excess {
    /// Of nodes, each with the group of those it is compared with.
    pub fn new<'a>(nodes: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let (mut excess, mut groups) = (Self::default(), BTreeMap::new());
        for (node, group) in nodes {
            let next = groups.len();
            let group = *groups.entry(group).or_insert(next);
            excess.sizes.resize(groups.len(), 0);
            excess.nodes.insert(node.to_owned(), Place { group, nr: excess.sizes[group] });
            excess.sizes[group] += 1;
        }
        excess
    }

    /// Notes that `node` has done a work, with `bytes` of values and facts. What a node sent for a work that failed says nothing of what
    /// it takes.
    pub fn done(&mut self, node: &str, work: &Ordered, bytes: usize) {
        let Some(Place { group, nr }) = self.nodes.get(node).copied() else { return };
        let sent = self.sent.entry((group, work.clone())).or_default();
        sent.all.resize(self.sizes[group], None);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(sent.all[nr].unwrap_or(0));
        sent.all[nr] = Some(bytes);
        sent.largest.retain(|(_, of)| *of != nr);
        sent.largest.push((bytes, nr));
        sent.largest.sort_unstable_by(|a, b| b.cmp(a));
        sent.largest.truncate(PEERS + 1);
    }

    /// Whether `bytes` that `node` sent for a work are kept; at the end of a step (`last`) none waits any more.
    pub fn share(&mut self, node: &str, work: &Ordered, bytes: usize, last: bool) -> Share {
        let over = self.over(node, work, bytes);
        if over == 0 {
            return Share::Kept;
        }
        let mut spent = self.spent.remove(node).unwrap_or_default();
        spent.retain(|(work, bytes)| self.over(node, work, *bytes) > 0);
        let sum: usize = spent.iter().map(|(work, bytes)| self.over(node, work, *bytes)).sum();
        let fits = sum + over <= ALLOWANCE;
        if fits {
            spent.push((work.clone(), bytes));
        }
        self.spent.insert(node.to_owned(), spent);
        match self.against(node, work, bytes, last) {
            _ if fits => Share::Kept,
            Some((usual, peers)) => Share::Refused(refusal(bytes, usual, peers)),
            None if last || self.is_lonely(node) => Share::Kept,
            None => Share::Waits,
        }
    }

    /// Bytes beyond four times what the third largest of the others sent.
    fn over(&self, node: &str, work: &Ordered, bytes: usize) -> usize {
        let Some((sent, own)) = self.sent(node, work) else { return bytes };
        let mut others = sent.largest.iter().filter(|(_, nr)| *nr != own);
        let known = others.nth(PEERS - 1).map_or(0, |(bytes, _)| *bytes as usize);
        bytes.saturating_sub(TIMES * known)
    }

    /// The median of what the others sent and their number, where most of them sent far less: of all that there are, or of those that
    /// did the work where no more will come.
    fn against(&self, node: &str, work: &Ordered, bytes: usize, last: bool) -> Option<(usize, usize)> {
        let (sent, own) = self.sent(node, work)?;
        let others = || sent.all.iter().enumerate().filter(|(nr, _)| *nr != own).filter_map(|(_, bytes)| *bytes);
        let (mut peers, mut less) = (0, 0);
        for other in others() {
            peers += 1;
            less += usize::from(TIMES * (other as usize) < bytes);
        }
        let of = if last { peers } else { sent.all.len() - 1 };
        if peers < PEERS || 2 * less <= of {
            return None;
        }
        let mut others: Vec<u32> = others().collect();
        Some((*others.select_nth_unstable(peers / 2).1 as usize, peers))
    }

    /// Whether a node has too few peers for anybody to say what is too much.
    fn is_lonely(&self, node: &str) -> bool {
        self.nodes.get(node).is_none_or(|place| self.sizes[place.group] <= PEERS)
    }

    fn sent(&self, node: &str, work: &Ordered) -> Option<(&Sent, usize)> {
        let Place { group, nr } = *self.nodes.get(node)?;
        Some((self.sent.get(&(group, work.clone()))?, nr))
    }
}

fn refusal(bytes: usize, usual: usize, peers: usize) -> String {
    let kilobytes = |bytes: usize| bytes.div_ceil(1000);
    format!(
        "sent {} kB where the median of {peers} peers is {} kB; nothing is kept (if it is a different kind of node, give it a label of \
         its own)",
        kilobytes(bytes),
        kilobytes(usual)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 8 << 20;

    fn excess(nodes: usize) -> Excess {
        let names: Vec<String> = (1..=nodes).map(|nr| format!("n{nr}")).collect();
        Excess::new(names.iter().map(|name| (name.as_str(), String::new())))
    }

    fn work(name: &str) -> Ordered {
        (Profile::Standard, name.to_owned())
    }

    fn finished(excess: &mut Excess, node: &str, name: &str, bytes: usize) -> Share {
        excess.done(node, &work(name), bytes);
        excess.share(node, &work(name), bytes, false)
    }

    /// What becomes of the bytes of each node in turn, for one work.
    fn each<const N: usize>(excess: &mut Excess, sent: [(&str, usize); N]) -> [Share; N] {
        sent.map(|(node, bytes)| finished(excess, node, "a", bytes))
    }

    #[test]
    fn a_node_that_is_first_with_far_more_than_its_peers_waits_for_most_of_them_and_is_refused() {
        let mut all = excess(6);
        let shares = each(&mut all, [("n1", MANY), ("n2", 9_000), ("n3", 8_000)]);
        assert_eq!(shares, [Share::Waits, Share::Kept, Share::Kept]);
        assert_eq!(all.share("n1", &work("a"), MANY, false), Share::Waits);
        assert_eq!(each(&mut all, [("n4", 7_500)]), [Share::Kept]);
        let share = all.share("n1", &work("a"), MANY, false);
        let Share::Refused(why) = share else { panic!("{share:?}") };
        assert!(why.starts_with("sent 8389 kB where the median of 3 peers is 8 kB; nothing is kept"), "{why}");
    }

    #[test]
    fn a_large_work_is_kept_once_three_others_have_it() {
        let mut all = excess(9);
        let shares = each(&mut all, [("n1", MANY), ("n2", MANY), ("n3", MANY), ("n4", MANY), ("n5", 3 * MANY)]);
        assert_eq!(shares, [Share::Waits, Share::Waits, Share::Waits, Share::Kept, Share::Kept]);
        for node in ["n1", "n2", "n3"] {
            assert_eq!(all.share(node, &work("a"), MANY, false), Share::Kept);
        }
    }

    #[test]
    fn nodes_that_are_done_at_once_with_nothing_take_nothing_from_the_others() {
        let mut all = excess(12);
        each(&mut all, [("n1", 0), ("n2", 0), ("n3", 0), ("n4", 0), ("n5", 0)]);
        let shares = each(&mut all, [("n6", MANY), ("n7", MANY), ("n8", MANY), ("n9", MANY)]);
        assert_eq!(shares, [Share::Waits, Share::Waits, Share::Waits, Share::Kept]);
        for node in ["n6", "n7", "n8"] {
            assert_eq!(all.share(node, &work("a"), MANY, false), Share::Kept);
        }
    }

    #[test]
    fn with_too_few_peers_nobody_is_refused() {
        let mut three = excess(3);
        assert_eq!(each(&mut three, [("n1", MANY), ("n2", 10), ("n3", 10)]), [Share::Kept, Share::Kept, Share::Kept]);
        let mut many = excess(9);
        each(&mut many, [("n1", MANY), ("n2", 10), ("n3", 10)]);
        assert_eq!(many.share("n1", &work("a"), MANY, true), Share::Kept, "the others never finished it");
    }

    #[test]
    fn where_no_more_will_come_those_that_came_decide() {
        let mut all = excess(100);
        each(&mut all, [("n1", MANY), ("n2", 10), ("n3", 10), ("n4", 10)]);
        assert_eq!(all.share("n1", &work("a"), MANY, false), Share::Waits);
        assert!(matches!(all.share("n1", &work("a"), MANY, true), Share::Refused(_)));
    }

    #[test]
    fn many_works_that_are_each_a_little_too_large_are_kept_up_to_the_allowance() {
        for first in [false, true] {
            let (mut all, mut kept) = (excess(5), 0);
            for nr in 0..50 {
                let name = format!("w{nr}");
                let mut greedy =
                    |all: &mut Excess| kept += usize::from(finished(all, "n1", &name, 100_000) == Share::Kept);
                if first {
                    greedy(&mut all);
                }
                for peer in ["n2", "n3", "n4"] {
                    assert_eq!(finished(&mut all, peer, &name, 100), Share::Kept);
                }
                if !first {
                    greedy(&mut all);
                }
            }
            assert_eq!(kept, ALLOWANCE / 100_000, "first: {first}");
        }
    }

    #[test]
    fn an_honest_node_that_is_always_first_has_its_allowance_back_when_others_follow() {
        let mut all = excess(5);
        for nr in 0..50 {
            for node in ["n1", "n2", "n3", "n4", "n5"] {
                assert_eq!(finished(&mut all, node, &format!("w{nr}"), 100_000), Share::Kept);
            }
        }
    }

    #[test]
    fn another_kind_of_node_has_peers_of_its_own_and_another_profile_sizes_of_its_own() {
        let nodes = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
        let group = |at: usize| if at < 4 { "gpu" } else { "cpu" }.to_owned();
        let mut all = Excess::new(nodes.into_iter().enumerate().map(|(at, node)| (node, group(at))));
        each(&mut all, [("n5", 10), ("n6", 10), ("n7", 10), ("n8", 10)]);
        each(&mut all, [("n1", MANY), ("n2", MANY), ("n3", MANY)]);
        assert_eq!(each(&mut all, [("n4", MANY)]), [Share::Kept]);
        let full = (Profile::Full, "a".to_owned());
        all.done("n5", &full, MANY);
        assert_eq!(all.share("n5", &full, MANY, false), Share::Waits);
    }
}
