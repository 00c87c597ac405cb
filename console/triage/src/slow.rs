//! Which GPU makes the others wait, and which link carries less than its peers?
//!
//! A late GPU's own collective is the shortest: it arrives last and finds everybody there (Aegis: `TD_j < .8 ·` mean of the others). It
//! must be so in [`RUN`] operations in a row and in half of all. Whoever is late in one communicator while waiting for a late one in
//! another is explained by that one. A slow link shows in the communicator that spans it: even its shortest time is long against
//! communicators of the same size and operation; transfers between two ranks say at which end.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Process, Timed};
use super::clock::median;
use super::layout::Layout;

/// Bytes, communicator, sender and receiver.
type PairOf<'a> = (u64, &'a str, u32, u32);

/// Share of the others' mean below which an operation was waited for.
const LATE: f64 = 0.8;
/// Operations in a row that make it persistent.
pub const RUN: usize = 3;
/// Share of all its operations that a persistent late rank must show.
const MOST: f64 = 0.5;
/// How many times as long makes a link slow.
pub const SLOW: f64 = 1.5;

/// Somebody of a job, as Inspector names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Its node.
    pub node: String,
    /// Its process.
    pub pid: u32,
    /// Its rank in the job, where known.
    pub rank: Option<u32>,
}

/// One that others wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct Late {
    /// Who.
    pub who: Who,
    /// Share of its operations that were shortest by far.
    pub share: f64,
    /// Longest row of them.
    pub run: usize,
    /// Operations compared.
    pub of: usize,
    /// Its time as a share of the others' mean.
    pub ratio: f64,
}

/// One slow link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The communicator that shows it.
    pub comm: String,
    /// How many times as long as its peers.
    pub factor: f64,
    /// Ends that may be it: one where transfers between two tell, else all.
    pub ends: Vec<Who>,
    /// Whether transfers between two tell which end.
    pub told: bool,
}

/// What timed operations show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slow {
    /// Persistent late ones that nobody else explains.
    pub late: Vec<Late>,
    /// Slow links.
    pub links: Vec<Link>,
    /// Processes that were compared with others.
    pub compared: usize,
    /// Processes that were late now and then.
    pub sometimes: BTreeSet<Who>,
    /// Whether communicators could be compared with others of their kind.
    pub links_compared: bool,
}

type Class<'a> = (&'a str, u64, u32, u32);
/// Times by number of the operation, then by rank in the communicator.
type Times = BTreeMap<u64, BTreeMap<u32, f64>>;

/// Compares.
#[must_use]
pub fn compare(timed: &[Timed], layout: &Layout) -> Slow {
    let mut who: BTreeMap<(&str, u32), Who> = BTreeMap::new();
    let mut comms: BTreeMap<(&str, Class<'_>), Times> = BTreeMap::new();
    for one in timed {
        let at = || {
            let process = Process { host: one.host.clone(), pid: Some(one.pid), ..Process::default() };
            let world = (one.ranks as usize == layout.world()).then_some(one.rank);
            Who { node: layout.node(&one.host), pid: one.pid, rank: layout.rank_of(&process).or(world) }
        };
        who.entry((one.comm.as_str(), one.rank)).or_insert_with(at);
        if one.peer.is_none() {
            let class = (one.op.as_str(), one.bytes, one.ranks, one.nodes);
            let times = comms.entry((one.comm.as_str(), class)).or_default().entry(one.seq).or_default();
            times.insert(one.rank, one.took_us);
        }
    }
    let mut slow = Slow { compared: comms_of(&comms, &who).len(), ..Slow::default() };
    late(&comms, &who, &mut slow);
    let edges = edges(timed, &who);
    links(&comms, &who, &edges, &mut slow);
    slow
}

fn comms_of(comms: &BTreeMap<(&str, Class<'_>), Times>, who: &BTreeMap<(&str, u32), Who>) -> BTreeSet<Who> {
    let full = comms.iter().filter(|((_, class), times)| {
        class.2 > 1 && times.values().filter(|ranks| ranks.len() == class.2 as usize).count() >= RUN
    });
    full.flat_map(|((comm, class), _)| (0..class.2).filter_map(|rank| who.get(&(*comm, rank)).cloned())).collect()
}

fn late(comms: &BTreeMap<(&str, Class<'_>), Times>, who: &BTreeMap<(&str, u32), Who>, slow: &mut Slow) {
    let mut found: BTreeMap<(&str, &Who), Late> = BTreeMap::new();
    let mut peers: BTreeMap<&str, BTreeSet<&Who>> = BTreeMap::new();
    for ((comm, class), times) in comms.iter().filter(|((_, class), _)| class.2 > 1) {
        let shortest: Vec<Option<(u32, f64)>> =
            times.values().filter(|ranks| ranks.len() == class.2 as usize).map(shortest).collect();
        peers.entry(comm).or_default().extend((0..class.2).filter_map(|rank| who.get(&(*comm, rank))));
        let ranks: BTreeSet<u32> = shortest.iter().flatten().map(|(rank, _)| *rank).collect();
        for rank in ranks {
            let Some(who) = who.get(&(*comm, rank)) else { continue };
            let mine = || shortest.iter().map(|one| one.filter(|(of, _)| *of == rank));
            let run = longest(mine().map(|one| one.is_some()));
            let mut ratios: Vec<f64> = mine().flatten().map(|(_, ratio)| ratio).collect();
            let share = ratios.len() as f64 / shortest.len() as f64;
            if run >= RUN && share >= MOST {
                let one = Late { who: who.clone(), share, run, of: shortest.len(), ratio: median(&mut ratios) };
                let kept = found.entry((comm, who)).or_insert_with(|| one.clone());
                if one.ratio < kept.ratio {
                    *kept = one;
                }
            } else {
                slow.sometimes.insert(who.clone());
            }
        }
    }
    // Whoever waits for a late one elsewhere is late because of it.
    let explained = |comm: &str, who: &Who| {
        found.keys().any(|(other, culprit)| {
            *other != comm && *culprit != who && peers.get(other).is_some_and(|all| all.contains(who))
        }) && !found.keys().any(|(other, culprit)| *other != comm && *culprit == who)
    };
    let mut roots: BTreeMap<Who, Late> = BTreeMap::new();
    for ((comm, who), one) in &found {
        if !explained(comm, who) {
            let kept = roots.entry((*who).clone()).or_insert_with(|| one.clone());
            if one.ratio < kept.ratio {
                *kept = one.clone();
            }
        }
    }
    slow.late = roots.into_values().collect();
    slow.late.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
}

/// The rank whose time is far below the mean of the others', with its share of that mean.
fn shortest(times: &BTreeMap<u32, f64>) -> Option<(u32, f64)> {
    let (rank, least) = times.iter().min_by(|a, b| a.1.total_cmp(b.1))?;
    let others = (times.values().sum::<f64>() - least) / (times.len() - 1) as f64;
    (*least < LATE * others).then(|| (*rank, least / others))
}

fn longest(row: impl Iterator<Item = bool>) -> usize {
    let (mut best, mut now) = (0, 0);
    for hit in row {
        now = if hit { now + 1 } else { 0 };
        best = best.max(now);
    }
    best
}

/// Transfers between two: how many times as long as the median of their size each pair takes.
fn edges(timed: &[Timed], who: &BTreeMap<(&str, u32), Who>) -> Vec<(Who, Who, f64, String)> {
    let mut by_pair: BTreeMap<PairOf<'_>, Vec<f64>> = BTreeMap::new();
    for one in timed {
        if let Some(peer) = one.peer.filter(|_| !one.op.eq_ignore_ascii_case("recv")) {
            by_pair.entry((one.bytes, one.comm.as_str(), one.rank, peer)).or_default().push(one.took_us);
        }
    }
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let pairs: Vec<(PairOf<'_>, f64)> =
        by_pair.into_iter().filter(|(_, all)| all.len() >= RUN).map(|(key, mut all)| (key, median(&mut all))).collect();
    for (key, value) in &pairs {
        by_size.entry(key.0).or_default().push(*value);
    }
    let factor = |bytes: u64, value: f64| {
        let all = by_size.get(&bytes).filter(|all| all.len() >= 4)?;
        Some(value / median(&mut all.clone()).max(f64::MIN_POSITIVE))
    };
    let known = |((bytes, comm, from, to), value): (PairOf<'_>, f64)| {
        Some((who.get(&(comm, from))?.clone(), who.get(&(comm, to))?.clone(), factor(bytes, value)?, comm.to_owned()))
    };
    pairs.into_iter().filter_map(known).collect()
}

fn links(
    comms: &BTreeMap<(&str, Class<'_>), Times>,
    who: &BTreeMap<(&str, u32), Who>,
    edges: &[(Who, Who, f64, String)],
    slow: &mut Slow,
) {
    let mut by_class: BTreeMap<Class<'_>, Vec<(&str, f64)>> = BTreeMap::new();
    for ((comm, class), times) in comms.iter().filter(|((_, class), _)| class.3 > 1) {
        let mut least: Vec<f64> = times
            .values()
            .filter(|ranks| ranks.len() == class.2 as usize)
            .filter_map(|ranks| ranks.values().copied().min_by(f64::total_cmp))
            .collect();
        if least.len() >= RUN {
            by_class.entry(*class).or_default().push((comm, median(&mut least)));
        }
    }
    let mut found: BTreeMap<&str, f64> = BTreeMap::new();
    for all in by_class.values().filter(|all| all.len() > 2) {
        slow.links_compared = true;
        for (at, (comm, value)) in all.iter().enumerate() {
            let mut others: Vec<f64> =
                all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (_, value))| *value).collect();
            let factor = value / median(&mut others).max(f64::MIN_POSITIVE);
            if factor > SLOW {
                found.entry(comm).and_modify(|kept| *kept = kept.max(factor)).or_insert(factor);
            }
        }
    }
    // Transfers alone are enough, too.
    slow.links_compared |= !edges.is_empty();
    for (_, _, factor, comm) in edges.iter().filter(|(.., factor, _)| *factor > SLOW) {
        if let Some((comm, _)) = who.keys().find(|(name, _)| *name == comm.as_str()) {
            found.entry(comm).or_insert(*factor);
        }
    }
    for (comm, factor) in found {
        let ends = ends(comm, edges);
        let told = !ends.is_empty();
        let all = || who.iter().filter(|((name, _), _)| *name == comm).map(|(_, who)| who.clone()).collect();
        slow.links.push(Link { comm: comm.to_owned(), factor, ends: if told { ends } else { all() }, told });
    }
    slow.links.sort_by(|a, b| b.factor.total_cmp(&a.factor));
}

/// The one end that all slow transfers of a communicator share; both of a single one.
fn ends(comm: &str, edges: &[(Who, Who, f64, String)]) -> Vec<Who> {
    let slow: Vec<(&Who, &Who)> =
        edges.iter().filter(|(.., factor, of)| *factor > SLOW && of == comm).map(|(from, to, ..)| (from, to)).collect();
    let Some((from, to)) = slow.first() else { return Vec::new() };
    [*from, *to].into_iter().filter(|end| slow.iter().all(|(a, b)| a == end || b == end)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::{Case, Member};
    use super::*;

    fn timed(comm: &str, rank: u32, ranks: u32, seq: u64, took_us: f64) -> Timed {
        let global = rank + comm.bytes().last().map_or(0, |b| u32::from(b - b'0') * ranks);
        Timed {
            comm: comm.into(),
            rank,
            ranks,
            nodes: 2,
            host: format!("n{global}"),
            pid: global,
            op: "AllReduce".into(),
            peer: None,
            seq,
            bytes: 1 << 20,
            took_us,
        }
    }

    fn layout() -> Layout {
        let mut case = Case::default();
        case.job.members = (0..16)
            .map(|rank| Member { rank, node: Some(format!("n{rank}")), pid: Some(rank), gpu: Some(0) })
            .collect();
        Layout::of(&case)
    }

    #[test]
    fn the_shortest_is_the_late_one_when_it_is_so_again_and_again() {
        let took = |rank: u32, seq: u64| if rank == 2 { 600.0 } else { 3000.0 } + (seq * 7 % 5) as f64;
        let all: Vec<Timed> =
            (0..9).flat_map(|seq| (0..4).map(move |rank| timed("c0", rank, 4, seq, took(rank, seq)))).collect();
        let slow = compare(&all, &layout());
        assert_eq!(slow.late.iter().map(|late| late.who.rank).collect::<Vec<_>>(), [Some(2)]);
        let once: Vec<Timed> = (0..9)
            .flat_map(|seq| {
                (0..4).map(move |rank| timed("c0", rank, 4, seq, if rank == (seq % 4) as u32 { 600.0 } else { 3000.0 }))
            })
            .collect();
        assert_eq!(compare(&once, &layout()).late, []);
    }

    #[test]
    fn one_that_waits_for_a_late_one_elsewhere_is_not_accused() {
        // Rank 0 waits for 1 in c0, and so comes late to the pair with 4.
        let mut all: Vec<Timed> = (0..9)
            .flat_map(|seq| (0..4).map(move |rank| timed("c0", rank, 4, seq, if rank == 1 { 500.0 } else { 2500.0 })))
            .collect();
        for seq in 0..9 {
            let pair = |rank: u32, global: u32, took_us| Timed {
                comm: "d".into(),
                rank,
                ranks: 2,
                host: format!("n{global}"),
                pid: global,
                ..timed("c0", 0, 4, seq, took_us)
            };
            all.extend([pair(0, 0, 900.0), pair(1, 4, 2800.0)]);
        }
        assert_eq!(compare(&all, &layout()).late.iter().map(|late| late.who.rank).collect::<Vec<_>>(), [Some(1)]);
    }

    #[test]
    fn a_communicator_slow_against_its_peers_is_a_link_and_transfers_tell_the_end() {
        let mut all = Vec::new();
        for seq in 0..6 {
            for (comm, factor) in [("c0", 1.0), ("c1", 1.0), ("c2", 2.0), ("c3", 1.0)] {
                all.extend((0..4).map(|rank| timed(comm, rank, 4, seq, 1000.0 * factor + f64::from(rank))));
                for rank in 0..4 {
                    let slow = comm == "c2" && (rank == 1 || rank == 0);
                    all.push(Timed {
                        op: "Send".into(),
                        peer: Some((rank + 1) % 4),
                        ..timed(comm, rank, 4, seq, if slow { 2100.0 } else { 1000.0 })
                    });
                }
            }
        }
        let slow = compare(&all, &layout());
        assert_eq!(slow.late, []);
        assert_eq!(slow.links.len(), 1);
        assert_eq!(slow.links[0].ends.iter().map(|who| who.rank).collect::<Vec<_>>(), [Some(9)]);
    }

    /// What is said where rank 1 of four is the shortest, at this share of the others' time, in some operations in their order.
    fn short(operations: &[bool], share: f64) -> Slow {
        let took = |rank: u32, late: bool| if rank == 1 && late { 1000.0 * share } else { 1000.0 };
        let of =
            |(seq, late): (usize, &bool)| [0, 1, 2, 3].map(|rank| timed("c0", rank, 4, seq as u64, took(rank, *late)));
        compare(&operations.iter().enumerate().flat_map(of).collect::<Vec<_>>(), &layout())
    }

    #[test]
    fn who_is_late_is_so_three_times_in_a_row_and_in_half_of_all_and_by_a_fifth() {
        let (yes, no) = (true, false);
        for (operations, share, run, is_late) in [
            (vec![yes; 3], 0.79, 3, true),
            (vec![yes; 2], 0.79, 2, false),
            (vec![yes, yes, yes, no, no, no], 0.5, 3, true),
            (vec![yes, yes, yes, no, no, no, no], 0.5, 3, false),
            (vec![yes, yes, no, yes, yes, no, yes, yes, no], 0.5, 2, false),
        ] {
            let slow = short(&operations, share);
            let (all, so) = (operations.len(), operations.iter().filter(|late| **late).count());
            assert_eq!(
                (slow.late.len(), slow.sometimes.len()),
                (usize::from(is_late), usize::from(!is_late)),
                "{slow:?}"
            );
            if let Some(late) = slow.late.first() {
                assert_eq!((late.of, late.run, late.share, late.who.rank), (all, run, so as f64 / all as f64, Some(1)));
                assert!((late.ratio - share).abs() < 1e-9, "{late:?}");
            }
            assert_eq!(slow.compared, if all < RUN { 0 } else { 4 }, "{slow:?}");
        }
        let even = short(&[yes; 5], LATE);
        assert!(even.late.is_empty() && even.sometimes.is_empty(), "{even:?}");
    }

    #[test]
    fn of_one_that_is_late_in_several_communicators_or_sizes_the_clearest_is_told() {
        for (small, large, pair) in
            [(500.0, 300.0, 400.0), (300.0, 500.0, 400.0), (500.0, 400.0, 300.0), (400.0, 500.0, 300.0)]
        {
            let mut all = Vec::new();
            for seq in 0..5 {
                let of = |rank: u32, took_us: f64| timed("c0", rank, 4, seq, if rank == 1 { took_us } else { 1000.0 });
                all.extend((0..4).map(|rank| of(rank, large)));
                all.extend((0..4).map(|rank| Timed { bytes: 1 << 10, ..of(rank, small) }));
                // In a communicator of two it is rank 0, beside rank 5 of the job.
                all.extend([(0, 1, pair), (1, 5, 1000.0)].map(|(rank, global, took_us)| Timed {
                    comm: "d".into(),
                    rank,
                    ranks: 2,
                    host: format!("n{global}"),
                    pid: global,
                    ..timed("c0", 0, 4, seq, took_us)
                }));
            }
            let late = compare(&all, &layout()).late;
            assert_eq!((late.len(), late[0].who.rank), (1, Some(1)), "{late:?}");
            assert!((late[0].ratio - 0.3).abs() < 1e-9, "{small} {large} {pair}: {late:?}");
        }
    }

    #[test]
    fn links_are_compared_where_three_communicators_of_a_kind_reach_beyond_a_node() {
        let of = |comms: &[(&str, f64)], nodes: u32| {
            let one = |(comm, took_us): &(&str, f64)| {
                let all = (0..3).flat_map(|seq| (0..4).map(move |rank| (seq, rank)));
                all.map(|(seq, rank)| Timed { nodes, ..timed(comm, rank, 4, seq, *took_us) }).collect::<Vec<_>>()
            };
            let slow = compare(&comms.iter().flat_map(one).collect::<Vec<_>>(), &layout());
            let links: Vec<(String, usize)> = slow.links.into_iter().map(|link| (link.comm, link.ends.len())).collect();
            (slow.links_compared, links)
        };
        assert_eq!(of(&[("c0", 1000.0), ("c1", 2000.0)], 2), (false, vec![]));
        assert_eq!(of(&[("c0", 1000.0), ("c1", 2000.0), ("c2", 1000.0)], 1), (false, vec![]));
        assert_eq!(of(&[("c0", 1000.0), ("c1", 1500.0), ("c2", 1000.0)], 2), (true, vec![]));
        let found = of(&[("c0", 1000.0), ("c1", 1501.0), ("c2", 1000.0)], 2);
        assert_eq!(found, (true, vec![("c1".to_owned(), 4)]), "at one of its four ends");
    }

    #[test]
    fn all_equally_slow_accuses_nobody() {
        let all: Vec<Timed> = (0..9)
            .flat_map(|seq| {
                ["c0", "c1", "c2"].into_iter().flat_map(move |comm| {
                    (0..4).map(move |rank| timed(comm, rank, 4, seq, 9000.0 + f64::from(rank * 3)))
                })
            })
            .collect();
        let slow = compare(&all, &layout());
        assert!(slow.late.is_empty() && slow.links.is_empty() && slow.links_compared);
        assert_eq!(slow.compared, 12);
    }

    #[test]
    fn a_communicator_of_one_rank_compares_nobody() {
        let all: Vec<Timed> = (0..9).map(|seq| timed("c0", 0, 1, seq, 1000.0)).collect();
        assert_eq!(compare(&all, &layout()), Slow::default());
    }

    #[test]
    fn a_process_that_nobody_knows_has_the_rank_of_its_communicator_where_that_is_of_all_ranks() {
        let late = |world: u32| {
            let mut case = Case::default();
            case.job.world_size = Some(world);
            let took = |rank: u32| if rank == 2 { 600.0 } else { 3000.0 };
            let all: Vec<Timed> =
                (0..9).flat_map(|seq| (0..4).map(move |rank| timed("c0", rank, 4, seq, took(rank)))).collect();
            compare(&all, &Layout::of(&case)).late.iter().map(|late| late.who.rank).collect::<Vec<_>>()
        };
        assert_eq!((late(4), late(8)), (vec![Some(2)], vec![None]));
    }

    #[test]
    fn a_transfer_is_slow_beyond_half_as_long_again_as_the_middle_one_and_both_of_its_ends_may_be_it() {
        let of = |took_us: f64| {
            let took = |rank: u32| if rank == 3 { took_us } else { 1000.0 };
            let send = |seq: u64, rank: u32| Timed {
                op: "Send".into(),
                peer: Some((rank + 1) % 4),
                ..timed("c0", rank, 4, seq, took(rank))
            };
            let all: Vec<Timed> = (0..3).flat_map(|seq| (0..4).map(move |rank| send(seq, rank))).collect();
            let ends = |link: Link| (link.told, link.ends.iter().map(|who| who.rank).collect::<Vec<_>>());
            compare(&all, &layout()).links.into_iter().map(ends).collect::<Vec<_>>()
        };
        assert_eq!(of(1500.0), []);
        assert_eq!(of(1501.0), [(true, vec![Some(3), Some(0)])]);
    }
}
