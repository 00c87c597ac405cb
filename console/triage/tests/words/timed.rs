//! Jobs of eight ranks on eight nodes, by how long their operations took.

use muster_triage::case::{Alerted, Case, Comm, CommRank, Job, Log, Member, Poll, Process, Step, Timed, Whose};

use super::{RULES, made::log};

/// Nine operations of all, and in two groups of four each, by how long they took a rank of a group: `all`, `low`, `high`.
fn job(took_us: impl Fn(&str, u32) -> f64) -> Case {
    let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(100 + rank), gpu: Some(0) };
    let mut case = Case {
        job: Job { world_size: Some(8), members: (0..8).map(member).collect(), ..Job::default() },
        ..Case::default()
    };
    for (comm, ranks) in [("all", 0..8), ("low", 0..4), ("high", 4..8)] {
        let first = ranks.start;
        for (seq, rank) in (0..9).flat_map(|seq| ranks.clone().map(move |rank| (seq, rank))) {
            case.timed.push(Timed {
                comm: comm.to_owned(),
                rank: rank - first,
                ranks: ranks.len() as u32,
                nodes: ranks.len() as u32,
                host: format!("n{rank}"),
                pid: 100 + rank,
                op: "AllReduce".to_owned(),
                peer: None,
                seq,
                bytes: 4096,
                took_us: took_us(comm, rank),
            });
        }
    }
    case
}

fn even(_: &str, _: u32) -> f64 {
    3000.0
}

/// With steps of these seconds in the log of rank 0.
fn with_steps(mut case: Case, seconds: &[f64]) -> Case {
    let step = |(nr, seconds): (u64, &f64)| Step { step: nr, row: nr + 1, at: None, seconds: Some(*seconds) };
    let steps = (0..).zip(seconds).map(step).collect();
    case.logs.push(Log { steps, ..log(Whose::Rank(0), "", &RULES) });
    case
}

/// With two answers of RAS, between which each rank launched so many operations.
fn polled(mut case: Case, more: u64) -> Case {
    let rank = |rank: u32, count: u64| CommRank {
        process: Process { host: format!("n{rank}"), pid: Some(100 + rank), rank: Some(rank), ..Process::default() },
        counts: [("AllReduce".to_owned(), count)].into(),
        failed: false,
    };
    let poll = |number: u32, count: u64| Poll {
        number,
        comms: vec![Comm { hash: "c0".into(), ranks: (0..8).map(|of| rank(of, count)).collect(), ..Comm::default() }],
        ..Poll::default()
    };
    case.polls = vec![poll(1, 40), poll(2, 40 + more)];
    case
}

/// Transfers of each rank to the next of the group of all, of which those that touch `slow` take three times as long.
fn with_transfers(mut case: Case, slow: Option<u32>) -> Case {
    for (seq, rank) in (0..5).flat_map(|seq| (0..8).map(move |rank| (seq, rank))) {
        let peer = (rank + 1) % 8;
        let took_us = if slow.is_some_and(|slow| rank == slow || peer == slow) { 900.0 } else { 300.0 };
        let (op, bytes) = ("Send".to_owned(), 1 << 20);
        let of_all = case.timed[rank as usize].clone();
        case.timed.push(Timed { rank, op, peer: Some(peer), seq, bytes, took_us, ..of_all });
    }
    case
}

#[test]
fn how_long_operations_took_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "slow-ranks", case);
    let late = |ranks: &'static [u32]| job(move |_, rank| if ranks.contains(&rank) { 600.0 } else { 3000.0 });
    tell("rank 2 is late", &late(&[2]));
    tell("rank 2 is late, and RAS saw the job move", &polled(late(&[2]), 9));
    tell("rank 2 is late, and RAS saw the job stand still", &polled(late(&[2]), 0));
    tell(
        "rank 2 is late in its group of four alone",
        &job(|comm, rank| if comm == "low" && rank == 2 { 600.0 } else { 3000.0 }),
    );
    tell("ranks 2 and 6 are late", &late(&[2, 6]));
    tell("nobody is late", &job(even));
    tell("nobody is late, and steps are even", &with_steps(job(even), &[1.0, 1.1, 1.0]));
    let stalled = with_steps(job(even), &[1.0, 1.0, 1.0, 3.1]);
    tell("nobody is late, links are even, and a step stalled", &with_transfers(stalled, None));
    let of_two = |comm: &str, rank: u32| if comm != "all" && [2, 6].contains(&rank) { 600.0 } else { 3000.0 };
    let two = || with_transfers(with_steps(job(of_two), &[1.0, 1.1, 1.0]), None);
    tell("ranks 2 and 6 are late in their groups of four alone, links and steps are even", &two());
    let all = || with_transfers(with_steps(job(even), &[1.0, 1.1, 1.0]), None);
    tell("nobody is late, links and steps are even", &all());
    tell("nobody is late, links and steps are even, and RAS saw the job move", &polled(all(), 9));
    tell("nobody is late, links and steps are even, and RAS saw the job stand still", &polled(all(), 0));
    tell("transfers that touch rank 5 take long", &with_transfers(job(even), Some(5)));
    let mut half = job(even);
    half.timed.retain(|one| one.comm == "low");
    tell("half of the ranks are timed", &half);
    let mut sixteen = two();
    sixteen.job.world_size = Some(16);
    tell("ranks 2 and 6 of sixteen are late in their groups of four alone", &sixteen);
    let mut nobody = job(even);
    nobody.job = Job::default();
    tell("nobody is late, and nobody wrote down who runs where", &nobody);
    let with_log = |mut case: Case, whose: Whose, line: &str| {
        case.logs.push(log(whose, &format!("{line}\n"), &RULES));
        case
    };
    let nfs = "nfs: server 10.4.0.19 not responding, still trying";
    tell("nobody is late, and NFS of n3 did not answer once", &with_log(all(), Whose::Kernel("n3".to_owned()), nfs));
    let waited = (0..8).fold(all(), |case, rank| {
        let line = format!(
            "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
        );
        with_log(case, Whose::Rank(rank), &line)
    });
    tell("nobody is late, and all told a time-out", &waited);
    super::hold("timed.txt", &text);
}

#[test]
fn what_a_watch_alerted_of_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, nodes: &[(&str, Option<&str>)]| {
        let alert = |(node, metric): &(&str, Option<&str>)| Alerted {
            node: (*node).to_owned(),
            metric: metric.map(str::to_owned),
            since_s: 1.76e9,
            sentence: format!("{node} is unlike its peers"),
            ..Alerted::default()
        };
        let mut case = job(even);
        case.timed.clear();
        case.alerts = nodes.iter().map(alert).collect();
        super::in_short(&mut text, name, "slow-ranks", &case);
    };
    tell("the clock of a GPU of n2", &[("n2", Some("gpu_clock_mhz"))]);
    tell("NVLink of n2", &[("n2", Some("nvlink_gbs"))]);
    tell("the network of n2", &[("n2", Some("net_tx_gbs"))]);
    tell("the disk of n2", &[("n2", Some("disk_busy_pct"))]);
    tell("the memory of n2", &[("n2", Some("mem_used_pct"))]);
    tell("n2 fell silent", &[("n2", None)]);
    tell("two of n2", &[("n2", Some("net_tx_gbs")), ("n2", Some("gpu_clock_mhz"))]);
    tell("n2 and n3", &[("n2", Some("net_tx_gbs")), ("n3", Some("net_tx_gbs"))]);
    tell("n2, n3 and n4", &[("n2", None), ("n3", None), ("n4", None)]);
    super::hold("watched.txt", &text);
}
