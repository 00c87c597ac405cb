//! Whose fault is it that an operation did not end? From what all ranks say of themselves.

use std::collections::BTreeMap;

use super::ask::Answer;
use super::board::{Board, Doing, Standing};
use super::comm::{Kind, Trouble};

/// Where it stopped, and every rank that cannot be a mere victim.
pub(super) fn sentence(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> String {
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
    if trouble.kind == Kind::Mismatch && causes.is_empty() {
        return format!("{place}: {own}; two ranks cannot tell which of them is wrong");
    }
    if causes.is_empty() {
        format!(
            "{place}: {own}; every rank answers and has launched it: the network between them, or a rank that is slow"
        )
    } else {
        format!("{place}: {own}. {}", causes.join("; "))
    }
}

/// Ranks that are gone outweigh those that are silent, these those that failed, and these those that are behind.
fn causes(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<String> {
    let gone = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Gone(why) => Some(format!("{} is gone: {why}", board.who(*rank))),
        _ => None,
    });
    let silent = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Silent => {
            Some(format!("{} does not answer: it is stopped, or its node is out of reach", board.who(*rank)))
        }
        _ => None,
    });
    let failed = answers.iter().filter_map(|(rank, answer)| match answer {
        Answer::Said(Standing { failed: Some(why), .. }) if *rank != board.rank => {
            Some(format!("{} failed: {why}", board.who(*rank)))
        }
        _ => None,
    });
    let dead: Vec<String> = gone.chain(silent).collect();
    if !dead.is_empty() {
        return dead;
    }
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { behind(board, trouble, answers) } else { failed }
}

/// Ranks that do something else than most others of the communicator do.
fn unlike(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<String> {
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
    odd.map(|(rank, doing)| format!("{} runs {}, {count} ranks run {}", board.who(*rank), told(doing), told(most)))
        .collect()
}

/// Ranks of the communicator that have not launched the operation, and where they are instead.
fn behind(board: &Board, trouble: &Trouble, answers: &BTreeMap<usize, Answer>) -> Vec<String> {
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
        Some(format!("{} has not launched it: {place}", board.who(*rank)))
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
