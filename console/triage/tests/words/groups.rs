//! Jobs of eight ranks on four nodes, by how far each rank is in the group of all and in a group of two.

use muster_triage::case::{Case, Config, Dump, Entry, Job, Member, Poll, Process, Status, Whose};

use super::{RULES, made::log};

/// How far a rank is in one group: enqueued, begun and completed, and when it enqueued the oldest that is not done.
#[derive(Clone, Copy)]
struct Far(u64, u64, u64, f64);

/// What all do who wait in the ninth operation of all, and have done all of their pair's.
const WAITS: (Far, Far) = (Far(9, 9, 8, 9.0), Far(5, 5, 5, 5.0));

fn node(rank: u32, per_node: u32) -> String {
    format!("n{}", rank / per_node)
}

/// The job, with so many ranks on each node. Ranks 0 and 4, 1 and 5 … are the pairs; `None` gives no dump.
fn job(per_node: u32, of: impl Fn(u32) -> Option<(Far, Far)>) -> Case {
    let member = |rank: u32| Member {
        rank,
        node: Some(node(rank, per_node)),
        pid: Some(100 + rank),
        gpu: Some(rank % per_node),
    };
    let job = Job { world_size: Some(8), members: (0..8).map(member).collect(), ..Job::default() };
    Case { job, dumps: (0..8).filter_map(|rank| Some(dump(rank, of(rank)?))).collect(), ..Case::default() }
}

fn dump(rank: u32, (world, pair): (Far, Far)) -> Dump {
    let name = format!("{}", 1 + rank % 4);
    let config = |desc: &str, ranks: Vec<u32>| Config { desc: desc.into(), ranks };
    let entry = |slot: &str, group: &str, far: Far| {
        let open = Entry {
            slot: slot.into(),
            group: group.into(),
            seq: far.2 + 1,
            op: "nccl:all_reduce".into(),
            created_s: Some(1_760_000_000.0 + far.3),
            ..Entry::default()
        };
        let done = Entry { seq: far.2, retired: true, ..open.clone() };
        if far.0 > far.2 { vec![done, open] } else { vec![done] }
    };
    let status = |far: Far| Status { enqueued: Some(far.0), started: Some(far.1), completed: Some(far.2) };
    Dump {
        rank,
        groups: [
            ("0".to_owned(), config("default_pg", (0..8).collect())),
            (name.clone(), config("tp", vec![rank % 4, rank % 4 + 4])),
        ]
        .into(),
        status: [("0".to_owned(), status(world)), ("1".to_owned(), status(pair))].into(),
        entries: [entry("0", "0", world), entry("1", &name, pair)].concat(),
        left_out: 0,
    }
}

/// The same job where these do something else than to wait.
fn odd(ranks: &[u32], world: Far, pair: Far) -> Case {
    job(2, |rank| Some(if ranks.contains(&rank) { (world, pair) } else { WAITS }))
}

/// Rank 2 is behind in the group of all as it waits for rank 6 in their pair.
fn chained() -> Case {
    job(2, |rank| {
        Some(match rank {
            2 => (Far(8, 8, 8, 8.0), Far(6, 6, 5, 8.5)),
            6 => (Far(8, 8, 8, 8.0), Far(5, 5, 5, 5.0)),
            _ => WAITS,
        })
    })
}

#[test]
fn how_far_ranks_are_in_two_groups_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "collective-counters", case);
    tell("all wait in the group of all", &job(2, |_| Some(WAITS)));
    tell("rank 2 waits for rank 6 in their pair, and the others for both", &chained());
    let behind = (Far(8, 8, 8, 8.0), Far(5, 5, 5, 5.0));
    tell("ranks 2 and 3 did not enqueue", &odd(&[2, 3], behind.0, behind.1));
    tell("ranks 2, 3 and 4 did not enqueue", &odd(&[2, 3, 4], behind.0, behind.1));
    let of_one_node = job(4, |rank| Some(if (4..7).contains(&rank) { behind } else { WAITS }));
    tell("three of four ranks on a node did not enqueue", &of_one_node);
    tell("the GPU of rank 5 did not begin", &odd(&[5], Far(9, 8, 8, 9.0), WAITS.1));
    tell("the GPUs of ranks 4 to 7 did not begin", &odd(&[4, 5, 6, 7], Far(9, 8, 8, 9.0), WAITS.1));
    tell("the GPUs of ranks 3 to 7 did not begin", &odd(&[3, 4, 5, 6, 7], Far(9, 8, 8, 9.0), WAITS.1));
    let in_pair = (Far(9, 8, 8, 9.0), Far(6, 6, 5, 4.0));
    tell("ranks 1 and 5 wait in their pair for longer", &odd(&[1, 5], in_pair.0, in_pair.1));
    tell("ranks 1, 2, 5 and 6 wait in two pairs", &odd(&[1, 2, 5, 6], in_pair.0, in_pair.1));
    let circle = job(2, |rank| {
        Some(match rank {
            1 => (Far(8, 8, 8, 8.0), Far(6, 6, 5, 8.5)),
            _ => WAITS,
        })
    });
    tell("rank 1 waits for rank 5 in their pair, and rank 5 for it in the group of all", &circle);
    let lost = |rank: u32, of: &str| {
        format!(
            "{}:100:100 [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer {of}<41825>\n",
            node(rank, 2)
        )
    };
    let both = |case: Case| {
        with_logs(case, |rank| match rank {
            1 => Some(lost(1, "n2")),
            5 => Some(lost(5, "n0")),
            _ => None,
        })
    };
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "distributed-errors", case);
    tell(
        "ranks 1 and 5 wait in their pair for longer, and their nodes lost each other",
        &both(odd(&[1, 5], in_pair.0, in_pair.1)),
    );
    tell(
        "ranks 1, 2, 5 and 6 wait in two pairs, and nodes n0 and n2 lost each other",
        &both(odd(&[1, 2, 5, 6], in_pair.0, in_pair.1)),
    );
    let over = "n0:100:100 [0] transport/net_ib.cc:1:1 NCCL WARN NET/IB: Got completion from peer n2<41825> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_1\n";
    let one = with_logs(odd(&[1, 5], in_pair.0, in_pair.1), |rank| (rank == 1).then(|| over.to_owned()));
    tell("ranks 1 and 5 wait in their pair for longer, and rank 1 lost n2 over an adapter", &one);
    super::hold("groups.txt", &text);
}

fn polled(mut case: Case, missing: &[u32]) -> Case {
    let process = |rank: &u32| Process { host: node(*rank, 2), pid: Some(100 + rank), ..Process::default() };
    case.polls = vec![Poll { number: 1, gone: missing.iter().map(process).collect(), ..Poll::default() }];
    case
}

fn with_logs(mut case: Case, lines: impl Fn(u32) -> Option<String>) -> Case {
    case.logs = (0..8).filter_map(|rank| Some(log(Whose::Rank(rank), &lines(rank)?, &RULES))).collect();
    case
}

fn timed_out(rank: u32) -> String {
    format!(
        "[rank{rank}]:[E1120 10:20:10.000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n"
    )
}

#[test]
fn a_rank_that_told_nothing_is_said_word_for_word_by_what_else_is_known_of_it() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "collective-counters", case);
    let without = || job(2, |rank| (rank != 5).then_some(WAITS));
    let starts = |rank: u32| Some(format!("rank {rank} starts\n"));
    tell("no dump of rank 5", &without());
    tell("no dump of rank 5, whose log is there", &with_logs(without(), starts));
    tell("no dump of rank 5, whose log is empty", &with_logs(without(), |_| Some(String::new())));
    tell("no dump of rank 5, and RAS misses it", &polled(without(), &[5]));
    tell("no dump of rank 5, whose log is there, and RAS misses it", &polled(with_logs(without(), starts), &[5]));
    tell(
        "no dump of ranks 4 and 5, and RAS misses rank 5",
        &polled(job(2, |rank| (rank / 2 != 2).then_some(WAITS)), &[5]),
    );
    let nothing = || job(2, |_| None);
    let logs = |silent: &[u32]| {
        with_logs(nothing(), |rank| if silent.contains(&rank) { starts(rank) } else { Some(timed_out(rank)) })
    };
    tell("all but rank 5 told a time-out", &logs(&[5]));
    tell("all but ranks 4 and 5 told a time-out", &logs(&[4, 5]));
    tell("all but rank 5 told a time-out, and RAS misses it", &polled(logs(&[5]), &[5]));
    tell("all told a time-out", &logs(&[]));
    let barrier = |named: &'static str, by: &'static [u32]| {
        with_logs(nothing(), move |rank| {
            by.contains(&rank).then(|| {
                format!("[rank{rank}]: RuntimeError: Ranks {named} failed to pass monitoredBarrier in 30000 ms\n")
            })
        })
    };
    tell("rank 0 says that rank 5 did not come to a barrier", &barrier("5", &[0]));
    tell("ranks 0 and 1 say that ranks 5 and 6 did not come to a barrier", &barrier("5, 6", &[0, 1]));
    super::hold("told-nothing.txt", &text);
}
