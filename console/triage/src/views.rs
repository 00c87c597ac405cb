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
    use muster_logs::stamp::Stamp;

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

    #[test]
    fn of_one_poll_the_time_is_that_of_the_node_that_was_asked_most_often() {
        let at =
            |number: u32, asked: u32, at: f64| Poll { number, at: Some(Stamp::Utc(at)), ..view(asked, &[(0, 5)], &[]) };
        let times = |polls: Vec<Poll>| merge(polls).iter().map(|poll| (poll.number, poll.at)).collect::<Vec<_>>();
        let of = |number: u32, at: f64| (number, Some(Stamp::Utc(at)));
        let polls = vec![at(2, 0, 29.0), at(1, 0, 9.0), at(1, 1, 10.0), at(2, 1, 30.0), at(3, 1, 50.0)];
        assert_eq!(times(polls), [of(1, 10.0), of(2, 30.0), of(3, 50.0)], "clocks of two nodes are not compared");
        assert_eq!(
            times(vec![at(1, 0, 9.0), at(1, 1, 10.0), at(2, 1, 30.0), at(3, 0, 49.0), at(3, 1, 50.0), at(4, 0, 70.0)])
                [3],
            of(4, 70.0)
        );
        let own = Poll { asked: None, ..at(1, 0, 3.0) };
        assert_eq!(
            times(vec![at(2, 0, 29.0), own]),
            [of(1, 3.0), of(2, 29.0)],
            "one that a file held stays beside them"
        );
    }

    #[test]
    fn answers_in_json_are_merged_without_those_in_text_that_tell_only_of_outliers() {
        let text = |asked: u32| Poll { text: true, ..view(asked, &[(0, 9)], &[1]) };
        let merged = merge(vec![text(0), view(1, &[(0, 5), (1, 5)], &[]), view(2, &[(0, 6), (1, 4)], &[])]);
        let comm = &merged[0].comms[0];
        let counts: Vec<u64> = comm.ranks.iter().map(|rank| rank.counts["AllReduce"]).collect();
        assert_eq!((counts, comm.missing.len(), merged[0].text), (vec![6, 5], 0, false));
        let merged = merge(vec![text(0), text(1)]);
        assert_eq!((merged[0].comms[0].missing.len(), merged[0].text), (1, true), "where there is nothing else");
    }

    #[test]
    fn a_rank_is_missing_where_more_than_half_of_those_that_know_its_communicator_miss_it() {
        let missing = |views: Vec<Poll>| merge(views)[0].comms[0].missing.clone();
        let (sees, misses) = (|asked| view(asked, &[(2, 5)], &[]), |asked| view(asked, &[], &[2]));
        assert_eq!(missing(vec![sees(0), misses(1)]), [], "half of them");
        assert_eq!(missing(vec![sees(0), misses(1), misses(3)]), [process(2)]);
        let elsewhere = |asked: u32| {
            let mut view = view(asked, &[(7, 1)], &[]);
            view.comms[0].hash = "0x2".into();
            view
        };
        assert_eq!(missing(vec![sees(0), misses(1), misses(3), elsewhere(7), elsewhere(8)]), [process(2)]);
        let gone = |views: Vec<Poll>| merge(views)[0].gone.clone();
        let with =
            |asked: u32, ranks: &[u32]| Poll { gone: ranks.iter().map(|rank| process(*rank)).collect(), ..sees(asked) };
        assert_eq!(gone(vec![with(0, &[4]), with(1, &[4, 5]), with(3, &[])]), [process(4)]);
    }

    #[test]
    fn what_one_view_knows_of_a_rank_beyond_the_others_is_kept() {
        let mut first = view(0, &[(0, 5), (1, 7)], &[3]);
        let mut second = view(1, &[(0, 6), (1, 4)], &[3]);
        second.comms[0].ranks[0].failed = true;
        second.comms[0].ranks[1].counts.insert("Broadcast".to_owned(), 2);
        first.comms[0].missing[0].dead = true;
        for views in [vec![first.clone(), second.clone()], vec![second, first]] {
            let merged = merge(views);
            let [one, other] = &merged[0].comms[0].ranks[..] else { panic!("two ranks") };
            assert_eq!((one.failed, one.counts["AllReduce"]), (true, 6));
            assert_eq!((other.failed, other.counts["AllReduce"], other.counts["Broadcast"]), (false, 7, 2));
            assert_eq!(merged[0].comms[0].missing, [Process { dead: true, ..process(3) }]);
        }
    }

    #[test]
    fn a_poll_that_one_node_alone_answered_is_its_answer() {
        let mut own = view(0, &[(0, 5)], &[1]);
        own.comms.push(own.comms[0].clone());
        own.gone = vec![process(1)];
        assert_eq!(merge(vec![own.clone()]), [own]);
    }
}
