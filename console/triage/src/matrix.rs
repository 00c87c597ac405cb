//! How far is each rank in each communicator, against those that are furthest?
//!
//! From the same groups as the walk ([`super::counters`]). Ranks that stand alike in every communicator that tells anything are one
//! line when folded, so that a thousand ranks are a few; failures come first.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Group, Movement, Side};
use super::facts::Facts;
use super::report::Source;
use super::waits::Behind;

/// Communicators that are kept; those that tell something first, then the largest.
pub const COLUMNS: usize = 64;

/// Ranks by communicators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Communicators, those that tell something first.
    pub columns: Vec<Column>,
    /// Communicators in which all ranks are level and that are not among them.
    pub level: usize,
    /// Communicators that tell something and are not among them, because there are too many.
    pub left_out: usize,
    /// A line a rank, failures first.
    pub ranks: Vec<Line>,
    /// The same with equal ranks as one line.
    pub folded: Vec<Line>,
}

/// One communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in sentences.
    pub name: String,
    /// Who tells.
    pub source: Source,
    /// Ranks of which anything is known, or that should have told.
    pub size: usize,
    /// Operations that the furthest rank enqueued.
    pub most: u64,
    /// Whether it stands still, as far as its source can tell.
    pub still: bool,
    /// Operations between two ranks are among its own: numbers differ without anything being wrong.
    pub p2p: bool,
    /// Whether some rank is not level in it.
    pub tells: bool,
}

/// One rank, or ranks that stand alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who, ascending.
    pub ranks: Vec<u32>,
    /// Their nodes, by name.
    pub nodes: Vec<String>,
    /// The GPU of a single rank, by index on its node.
    pub gpu: Option<u32>,
    /// How it stands at the end of the walk: others wait for it and it waits for nobody.
    pub root: Option<Behind>,
    /// By place of the communicator, ascending; none where the rank is not in it.
    pub cells: Vec<(usize, Cell)>,
}

impl Line {
    /// How it stands in the communicator in place `column`.
    #[must_use]
    pub fn cell(&self, column: usize) -> Option<Cell> {
        self.cells.binary_search_by_key(&column, |(at, _)| *at).ok().map(|at| self.cells[at].1)
    }
}

/// How a rank stands in a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// It should have told and did not.
    Absent,
    /// It enqueued so many operations fewer than the furthest.
    Behind(u64),
    /// It enqueued as many, and its GPU completed or began so many fewer.
    Gpu(u64),
    /// It enqueued as many, and so many of them are not complete: it waits.
    Waits(u64),
    /// As far as anybody.
    Level,
}

/// The matrix of all sources that count.
#[must_use]
pub(super) fn matrix(facts: &Facts<'_>) -> Matrix {
    let mut roots: BTreeMap<u32, Behind> = BTreeMap::new();
    let mut order: Vec<u32> = Vec::new();
    let mut groups: Vec<&Group> = Vec::new();
    for (_, of_source, walk) in &facts.walks {
        groups.extend(of_source);
        for root in &walk.roots {
            roots.entry(root.rank).or_insert(root.behind);
            order.push(root.rank);
        }
    }
    let made: Vec<BTreeMap<u32, Cell>> = groups.iter().map(|group| cells(group, facts.movement)).collect();
    let tells = |at: &usize| made[*at].values().any(|cell| *cell != Cell::Level);
    let mut places: Vec<usize> = (0..groups.len()).collect();
    places.sort_by_key(|at| {
        let (group, cells) = (groups[*at], &made[*at]);
        let with_root = cells.iter().any(|(rank, cell)| *cell != Cell::Level && roots.contains_key(rank));
        (!tells(at) || group.p2p, !with_root, !tells(at), std::cmp::Reverse(cells.len()), *at)
    });
    let (shown, rest) = places.split_at(places.len().min(COLUMNS));
    let left_out = rest.iter().filter(|at| tells(at)).count();
    let columns: Vec<Column> = shown.iter().map(|at| column(groups[*at], &made[*at])).collect();
    let mut by_rank: BTreeMap<u32, Vec<(usize, Cell)>> = BTreeMap::new();
    for (place, at) in shown.iter().enumerate() {
        for (rank, cell) in &made[*at] {
            by_rank.entry(*rank).or_default().push((place, *cell));
        }
    }
    let line = |(rank, cells): (u32, Vec<(usize, Cell)>)| Line {
        nodes: facts.layout.node_of(rank).map(str::to_owned).into_iter().collect(),
        gpu: facts.layout.gpu_of(rank),
        root: roots.get(&rank).copied(),
        ranks: vec![rank],
        cells,
    };
    let mut ranks: Vec<Line> = by_rank.into_iter().map(line).collect();
    let place = |line: &Line| order.iter().position(|rank| *rank == line.ranks[0]).unwrap_or(usize::MAX);
    ranks.sort_by_cached_key(|line| (place(line), worst(line, &columns), line.ranks[0]));
    let folded = folded(&ranks, &columns);
    Matrix { columns, level: rest.len() - left_out, left_out, ranks, folded }
}

/// The gravest cell of a line; numbers of operations between two ranks say nothing.
fn worst(line: &Line, columns: &[Column]) -> (u8, std::cmp::Reverse<u64>) {
    let of = |(at, cell): &(usize, Cell)| match cell {
        _ if columns[*at].p2p => (4, std::cmp::Reverse(0)),
        Cell::Absent => (0, std::cmp::Reverse(0)),
        Cell::Behind(by) => (1, std::cmp::Reverse(*by)),
        Cell::Gpu(by) => (2, std::cmp::Reverse(*by)),
        Cell::Waits(_) => (3, std::cmp::Reverse(0)),
        Cell::Level => (4, std::cmp::Reverse(0)),
    };
    line.cells.iter().map(of).min().unwrap_or((5, std::cmp::Reverse(0)))
}

fn column(group: &Group, cells: &BTreeMap<u32, Cell>) -> Column {
    Column {
        name: group.name.clone(),
        source: group.source,
        size: cells.len(),
        most: most(group),
        still: group.still,
        p2p: group.p2p,
        tells: cells.values().any(|cell| *cell != Cell::Level),
    }
}

fn most(group: &Group) -> u64 {
    group.sides.values().map(|side| side.requested).max().unwrap_or(0)
}

/// Who is where in one communicator.
fn cells(group: &Group, movement: Movement) -> BTreeMap<u32, Cell> {
    let most = most(group);
    let done = group.sides.values().filter_map(|side| side.completed).max();
    let begun = group.sides.values().filter_map(|side| side.started).max();
    // Counts that tell no end show who waits only where somebody is behind and nothing moves.
    let behind = group.sides.values().any(|side| side.requested < most) || !group.absent.is_empty();
    let waits = behind && group.still && movement != Movement::Moved;
    let cell = |side: &Side| {
        let less =
            |mine: Option<u64>, most: Option<u64>| most.zip(mine).map_or(0, |(most, mine)| most - mine.min(most));
        let gpu = less(side.completed, done).max(less(side.started, begun));
        match side.completed {
            _ if side.requested < most => Cell::Behind(most - side.requested),
            _ if gpu > 0 => Cell::Gpu(gpu),
            Some(done) if done < side.requested => Cell::Waits(side.requested - done),
            None if waits => Cell::Waits(1),
            _ => Cell::Level,
        }
    };
    // The text of RAS counts ranks that it does not name.
    let named = group.sides.iter().filter(|(rank, _)| **rank != u32::MAX);
    let mut cells: BTreeMap<u32, Cell> = named.map(|(rank, side)| (*rank, cell(side))).collect();
    cells.extend(group.absent.iter().map(|rank| (*rank, Cell::Absent)));
    cells
}

/// How a rank stands wherever anything is told.
type Standing = (Option<Behind>, Vec<(usize, Cell)>);

/// Ranks that stand alike where anything is told, as one line; in the order of their first.
fn folded(ranks: &[Line], columns: &[Column]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut known: BTreeMap<Standing, usize> = BTreeMap::new();
    let mut nodes: Vec<BTreeSet<&String>> = Vec::new();
    let mut level: Vec<BTreeSet<usize>> = Vec::new();
    for line in ranks {
        let told: Vec<(usize, Cell)> = line.cells.iter().filter(|(at, _)| columns[*at].tells).copied().collect();
        let place = *known.entry((line.root, told.clone())).or_insert_with(|| {
            lines.push(Line { ranks: Vec::new(), nodes: Vec::new(), gpu: line.gpu, root: line.root, cells: told });
            nodes.push(BTreeSet::new());
            level.push(BTreeSet::new());
            lines.len() - 1
        });
        lines[place].ranks.extend(&line.ranks);
        nodes[place].extend(&line.nodes);
        level[place].extend(line.cells.iter().map(|(at, _)| *at).filter(|at| !columns[*at].tells));
    }
    for ((line, nodes), level) in lines.iter_mut().zip(nodes).zip(level) {
        line.ranks.sort_unstable();
        line.nodes = nodes.into_iter().cloned().collect();
        line.gpu = line.gpu.filter(|_| line.ranks.len() == 1);
        line.cells.extend(level.into_iter().map(|at| (at, Cell::Level)));
        line.cells.sort_unstable_by_key(|(at, _)| *at);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::case::{Case, Comm, CommRank, Config, Dump, Entry, Member, Poll, Process, Status};
    use super::*;
    use muster_logs::Rules;

    const WORLD: u32 = 1_024;

    /// A job of 1,024 ranks on 128 nodes, with pairs beside the group of all; rank 700 did not enqueue the last two operations.
    fn hang() -> Case {
        let mut case = Case::default();
        case.job.world_size = Some(WORLD);
        for rank in 0..WORLD {
            let node = Some(format!("n{:03}", rank / 8));
            case.job.members.push(Member { rank, node, pid: Some(rank), gpu: Some(rank % 8) });
            let pair = format!("{}", 1 + rank / 2);
            let config = |desc: &str, ranks: Vec<u32>| Config { desc: desc.into(), ranks };
            let groups = [
                ("0".to_owned(), config("default_pg", (0..WORLD).collect())),
                (pair.clone(), config("tp", vec![rank / 2 * 2, rank / 2 * 2 + 1])),
            ];
            let behind = if rank == 700 { 2 } else { 0 };
            let status =
                |enqueued, completed| Status { enqueued: Some(enqueued), started: None, completed: Some(completed) };
            let entry = |slot: &str, group: &str| Entry { slot: slot.into(), group: group.into(), ..Entry::default() };
            case.dumps.push(Dump {
                rank,
                groups: groups.into_iter().collect(),
                status: [("0".to_owned(), status(90 - behind, 88)), ("1".to_owned(), status(40, 40))]
                    .into_iter()
                    .collect(),
                entries: vec![entry("0", "0"), entry("1", &pair)],
                left_out: 0,
            });
        }
        case
    }

    #[test]
    fn a_thousand_ranks_fold_into_the_one_that_is_behind_and_those_that_wait_for_it() {
        let (case, rules) = (hang(), Rules::built_in().unwrap());
        let matrix = matrix(&Facts::of(&case, &rules));
        assert_eq!((matrix.ranks.len(), matrix.folded.len()), (1_024, 2), "{:?}", matrix.folded);
        let [behind, others] = matrix.folded.as_slice() else { panic!("two lines") };
        assert_eq!((behind.ranks.as_slice(), behind.root), ([700].as_slice(), Some(Behind::NotLaunched)));
        assert_eq!((behind.nodes[0].as_str(), behind.gpu), ("n087", Some(4)));
        assert_eq!((behind.cell(0), others.cell(0)), (Some(Cell::Behind(2)), Some(Cell::Waits(2))));
        assert_eq!((others.ranks.len(), others.nodes.len()), (1_023, 128));
        assert_eq!((matrix.columns[0].size, matrix.columns[0].most, matrix.columns[0].tells), (1_024, 90, true));
        assert_eq!((matrix.columns.len(), matrix.level), (COLUMNS, 513 - COLUMNS), "the pairs are level");
    }

    #[test]
    fn counts_of_ras_show_who_waits_only_when_nothing_moves() {
        let rank = |rank: u32, count: u64| CommRank {
            process: Process { host: "n0".into(), pid: Some(rank), gpu: Some(rank), rank: Some(rank), dead: false },
            counts: [("AllReduce".to_owned(), count)].into_iter().collect(),
            failed: false,
        };
        let poll = |number, counts: [u64; 3]| Poll {
            name: format!("poll{number}.json"),
            number,
            comms: vec![Comm {
                hash: "0x1".into(),
                size: Some(3),
                ranks: counts.iter().zip(0..).map(|(count, at)| rank(at, *count)).collect(),
                ..Comm::default()
            }],
            ..Poll::default()
        };
        let stood = Case { polls: vec![poll(1, [9, 9, 8]), poll(2, [9, 9, 8])], ..Case::default() };
        let moved = Case { polls: vec![poll(1, [8, 8, 7]), poll(2, [9, 9, 8])], ..Case::default() };
        let rules = Rules::built_in().unwrap();
        let cells = |case: &Case| {
            let matrix = matrix(&Facts::of(case, &rules));
            matrix.ranks.iter().map(|line| (line.ranks[0], line.cell(0).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(cells(&stood), [(2, Cell::Behind(1)), (0, Cell::Waits(1)), (1, Cell::Waits(1))]);
        assert_eq!(cells(&moved), [(2, Cell::Behind(1)), (0, Cell::Level), (1, Cell::Level)]);
    }

    /// Ranks by what they enqueued, began and completed.
    fn group(sides: &[(u32, u64, Option<u64>, Option<u64>)], absent: &[u32]) -> Group {
        let side = |&(rank, requested, started, completed): &(u32, u64, Option<u64>, Option<u64>)| {
            (rank, Side { requested, started, completed, head_s: None })
        };
        Group {
            name: "some".to_owned(),
            source: Source::FlightRecorder,
            members: BTreeSet::new(),
            sides: sides.iter().map(side).collect(),
            absent: absent.iter().copied().collect(),
            p2p: false,
            still: true,
        }
    }

    #[test]
    fn a_rank_stands_by_what_it_enqueued_and_where_that_is_as_much_as_anybody_by_what_its_gpu_did() {
        let of = |sides: &[(u32, u64, Option<u64>, Option<u64>)], absent: &[u32]| {
            cells(&group(sides, absent), Movement::Still).into_values().collect::<Vec<_>>()
        };
        let done = |rank: u32, requested: u64, done: u64| (rank, requested, None, Some(done));
        assert_eq!(of(&[done(0, 9, 9), done(1, 9, 9)], &[]), [Cell::Level; 2]);
        assert_eq!(of(&[done(0, 9, 8), done(1, 7, 7)], &[]), [Cell::Waits(1), Cell::Behind(2)]);
        assert_eq!(of(&[done(0, 9, 9), done(1, 9, 6)], &[]), [Cell::Level, Cell::Gpu(3)]);
        let begun = |rank: u32, started: u64, done: u64| (rank, 9, Some(started), Some(done));
        assert_eq!(of(&[begun(0, 9, 8), begun(1, 7, 8)], &[]), [Cell::Waits(1), Cell::Gpu(2)], "by the larger of both");
        assert_eq!(of(&[begun(0, 9, 8), begun(1, 8, 5)], &[]), [Cell::Waits(1), Cell::Gpu(3)]);
        assert_eq!(of(&[done(0, 9, 8)], &[4]), [Cell::Waits(1), Cell::Absent]);
        let count = |rank: u32, requested: u64| (rank, requested, None, None);
        assert_eq!(of(&[count(0, 9)], &[4]), [Cell::Waits(1), Cell::Absent]);
        assert_eq!(of(&[count(0, 9), count(1, 9)], &[]), [Cell::Level; 2]);
        assert_eq!(of(&[count(0, 9), count(u32::MAX, 12)], &[]), [Cell::Behind(3)], "of those that nobody names");
        let mut moving = group(&[count(0, 9), count(1, 8)], &[]);
        moving.still = false;
        assert_eq!(cells(&moving, Movement::Unknown)[&0], Cell::Level);
    }

    #[test]
    fn the_gravest_of_a_line_decides_its_place_and_operations_of_two_ranks_do_not() {
        let column = |p2p: bool| Column { p2p, ..column(&group(&[], &[]), &BTreeMap::new()) };
        let columns = [column(false), column(false), column(true)];
        let of = |cells: &[(usize, Cell)]| {
            let line = Line { ranks: vec![0], nodes: Vec::new(), gpu: None, root: None, cells: cells.to_vec() };
            worst(&line, &columns)
        };
        let order = [
            of(&[(0, Cell::Level), (1, Cell::Absent)]),
            of(&[(0, Cell::Behind(3)), (1, Cell::Waits(9))]),
            of(&[(0, Cell::Behind(2))]),
            of(&[(0, Cell::Gpu(7))]),
            of(&[(0, Cell::Gpu(6))]),
            of(&[(0, Cell::Waits(1)), (1, Cell::Level)]),
            of(&[(0, Cell::Level)]),
            of(&[]),
        ];
        assert!(order.is_sorted() && order.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
        assert_eq!(
            of(&[(0, Cell::Waits(1))]),
            of(&[(0, Cell::Waits(9))]),
            "how many it waits for is the others' doing"
        );
        assert_eq!(of(&[(2, Cell::Absent)]), of(&[(0, Cell::Level)]));
    }

    #[test]
    fn ranks_fold_where_they_stand_alike_in_what_tells_anything_and_are_said_to_be_level_in_the_rest() {
        let (mut tells, mut level) =
            (column(&group(&[], &[]), &BTreeMap::new()), column(&group(&[], &[]), &BTreeMap::new()));
        (tells.tells, level.tells) = (true, false);
        let line = |rank: u32, node: &str, cells: &[(usize, Cell)]| Line {
            ranks: vec![rank],
            nodes: vec![node.to_owned()],
            gpu: Some(rank),
            root: None,
            cells: cells.to_vec(),
        };
        let lines = [
            line(3, "b", &[(0, Cell::Behind(1))]),
            line(2, "b", &[(0, Cell::Waits(1)), (2, Cell::Level)]),
            line(1, "a", &[(0, Cell::Waits(1)), (1, Cell::Level)]),
        ];
        let folded = folded(&lines, &[tells, level.clone(), level]);
        let [behind, waits] = &folded[..] else { panic!("{folded:?}") };
        assert_eq!((&behind.ranks, &behind.nodes, behind.gpu), (&vec![3], &vec!["b".to_owned()], Some(3)));
        assert_eq!((&waits.ranks, &waits.nodes, waits.gpu), (&vec![1, 2], &vec!["a".to_owned(), "b".to_owned()], None));
        assert_eq!(waits.cells, [(0, Cell::Waits(1)), (1, Cell::Level), (2, Cell::Level)]);
        assert_eq!((waits.cell(2), waits.cell(3), behind.cell(1)), (Some(Cell::Level), None, None));
    }

    #[test]
    fn a_communicator_in_which_the_root_is_behind_stands_before_larger_ones_that_only_tell_who_waits() {
        let rules = Rules::built_in().unwrap();
        let status = |enqueued: u64, completed: u64| Status {
            enqueued: Some(enqueued),
            started: None,
            completed: Some(completed),
        };
        // All but rank 1 are in group 1, where they wait; rank 1 is behind rank 0 in group 2, all are level in group 3, and numbers of group 4 differ as
        // they do between two ranks.
        let dump = |rank: u32| {
            let of = [
                ("1", vec![0, 2, 3, 4], status(5, 4)),
                ("2", vec![0, 1], status(if rank == 1 { 8 } else { 9 }, 8)),
                ("3", vec![0, 1, 2, 3, 4], status(3, 3)),
                ("4", vec![0, 1, 2, 3, 4], if rank == 2 { status(6, 6) } else { status(7, 7) }),
            ];
            let own = || of.iter().filter(|(_, ranks, _)| ranks.contains(&rank));
            Dump {
                rank,
                groups: own()
                    .map(|(name, ranks, _)| ((*name).to_owned(), Config { desc: String::new(), ranks: ranks.clone() }))
                    .collect(),
                status: own().map(|(name, _, status)| ((*name).to_owned(), *status)).collect(),
                entries: own()
                    .map(|(name, ..)| Entry {
                        slot: (*name).into(),
                        group: (*name).into(),
                        p2p: *name == "4",
                        ..Entry::default()
                    })
                    .collect(),
                left_out: 0,
            }
        };
        let case = Case { dumps: (0..5).map(dump).collect(), ..Case::default() };
        let matrix = matrix(&Facts::of(&case, &rules));
        let columns: Vec<(&str, bool)> =
            matrix.columns.iter().map(|column| (column.name.as_str(), column.tells)).collect();
        assert_eq!(columns, [("group 2", true), ("group 1", true), ("group 4", true), ("group 3", false)]);
        assert_eq!((matrix.ranks[0].ranks[0], matrix.ranks[0].root), (1, Some(Behind::NotLaunched)));
        assert_eq!((matrix.level, matrix.left_out), (0, 0));
    }

    #[test]
    fn communicators_that_tell_something_and_do_not_fit_are_counted_apart_from_those_that_are_level() {
        let (mut case, rules) = (hang(), Rules::built_in().unwrap());
        let waits = Status { enqueued: Some(40), started: None, completed: Some(39) };
        case.dumps.iter_mut().for_each(|dump| _ = dump.status.insert("1".to_owned(), waits));
        let matrix = matrix(&Facts::of(&case, &rules));
        assert_eq!((matrix.columns.len(), matrix.left_out, matrix.level), (COLUMNS, 513 - COLUMNS, 0));
    }
}
