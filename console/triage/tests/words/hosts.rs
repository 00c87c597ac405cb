//! Jobs of six ranks on three nodes, by what their machines and hosts say of what broke, stopped or ended.

use muster_triage::case::{Case, Comm, CommRank, Joined, Poll, Process, Timed, Whose};

use super::program::job;
use super::{RULES, counts, made::log};

type Lines<'l> = &'l [(&'l str, Option<u32>, &'l str)];

const LOCKED: &str = "watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [kworker:77]";
const WAITS: &str = "WARNING: dataloader: next(batch) took 41.2 s (worker 3), queue empty";
const STUCK: &str = "INFO: task python3:103 blocked for more than 120 seconds.";
const NFS: &str = "nfs: server 10.4.0.19 not responding, still trying";
const LOST: &str = "NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";

/// The kernel of its node killed the process of rank 3 or another.
fn killed(pid: u32) -> String {
    format!("Memory cgroup out of memory: Killed process {pid} (python3) total-vm:204800kB")
}

fn segfault(pid: u32) -> String {
    format!(
        "python3[{pid}]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libtorch_cpu.so[7f7c7ac00000+d3d3000]"
    )
}

#[test]
fn what_hosts_and_loaders_say_of_themselves_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, lines: Lines<'_>| super::in_short(&mut text, name, "storage-and-hosts", &job(lines));
    tell("n1 locked up", &[("n1", Some(5), LOCKED)]);
    tell("n1 locked up, and the loader of rank 3 there waits", &[("n1", Some(5), LOCKED), ("3", Some(5), WAITS)]);
    tell("the loader of rank 3 waits", &[("3", Some(5), WAITS)]);
    tell("the loaders of ranks 2 and 3 wait", &[("2", Some(5), WAITS), ("3", Some(5), WAITS)]);
    tell(
        "the loaders of four ranks wait",
        &[("0", None, WAITS), ("1", None, WAITS), ("2", None, WAITS), ("3", None, WAITS)],
    );
    tell("the kernel of n1 killed rank 3", &[("n1", Some(5), &killed(103))]);
    tell("the kernel of n1 killed ranks 2 and 3", &[("n1", Some(5), &killed(102)), ("n1", Some(6), &killed(103))]);
    tell("the kernel of n1 killed a child of a rank", &[("n1", Some(5), &killed(4711))]);
    let by_slurm =
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.";
    tell("the scheduler says that something was killed", &[("out", Some(5), by_slurm)]);
    tell(
        "the kernel of n1 killed a child of a rank, and the scheduler says so",
        &[("n1", Some(5), &killed(4711)), ("out", Some(5), by_slurm)],
    );
    tell("rank 3 crashed", &[("n1", Some(5), &segfault(103))]);
    tell("a task of n1 is blocked", &[("n1", Some(5), STUCK)]);
    tell("a task of n1 is blocked on NFS", &[("n1", Some(4), NFS), ("n1", Some(5), STUCK)]);
    tell("a task of n1 is blocked, and NFS of n2 does not answer", &[("n2", Some(4), NFS), ("n1", Some(5), STUCK)]);
    let by_mpi = "mpirun noticed that process rank 3 with PID 103 on node n1 exited on signal 9 (Killed).";
    tell("mpirun says that rank 3 was killed", &[("out", Some(5), by_mpi)]);
    tell(
        "mpirun says that rank 3 was killed, and its kernel, too",
        &[("out", Some(5), by_mpi), ("n1", Some(5), &killed(103))],
    );
    super::hold("hosts.txt", &text);
}

/// RAS told once that a rank is behind.
fn polled_once(mut case: Case, behind: u32) -> Case {
    let rank = |rank: u32| CommRank {
        process: Process { host: format!("n{}", rank / 2), pid: Some(100 + rank), ..Process::default() },
        counts: [("AllReduce".to_owned(), if rank == behind { 40 } else { 41 })].into(),
        failed: false,
    };
    let comm = Comm { hash: "c0".into(), ranks: (0..6).map(rank).collect(), ..Comm::default() };
    case.polls = vec![Poll { number: 1, comms: vec![comm], ..Poll::default() }];
    case
}

/// In two of nine operations of all ranks this one was late.
fn late_at_times(mut case: Case, late: u32) -> Case {
    let one = |seq: u64, rank: u32| Timed {
        comm: "c".to_owned(),
        rank,
        ranks: 6,
        nodes: 3,
        host: format!("n{}", rank / 2),
        pid: 100 + rank,
        op: "AllReduce".to_owned(),
        peer: None,
        seq,
        bytes: 4096,
        took_us: if rank == late && seq < 2 { 600.0 } else { 3000.0 },
    };
    case.timed = (0..9).flat_map(|seq| (0..6).map(move |rank| (seq, rank))).map(|(seq, rank)| one(seq, rank)).collect();
    case
}

/// All but this rank told a time-out ten minutes after the last step.
fn timed_out(mut case: Case, but: u32) -> Case {
    for rank in (0..6).filter(|rank| *rank != but) {
        let line = format!(
            "[2026-11-20 10:20:10] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n"
        );
        case.logs.push(log(Whose::Rank(rank), &line, &RULES));
    }
    case
}

#[test]
fn what_is_known_beside_a_host_that_stopped_is_said_word_for_word() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "storage-and-hosts", case);
    let waits = || job(&[("3", Some(5), WAITS)]);
    tell("its loader waits, and RAS told once that rank 3 is behind", &polled_once(waits(), 3));
    tell("its loader waits, and RAS told once that rank 2 is behind", &polled_once(waits(), 2));
    tell("its loader waits, and rank 3 was late at times", &late_at_times(waits(), 3));
    tell("its loader waits, and rank 2 was late at times", &late_at_times(waits(), 2));
    let dies = |at: &str| {
        let mut case = job(&[]);
        case.logs.push(log(Whose::Kernel("n1".to_owned()), &format!("[2026-11-20 10:{at}] {}\n", killed(103)), &RULES));
        case
    };
    tell("rank 3 was killed two minutes after the last step", &dies("12:00"));
    tell(
        "rank 3 was killed less than two minutes after the last step of a job that hung",
        &timed_out(dies("11:59"), 2),
    );
    tell("rank 3 was killed two minutes after the last step of a job that hung", &timed_out(dies("12:00"), 2));
    let nfs = |nodes: &[&str]| job(&nodes.iter().map(|node| (*node, Some(5), NFS)).collect::<Vec<_>>());
    let behind = |mut case: Case, rank: usize| {
        case.polls = counts::one_behind(rank).polls;
        case
    };
    tell("NFS of n1 does not answer, and RAS tells that rank 3 is behind", &behind(nfs(&["n1"]), 3));
    tell("NFS of n1 does not answer, and RAS tells that rank 5 is behind", &behind(nfs(&["n1"]), 5));
    tell("NFS of n0 and n1 does not answer, and RAS tells that rank 3 is behind", &behind(nfs(&["n0", "n1"]), 3));
    super::hold("hosts-beside.txt", &text);
}

/// Each rank's GPU by its address: `0000:10:00` and `0000:11:00` on each node.
fn with_buses(mut case: Case) -> Case {
    for rank in 0..6 {
        let joined = Joined {
            host: Some(format!("n{}", rank / 2)),
            pid: Some(100 + rank),
            rank: Some(rank),
            ranks: Some(6),
            gpu: Some(rank % 2),
            bus: Some(format!("0000:{}:00.0", 10 + rank % 2)),
            comm: Some("c0".to_owned()),
        };
        let mut own = log(Whose::Rank(rank), "starts\n", &RULES);
        own.comms = vec![joined];
        case.logs.push(own);
    }
    case
}

#[test]
fn what_broke_is_said_word_for_word_by_whose_it_is_and_what_else_is_known() {
    let mut text = String::new();
    let mut tell = |name: &str, case: &Case| super::in_short(&mut text, name, "critical-errors", case);
    let of = |lines: Lines<'_>| with_buses(job(lines));
    tell("the GPU of rank 3", &of(&[("n1", Some(5), LOST)]));
    tell("a GPU of n1 that no rank has", &of(&[("n1", Some(5), &LOST.replace("11:00", "3b:00"))]));
    tell("both GPUs of n1", &of(&[("n1", Some(5), LOST), ("n1", Some(5), &LOST.replace("11:00", "10:00"))]));
    let mut behind = of(&[("n1", Some(5), LOST), ("n1", Some(5), &LOST.replace("11:00", "10:00"))]);
    behind.polls = counts::one_behind(3).polls;
    tell("both GPUs of n1, and RAS tells that rank 3 is behind", &behind);
    let mut other = of(&[("n1", Some(5), LOST), ("n2", Some(5), LOST)]);
    other.polls = counts::one_behind(5).polls;
    tell("a GPU of n1 and one of n2, and RAS tells that rank 5 is behind", &other);
    let link = "NVRM: Xid (PCI:0000:11:00): 149, pid='<unknown>', name=<unknown>, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)";
    tell("an NVLink of rank 3", &of(&[("n1", Some(5), link)]));
    let ranks = "RuntimeError: No CUDA GPUs are available";
    tell("rank 3 says that it has no GPU", &of(&[("3", Some(5), ranks)]));
    tell("ranks 2 and 3 say that they have no GPU", &of(&[("2", Some(5), ranks), ("3", Some(5), ranks)]));
    let firmware = "mlx5_core 0000:5c:00.0: poll_health:955:(pid 0): device's health compromised - reached miss count";
    tell("the adapter of n1", &of(&[("n1", Some(5), firmware)]));
    tell("the adapter and then a GPU of n1", &of(&[("n1", Some(4), firmware), ("n1", Some(5), LOST)]));
    let mut many: Vec<(&str, Option<u32>, String)> = Vec::new();
    many.extend((0..9).map(|nr| ("n1", Some(5), LOST.replace("11:00", &format!("{nr}f:00")))));
    let many: Vec<(&str, Option<u32>, &str)> =
        many.iter().map(|(node, at, line)| (*node, *at, line.as_str())).collect();
    tell("nine GPUs of n1", &of(&many));
    super::hold("broken.txt", &text);
}
