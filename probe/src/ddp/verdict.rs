//! Whose fault is it that an operation did not end? From what all ranks say of themselves.

use std::collections::BTreeMap;

use super::ask::Answer;
use super::board::{Board, Doing, Standing};
use super::comm::{Kind, Trouble};

/// A rank that cannot be a mere victim, and why; without a rank where nobody can be named.
type Cause = (Option<usize>, String);

/// Where it stopped and why, and the ranks that it is put down to.
pub(super) fn sentence(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> (String, Vec<usize>) {
    let group = &board.kept[trouble.comm].group;
    let place = format!(
        "step {}, {} {} of communicator {} ({})",
        board.step(),
        trouble.op.name(),
        trouble.seq,
        group.name,
        group.about
    );
    let own = match trouble.kind {
        Kind::Mismatch => format!("{}: {}", board.who(trouble.peer), trouble.why),
        Kind::Late => format!("time-out, waiting for rank {}: {}", trouble.peer, trouble.why),
        Kind::Gone => format!("the connection to rank {} broke: {}", trouble.peer, trouble.why),
        Kind::Ended => trouble.why.clone(),
    };
    let causes = match trouble.kind {
        Kind::Mismatch => unlike(board, trouble, answers),
        _ => causes(board, trouble, answers),
    };
    let (ranks, causes): (Vec<Option<usize>>, Vec<String>) = causes.into_iter().unzip();
    let said = match (trouble.kind, causes.is_empty()) {
        (Kind::Mismatch, true) => format!("{place}: {own}; two ranks cannot tell which of them is wrong"),
        (_, true) => format!(
            "{place}: {own}; every rank answers and has launched it: the network between them, or a rank that is slow"
        ),
        (_, false) => format!("{place}: {own}. {}", causes.join("; ")),
    };
    (said, ranks.into_iter().flatten().collect())
}

/// Ranks that are gone outweigh those that are silent, these those that failed, and these those that are behind.
fn causes(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<Cause> {
    let gone = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Gone(why) => Some((Some(*rank), format!("{} is gone: {why}", board.who(*rank)))),
        _ => None,
    });
    let mute = answers.values().filter(|answer| **answer == Answer::Silent).count();
    // Whoever hears nobody may be the one who is cut off.
    if 2 * mute >= answers.len() {
        let all = answers.len();
        let why = format!(
            "{mute} of {all} ranks do not answer: this node is cut off, or they are; nobody is named from here"
        );
        return vec![(None, why)];
    }
    let silent = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Silent => {
            let why = format!("{} does not answer: it is stopped, or its node is out of reach", board.who(*rank));
            Some((Some(*rank), why))
        }
        _ => None,
    });
    let failed = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Said(Standing { failed: Some(why), .. }) if *rank != board.rank => {
            // Whom it accuses says its own sentence: it need not be to blame itself.
            Some((None, format!("{} failed: {why}", board.who(*rank))))
        }
        _ => None,
    });
    let dead: Vec<Cause> = gone.chain(silent).collect();
    if !dead.is_empty() {
        return dead;
    }
    let failed: Vec<Cause> = failed.collect();
    if failed.is_empty() { behind(board, trouble, answers) } else { failed }
}

/// Ranks that do something else than most others of the communicator do.
fn unlike(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<Cause> {
    let ranks = &board.kept[trouble.comm].group.ranks;
    let doing = |rank: &usize| match answers.get(rank)? {
        Answer::Said(standing) => standing.doing.filter(|doing| doing.comm == trouble.comm).map(|doing| (*rank, doing)),
        _ => None,
    };
    let all: Vec<(usize, Doing)> = ranks.iter().filter_map(doing).collect();
    let mut counts: BTreeMap<Doing, usize> = BTreeMap::new();
    all.iter().for_each(|(_, doing)| *counts.entry(*doing).or_default() += 1);
    let Some((most, count)) = counts.iter().max_by_key(|(_, count)| **count) else { return Vec::new() };
    if 2 * count <= all.len() {
        return Vec::new();
    }
    let told = |doing: &Doing| format!("{} {} of {} elements", doing.op.name(), doing.seq, doing.elements);
    let odd = all.iter().filter(|(_, doing)| doing != most);
    let cause = |(rank, doing): &(usize, Doing)| {
        let why = format!("{} runs {}, {count} ranks run {}", board.who(*rank), told(doing), told(most));
        (Some(*rank), why)
    };
    odd.map(cause).collect()
}

/// Ranks of the communicator that have not launched the operation, and where they are instead.
fn behind(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<Cause> {
    let group = &board.kept[trouble.comm].group;
    let late = |(rank, answer): (&usize, &Answer)| {
        let Answer::Said(standing) = answer else { return None };
        let counts = standing.counts.iter().find(|counts| counts.hash == group.hash)?;
        if counts.launched() >= trouble.seq {
            return None;
        }
        let place = match standing.doing {
            Some(Doing { comm, seq, op, .. }) => {
                format!("it waits in {} {seq} of {}", op.name(), group_name(board, comm))
            }
            None => format!("it is in no operation, at step {}", standing.step),
        };
        Some((Some(*rank), format!("{} has not launched it: {place}", board.who(*rank))))
    };
    answers.iter().filter_map(late).collect()
}

/// Every rank numbers its groups alike: all ranks first, then those of its node.
fn group_name(board: &Board, comm: usize) -> String {
    match comm {
        0 => format!("communicator {} ({})", board.kept[0].group.name, board.kept[0].group.about),
        _ => "the communicator of its node".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::ddp::group::Op;

    const WORLD: usize = 6;

    fn told(trouble: Kind, odd: impl Fn(usize) -> Option<Answer>) -> String {
        let peers: Vec<SocketAddr> = (0..WORLD).map(|rank| SocketAddr::from(([10, 0, 0, rank as u8], 7000))).collect();
        let board = Board::new(0, (peers.clone(), 1), [0; 32]);
        let usual = |rank: usize| {
            let other = Board::new(rank, (peers.clone(), 1), [0; 32]);
            (0..3).for_each(|_| {
                other.kept[0].launch(Op::AllReduce);
            });
            other.doing(Some(Doing { comm: 0, seq: 3, op: Op::AllReduce, elements: 100 }));
            Answer::Said(other.standing())
        };
        let answers = (0..WORLD).map(|rank| (rank, odd(rank).unwrap_or_else(|| usual(rank)))).collect();
        let why = "it has not sent everything".to_owned();
        let (said, ranks) =
            sentence(&board, &Trouble { comm: 0, op: Op::AllReduce, seq: 3, kind: trouble, peer: 5, why }, &answers);
        assert!(ranks.iter().all(|rank| said.contains(&format!("rank {rank} ("))), "{said} {ranks:?}");
        assert_eq!(ranks.is_empty(), !said.contains(". rank "), "{said} {ranks:?}");
        said
    }

    fn standing(answer: Answer, change: impl FnOnce(&mut Standing)) -> Answer {
        let Answer::Said(mut standing) = answer else { return answer };
        change(&mut standing);
        Answer::Said(standing)
    }

    fn behind(rank: usize) -> Answer {
        let peers = (0..WORLD).map(|rank| SocketAddr::from(([10, 0, 0, rank as u8], 7000))).collect();
        Answer::Said(Board::new(rank, (peers, 1), [0; 32]).standing())
    }

    #[test]
    fn who_is_gone_or_silent_outweighs_who_is_behind_and_where_all_are_alike_nobody_is_named() {
        let said = told(Kind::Late, |rank| match rank {
            2 => Some(Answer::Silent),
            3 => Some(behind(3)),
            _ => None,
        });
        assert!(said.contains("rank 2 (10.0.0.2) does not answer") && !said.contains("rank 3 "), "{said}");
        let said = told(Kind::Late, |rank| (rank == 3).then(|| behind(3)));
        assert!(said.ends_with("rank 3 (10.0.0.3) has not launched it: it is in no operation, at step 0"), "{said}");
        let said = told(Kind::Late, |_| None);
        assert!(said.contains("every rank answers and has launched it") && !said.contains("(10.0"), "{said}");
    }

    #[test]
    fn a_rank_that_hears_nobody_names_nobody() {
        for mute in [3, 5] {
            let said = told(Kind::Late, |rank| (rank > WORLD - 1 - mute).then_some(Answer::Silent));
            assert!(said.contains("nobody is named from here") && !said.contains("(10.0"), "{said}");
        }
    }

    #[test]
    fn of_operations_that_differ_the_rarer_one_is_odd() {
        let odd = |rank: usize| {
            (rank == 4).then(|| {
                standing(behind(4), |standing| {
                    standing.doing = Some(Doing { comm: 0, seq: 3, op: Op::AllReduce, elements: 99 });
                })
            })
        };
        let said = told(Kind::Mismatch, odd);
        assert!(
            said.ends_with(
                "rank 4 (10.0.0.4) runs all_reduce 3 of 99 elements, 5 ranks run all_reduce 3 of 100 elements"
            ),
            "{said}"
        );
    }
}
