//! Jobs of six ranks on three nodes or on six, by who says that it lost whom.

use muster_triage::case::{Case, Job, Member, Poll, Process, Reached, Whose};

use super::{RULES, counts, made::log};

/// Ranks, so many on each node, whose clocks are known to half a second where `known`; who says at which second that it lost whom.
fn job(per_node: u32, known: bool, lost: &[(u32, u32, &str)]) -> Case {
    let node = |rank: u32| format!("n{}", rank / per_node);
    let member = |rank: u32| Member { rank, node: Some(node(rank)), pid: Some(100 + rank), gpu: Some(rank % per_node) };
    let mut case = Case {
        job: Job { world_size: Some(6), members: (0..6).map(member).collect(), ..Job::default() },
        ..Case::default()
    };
    if known {
        let reached = |nr: u32| Reached { node: format!("n{nr}"), clock: Some((0.0, 0.5)), ..Reached::default() };
        case.reached = (0..6 / per_node).map(reached).collect();
    }
    let step = "[2026-11-20 10:10:00] iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |\n";
    for rank in 0..6 {
        let own = lost.iter().filter(|(from, ..)| *from == rank).map(|(_, second, of)| {
            format!(
                "[2026-11-20 10:10:{second:02}] {} {}\n",
                node(rank) + ":100:100 [0] misc/socket.cc:503 NCCL WARN",
                said(of)
            )
        });
        case.logs.push(log(Whose::Rank(rank), &(step.to_owned() + &own.collect::<String>()), &RULES));
    }
    case
}

/// `n2` closed its connection, or over an adapter: `n2 mlx5_1`; or a request to it was only flushed: `n2 flushed`.
fn said(of: &str) -> String {
    match of.split_once(' ') {
        None => format!("socketProgress: Connection closed by remote peer {of}<41825>"),
        Some((of, "flushed")) => {
            format!("NET/IB: Got completion from peer {of}<41825> with status=5 opcode=0 len=0 vendor err 249 (Recv)")
        }
        Some((of, device)) => format!(
            "NET/IB: Got completion from peer {of}<41825> with status=12 opcode=0 len=0 vendor err 129 (Send) hca {device}"
        ),
    }
}

#[test]
fn who_lost_whom_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "distributed-errors", case);
    let all_lost_n2 = [(0, 5, "n2"), (1, 5, "n2"), (3, 6, "n2"), (4, 6, "n2"), (5, 5, "n2")];
    tell("five lost n2", &job(1, true, &all_lost_n2));
    tell("five lost n2, and clocks are not known", &job(1, false, &all_lost_n2));
    let one_lost_another = [&all_lost_n2[..], &[(2, 1, "n4")]].concat();
    tell(
        "five lost n2, which lost n4 before",
        &job(1, true, &one_lost_another[..3].iter().chain(&one_lost_another[4..]).copied().collect::<Vec<_>>()),
    );
    tell("n2 lost n4", &job(1, true, &[(2, 5, "n4")]));
    tell("n2 and n4 lost each other at once", &job(1, true, &[(2, 5, "n4"), (4, 5, "n2")]));
    tell("n2 lost n4, and n4 lost n2 two seconds after it", &job(1, true, &[(2, 5, "n4"), (4, 7, "n2")]));
    tell("n2 and n4 lost each other over an adapter", &job(1, true, &[(2, 5, "n4 mlx5_1"), (4, 5, "n2 mlx5_1")]));
    tell("n2 lost n4 over an adapter", &job(1, true, &[(2, 5, "n4 mlx5_1")]));
    tell("five lost n2 over an adapter", &job(1, true, &all_lost_n2.map(|(from, at, _)| (from, at, "n2 mlx5_1"))));
    tell(
        "requests of five to n2 were flushed",
        &job(1, true, &all_lost_n2.map(|(from, at, _)| (from, at, "n2 flushed"))),
    );
    let ring = [(0, 5, "n1"), (1, 5, "n2"), (2, 5, "n3"), (3, 5, "n4"), (4, 5, "n5"), (5, 5, "n0")];
    tell("each lost the next", &job(1, true, &ring));
    tell("n0 lost a machine that is none of the job", &job(1, true, &[(0, 5, "n9")]));
    tell(
        "each of two ranks on two nodes lost n1",
        &job(2, true, &[(0, 5, "n1"), (1, 5, "n1"), (4, 5, "n1"), (5, 6, "n1")]),
    );
    super::hold("lost.txt", &text);
}

/// RAS misses these ranks.
fn missed(mut case: Case, ranks: &[u32]) -> Case {
    let process = |rank: &u32| Process { host: format!("n{}", rank / 2), pid: Some(100 + rank), ..Process::default() };
    case.polls = vec![Poll { number: 1, gone: ranks.iter().map(process).collect(), ..Poll::default() }];
    case
}

#[test]
fn what_is_known_beside_a_loss_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "distributed-errors", case);
    let lost = || job(2, true, &[(0, 5, "n1"), (1, 5, "n1"), (4, 5, "n1"), (5, 6, "n1")]);
    tell("all lost n1, and RAS misses one of its ranks", &missed(lost(), &[3]));
    tell("all lost n1, and RAS misses both of its ranks", &missed(lost(), &[2, 3]));
    let mut behind = lost();
    behind.polls = counts::one_behind(3).polls;
    tell("all lost n1, and RAS tells that rank 3 is behind", &behind);
    let pair = || job(2, true, &[(0, 5, "n1 mlx5_1"), (2, 5, "n0 mlx5_1")]);
    let mut still = pair();
    still.polls = counts::one_behind(3).polls;
    still
        .polls
        .iter_mut()
        .flat_map(|poll| &mut poll.comms[0].ranks)
        .for_each(|rank| _ = rank.counts.insert("AllReduce".to_owned(), 41));
    tell("n0 and n1 lost each other, and RAS tells that all stand level", &still);
    let mut cancelled = lost();
    let line = "[2026-11-20 10:10:03] slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:10:03 DUE TO PREEMPTION ***\n";
    cancelled.logs.push(log(Whose::Job("slurm".to_owned()), line, &RULES));
    cancelled.reached.iter_mut().for_each(|node| node.clock = Some((0.0, 0.1)));
    tell("all lost n1 after the job was ended", &cancelled);
    super::hold("lost-beside.txt", &text);
}
