//! Jobs of six ranks on three nodes, by what their processes do.

use super::{RULES, made::log};
use muster_triage::case::{Case, Comm, CommRank, Poll, Process, Reached, Whose};
use muster_wire::{Counter, JobProcess, Processes, Queue, Reading};

const NODES: [&str; 3] = ["a", "b", "c"];
/// What a process does: in words, its states and what it waits in.
const DOING: [(&str, &str, &str); 10] = [
    ("stopped", "TTTTTTTT", ""),
    ("stopped at last", "SSTTTTTT", ""),
    ("stopped for most of the time", "TTTTTTTS", ""),
    ("under a debugger", "tttttttt", ""),
    ("frozen", "SSSSSSSS", "do_freezer_trap"),
    ("in NFS", "DDDDDDDD", "rpc_wait_bit_killable"),
    ("in a disk", "DDDDDDDD", "blkdev_issue_flush"),
    ("in FUSE", "SSSSSSSS", "request_wait_answer"),
    ("in a driver", "DDDDDDDD", "nvidia_ioctl"),
    ("ended", "SSSSSS--", ""),
];

fn process(rank: u32, states: &str, channel: &str) -> JobProcess {
    let wait_channel = if channel.is_empty() { Reading::Absent } else { Reading::Value(channel.to_owned()) };
    let (rank, world, states) = (Some(rank), Some(6), states.to_owned());
    JobProcess { pid: 100 + rank.unwrap(), rank, world, states, wait_channel, ..JobProcess::default() }
}

/// A job in which each rank does what `of` says.
fn job(of: impl Fn(u32) -> Option<JobProcess>) -> Case {
    let mut case = Case::default();
    for (place, node) in (0..).zip(NODES) {
        let processes = (2 * place..2 * place + 2).filter_map(&of).collect();
        let found_by = "Slurm job 7".to_owned();
        case.processes.insert(node.to_owned(), Processes { processes, found_by, ..Processes::default() });
        case.reached.push(Reached { node: node.to_owned(), ..Reached::default() });
    }
    case
}

fn waits(rank: u32) -> Option<JobProcess> {
    Some(process(rank, "SSSSSSSS", "futex_wait_queue"))
}

/// Two answers of RAS in which all ranks stand still, those in `behind` one operation behind, and those in `missing` give no data.
fn polled(mut case: Case, behind: &[u32], missing: &[u32]) -> Case {
    let process = |rank: u32| Process {
        host: NODES[rank as usize / 2].to_owned(),
        pid: Some(100 + rank),
        rank: Some(rank),
        ..Process::default()
    };
    let told = (0..6).filter(|rank| !missing.contains(rank));
    let rank = |rank: u32| CommRank {
        process: process(rank),
        counts: [("AllReduce".to_owned(), if behind.contains(&rank) { 40 } else { 41 })].into(),
        failed: false,
    };
    let comm = Comm {
        hash: "c0".into(),
        size: Some(6),
        ranks: told.map(rank).collect(),
        missing: missing.iter().map(|rank| process(*rank)).collect(),
        ..Comm::default()
    };
    let poll = |number| Poll { name: format!("ras.{number}"), number, comms: vec![comm.clone()], ..Poll::default() };
    case.polls = vec![poll(0), poll(1)];
    case
}

/// The case without an answer of these nodes.
fn without(mut case: Case, nodes: &[&str]) -> Case {
    for of in &mut case.reached {
        if nodes.contains(&of.node.as_str()) {
            (of.unreached, of.why) = (true, Some("no route to host".to_owned()));
        }
    }
    case.processes.retain(|node, _| !nodes.contains(&node.as_str()));
    case
}

#[test]
fn what_some_ranks_do_while_the_others_wait_is_said_word_for_word() {
    let mut text = String::new();
    for (what, states, channel) in DOING {
        for some in [&[3][..], &[2, 3], &[0, 3, 4], &[0, 1, 2, 3], &[0, 1, 2, 3, 4, 5]] {
            let of = |rank: u32| if some.contains(&rank) { Some(process(rank, states, channel)) } else { waits(rank) };
            super::said(&mut text, &format!("{what}: ranks {some:?}"), &job(of));
        }
        let of = |rank: u32| if rank == 3 { Some(process(rank, states, channel)) } else { waits(rank) };
        super::said(
            &mut text,
            &format!("{what}: rank 3, and RAS tells that it is behind"),
            &polled(job(of), &[3], &[]),
        );
        super::said(
            &mut text,
            &format!("{what}: rank 3, and RAS tells that rank 4 is behind"),
            &polled(job(of), &[4], &[]),
        );
    }
    super::hold("doing.txt", &text);
}

#[test]
fn what_is_missing_of_a_job_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: Case| super::said(&mut text, name, &case);
    tell("all wait", job(waits));
    tell("all wait, and RAS tells that rank 4 is behind", polled(job(waits), &[4], &[]));
    for gone in [&[3][..], &[2, 3], &[1, 3, 5], &[0, 1, 2, 3]] {
        let of = |rank: u32| if gone.contains(&rank) { None } else { waits(rank) };
        tell(&format!("no process of {gone:?}"), job(of));
        tell(&format!("no process of {gone:?}, and RAS misses them"), polled(job(of), &[], gone));
    }
    for nodes in [&["b"][..], &["b", "c"], &["a", "b", "c"]] {
        let missing: Vec<u32> = (0..6).filter(|rank| nodes.contains(&NODES[*rank as usize / 2])).collect();
        tell(&format!("{nodes:?} out of reach"), without(job(waits), nodes));
        tell(
            &format!("{nodes:?} out of reach, and RAS misses them"),
            polled(without(job(waits), nodes), &[], &missing),
        );
        tell(&format!("{nodes:?} out of reach, and RAS misses one"), polled(without(job(waits), nodes), &[], &[3]));
    }
    let ended = |rank: u32| Some(if rank < 4 { process(rank, "SSSSSS--", "") } else { waits(rank)? });
    tell("ranks 0 to 3 ended, and RAS tells that rank 3 is behind", polled(job(ended), &[3], &[]));
    // RAS knows the ranks of b by an address of which nobody told whose it is.
    let by_address = |mut case: Case| {
        let comms = case.polls.iter_mut().flat_map(|poll| &mut poll.comms);
        for process in
            comms.flat_map(|comm| comm.ranks.iter_mut().map(|rank| &mut rank.process).chain(&mut comm.missing))
        {
            if process.host == "b" {
                process.host = "10.0.0.2".to_owned();
            }
        }
        case
    };
    let of_b = by_address(polled(without(job(waits), &["b"]), &[], &[2, 3]));
    tell("b out of reach, and RAS misses ranks on a node that goes by another name", of_b);
    let of_both = by_address(polled(without(job(waits), &["b", "c"]), &[], &[2, 3]));
    tell("b and c out of reach, and RAS misses ranks on a node that goes by another name", of_both);
    let gone =
        "[rank0]: 2026-11-24 22:41:07.120 ERROR step 25: rank 3 (10.0.0.2, process 103) is gone: connection refused\n";
    let named = |mut case: Case| {
        case.logs = vec![log(Whose::Rank(0), gone, &RULES)];
        case
    };
    tell("rank 0 says that rank 3 is gone, whose process is there", named(job(waits)));
    let of = |rank: u32| Some(if rank == 3 { process(3, "SSSSSS--", "") } else { waits(rank)? });
    tell("rank 0 says that rank 3 is gone, whose process ended", named(job(of)));
    let mut partly = job(waits);
    partly.reached[1].why = Some("ended after 20 s".to_owned());
    tell("b told not everything", partly);
    super::hold("missing.txt", &text);
}

/// These wait for NFS and tell no rank.
fn without_ranks(unknown: &[u32]) -> Case {
    job(|rank| {
        let own = process(rank, "DDDDDDDD", "rpc_wait_bit_killable");
        if unknown.contains(&rank) { Some(JobProcess { rank: None, ..own }) } else { waits(rank) }
    })
}

fn frozen() -> Case {
    job(|rank| if rank == 3 { Some(process(3, "DDDDDDDD", "mnt_want_write")) } else { waits(rank) })
}

#[test]
fn what_else_nodes_tell_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: Case| super::said(&mut text, name, &case);
    for cpus in
        [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.3, 0.0, 0.0, 0.0, 0.0], [1.0; 6]]
    {
        let of = |rank: u32| waits(rank).map(|process| JobProcess { cpu: Some(cpus[rank as usize]), ..process });
        tell(&format!("CPUs {cpus:?}"), job(of));
        tell(&format!("CPUs {cpus:?}, and RAS tells that rank 0 is behind"), polled(job(of), &[0], &[]));
    }
    for denied in [&[3][..], &[0, 1, 2, 3, 4, 5]] {
        let blind = |process: JobProcess| JobProcess {
            environment: Reading::Denied,
            wait_channel: Reading::Denied,
            gpus: Reading::Denied,
            ..process
        };
        tell(
            &format!("{denied:?} denied"),
            job(|rank| waits(rank).map(|of| if denied.contains(&rank) { blind(of) } else { of })),
        );
    }
    for nodes in [&["b"][..], &["a", "b"]] {
        let mut case = job(waits);
        for (node, told) in &mut case.processes {
            if nodes.contains(&node.as_str()) {
                told.stalled = vec!["/data/set".to_owned(), "/data/log".to_owned()];
                told.notes = vec!["2 processes were not looked at.".to_owned()];
                told.ras = vec!["refused".to_owned(), "1200 bytes".to_owned()];
                told.kernel_log = Some(Reading::Absent);
            }
        }
        tell(&format!("{nodes:?} do not read"), case);
    }
    for unknown in [&[3][..], &[2, 3]] {
        tell(&format!("{unknown:?} wait for NFS, and nobody knows their rank"), without_ranks(unknown));
    }
    tell("rank 3 waits for a frozen file system", frozen());
    // Data waits on the way to b and from it, of one pair and of both.
    for (pairs, again) in [(1, false), (1, true), (2, false), (2, true)] {
        let mut case = job(waits);
        let full = |peer: &str, full| Queue { peer: peer.to_owned(), full, looks: 8, most: 4 << 20 };
        let queues = |node: &str| match node {
            "a" => vec![full("b", 8), full("c", 0)],
            "b" => vec![full("a", 8), full("c", if pairs == 2 { 7 } else { 0 })],
            _ => vec![full("a", 0), full("b", if pairs == 2 { 8 } else { 0 })],
        };
        for (node, told) in &mut case.processes {
            let last = if again && node == "b" { 900.0 } else { 10.0 };
            let (device, name, seconds) = ("tcp".to_owned(), "RetransSegs".to_owned(), None);
            told.counters = vec![Counter { device, name, first: 5.0, last, seconds }];
            told.queues = queues(node);
        }
        tell(&format!("queues of {pairs} pairs, sent again: {again}"), case);
    }
    super::hold("beside.txt", &text);
}
