//! How many operations has each rank requested, begun and completed, in each communicator?
//!
//! A communicator is known by its hash, or by its group's name with its ranks, never by a rank's own slot: equal slots of two ranks are
//! different groups (JOBS: `pg_id`). Counts of RAS and numbers of the flight recorder are unrelated and are never compared.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Comm, Dump, Poll, Status};
use super::events::{End, Event};
use super::layout::Layout;
use super::report::Source;
use muster_logs::Field;
use muster_logs::stamp::Stamp;

/// Least seconds between two polls that prove a standstill.
pub const BETWEEN_POLLS_S: f64 = 10.0;

/// One communicator, as one source tells of it.
#[derive(Clone, Debug)]
pub struct Group {
    /// How it is called in sentences.
    pub name: String,
    /// Who tells.
    pub source: Source,
    /// Its ranks in the job, where all are known.
    pub members: BTreeSet<u32>,
    /// What is known of each.
    pub sides: BTreeMap<u32, Side>,
    /// Ranks that should have told and did not.
    pub absent: BTreeSet<u32>,
    /// Operations between two ranks are among them: numbers differ without anything being wrong.
    pub p2p: bool,
    /// It stands still: told by two polls, or by a recorder that was dumped for a time-out.
    pub still: bool,
}

/// How far a rank is in one communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Last operation enqueued.
    pub requested: u64,
    /// Last operation that the GPU began, where it is timed.
    pub started: Option<u64>,
    /// Last operation completed; RAS does not tell.
    pub completed: Option<u64>,
    /// When the oldest unfinished operation was enqueued, on the rank's clock.
    pub head_s: Option<f64>,
}

/// What the polls of RAS show when compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Movement {
    /// One poll or none, or polls too near to each other, or none that tells counts.
    #[default]
    Unknown,
    /// Counts went on.
    Moved,
    /// No count moved.
    Still,
}

/// Groups of all sources.
#[must_use]
pub fn groups(case: &Case, layout: &Layout, events: &[Event<'_>], end: &End) -> Vec<Group> {
    let mut groups = of_dumps(&case.dumps, layout);
    groups.extend(of_watchdogs(layout, events.iter().filter(|event| event.in_window(end))));
    groups.extend(of_polls(&case.polls, layout));
    groups
}

/// Slots of a rank in the order of its groups' names: what PyTorch numbers, where every dump with entries agrees.
fn slots(dumps: &[Dump]) -> Vec<BTreeMap<&str, &str>> {
    let guess = |dump: &Dump| -> Option<Vec<(String, String)>> {
        let mut slots: Vec<(u64, &String)> =
            dump.status.keys().map(|slot| slot.parse().ok().map(|nr| (nr, slot))).collect::<Option<_>>()?;
        let mut names: Vec<(u64, &String)> =
            dump.groups.keys().map(|name| name.parse().ok().map(|nr| (nr, name))).collect::<Option<_>>()?;
        slots.sort_unstable();
        names.sort_unstable();
        (slots.len() == names.len()).then(|| {
            slots.iter().zip(&names).map(|((_, slot), (_, name))| ((*slot).clone(), (*name).clone())).collect()
        })
    };
    let agrees = |dump: &Dump| {
        guess(dump).is_some_and(|guess| {
            dump.entries.iter().all(|entry| guess.contains(&(entry.slot.clone(), entry.group.clone())))
        })
    };
    let telling: Vec<&Dump> = dumps.iter().filter(|dump| !dump.entries.is_empty()).collect();
    let trusted = !telling.is_empty() && telling.iter().all(|dump| agrees(dump));
    dumps
        .iter()
        .map(|dump| {
            let mut named: BTreeMap<&str, &str> =
                dump.entries.iter().map(|e| (e.slot.as_str(), e.group.as_str())).collect();
            if let Some(guess) = guess(dump).filter(|_| trusted) {
                for (slot, name) in guess {
                    if let (Some((slot, _)), Some((name, _))) =
                        (dump.status.get_key_value(&slot), dump.groups.get_key_value(&name))
                    {
                        named.entry(slot).or_insert(name);
                    }
                }
            }
            named
        })
        .collect()
}

fn of_dumps(dumps: &[Dump], layout: &Layout) -> Vec<Group> {
    let told: BTreeSet<u32> = dumps.iter().map(|dump| dump.rank).collect();
    let mut groups: BTreeMap<(String, Vec<u32>), Group> = BTreeMap::new();
    for (dump, slots) in dumps.iter().zip(slots(dumps)) {
        for (slot, name) in slots {
            let config = dump.groups.get(name);
            let mut ranks = config.map_or_else(Vec::new, |config| config.ranks.clone());
            let desc = config
                .map(|config| config.desc.clone())
                .or_else(|| dump.entries.iter().find(|e| e.group == name).map(|e| e.desc.clone()));
            let desc = desc.unwrap_or_default();
            if ranks.is_empty() && name == "0" {
                ranks = layout.members.keys().copied().collect();
            }
            let group = groups.entry((name.to_owned(), ranks.clone())).or_insert_with(|| Group {
                name: if desc.is_empty() { format!("group {name}") } else { format!("group {name} ({desc})") },
                source: Source::FlightRecorder,
                absent: ranks.iter().copied().filter(|rank| !told.contains(rank)).collect(),
                members: ranks.into_iter().collect(),
                sides: BTreeMap::new(),
                p2p: false,
                still: true,
            });
            group.p2p |= dump.entries.iter().any(|entry| entry.group == name && entry.p2p);
            if let Some(side) = dump.status.get(slot).and_then(|status| side(status, dump, name)) {
                group.sides.insert(dump.rank, side);
            }
        }
    }
    groups.into_values().filter(|group| group.sides.len() + group.absent.len() > 1).collect()
}

fn side(status: &Status, dump: &Dump, group: &str) -> Option<Side> {
    let requested = status.enqueued?;
    let completed = status.completed.unwrap_or(0).min(requested);
    let open =
        |entry: &&super::case::Entry| entry.group == group && !entry.p2p && !entry.retired && entry.seq > completed;
    let head_s = dump.entries.iter().filter(open).filter_map(|entry| entry.created_s).min_by(f64::total_cmp);
    Some(Side { requested, started: status.started, completed: Some(completed), head_s })
}

/// What PyTorch's watchdog wrote into the logs: the same numbers as the recorder's, of ranks that timed out only.
fn of_watchdogs<'e, 'a: 'e>(layout: &Layout, events: impl Iterator<Item = &'e Event<'a>>) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for event in events.filter(|event| event.source == Source::Log) {
        let (seen, rank) = (event.seen, event.rank);
        // A number alone is the rank's own slot; only that of all ranks is the same everywhere.
        let name = seen.fields.get(Field::CommId).or_else(|| seen.fields.get(Field::Group).filter(|slot| *slot == "0"));
        let (Some(rank), Some(name)) = (rank, name) else { continue };
        // PyTorch counts from 1, and writes -1 where there was none.
        let number = |field| seen.fields.number(field).or_else(|| (seen.fields.get(field)? == "-1").then_some(0));
        let (Some(requested), Some(completed)) = (number(Field::Enqueued), number(Field::Completed)) else { continue };
        if !layout.members.contains_key(&rank) {
            continue;
        }
        let group = groups.entry(name.to_owned()).or_insert_with(|| Group {
            name: format!("process group {name}"),
            source: Source::Log,
            members: BTreeSet::new(),
            sides: BTreeMap::new(),
            absent: BTreeSet::new(),
            p2p: false,
            still: true,
        });
        let side = Side { requested, started: None, completed: Some(completed.min(requested)), head_s: None };
        group.sides.entry(rank).or_insert(side);
    }
    groups.into_values().filter(|group| group.sides.len() > 1).collect()
}

/// What RAS counts: the last poll, with whether it moved since the first.
fn of_polls(polls: &[Poll], layout: &Layout) -> Vec<Group> {
    let Some(last) = polls.last() else { return Vec::new() };
    let first = polls.iter().find(|poll| far_enough(poll, last));
    let mut groups = Vec::new();
    for comm in &last.comms {
        let before = first.and_then(|poll| poll.comms.iter().find(|other| other.hash == comm.hash));
        let ops: BTreeSet<&String> =
            comm.ranks.iter().flat_map(|rank| rank.counts.keys()).chain(comm.others.keys()).collect();
        for op in ops {
            let still = before.is_some_and(|before| same_counts(before, comm, op));
            groups.extend(of_comm(comm, op, layout, still));
        }
    }
    groups
}

fn of_comm(comm: &Comm, op: &str, layout: &Layout, still: bool) -> Option<Group> {
    let mut sides = BTreeMap::new();
    for rank in &comm.ranks {
        if let (Some(&requested), Some(global)) = (rank.counts.get(op), layout.rank_of(&rank.process)) {
            sides.insert(global, Side { requested, ..Side::default() });
        }
    }
    let missing = comm.missing.iter().filter_map(|process| layout.rank_of(process)).collect::<BTreeSet<u32>>();
    let mut members: BTreeSet<u32> = sides.keys().chain(&missing).copied().collect();
    // The text counts the many without naming them: they are known where the communicator is that of all ranks.
    if let Some(&(_, count)) = comm.others.get(op) {
        let all =
            comm.size.is_some_and(|size| size as usize == layout.world()) && layout.members.len() == layout.world();
        for rank in layout.members.keys().filter(|rank| all && !members.contains(rank)).copied().collect::<Vec<_>>() {
            sides.insert(rank, Side { requested: count, ..Side::default() });
            members.insert(rank);
        }
        if !all {
            // Somebody is ahead; who, the text does not say.
            sides.entry(u32::MAX).or_insert(Side { requested: count, ..Side::default() });
        }
    }
    let name = format!("communicator {} ({op})", comm.hash);
    (sides.len() + missing.len() > 1).then_some(Group {
        name,
        source: Source::Ras,
        members,
        sides,
        absent: missing,
        p2p: false,
        still,
    })
}

fn same_counts(before: &Comm, after: &Comm, op: &str) -> bool {
    let counts = |comm: &Comm| -> BTreeSet<(Option<u32>, Option<u64>)> {
        comm.ranks.iter().map(|rank| (rank.process.rank, rank.counts.get(op).copied())).collect()
    };
    counts(before) == counts(after) && before.others.get(op) == after.others.get(op)
}

/// Whether two polls lie far enough apart; those that do not tell when are trusted to, by their order.
fn far_enough(first: &Poll, last: &Poll) -> bool {
    if first.number == last.number && first.name == last.name {
        return false;
    }
    let at = |poll: &Poll| poll.at.map(|at: Stamp| at.seconds(1970));
    match (at(first), at(last)) {
        (Some(first), Some(last)) => last - first >= BETWEEN_POLLS_S,
        _ => first.number != last.number,
    }
}

/// Whether the job went on between the polls.
#[must_use]
pub fn movement(polls: &[Poll]) -> Movement {
    let Some(last) = polls.last() else { return Movement::Unknown };
    let Some(first) = polls.iter().find(|poll| far_enough(poll, last)) else { return Movement::Unknown };
    let counts = |poll: &Poll| -> BTreeSet<(String, Option<u32>, String, u64)> {
        let ranks = poll.comms.iter().flat_map(|comm| comm.ranks.iter().map(move |rank| (comm, rank)));
        let told = ranks.flat_map(|(comm, rank)| {
            rank.counts.iter().map(move |(op, n)| (comm.hash.clone(), rank.process.rank, op.clone(), *n))
        });
        let others = poll
            .comms
            .iter()
            .flat_map(|comm| comm.others.iter().map(move |(op, (_, n))| (comm.hash.clone(), None, op.clone(), *n)));
        told.chain(others).collect()
    };
    let (before, after) = (counts(first), counts(last));
    match () {
        () if before.is_empty() && after.is_empty() => Movement::Unknown,
        () if before == after => Movement::Still,
        // The text names outliers only: different outliers mean that something moved.
        () => Movement::Moved,
    }
}

/// Whether all polls show all ranks level and answering.
#[must_use]
pub fn level(polls: &[Poll]) -> bool {
    let gone = |poll: &Poll| !poll.gone.is_empty() || poll.comms.iter().any(|comm| !comm.missing.is_empty());
    let Some(last) = polls.last() else { return false };
    let differs = |comm: &Comm| {
        let counts: BTreeSet<&BTreeMap<String, u64>> = comm.ranks.iter().map(|rank| &rank.counts).collect();
        counts.len() > 1 || !comm.others.is_empty()
    };
    !gone(last) && !last.comms.iter().any(differs)
}

#[cfg(test)]
mod tests {
    use super::super::case::{CommRank, Config, Entry, Member, Process, Whose};
    use super::*;
    use crate::facts::Facts;
    use crate::made;
    use muster_logs::Rules;

    fn poll(number: u32, counts: &[u64]) -> Poll {
        let rank = |(at, count): (usize, &u64)| CommRank {
            process: Process { host: "n1".into(), pid: Some(at as u32), rank: Some(at as u32), ..Process::default() },
            counts: [("AllReduce".to_owned(), *count)].into(),
            failed: false,
        };
        let comm = Comm { hash: "0x1".into(), ranks: counts.iter().enumerate().map(rank).collect(), ..Comm::default() };
        Poll {
            number,
            name: format!("poll{number}"),
            at: Some(Stamp::Local(f64::from(number) * 30.0)),
            comms: vec![comm],
            ..Poll::default()
        }
    }

    #[test]
    fn one_mismatch_is_normal_and_two_equal_ones_are_a_standstill() {
        assert_eq!(movement(&[poll(1, &[5, 4])]), Movement::Unknown);
        assert_eq!(movement(&[poll(1, &[5, 4]), poll(2, &[5, 4])]), Movement::Still);
        assert_eq!(movement(&[poll(1, &[5, 4]), poll(2, &[9, 9])]), Movement::Moved);
        assert!(level(&[poll(1, &[5, 4]), poll(2, &[9, 9])]));
        assert!(!level(&[poll(2, &[9, 8])]));
    }

    #[test]
    fn equal_slots_of_two_ranks_are_different_groups() {
        let dump = |rank: u32, group: &str, ranks: Vec<u32>, enqueued| Dump {
            rank,
            groups: [(group.to_owned(), Config { desc: "tp".into(), ranks })].into(),
            status: [(
                "5".to_owned(),
                Status { enqueued: Some(enqueued), started: None, completed: Some(enqueued - 1) },
            )]
            .into(),
            entries: vec![Entry { slot: "5".into(), group: group.into(), seq: enqueued, ..Entry::default() }],
            left_out: 0,
        };
        let case = Case {
            dumps: vec![
                dump(0, "35", vec![0, 1], 90),
                dump(1, "35", vec![0, 1], 90),
                dump(2, "36", vec![2, 3], 10),
                dump(3, "36", vec![2, 3], 10),
            ],
            ..Case::default()
        };
        let groups = groups(&case, &Layout::of(&case), &[], &End::default());
        assert_eq!(groups.len(), 2);
        assert!(
            groups
                .iter()
                .all(|group| group.sides.values().map(|side| side.requested).collect::<BTreeSet<_>>().len() == 1)
        );
    }

    #[test]
    fn a_text_that_names_the_few_still_says_who_is_behind_where_all_ranks_are_known() {
        let mut case = Case::default();
        for rank in 0..4 {
            case.job.members.push(Member { rank, node: Some("n1".into()), pid: Some(rank), gpu: Some(rank) });
        }
        let mut text = poll(1, &[7]);
        text.comms[0].size = Some(4);
        text.comms[0].others.insert("AllReduce".into(), (3, 9));
        case.polls = vec![text];
        let groups = groups(&case, &Layout::of(&case), &[], &End::default());
        assert_eq!(groups[0].sides[&0].requested, 7);
        assert_eq!(groups[0].sides[&3].requested, 9);
    }

    #[test]
    fn of_a_text_that_names_the_few_of_other_ranks_than_those_of_the_job_somebody_is_known_to_be_ahead() {
        let mut text = poll(1, &[7]);
        text.comms[0].size = Some(4);
        text.comms[0].others.insert("AllReduce".into(), (3, 9));
        let of = |world: u32| {
            let member = |rank: u32| Member { rank, node: Some("n1".into()), pid: Some(rank), gpu: Some(rank) };
            let mut case = Case { polls: vec![text.clone()], ..Case::default() };
            case.job.members = (0..world).map(member).collect();
            let groups = groups(&case, &Layout::of(&case), &[], &End::default());
            let sides = groups[0].sides.iter().map(|(rank, side)| (*rank, side.requested));
            (sides.collect::<Vec<_>>(), groups[0].members.iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(of(4), (vec![(0, 7), (1, 9), (2, 9), (3, 9)], vec![0, 1, 2, 3]));
        assert_eq!(of(5), (vec![(0, 7), (u32::MAX, 9)], vec![0]), "which four of the five, nothing says");
    }

    #[test]
    fn two_polls_prove_a_standstill_where_ten_seconds_lie_between_them_or_nothing_tells_when_they_were() {
        let at = |number: u32, at: Option<f64>| Poll { at: at.map(Stamp::Local), ..poll(number, &[5, 4]) };
        let of = |first: Poll, last: Poll| movement(&[first, last]);
        assert_eq!(of(at(1, Some(0.0)), at(2, Some(9.9))), Movement::Unknown);
        assert_eq!(of(at(1, Some(0.0)), at(2, Some(10.0))), Movement::Still);
        assert_eq!(of(at(1, None), at(2, Some(3.0))), Movement::Still, "by their order");
        assert_eq!(of(at(1, None), Poll { name: "again".into(), ..at(1, None) }), Movement::Unknown, "one look twice");
        assert_eq!(of(at(1, Some(0.0)), at(1, Some(50.0))), Movement::Unknown, "the same answer");
        let other = Poll { name: "again".into(), ..at(1, Some(50.0)) };
        assert_eq!(of(at(1, Some(0.0)), other), Movement::Still, "two files with the same number");
        let without = |number: u32| Poll { comms: Vec::new(), ..at(number, None) };
        assert_eq!(of(without(1), without(2)), Movement::Unknown, "answers without counts");
        assert_eq!(of(at(1, None), without(2)), Movement::Moved, "a text that names nobody any more");
        assert_eq!(of(without(1), at(2, None)), Movement::Moved);
        assert_eq!(
            movement(&[at(1, Some(0.0)), at(2, Some(15.0)), at(3, Some(20.0))]),
            Movement::Still,
            "the first of three"
        );
        assert_eq!(movement(&[]), Movement::Unknown);
    }

    #[test]
    fn counts_that_a_text_tells_of_the_many_move_as_well() {
        let text = |number: u32, most: u64| {
            let mut text = poll(number, &[7]);
            text.comms[0].others.insert("AllReduce".into(), (3, most));
            text
        };
        assert_eq!(movement(&[text(1, 9), text(2, 9)]), Movement::Still);
        assert_eq!(movement(&[text(1, 9), text(2, 10)]), Movement::Moved);
        let still = |polls: Vec<Poll>| {
            let mut case = Case { polls, ..Case::default() };
            case.job.members =
                (0..2).map(|rank| Member { rank, node: Some("n1".into()), pid: Some(rank), gpu: None }).collect();
            groups(&case, &Layout::of(&case), &[], &End::default()).iter().map(|group| group.still).collect::<Vec<_>>()
        };
        assert_eq!(still(vec![text(1, 9), text(2, 9)]), [true]);
        assert_eq!(still(vec![text(1, 9), text(2, 10)]), [false]);
        assert_eq!(still(vec![poll(1, &[5, 4]), poll(2, &[5, 4])]), [true]);
        assert_eq!(still(vec![poll(1, &[4, 4]), poll(2, &[5, 4])]), [false]);
        assert_eq!(still(vec![poll(2, &[5, 4])]), [false], "one poll proves nothing");
        assert_eq!(still(vec![poll(2, &[5])]), Vec::<bool>::new(), "one rank alone");
        let mut other = poll(1, &[5, 4]);
        other.comms[0].hash = "0x2".into();
        assert_eq!(still(vec![other, poll(2, &[5, 4])]), [false], "another communicator");
    }

    #[test]
    fn ranks_are_level_where_all_answer_and_count_the_same() {
        assert!(level(&[poll(1, &[5, 5])]) && !level(&[poll(1, &[5, 4])]) && !level(&[]));
        let with = |change: fn(&mut Poll)| {
            let mut poll = poll(1, &[5, 5]);
            change(&mut poll);
            level(&[poll])
        };
        assert!(!with(|poll| poll.gone.push(Process::default())));
        assert!(!with(|poll| poll.comms[0].missing.push(Process::default())));
        assert!(
            !with(|poll| _ = poll.comms[0].others.insert("AllReduce".into(), (3, 9))),
            "the text names who differs"
        );
    }

    fn status(enqueued: u64, completed: u64) -> Status {
        Status { enqueued: Some(enqueued), started: None, completed: Some(completed) }
    }

    /// A dump of a rank with two slots: of the group of all, with an entry, and of its pair, with one only where `told`.
    fn two_slots(rank: u32, pair: &str, told: bool) -> Dump {
        let config = |desc: &str, ranks: Vec<u32>| Config { desc: desc.into(), ranks };
        let pair_of = rank / 2 * 2;
        let groups = [
            ("0".to_owned(), config("default_pg", Vec::new())),
            (pair.to_owned(), config("", vec![pair_of, pair_of + 1])),
        ];
        let entry = |slot: &str, group: &str| Entry { slot: slot.into(), group: group.into(), ..Entry::default() };
        let mut entries = vec![entry("0", "0")];
        entries.extend(told.then(|| entry("1", pair)));
        let status = [("0".to_owned(), status(9, 8)), ("1".to_owned(), status(5, 5))];
        Dump { rank, groups: groups.into(), status: status.into(), entries, left_out: 0 }
    }

    fn of(dumps: Vec<Dump>) -> Vec<(String, Vec<u32>, Vec<u32>)> {
        let case = Case { dumps, ..Case::default() };
        let told =
            |group: Group| (group.name, group.sides.keys().copied().collect(), group.absent.iter().copied().collect());
        groups(&case, &Layout::of(&case), &[], &End::default()).into_iter().map(told).collect()
    }

    #[test]
    fn a_slot_without_an_operation_is_of_the_group_in_its_place_where_all_other_slots_are() {
        let both = |told: bool, wrong: bool| {
            let mut dumps: Vec<Dump> =
                [(0, "3"), (1, "3"), (2, "12"), (3, "12")].map(|(rank, pair)| two_slots(rank, pair, told)).into();
            if wrong {
                dumps[3].entries[0].slot = "1".into();
            }
            of(dumps)
        };
        let world = ("group 0 (default_pg)".to_owned(), vec![0, 1, 2, 3], vec![]);
        let pairs = [("group 12".to_owned(), vec![2, 3], vec![]), ("group 3".to_owned(), vec![0, 1], vec![])];
        assert_eq!(both(true, false), [vec![world.clone()], pairs.to_vec()].concat());
        assert_eq!(both(false, false), [vec![world.clone()], pairs.to_vec()].concat(), "by the order of their names");
        assert_eq!(both(false, true), [world], "the order is not that, so nothing is known of the other slots");
    }

    #[test]
    fn a_rank_of_a_group_without_a_dump_is_absent_and_a_group_of_which_one_rank_alone_tells_is_left_out() {
        let told = of(vec![two_slots(0, "3", true), two_slots(2, "12", true), two_slots(3, "12", true)]);
        // The pair of rank 0 tells that there is a rank 1.
        let world = ("group 0 (default_pg)".to_owned(), vec![0, 2, 3], vec![1]);
        let pairs = [("group 12".to_owned(), vec![2, 3], vec![]), ("group 3".to_owned(), vec![0], vec![1])];
        assert_eq!(told, [vec![world], pairs.to_vec()].concat());
        let mut alone = two_slots(0, "3", true);
        alone.groups.values_mut().for_each(|config| config.ranks = vec![0]);
        assert_eq!(of(vec![alone]), []);
    }

    #[test]
    fn a_rank_has_waited_since_it_enqueued_the_oldest_operation_that_is_not_done() {
        let entry = |seq: u64, at: f64| Entry { group: "7".into(), seq, created_s: Some(at), ..Entry::default() };
        let entries = vec![
            entry(8, 10.0),
            Entry { retired: true, ..entry(9, 11.0) },
            Entry { p2p: true, ..entry(9, 12.0) },
            Entry { group: "8".into(), ..entry(9, 13.0) },
            entry(10, 15.0),
            entry(9, 14.0),
        ];
        let dump = Dump { entries, ..Dump::default() };
        let of = |status: Status| side(&status, &dump, "7").map(|side| (side.requested, side.completed, side.head_s));
        assert_eq!(of(status(10, 8)), Some((10, Some(8), Some(14.0))));
        assert_eq!(of(status(10, 9)), Some((10, Some(9), Some(15.0))));
        assert_eq!(of(status(10, 12)), Some((10, Some(10), None)), "no more can be done than was enqueued");
        assert_eq!(of(Status { completed: None, ..status(10, 0) }), Some((10, Some(0), Some(10.0))));
        assert_eq!(of(Status { enqueued: None, ..status(10, 0) }), None, "a group that it never used");
    }

    /// A group with each rank that told of it, and what that enqueued and completed.
    type Watched = (String, Vec<(u32, u64, Option<u64>)>);

    /// Groups by what watchdogs wrote: rank, number and name of the group, last enqueued, last completed.
    fn watched(lines: &[(u32, &str, i64, i64)]) -> Vec<Watched> {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let log = |&(rank, group, enqueued, completed): &(u32, &str, i64, i64)| {
            let line = format!(
                "[rank{rank}]:[E106 20:22:44.460121870 ProcessGroupNCCL.cpp:2268] [PG ID {group} Rank {rank}]  failure detected by watchdog at work sequence id: 1 PG status: last enqueued work: {enqueued}, last completed work: {completed}\n"
            );
            made::log(Whose::Rank(rank), &line, &rules)
        };
        let mut case = Case { logs: lines.iter().map(log).collect(), ..Case::default() };
        case.job.members = (0..4).map(member).collect();
        let facts = Facts::of(&case, &rules);
        let sides =
            |group: &Group| group.sides.iter().map(|(rank, side)| (*rank, side.requested, side.completed)).collect();
        let told = facts.walks.iter().flat_map(|(_, groups, _)| groups);
        told.map(|group| (group.name.clone(), sides(group))).collect()
    }

    #[test]
    fn what_watchdogs_tell_is_of_a_group_by_its_name_and_by_its_number_only_where_that_is_of_all_ranks() {
        let name = |name: &str| format!("process group {name}");
        let sides = |a: (u64, u64), b: (u64, u64)| vec![(0, a.0, Some(a.1)), (1, b.0, Some(b.1))];
        let lines = [(0, "3 PG GUID 4(dp)", 9, 8), (1, "2 PG GUID 4(dp)", 8, 8)];
        assert_eq!(watched(&lines), [(name("4(dp)"), sides((9, 8), (8, 8)))]);
        assert_eq!(watched(&[(0, "0", 9, 8), (1, "0", 8, 8)]), [(name("0"), sides((9, 8), (8, 8)))]);
        assert_eq!(watched(&[(0, "3", 9, 8), (1, "3", 8, 8)]), [], "3 is another group in each rank");
        assert_eq!(watched(&[(0, "0", 9, 8)]), [], "one rank alone tells nothing");
    }

    #[test]
    fn a_rank_that_never_completed_or_enqueued_anything_stands_at_nothing() {
        let told = watched(&[(0, "0", 1, -1), (1, "0", 1, -1), (2, "0", -1, -1)]);
        assert_eq!(told[0].1, [(0, 1, Some(0)), (1, 1, Some(0)), (2, 0, Some(0))]);
    }

    #[test]
    fn a_group_is_called_by_what_it_is_for_as_its_settings_say_or_else_its_operations() {
        let names = |settings: Option<&str>, told: [&str; 2]| {
            let dump = |rank: u32| {
                let entry = |(group, desc): (&str, &str)| Entry {
                    slot: group.into(),
                    group: group.into(),
                    desc: desc.into(),
                    ..Entry::default()
                };
                let config = settings.map(|desc| ("7".to_owned(), Config { desc: desc.into(), ranks: vec![0, 1] }));
                Dump {
                    rank,
                    groups: config.into_iter().collect(),
                    status: [("7".to_owned(), status(5, 5))].into(),
                    entries: [("6", told[0]), ("7", told[1])].map(entry).into(),
                    left_out: 0,
                }
            };
            of(vec![dump(0), dump(1)]).into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(Some("dp"), ["", "tp"]), ["group 7 (dp)"]);
        assert_eq!(names(None, ["pp", "tp"]), ["group 7 (tp)"]);
        assert_eq!(names(None, ["pp", ""]), ["group 7"]);
    }

    #[test]
    fn of_a_group_whose_ranks_nobody_tells_no_rank_is_absent_unless_it_is_that_of_all() {
        let dump = |rank: u32, group: &str| Dump {
            rank,
            status: [("7".to_owned(), status(5, 5))].into(),
            entries: vec![Entry { slot: "7".into(), group: group.into(), ..Entry::default() }],
            ..Dump::default()
        };
        // Rank 2 tells that there is a rank 3, which has no dump.
        let absent = |group: &str| {
            let told = of(vec![dump(0, group), dump(1, group), two_slots(2, "12", true)]);
            let found = told.into_iter().find(|(_, sides, _)| sides.starts_with(&[0, 1]));
            found.map(|(_, _, absent)| absent)
        };
        assert_eq!((absent("7"), absent("0")), (Some(vec![]), Some(vec![3])));
    }

    #[test]
    fn one_operation_between_two_ranks_makes_a_group_one_of_those_whose_numbers_tell_nothing() {
        let p2p = |of: [(&str, bool); 2]| {
            let entry =
                |(group, p2p): (&str, bool)| Entry { slot: group.into(), group: group.into(), p2p, ..Entry::default() };
            let dump = |rank: u32, of: [(&str, bool); 2]| Dump {
                rank,
                status: [("7".to_owned(), status(5, 5)), ("8".to_owned(), status(5, 5))].into(),
                entries: of.map(entry).into(),
                ..Dump::default()
            };
            let case = Case { dumps: vec![dump(0, of), dump(1, [("7", false), ("8", false)])], ..Case::default() };
            groups(&case, &Layout::of(&case), &[], &End::default()).iter().map(|group| group.p2p).collect::<Vec<_>>()
        };
        assert_eq!(p2p([("7", true), ("8", false)]), [true, false]);
        assert_eq!(p2p([("7", false), ("8", true)]), [false, true]);
    }

    #[test]
    fn a_communicator_is_told_of_by_one_rank_beside_another_that_gives_no_data() {
        let mut poll = poll(1, &[5]);
        let process = |pid: u32| Process { host: "n1".into(), pid: Some(pid), rank: Some(pid), ..Process::default() };
        poll.comms[0].missing = vec![process(1)];
        let mut case = Case { polls: vec![poll], ..Case::default() };
        case.job.members =
            (0..2).map(|rank| Member { rank, node: Some("n1".into()), pid: Some(rank), gpu: None }).collect();
        let groups = groups(&case, &Layout::of(&case), &[], &End::default());
        assert_eq!((groups.len(), &groups[0].absent, groups[0].sides.len()), (1, &[1].into(), 1));
    }
}
