//! Do all ranks of a communicator ask for the same operation?
//!
//! Operation, sizes and types of equal numbers are compared within one group instance. Different answers are a mistake of the program:
//! the few that differ from the many are where to look. Operations whose sizes may differ by rank are compared by their name only.

use std::collections::BTreeMap;

use super::case::Case;

/// Operations whose sizes may differ from rank to rank.
const UNEVEN: [&str; 3] = ["gather", "scatter", "send"];
/// Operations between two ranks, each of which does another.
const BETWEEN_TWO: [&str; 5] = ["send", "recv", "recvanysource", "coalesced", "batched_p2p"];

/// A difference between what ranks ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The group.
    pub group: String,
    /// Number of the operation in it.
    pub seq: u64,
    /// The few that differ; empty where no side is the smaller.
    pub odd: Vec<u32>,
    /// What the few ask for.
    pub asked: String,
    /// What the others ask for.
    pub others: String,
}

/// The first difference of each group, by the rank's own word: smallest number first.
#[must_use]
pub fn mismatches(case: &Case) -> Vec<Mismatch> {
    let mut asked: BTreeMap<(String, String, u64), BTreeMap<String, Vec<u32>>> = BTreeMap::new();
    for dump in &case.dumps {
        for entry in dump.entries.iter().filter(|entry| !entry.p2p) {
            let ranks = dump.groups.get(&entry.group).map(|config| format!("{:?}", config.ranks)).unwrap_or_default();
            let op = entry.op.trim_start_matches("nccl:").trim_start_matches("gloo:").to_owned();
            let what = if is_uneven(&op) {
                op
            } else {
                format!("{op} of {} {}", listed(&entry.dtypes), listed(&entry.inputs))
            };
            let what = asked.entry((entry.group.clone(), ranks, entry.seq)).or_default().entry(what).or_default();
            what.push(dump.rank);
        }
    }
    let mut found: BTreeMap<(String, String), Mismatch> = BTreeMap::new();
    for ((group, ranks, seq), by_what) in asked.into_iter().filter(|(_, by_what)| by_what.len() > 1) {
        found.entry((group.clone(), ranks)).or_insert_with(|| mismatch(group, seq, by_what));
    }
    found.into_values().collect()
}

/// The elements of a list that stands there as JSON: `[8],[4]` of `[[8],[4]]`, `Float` of `["Float"]`.
fn listed(json: &str) -> String {
    json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(json).replace('"', "")
}

/// Whether each rank may give and get another size: `all_to_all`, `ALLTOALL_BASE`, `SCATTER`.
fn is_uneven(op: &str) -> bool {
    let op = op.trim_start_matches('_').to_ascii_lowercase();
    op.contains("to_all") || op.contains("toall") || UNEVEN.contains(&op.as_str())
}

/// What a watchdog says that its rank asked for, as it is compared with what others asked for; nothing of an operation of two.
#[must_use]
pub fn asked(op: &str, count: &str) -> Option<String> {
    let between_two = BETWEEN_TWO.iter().any(|other| op.eq_ignore_ascii_case(other));
    let what = || if is_uneven(op) { op.to_owned() } else { format!("{op} of {count} elements") };
    (!between_two).then(what)
}

fn mismatch(group: String, seq: u64, by_what: BTreeMap<String, Vec<u32>>) -> Mismatch {
    let mut by_size: Vec<(String, Vec<u32>)> = by_what.into_iter().collect();
    by_size.sort_by_key(|(_, ranks)| usize::MAX - ranks.len());
    let (others, most) = (by_size[0].0.clone(), by_size[0].1.len());
    let odd: Vec<u32> = by_size[1..].iter().flat_map(|(_, ranks)| ranks.iter().copied()).collect();
    let asked = by_size[1].0.clone();
    let fewer = odd.len() < most;
    Mismatch { group, seq, odd: if fewer { odd } else { Vec::new() }, asked, others }
}

/// The same from the watchdogs' lines, of ranks that timed out in the same group and number.
#[must_use]
pub fn of_lines(lines: &[(u32, String, u64, String)]) -> Vec<Mismatch> {
    let mut asked: BTreeMap<(String, u64), BTreeMap<String, Vec<u32>>> = BTreeMap::new();
    for (rank, group, seq, what) in lines {
        let ranks = asked.entry((group.clone(), *seq)).or_default().entry(what.clone()).or_default();
        if !ranks.contains(rank) {
            ranks.push(*rank);
        }
    }
    asked
        .into_iter()
        .filter(|(_, by_what)| by_what.len() > 1)
        .map(|((group, seq), by_what)| mismatch(group, seq, by_what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::{Config, Dump, Entry};
    use super::*;

    fn dump(rank: u32, op: &str, inputs: &str) -> Dump {
        let entry = Entry { group: "7".into(), seq: 3, op: op.into(), inputs: inputs.into(), ..Entry::default() };
        Dump { rank, entries: vec![entry], ..Dump::default() }
    }

    #[test]
    fn the_one_that_asks_for_something_else_is_named() {
        let case = Case {
            dumps: vec![
                dump(0, "nccl:all_reduce", "[[4]]"),
                dump(1, "nccl:all_reduce", "[[4]]"),
                dump(2, "nccl:all_reduce", "[[8]]"),
            ],
            ..Case::default()
        };
        let found = mismatches(&case);
        assert_eq!((found[0].odd.as_slice(), found[0].seq), ([2].as_slice(), 3));
        assert_eq!(
            (listed("[[8],[4]]"), listed(r#"["Float","Half"]"#)),
            ("[8],[4]".to_owned(), "Float,Half".to_owned())
        );
    }

    #[test]
    fn watchdogs_of_a_sender_and_a_receiver_or_of_uneven_sizes_show_no_mistake() {
        assert_eq!((asked("SEND", "4"), asked("RECV", "4"), asked("COALESCED", "0")), (None, None, None));
        assert_eq!(asked("ALLTOALL_BASE", "4"), asked("ALLTOALL_BASE", "8"));
        assert_eq!(asked("SCATTER", "4"), asked("SCATTER", "64"));
        for op in ["ALLREDUCE", "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE", "ALLGATHER", "_ALLGATHER_BASE"] {
            assert_ne!(asked(op, "4"), asked(op, "8"), "{op}");
        }
    }

    #[test]
    fn sizes_that_may_differ_are_no_mistake_and_a_tie_names_nobody() {
        let uneven = Case {
            dumps: vec![dump(0, "nccl:all_to_all", "[[4]]"), dump(1, "nccl:all_to_all", "[[8]]")],
            ..Case::default()
        };
        assert_eq!(mismatches(&uneven), []);
        let tie = Case {
            dumps: vec![dump(0, "nccl:all_reduce", "[[4]]"), dump(1, "nccl:broadcast", "[[4]]")],
            ..Case::default()
        };
        assert!(mismatches(&tie)[0].odd.is_empty());
    }

    #[test]
    fn the_first_number_at_which_ranks_of_a_group_differ_is_told_once_for_each_instance_of_it() {
        let entry = |seq: u64, op: &str| Entry {
            group: "7".into(),
            seq,
            op: op.into(),
            inputs: "[[4]]".into(),
            ..Entry::default()
        };
        let dump = |rank: u32, ops: &[(u64, &str)], ranks: &[u32]| {
            let config = Config { desc: String::new(), ranks: ranks.to_vec() };
            let entries = ops.iter().map(|(seq, op)| entry(*seq, op)).collect();
            Dump { rank, entries, groups: [("7".to_owned(), config)].into(), ..Dump::default() }
        };
        let same = [(3, "nccl:all_reduce"), (4, "nccl:all_reduce"), (5, "nccl:all_reduce")];
        let other = [(3, "nccl:all_reduce"), (4, "gloo:broadcast"), (5, "nccl:broadcast")];
        let case = Case {
            dumps: vec![
                dump(0, &same, &[0, 1, 2]),
                dump(1, &same, &[0, 1, 2]),
                dump(2, &other, &[0, 1, 2]),
                dump(3, &same, &[3, 4]),
                dump(4, &same, &[3, 4]),
                dump(5, &other, &[5]),
            ],
            ..Case::default()
        };
        let found = mismatches(&case);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.group.as_str(), one.seq, &one.odd), ("7", 4, &vec![2]));
        assert_eq!((one.asked.as_str(), one.others.as_str()), ("broadcast of  [4]", "all_reduce of  [4]"));
    }

    #[test]
    fn what_a_watchdog_says_twice_counts_once_and_the_fewer_are_the_odd_ones() {
        let line = |rank: u32, seq: u64, what: &str| (rank, "g".to_owned(), seq, what.to_owned());
        let odd = |lines: &[(u32, String, u64, String)]| {
            of_lines(lines).into_iter().map(|one| (one.seq, one.odd)).collect::<Vec<_>>()
        };
        assert_eq!(odd(&[line(0, 5, "a"), line(1, 5, "a"), line(2, 5, "b")]), [(5, vec![2])]);
        assert_eq!(odd(&[line(0, 5, "a"), line(0, 5, "a"), line(2, 5, "b")]), [(5, vec![])], "one against one");
        assert_eq!(odd(&[line(0, 5, "a"), line(1, 5, "a"), line(2, 5, "b"), line(3, 5, "c")]), [(5, vec![])]);
        assert_eq!(odd(&[line(0, 5, "a"), line(1, 6, "b")]), [], "at other numbers");
    }

    #[test]
    fn operations_of_two_ranks_are_compared_with_nobody() {
        let mut case =
            Case { dumps: vec![dump(0, "nccl:send", "[[4]]"), dump(1, "nccl:recv", "[[4]]")], ..Case::default() };
        assert_eq!(mismatches(&case).len(), 1);
        case.dumps.iter_mut().for_each(|dump| dump.entries[0].p2p = true);
        assert_eq!(mismatches(&case), []);
    }
}
