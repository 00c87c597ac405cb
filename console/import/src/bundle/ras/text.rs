//! The text of RAS: it lists outliers and leaves out counts when all is well.

use std::collections::BTreeMap;

use muster_triage::case::{Comm, CommRank, Poll, Process};
use muster_wire::{clean, limits};

use super::{COMMS, RANK};
use crate::Bad;

/// What the lines below the heading speak of.
#[derive(Default)]
struct At {
    comm: Option<usize>,
    op: Option<String>,
    /// The count that the listed ranks below have.
    count: Option<u64>,
    /// How many ranks that count is said of.
    of: u32,
    missing: bool,
    gone: bool,
}

pub(super) fn read(text: &str) -> Result<Poll, Bad> {
    let mut poll = Poll { text: true, ..Poll::default() };
    let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut at = At::default();
    let mut known = false;
    for line in text.lines().take(4_000_000) {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().take(32).collect();
        match words.as_slice() {
            ["NCCL", "version", version, ..] => {
                (poll.version, known) = (Some(clean(version, limits::NAME_BYTES)), true);
            }
            ["Job", "summary"] | ["Communicators...", ..] | ["Errors"] | ["Warnings"] => {
                (known, at) = (true, At::default())
            }
            ["DEAD" | "INCOMPLETE"] => at = At { gone: true, ..At::default() },
            [first, hash, ..] if first.starts_with('#') && hash.starts_with('(') && poll.comms.len() < COMMS => {
                at = heading(&mut poll, &sizes, first, hash);
            }
            _ => {
                table(&words, &mut sizes);
                tell(&mut poll, &mut at, line, &words);
            }
        }
    }
    if known { Ok(poll) } else { Err(Bad::format(1, "neither the JSON nor the text of RAS")) }
}

/// `#1-0 (14aedb3e926b3e27) MISMATCH`, possibly in several sections.
fn heading(poll: &mut Poll, sizes: &BTreeMap<u32, u32>, first: &str, hash: &str) -> At {
    let hash = format!("0x{}", clean(hash.trim_matches(['(', ')']), limits::NAME_BYTES).trim_start_matches("0x"));
    let group: Option<u32> = first.trim_start_matches('#').split('-').next().and_then(|group| group.parse().ok());
    let place = poll.comms.iter().position(|comm| comm.hash == hash).unwrap_or_else(|| {
        let size = group.and_then(|group| sizes.get(&group).copied());
        poll.comms.push(Comm { hash, size, ..Comm::default() });
        poll.comms.len() - 1
    });
    At { comm: Some(place), ..At::default() }
}

/// A row of the table: group, communicators, nodes, ranks per node, ranks per communicator, ranks in group.
fn table(words: &[&str], sizes: &mut BTreeMap<u32, u32>) {
    let numbers: Vec<&str> =
        words.iter().copied().take_while(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect();
    if let ([group, _, _, _, per_comm, _], true) = (numbers.as_slice(), words.len() > 6) {
        // Ranges are sizes that differ.
        if let (Ok(group), Ok(size)) = (group.parse(), per_comm.parse()) {
            sizes.insert(group, size);
        }
    }
}

fn tell(poll: &mut Poll, at: &mut At, line: &str, words: &[&str]) {
    if let Some(op) =
        line.strip_prefix("Communicator ranks have different ").and_then(|rest| rest.split_whitespace().next())
    {
        (at.op, at.count, at.missing) = (Some(clean(op, limits::NAME_BYTES)), None, false);
    } else if line.starts_with("Missing communicator data") {
        at.missing = true;
    } else if let Some(process) = process_line(words).filter(|_| at.gone) {
        poll.gone.push(process);
    } else if let Some(count) =
        words.iter().rposition(|word| *word == "operation").and_then(|place| words.get(place + 1)?.parse::<u64>().ok())
    {
        counted(poll, at, words, count);
    } else if matches!(words.first(), Some(&"Rank" | &"Ranks")) {
        let Some(comm) = at.comm.and_then(|place| poll.comms.get_mut(place)) else { return };
        if at.missing {
            comm.missing.extend(ranks(words));
        } else if let (Some(op), Some(count)) = (&at.op, at.count) {
            let listed = ranks(words);
            // These are listed one by one, and no longer among those that are only counted.
            if comm.others.get(op).is_some_and(|(_, other)| *other == count) {
                comm.others.remove(op);
            }
            listed.into_iter().for_each(|process| put(comm, process, op, count));
        }
    }
}

/// `14 ranks have launched up to operation 1587`, or one rank with its count on the line.
fn counted(poll: &mut Poll, at: &mut At, words: &[&str], count: u64) {
    let Some(comm) = at.comm.and_then(|place| poll.comms.get_mut(place)) else { return };
    let Some(op) = at.op.clone() else { return };
    if matches!(words.first(), Some(&"Rank" | &"Ranks")) {
        ranks(words).into_iter().for_each(|process| put(comm, process, &op, count));
        return;
    }
    at.count = Some(count);
    at.of = words.first().and_then(|n| n.parse().ok()).unwrap_or(0);
    let most = comm.others.get(&op).is_none_or(|(of, _)| at.of > *of);
    if most {
        comm.others.insert(op, (at.of, count));
    }
}

fn put(comm: &mut Comm, process: Process, op: &str, count: u64) {
    let place =
        comm.ranks.iter().position(|rank| rank.process.rank == process.rank && process.rank.is_some()).unwrap_or_else(
            || {
                comm.ranks.push(CommRank { process, ..CommRank::default() });
                comm.ranks.len() - 1
            },
        );
    comm.ranks[place].counts.insert(op.to_owned(), count);
}

/// `Rank 7 -- GPU 7 managed by process 514127 on node 10.2.8.20`; `Ranks 3-4 … GPUs 2-3`; `GPU 2 (NVML 5)`.
fn ranks(words: &[&str]) -> Vec<Process> {
    let numbers = range(words.get(1).copied().unwrap_or_default());
    let process = from_words(words);
    let gpus = words
        .iter()
        .position(|word| word.starts_with("GPU"))
        .and_then(|place| words.get(place + 1))
        .map(|word| range(word))
        .unwrap_or_default();
    let nvml = words
        .iter()
        .position(|word| *word == "(NVML")
        .and_then(|place| words.get(place + 1))
        .and_then(|word| word.trim_end_matches(')').parse().ok());
    let one = |(place, rank): (usize, u32)| Process {
        rank: Some(rank),
        gpu: nvml.or_else(|| gpus.get(place).copied()),
        ..process.clone()
    };
    numbers.into_iter().filter(|rank| *rank < RANK).enumerate().map(one).collect()
}

/// `Process 368434 on node 10.3.4.22 managing GPU 3`.
fn process_line(words: &[&str]) -> Option<Process> {
    (words.first() == Some(&"Process")).then(|| {
        let gpu = words
            .iter()
            .position(|word| word.starts_with("GPU"))
            .and_then(|place| range(words.get(place + 1)?).first().copied());
        Process { pid: words.get(1).and_then(|pid| pid.parse().ok()), gpu, dead: true, ..from_words(words) }
    })
}

fn from_words(words: &[&str]) -> Process {
    let after =
        |name: &str| words.iter().position(|word| *word == name).and_then(|place| words.get(place + 1)).copied();
    let host =
        after("node").map(|host| clean(host.trim_end_matches([',', '.']), limits::NAME_BYTES)).unwrap_or_default();
    Process { host, pid: after("process").and_then(|pid| pid.trim_end_matches(',').parse().ok()), ..Process::default() }
}

/// `3`, `3-5`, `1,4-5`.
fn range(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim_end_matches([':', '.']).split(',').take(1024) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            numbers.extend((first..=last).take(4096));
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "NCCL version 2.27.3 compiled with CUDA 12.8\n\nJob summary\n===\n\nGroup     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n    #  in group  per comm  per node  per comm  in group\n    0         1         2         8        16        16   RUNNING  MISMATCH\n\nErrors\n======\n\nDEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 368434 on node 10.3.4.22 managing GPU 3\n\n#0-0 (a1a4271170eca902) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 11 -- GPU 3 managed by process 368434 on node 10.3.4.22\n\nWarnings\n========\n\n#0-0 (8ba02e93c1a569b9) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  13 ranks have launched up to operation 1587\n  3 ranks have launched up to operation 1586\n  Rank 7 -- GPU 7 managed by process 514127 on node 10.2.8.20\n  Ranks 13-14 -- GPUs 5-6 managed by process 418585 on node 10.1.8.21\n  Communicator ranks have different AllGather operation counts\n  15 ranks have launched up to operation 9\n  Rank 2 has launched up to operation 8 -- GPU 2 (NVML 5) managed by process 4 on node n3\n";

    #[test]
    fn outliers_missing_and_dead_are_read_with_ranges() {
        let poll = read(TEXT).unwrap();
        assert_eq!(poll.gone.iter().map(|p| (p.pid, p.gpu)).collect::<Vec<_>>(), [(Some(368_434), Some(3))]);
        assert_eq!(poll.comms[0].missing[0].rank, Some(11));
        let comm = &poll.comms[1];
        assert_eq!(
            (comm.hash.as_str(), comm.size, comm.others["AllReduce"]),
            ("0x8ba02e93c1a569b9", Some(16), (13, 1587))
        );
        let told: Vec<(Option<u32>, Option<u32>, Option<u64>)> =
            comm.ranks.iter().map(|r| (r.process.rank, r.process.gpu, r.counts.get("AllReduce").copied())).collect();
        assert_eq!(
            told,
            [
                (Some(7), Some(7), Some(1586)),
                (Some(13), Some(5), Some(1586)),
                (Some(14), Some(6), Some(1586)),
                (Some(2), Some(5), None)
            ]
        );
        assert_eq!(comm.ranks[3].counts["AllGather"], 8);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(NCCL version 2|#0-0 \\(ab\\) X|  [0-9]{1,10} ranks have launched up to operation [0-9]{1,21}|Ranks [0-9,-]{0,12} -- GPUs [0-9-]{0,9}|\\PC{0,30}|\n){0,12}") {
            let _ = read(&text);
        }
    }
}
