//! Who waits for whom, and who is behind and waits for nobody?
//!
//! A rank waits in a communicator when it has requested an operation that another of its ranks has not. One that is behind in one
//! communicator may be so because it waits in another: the walk goes on to ranks that wait nowhere. A circle is a program whose ranks
//! enter their communicators in different orders.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Group, Side};

/// Why a rank is held for the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    /// It told nothing while others did: no dump, no answer.
    Absent,
    /// It did not enqueue what others did.
    NotLaunched,
    /// It enqueued as the others did, and its GPU is behind.
    NotStarted,
}

/// One link: `who` waits for `whom` in a communicator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Who waits.
    pub who: u32,
    /// Who is behind.
    pub whom: u32,
    /// Place of the communicator among the groups.
    pub group: usize,
}

/// A rank at the end of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Who.
    pub rank: u32,
    /// How it is behind.
    pub behind: Behind,
    /// Ranks that wait for it, also over others.
    pub waiting: usize,
    /// Communicators that show it.
    pub groups: Vec<usize>,
}

/// What the walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// All links.
    pub waits: Vec<Wait>,
    /// Ranks that are behind and wait for nobody, most waited for first.
    pub roots: Vec<Root>,
    /// Ranks that wait in a circle, where nobody is behind without waiting.
    pub circle: BTreeSet<u32>,
    /// Communicators in which all ranks are level and none completes, none of which waits for another.
    pub stuck: Vec<usize>,
}

/// The walk over groups of one source that stand still.
#[must_use]
pub fn walk(groups: &[Group]) -> Walk {
    let mut walk = Walk::default();
    for (at, group) in groups.iter().enumerate().filter(|(_, group)| group.still && !group.p2p) {
        walk.waits.extend(links(at, group));
    }
    let out: BTreeMap<u32, BTreeSet<u32>> =
        walk.waits.iter().fold(BTreeMap::new(), |mut out: BTreeMap<u32, BTreeSet<u32>>, wait| {
            out.entry(wait.who).or_default().insert(wait.whom);
            out
        });
    let whom: BTreeSet<u32> = walk.waits.iter().map(|wait| wait.whom).collect();
    walk.roots =
        whom.iter().filter(|rank| !out.contains_key(rank)).map(|rank| root(*rank, groups, &walk.waits, &out)).collect();
    if walk.roots.is_empty() {
        walk.circle = whom.iter().filter(|rank| reaches(**rank, **rank, &out)).copied().collect();
    }
    if walk.waits.is_empty() {
        walk.roots = late_gpus(groups);
        walk.stuck = if walk.roots.is_empty() { stuck(groups) } else { Vec::new() };
    }
    walk.roots.sort_by_key(|root| (usize::MAX - root.waiting, root.rank));
    walk
}

fn links(at: usize, group: &Group) -> Vec<Wait> {
    let most = group.sides.values().map(|side| side.requested).max().unwrap_or(0);
    let link = |who: &u32, whom: &u32| Wait { who: *who, whom: *whom, group: at };
    let mut links = Vec::new();
    for (who, side) in &group.sides {
        // Without knowing what completed, whoever is furthest waits.
        let Some(head) = side.completed.map_or_else(
            || (side.requested == most).then_some(most),
            |done| (done < side.requested).then_some(done + 1),
        ) else {
            continue;
        };
        let behind = group.sides.iter().filter(|(_, other)| other.requested < head).map(|(whom, _)| link(who, whom));
        links.extend(behind);
        links.extend(group.absent.iter().map(|whom| link(who, whom)));
    }
    links
}

fn root(rank: u32, groups: &[Group], waits: &[Wait], out: &BTreeMap<u32, BTreeSet<u32>>) -> Root {
    let of: BTreeSet<usize> = waits.iter().filter(|wait| wait.whom == rank).map(|wait| wait.group).collect();
    let waiting = out.keys().filter(|who| reaches(**who, rank, out)).count();
    let absent = of.iter().all(|at| groups[*at].absent.contains(&rank));
    let behind = match () {
        () if absent => Behind::Absent,
        () if gpu_behind(rank, groups) => Behind::NotStarted,
        () => Behind::NotLaunched,
    };
    Root { rank, behind, waiting, groups: of.into_iter().collect() }
}

/// Whether others completed in its groups what it enqueued and did not complete, and nowhere the reverse.
fn gpu_behind(rank: u32, groups: &[Group]) -> bool {
    let mut less = false;
    for group in groups.iter().filter(|group| !group.p2p) {
        let Some((mine, asked)) = group.sides.get(&rank).and_then(|side| Some((side.completed?, side.requested)))
        else {
            continue;
        };
        let others = group.sides.iter().filter(|(other, _)| **other != rank).filter_map(|(_, side)| side.completed);
        let Some(most) = others.max() else { continue };
        if mine > most {
            return false;
        }
        less |= mine < most && mine < asked;
    }
    less
}

fn reaches(from: u32, to: u32, out: &BTreeMap<u32, BTreeSet<u32>>) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(rank) = open.pop() {
        for next in out.get(&rank).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    false
}

/// Ranks level in what they requested, behind in what their GPU began or completed.
fn late_gpus(groups: &[Group]) -> Vec<Root> {
    let mut shown: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate().filter(|(_, group)| group.still && !group.p2p) {
        for rank in group.sides.keys().filter(|rank| late_in(**rank, group)) {
            shown.entry(*rank).or_default().push(at);
        }
    }
    // One whose GPU runs something that does not end waits there, and is not late elsewhere of itself.
    let busy = |rank: u32| groups.iter().filter(|group| !group.p2p).any(|group| running(rank, group));
    shown.retain(|rank, _| !busy(*rank) && (gpu_behind(*rank, groups) || not_begun(*rank, groups)));
    let level: BTreeSet<u32> = groups.iter().flat_map(|group| group.sides.keys().copied()).collect();
    let roots = shown.into_iter().map(|(rank, groups)| Root {
        rank,
        behind: Behind::NotStarted,
        waiting: level.len().saturating_sub(1),
        groups,
    });
    let roots: Vec<Root> = roots.collect();
    // When half of the ranks are late, it is not their GPUs.
    if roots.len() * 2 > level.len() { Vec::new() } else { roots }
}

fn late_in(rank: u32, group: &Group) -> bool {
    let Some(mine) = group.sides.get(&rank) else { return false };
    let others = || group.sides.iter().filter(|(other, _)| **other != rank).map(|(_, side)| side);
    let less =
        |of: fn(&Side) -> Option<u64>| of(mine).is_some_and(|mine| others().filter_map(of).any(|other| other > mine));
    less(|side| side.completed) || less(|side| side.started)
}

fn not_begun(rank: u32, groups: &[Group]) -> bool {
    groups.iter().any(|group| {
        let started = |side: &Side| side.started;
        let Some(mine) = group.sides.get(&rank).and_then(started) else { return false };
        group.sides.iter().any(|(other, side)| *other != rank && started(side).is_some_and(|theirs| theirs > mine))
    })
}

/// Its GPU runs an operation of the group that does not end.
fn running(rank: u32, group: &Group) -> bool {
    let side = group.sides.get(&rank);
    side.is_some_and(|side| side.started.zip(side.completed).is_some_and(|(started, completed)| started > completed))
}

/// Level groups in which nothing completes, and whose operation is the oldest open one of each of its ranks.
fn stuck(groups: &[Group]) -> Vec<usize> {
    let open = |side: &Side| side.completed.is_some_and(|done| done < side.requested);
    let is_open =
        |group: &&Group| group.still && !group.p2p && !group.sides.is_empty() && group.sides.values().all(open);
    let mut oldest: BTreeMap<u32, f64> = BTreeMap::new();
    for group in groups.iter().filter(is_open) {
        for (rank, side) in &group.sides {
            if let Some(at) = side.head_s {
                oldest.entry(*rank).and_modify(|first| *first = first.min(at)).or_insert(at);
            }
        }
    }
    let first =
        |(rank, side): (&u32, &Side)| side.head_s.is_none_or(|at| oldest.get(rank).is_none_or(|first| at <= *first));
    let roots = groups.iter().enumerate().filter(|(_, group)| is_open(group) && group.sides.iter().all(first));
    roots.map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::report::Source;
    use super::*;

    /// Ranks with what they requested and completed.
    fn group(name: &str, sides: &[(u32, u64, u64)]) -> Group {
        let side = |&(rank, requested, completed): &(u32, u64, u64)| {
            (rank, Side { requested, completed: Some(completed), started: None, head_s: None })
        };
        Group {
            name: name.into(),
            source: Source::FlightRecorder,
            members: sides.iter().map(|side| side.0).collect(),
            sides: sides.iter().map(side).collect(),
            absent: BTreeSet::new(),
            p2p: false,
            still: true,
        }
    }

    fn roots(groups: &[Group]) -> Vec<(u32, Behind)> {
        walk(groups).roots.iter().map(|root| (root.rank, root.behind)).collect()
    }

    #[test]
    fn the_walk_ends_at_the_rank_that_waits_for_nobody() {
        // 2 is behind in the world because it waits for 3 in its pair.
        let groups =
            [group("world", &[(0, 9, 8), (1, 9, 8), (2, 8, 8), (3, 8, 8)]), group("pair", &[(2, 5, 4), (3, 4, 4)])];
        assert_eq!(roots(&groups), [(3, Behind::NotLaunched)]);
        assert_eq!(walk(&groups).roots[0].waiting, 3);
    }

    #[test]
    fn who_told_nothing_while_others_wait_is_the_root() {
        let mut world = group("world", &[(0, 9, 8), (1, 9, 8)]);
        world.absent.insert(2);
        assert_eq!(roots(&[world]), [(2, Behind::Absent)]);
    }

    #[test]
    fn level_in_requests_and_behind_in_what_completed_is_the_gpu() {
        assert_eq!(roots(&[group("world", &[(0, 9, 8), (1, 9, 8), (2, 9, 6), (3, 9, 8)])]), [(2, Behind::NotStarted)]);
        assert_eq!(roots(&[group("world", &[(0, 9, 8), (1, 7, 6), (2, 9, 8), (3, 9, 8)])]), [(1, Behind::NotStarted)]);
        // It has done all that it was given.
        assert_eq!(roots(&[group("world", &[(0, 9, 8), (1, 6, 6), (2, 9, 8), (3, 9, 8)])]), [(1, Behind::NotLaunched)]);
    }

    #[test]
    fn different_orders_are_a_circle_and_accuse_no_machine() {
        let groups = [group("a", &[(0, 2, 1), (1, 1, 1)]), group("b", &[(0, 1, 1), (1, 2, 1)])];
        let walk = walk(&groups);
        assert!(walk.roots.is_empty());
        assert_eq!(walk.circle.into_iter().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn groups_between_two_ranks_and_groups_that_move_accuse_nobody() {
        let mut pair = group("pair", &[(0, 9, 8), (1, 3, 3)]);
        pair.p2p = true;
        let mut moving = group("world", &[(0, 9, 8), (1, 8, 8)]);
        moving.still = false;
        assert_eq!(roots(&[pair, moving]), []);
    }

    #[test]
    fn all_level_and_nothing_completes_is_the_group_whose_operation_is_oldest() {
        let mut pair = group("pair", &[(1, 5, 4), (3, 5, 4)]);
        let mut world = group("world", &[(0, 9, 8), (1, 9, 8), (2, 9, 8), (3, 9, 8)]);
        pair.sides.values_mut().for_each(|side| side.head_s = Some(1.0));
        world.sides.values_mut().for_each(|side| side.head_s = Some(2.0));
        assert_eq!(walk(&[world, pair]).stuck, [1]);
    }

    /// The same with what their GPUs began.
    fn begun(sides: &[(u32, u64, u64, u64)]) -> Group {
        let mut group = group("world", &sides.iter().map(|side| (side.0, side.1, side.3)).collect::<Vec<_>>());
        sides.iter().for_each(|side| group.sides.get_mut(&side.0).unwrap().started = Some(side.2));
        group
    }

    #[test]
    fn a_gpu_that_did_not_begin_what_all_others_began_is_late_and_half_of_the_ranks_may_be() {
        assert_eq!(roots(&[begun(&[(0, 9, 9, 8), (1, 9, 8, 8), (2, 9, 9, 8)])]), [(1, Behind::NotStarted)]);
        let two = begun(&[(0, 9, 9, 8), (1, 9, 8, 8), (2, 9, 9, 8), (3, 9, 8, 8)]);
        assert_eq!(roots(&[two]), [(1, Behind::NotStarted), (3, Behind::NotStarted)]);
        let most = begun(&[(0, 9, 9, 8), (1, 9, 8, 8), (2, 9, 8, 8)]);
        let walked = walk(&[most]);
        assert_eq!((walked.roots, walked.stuck), (vec![], vec![0]), "that is not their GPUs");
        let late = walk(&[begun(&[(0, 9, 9, 8), (1, 9, 8, 8), (2, 9, 9, 8)])]).roots;
        assert_eq!((late[0].waiting, &late[0].groups), (2, &vec![0]));
    }

    #[test]
    fn a_gpu_that_runs_what_does_not_end_in_another_group_is_not_late_of_itself() {
        let world = || begun(&[(0, 9, 9, 8), (1, 9, 8, 8), (2, 9, 9, 8), (3, 9, 9, 8)]);
        let mut pair = begun(&[(1, 5, 5, 4), (4, 5, 5, 4)]);
        assert_eq!(roots(&[world(), pair.clone()]), []);
        pair.p2p = true;
        assert_eq!(roots(&[world(), pair.clone()]), [(1, Behind::NotStarted)], "operations of two tell nothing");
        pair.p2p = false;
        pair.sides.insert(1, Side { requested: 5, started: Some(4), completed: Some(4), head_s: None });
        assert_eq!(roots(&[world(), pair]), [(1, Behind::NotStarted)], "it did not begin that either");
    }

    #[test]
    fn a_gpu_that_is_ahead_of_the_others_in_another_group_is_not_behind() {
        let world = group("world", &[(0, 9, 8), (1, 9, 6), (2, 9, 8)]);
        let ahead = group("pair", &[(1, 5, 5), (2, 5, 4)]);
        let level = group("pair", &[(1, 5, 5), (2, 5, 5)]);
        assert_eq!(roots(&[world.clone(), level]), [(1, Behind::NotStarted)]);
        assert_eq!(roots(&[world.clone(), ahead.clone()]), [(2, Behind::NotStarted)]);
        assert!(!gpu_behind(1, &[world.clone(), ahead]));
        assert!(gpu_behind(1, &[world]));
        assert!(!gpu_behind(1, &[group("world", &[(0, 9, 8), (1, 6, 6)])]), "it did all that it was given");
        assert!(!gpu_behind(1, &[group("alone", &[(1, 9, 6)])]));
    }

    #[test]
    fn a_group_is_stuck_where_all_of_it_wait_in_it_and_have_waited_for_nothing_longer() {
        let at = |mut group: Group, heads: &[Option<f64>]| {
            group.sides.values_mut().zip(heads).for_each(|(side, at)| side.head_s = *at);
            group
        };
        let pair = |heads: &[Option<f64>]| at(group("pair", &[(0, 5, 4), (1, 5, 4)]), heads);
        let other = |heads: &[Option<f64>]| at(group("other", &[(1, 7, 6), (2, 7, 6)]), heads);
        let stuck = |groups: &[Group]| walk(groups).stuck;
        assert_eq!(stuck(&[pair(&[Some(1.0), Some(1.0)]), other(&[Some(2.0), Some(2.0)])]), [0]);
        assert_eq!(
            stuck(&[pair(&[Some(1.0), Some(3.0)]), other(&[Some(2.0), Some(2.0)])]),
            [1],
            "1 waits for it longer"
        );
        assert_eq!(stuck(&[pair(&[None, None]), other(&[Some(2.0), Some(2.0)])]), [0, 1], "nobody knows since when");
        assert_eq!(stuck(&[pair(&[Some(2.0), Some(2.0)]), other(&[Some(2.0), Some(2.0)])]), [0, 1]);
        assert_eq!(stuck(&[group("done", &[(0, 5, 5), (1, 5, 5)])]), Vec::<usize>::new());
        let mut counts = group("counts", &[(0, 5, 4), (1, 5, 4)]);
        counts.sides.values_mut().for_each(|side| side.completed = None);
        assert_eq!(stuck(&[counts]), Vec::<usize>::new(), "what does not tell what ended");
        let mut moving = pair(&[None, None]);
        moving.still = false;
        assert_eq!(stuck(&[moving]), Vec::<usize>::new());
    }

    #[test]
    fn counts_that_tell_no_end_show_who_is_furthest_waiting_for_all_that_are_not() {
        let mut world = group("world", &[(0, 9, 0), (1, 9, 0), (2, 8, 0), (3, 7, 0)]);
        world.sides.values_mut().for_each(|side| side.completed = None);
        let walk = walk(&[world]);
        let told: Vec<(u32, usize)> = walk.roots.iter().map(|root| (root.rank, root.waiting)).collect();
        assert_eq!(told, [(2, 2), (3, 2)]);
        assert_eq!(walk.waits.len(), 4, "one that is behind itself is not said to wait: {:?}", walk.waits);
    }

    proptest! {
        #[test]
        fn roots_are_who_is_waited_for_and_waits_for_nobody_by_looking_at_each_pair(
            made in prop::collection::vec((any::<(bool, bool)>(), prop::collection::btree_map(0..6_u32, (0..4_u64, 0..4_u64), 1..6)), 0..4),
        ) {
            let group = |(how, sides): &(_, BTreeMap<u32, (u64, u64)>)| {
                let (still, p2p): &(bool, bool) = how;
                let sides: Vec<_> = sides.iter().map(|(rank, (a, b))| (*rank, *a.max(b), *a.min(b))).collect();
                Group { still: *still || !*p2p, p2p: *p2p && *still, ..group("some", &sides) }
            };
            let groups: Vec<Group> = made.iter().map(group).collect();
            let mut waits = [[false; 6]; 6];
            for group in groups.iter().filter(|group| group.still && !group.p2p) {
                for (a, mine) in &group.sides {
                    for (b, other) in &group.sides {
                        let done = mine.completed.unwrap();
                        waits[*a as usize][*b as usize] |= done < mine.requested && other.requested <= done;
                    }
                }
            }
            let mut reach = waits;
            for (over, from, to) in (0..6).flat_map(|over| (0..36).map(move |at| (over, at / 6, at % 6))) {
                reach[from][to] |= reach[from][over] && reach[over][to];
            }
            let walk = walk(&groups);
            let waited_for = |rank: usize| (0..6).any(|who| waits[who][rank]);
            if (0..6).any(waited_for) {
                let ends = (0..6).filter(|rank| waited_for(*rank) && !waits[*rank].contains(&true));
                let ends: BTreeSet<(u32, usize)> =
                    ends.map(|rank| (rank as u32, (0..6).filter(|who| reach[*who][rank]).count())).collect();
                prop_assert_eq!(walk.roots.iter().map(|root| (root.rank, root.waiting)).collect::<BTreeSet<_>>(), ends.clone());
                prop_assert!(walk.roots.is_sorted_by_key(|root| (std::cmp::Reverse(root.waiting), root.rank)));
                let circle: BTreeSet<u32> = (0..6_u32).filter(|rank| reach[*rank as usize][*rank as usize]).collect();
                prop_assert_eq!(walk.circle, if ends.is_empty() { circle } else { BTreeSet::new() });
                prop_assert!(walk.stuck.is_empty());
            } else {
                prop_assert!(walk.waits.is_empty() && walk.circle.is_empty());
            }
        }
    }
}
