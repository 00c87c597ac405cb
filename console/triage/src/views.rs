//! One answer out of those that several nodes gave to the same poll.
//!
//! A process that is asked sees only the ranks that its own mesh reaches. What a rank counts is the most that any view tells of it; it
//! is missing where more than half of the views that know its communicator miss it, so that one node that is cut off, and misses all
//! others, accuses nobody.

use std::collections::BTreeMap;

use super::case::{Comm, CommRank, Poll, Process};

/// Polls as they were, with those of one number and several nodes made one.
#[must_use]
pub fn merge(polls: Vec<Poll>) -> Vec<Poll> {
    let (asked, mut merged): (Vec<Poll>, Vec<Poll>) = polls.into_iter().partition(|poll| poll.asked.is_some());
    // Its times are compared with each other; clocks of several nodes are not.
    let mut count: BTreeMap<&Option<String>, usize> = BTreeMap::new();
    asked.iter().for_each(|poll| *count.entry(&poll.asked).or_default() += 1);
    let most = count.values().copied().max().unwrap_or(0);
    let first = count.iter().find(|(_, polls)| **polls == most).and_then(|(node, _)| (*node).clone());
    let mut of_number: BTreeMap<u32, Vec<Poll>> = BTreeMap::new();
    asked.into_iter().for_each(|poll| of_number.entry(poll.number).or_default().push(poll));
    merged.extend(of_number.into_values().filter_map(|views| one(views, first.as_ref())));
    merged.sort_by_key(|poll| poll.number);
    merged
}

fn one(mut views: Vec<Poll>, first: Option<&String>) -> Option<Poll> {
    // Answers of another form tell other things.
    let json = views.iter().any(|view| !view.text);
    views.retain(|view| view.text != json);
    let lead = views.iter().position(|view| view.asked.as_ref() == first).unwrap_or(0);
    let mut poll = views.get(lead)?.clone();
    if views.len() == 1 {
        return Some(poll);
    }
    let mut comms: BTreeMap<&str, Vec<&Comm>> = BTreeMap::new();
    for comm in views.iter().flat_map(|view| &view.comms) {
        comms.entry(&comm.hash).or_default().push(comm);
    }
    poll.comms = comms.into_values().filter_map(|views| comm(&views)).collect();
    let gone = views.iter().flat_map(|view| &view.gone);
    poll.gone = most_miss(gone, views.len());
    Some(poll)
}

fn comm(views: &[&Comm]) -> Option<Comm> {
    let mut comm = (*views.first()?).clone();
    comm.missing = most_miss(views.iter().flat_map(|view| &view.missing), views.len());
    let mut ranks: BTreeMap<Process, CommRank> = BTreeMap::new();
    for rank in views.iter().flat_map(|view| &view.ranks) {
        let kept = ranks.entry(key(&rank.process)).or_insert_with(|| rank.clone());
        kept.failed |= rank.failed;
        for (op, count) in &rank.counts {
            let most = kept.counts.entry(op.clone()).or_default();
            *most = (*most).max(*count);
        }
    }
    let is_missing = |rank: &CommRank| comm.missing.iter().any(|missing| key(missing) == key(&rank.process));
    comm.ranks = ranks.into_values().filter(|rank| !is_missing(rank)).collect();
    Some(comm)
}

/// Processes that more than half of the views miss.
fn most_miss<'a>(missing: impl Iterator<Item = &'a Process>, views: usize) -> Vec<Process> {
    let mut counts: BTreeMap<Process, (usize, Process)> = BTreeMap::new();
    for process in missing {
        let (count, kept) = counts.entry(key(process)).or_insert_with(|| (0, process.clone()));
        *count += 1;
        kept.dead |= process.dead;
    }
    counts.into_values().filter(|(count, _)| 2 * count > views).map(|(_, process)| process).collect()
}

/// Who it is, whatever is said of it.
fn key(process: &Process) -> Process {
    Process { dead: false, ..process.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(rank: u32) -> Process {
        Process { host: format!("n{rank}"), rank: Some(rank), ..Process::default() }
    }

    fn view(asked: u32, here: &[(u32, u64)], missing: &[u32]) -> Poll {
        let rank = |&(rank, count): &(u32, u64)| CommRank {
            process: process(rank),
            counts: [("AllReduce".to_owned(), count)].into(),
            failed: false,
        };
        let comm = Comm {
            hash: "0x1".into(),
            ranks: here.iter().map(rank).collect(),
            missing: missing.iter().map(|rank| process(*rank)).collect(),
            ..Comm::default()
        };
        Poll { number: 1, asked: Some(format!("n{asked}")), comms: vec![comm], ..Poll::default() }
    }

    #[test]
    fn a_node_that_is_cut_off_is_missing_and_accuses_nobody() {
        let merged = merge(vec![
            view(0, &[(0, 5), (1, 5)], &[2]),
            view(1, &[(0, 5), (1, 6)], &[2]),
            view(2, &[(2, 5)], &[0, 1]),
        ]);
        assert_eq!(merged.len(), 1);
        let comm = &merged[0].comms[0];
        let counts: Vec<(Option<u32>, u64)> =
            comm.ranks.iter().map(|rank| (rank.process.rank, rank.counts["AllReduce"])).collect();
        assert_eq!(counts, [(Some(0), 5), (Some(1), 6)]);
        assert_eq!(comm.missing, [process(2)]);
    }

    #[test]
    fn polls_of_a_bundle_stay_as_they_are() {
        let polls = vec![Poll { number: 1, ..Poll::default() }, Poll { number: 2, ..Poll::default() }];
        assert_eq!(merge(polls.clone()), polls);
    }
}
