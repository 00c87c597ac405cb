//! What the processes of the job did while they were looked at: stopped, blocked, gone, busy, or waiting as they should.

use std::collections::{BTreeMap, BTreeSet};

use muster_wire::{JobProcess, Processes, Queue, Reading};

use super::case::Case;
use super::layout::Layout;
use muster_logs::fault::Fault;

/// Looks without which nothing is said of a process.
const FEWEST: usize = 3;
/// Share of the looks at which it must be so.
const MOSTLY: f64 = 0.8;
/// Shares of a CPU of one that computes, and of those that wait.
const BUSY: f64 = 0.7;
const IDLE: f64 = 0.3;
/// Shares of the looks at which connections are full that touch one node, and those that touch any other.
const FULL: f64 = 0.6;
const FREE: f64 = 0.3;
/// Begin of the names of kernel functions in which a process waits for storage, with what that is.
const STORAGE: [(&str, &str); 34] = [
    ("nfs", "NFS"),
    ("rpc_", "NFS"),
    ("fuse_", "a FUSE file system"),
    ("request_wait_answer", "a FUSE file system"),
    ("ll_", "Lustre"),
    ("cl_", "Lustre"),
    ("ptlrpc", "Lustre"),
    ("ldlm", "Lustre"),
    ("ceph", "Ceph"),
    ("cifs", "CIFS"),
    ("smb", "CIFS"),
    ("gpfs", "GPFS"),
    ("kxWaitCond", "GPFS"),
    ("beegfs", "BeeGFS"),
    ("fhgfs", "BeeGFS"),
    ("jbd2", "a disk (ext4)"),
    ("ext4", "a disk (ext4)"),
    ("xfs", "a disk (XFS)"),
    ("xlog", "a disk (XFS)"),
    ("btrfs", "a disk (btrfs)"),
    ("io_schedule", "a disk"),
    ("folio_wait", "a disk"),
    ("wait_on_page", "a disk"),
    ("blk_", "a disk"),
    ("vfs_", "a file system"),
    ("sb_start", "a file system"),
    ("iterate_dir", "a file system"),
    // A file system that is frozen for a snapshot, or whose journal is full, is waited for above its own functions.
    ("__sb_start", "a file system"),
    ("mnt_want_write", "a file system"),
    ("filename_create", "a file system"),
    ("lookup_slow", "a file system"),
    ("do_fsync", "a file system"),
    ("do_renameat", "a file system"),
    ("do_unlinkat", "a file system"),
];
/// Begin of the names of kernel functions in which a frozen process waits.
const FROZEN: [&str; 3] = ["__refrigerator", "do_freezer_trap", "refrigerator"];

/// What a process did.
#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// Stopped by a signal or a debugger, or frozen by a control group.
    Stopped(Halt),
    /// Waiting for storage at nearly every look: for which kind, and in which kernel function.
    Blocked(&'static str, String),
    /// Waiting without a way to be woken (state D), for what is not known or is no storage.
    Uninterruptible(String),
    /// It ended while it was looked at.
    Ended,
    /// Anything else.
    Alive,
}

/// What stops a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A signal.
    Signal,
    /// A debugger.
    Debugger,
    /// Its control group.
    Group,
}

impl Halt {
    /// In words.
    #[must_use]
    pub const fn told(self) -> &'static str {
        match self {
            Self::Signal => "stopped by a signal (state T)",
            Self::Debugger => "held by a debugger (state t)",
            Self::Group => "frozen by its control group",
        }
    }

    /// What exactly is wrong then.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::Signal => Fault::Stopped,
            Self::Debugger => Fault::Traced,
            Self::Group => Fault::Frozen,
        }
    }
}

/// One rank's process.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its node.
    pub node: String,
    /// Its number there.
    pub pid: u32,
    /// Its rank.
    pub rank: Option<u32>,
    /// What it did.
    pub doing: Doing,
    /// Share of a CPU.
    pub cpu: Option<f64>,
    /// Its states, look by look.
    pub states: String,
}

/// All processes of the job.
#[derive(Clone, Debug, Default)]
pub struct Standings {
    /// By node and rank.
    pub all: Vec<Standing>,
    /// Ranks without a process on a node that answered, with the node where it is known, while other ranks have one.
    pub vanished: BTreeMap<u32, Option<String>>,
    /// Nodes that could not be reached, with why.
    pub unreached: BTreeMap<String, String>,
    /// The one rank that computes while all others wait.
    pub busy: Option<u32>,
    /// The one node that data waits to get to or from.
    pub backlog: Option<Backlog>,
}

impl Standings {
    /// Worked out from what the nodes said.
    #[must_use]
    pub fn of(case: &Case, layout: &Layout) -> Self {
        let of_node = |(node, told): (&String, &Processes)| {
            let node = node.clone();
            told.processes.iter().map(|process| standing(&node, process)).collect::<Vec<_>>()
        };
        let all: Vec<Standing> = case.processes.iter().flat_map(of_node).collect();
        let unreached = case.reached.iter().filter(|node| node.unreached);
        let unreached: BTreeMap<String, String> =
            unreached.map(|node| (node.node.clone(), node.why.clone().unwrap_or_default())).collect();
        Self {
            vanished: vanished(case, layout, &all, &unreached),
            busy: busy(&all),
            backlog: backlog(case, layout),
            all,
            unreached,
        }
    }

    /// The process of a rank.
    #[must_use]
    pub fn of_rank(&self, rank: u32) -> Option<&Standing> {
        self.all.iter().find(|standing| standing.rank == Some(rank))
    }

    /// Whether the rank's process is there.
    #[must_use]
    pub fn lives(&self, rank: u32) -> bool {
        self.of_rank(rank).is_some_and(|standing| standing.doing != Doing::Ended)
    }
}

fn standing(node: &str, process: &JobProcess) -> Standing {
    let doing = doing(process);
    let (node, states) = (node.to_owned(), process.states.clone());
    Standing { node, pid: process.pid, rank: process.rank, doing, cpu: process.cpu, states }
}

fn doing(process: &JobProcess) -> Doing {
    let looks = process.states.len();
    let share =
        |letters: &str| process.states.chars().filter(|state| letters.contains(*state)).count() as f64 / looks as f64;
    if process.states.ends_with('-') {
        return Doing::Ended;
    }
    if looks < FEWEST {
        return Doing::Alive;
    }
    if share("T") >= MOSTLY && process.states.ends_with('T') {
        return Doing::Stopped(Halt::Signal);
    }
    if share("t") >= MOSTLY && process.states.ends_with('t') {
        return Doing::Stopped(Halt::Debugger);
    }
    let waits_in = functions(process);
    if waits_in.iter().any(|name| FROZEN.iter().any(|frozen| name.starts_with(frozen))) {
        return Doing::Stopped(Halt::Group);
    }
    let blocked = share("D") >= MOSTLY;
    // A request to a FUSE server can be interrupted at first, and still is one that is not answered.
    let waiting = share("DS") >= MOSTLY && process.cpu.is_none_or(|cpu| cpu < 0.05);
    let storage = waits_in.iter().find_map(|name| {
        let (_, kind) = STORAGE.iter().find(|(start, _)| name.starts_with(start))?;
        Some((*kind, name.clone()))
    });
    match storage {
        Some((kind, name)) if blocked || (waiting && !["a disk", "a file system"].contains(&kind)) => {
            Doing::Blocked(kind, name)
        }
        _ if blocked => Doing::Uninterruptible(waits_in.into_iter().next().unwrap_or_else(|| "not known".to_owned())),
        _ => Doing::Alive,
    }
}

/// Kernel functions in which it waits, innermost first: wait channel, stack, and the channels of blocked threads.
fn functions(process: &JobProcess) -> Vec<String> {
    let channel = process.wait_channel.value().cloned();
    let stack = process.stack.value().into_iter().flatten();
    // `[<0>] rpc_wait_bit_killable+0x1e/0xb0 [sunrpc]`
    let frame = |line: &String| {
        let name = line.split_once("] ").map_or(line.as_str(), |(_, rest)| rest);
        name.split(['+', ' ']).next().unwrap_or(name).to_owned()
    };
    let blocked =
        process.blocked.iter().filter_map(|thread| thread.rsplit_once(": ")).map(|(_, channel)| channel.to_owned());
    channel
        .into_iter()
        .chain(stack.map(frame))
        .chain(blocked)
        .filter(|name| name != "denied" && name != "unknown")
        .collect()
}

/// Ranks of the job without a process, where the node that should have it answered.
fn vanished(
    case: &Case,
    layout: &Layout,
    all: &[Standing],
    unreached: &BTreeMap<String, String>,
) -> BTreeMap<u32, Option<String>> {
    let world =
        case.processes.values().flat_map(|told| told.processes.iter().filter_map(|process| process.world)).max();
    let here: BTreeMap<u32, &str> =
        all.iter().filter(|s| s.doing != Doing::Ended).filter_map(|s| Some((s.rank?, s.node.as_str()))).collect();
    // Of a job that ended everywhere no process is left, and of one that nobody can read none is known.
    let Some(world) = world.filter(|world| *world <= 1 << 20 && !here.is_empty()) else { return BTreeMap::new() };
    let denied = case.processes.values().any(|told| told.processes.iter().any(|process| process.rank.is_none()));
    let partly = case.reached.iter().any(|node| node.why.is_some() && !node.unreached);
    if denied || partly || case.reached.is_empty() {
        return BTreeMap::new();
    }
    let homes = homes(&here);
    let mut vanished = BTreeMap::new();
    for rank in (0..world).filter(|rank| !here.contains_key(rank)) {
        let node = layout
            .node_of(rank)
            .map(str::to_owned)
            .or_else(|| homes.as_ref()?.1.get(&(rank / homes.as_ref()?.0)).map(|n| (*n).to_owned()));
        // Under a name that no node that answered has, it may be on one that is out of reach.
        let answered = node.as_ref().is_some_and(|node| case.processes.contains_key(node));
        if !answered && !unreached.is_empty() {
            continue;
        }
        vanished.insert(rank, node);
    }
    // Without most of its ranks it is another job, or other nodes.
    if vanished.len() * 2 > world as usize { BTreeMap::new() } else { vanished }
}

/// Ranks of a node, and the node of each block of so many, where ranks lie in blocks.
fn homes<'a>(here: &BTreeMap<u32, &'a str>) -> Option<(u32, BTreeMap<u32, &'a str>)> {
    let mut of_node: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (rank, node) in here {
        of_node.entry(node).or_default().insert(*rank);
    }
    let each = u32::try_from(of_node.values().map(BTreeSet::len).max()?).ok()?;
    let mut homes = BTreeMap::new();
    for (rank, node) in here {
        if *homes.entry(rank / each).or_insert(*node) != *node {
            return None;
        }
    }
    Some((each, homes))
}

/// The one that computes while all others wait: they do not spin.
fn busy(all: &[Standing]) -> Option<u32> {
    let known: Vec<(u32, f64)> = all.iter().filter_map(|standing| Some((standing.rank?, standing.cpu?))).collect();
    let mut busy = known.iter().filter(|(_, cpu)| *cpu >= BUSY);
    let (one, more) = (busy.next()?, busy.next().is_some());
    let idle = known.iter().filter(|(_, cpu)| *cpu <= IDLE).count();
    (!more && known.len() > 2 && idle + 1 == known.len()).then_some(one.0)
}

/// A node that data waits to get to or from.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    /// Which.
    pub node: String,
    /// Between which nodes data waited, in words.
    pub waits: Vec<String>,
    /// What TCP had to send again there, in words, where that is far more than elsewhere.
    pub again: Option<String>,
}

/// The one node that nearly all full connections touch, in the manner of `RootDiag`: each pair of nodes counts once, by the share of the looks.
fn backlog(case: &Case, layout: &Layout) -> Option<Backlog> {
    let mut edges: Vec<(&String, String, f64, &Queue)> = Vec::new();
    for (node, told) in &case.processes {
        for queue in told.queues.iter().filter(|queue| queue.looks >= FEWEST as u32) {
            let (peer, share) = (layout.node(&queue.peer), f64::from(queue.full) / f64::from(queue.looks));
            if peer != *node {
                edges.push((node, peer, share, queue));
            }
        }
    }
    let sum = |touches: &dyn Fn(&str, &str) -> bool| -> f64 {
        edges.iter().filter(|(from, to, ..)| touches(from, to)).map(|(.., share, _)| share).sum()
    };
    let score = |node: &str| sum(&|from, to| from == node || to == node);
    let nodes: Vec<&String> = case.processes.keys().collect();
    let highest = nodes.iter().map(|node| score(node)).fold(0.0, f64::max);
    // The two ends of one pair score the same: then what was sent again decides.
    let first: Vec<&String> = nodes.iter().copied().filter(|node| score(node) >= highest - 1e-9).collect();
    let most = *first.iter().find(|node| again(case, node).is_some()).or_else(|| first.first())?;
    let others: Vec<f64> = nodes
        .iter()
        .filter(|node| **node != most)
        .map(|node| sum(&|from, to| (from == *node || to == *node) && from != most && to != most))
        .collect();
    let free = others.len() >= 2 && others.iter().all(|share| *share <= FREE);
    let mine: Vec<&(&String, String, f64, &Queue)> =
        edges.iter().filter(|(from, to, share, _)| (*from == most || to == most) && *share > FREE / 2.0).collect();
    let ends: BTreeSet<&str> =
        mine.iter().map(|(from, to, ..)| if *from == most { to.as_str() } else { from.as_str() }).collect();
    let again = again(case, most);
    // Of one pair either end may be at fault, unless one of them has to send again and again.
    if score(most) < FULL || !free || (ends.len() < 2 && again.is_none()) {
        return None;
    }
    let waits = mine.iter().map(|(from, to, _, queue)| {
        let (full, looks, most) = (queue.full, queue.looks, queue.most >> 10);
        format!("from {from} to {to} more than 64 KiB waited at {full} of {looks} looks, up to {most} KiB")
    });
    Some(Backlog { node: most.clone(), waits: waits.take(4).collect(), again })
}

/// TCP segments sent again on a node, where they are many and five times as many as on any other.
fn again(case: &Case, node: &str) -> Option<String> {
    let of = |told: &Processes| {
        let counter = told.counters.iter().find(|counter| counter.name == "RetransSegs")?;
        Some(counter.last - counter.first)
    };
    let mine = of(case.processes.get(node)?)?;
    let others = case.processes.iter().filter(|(other, _)| *other != node).filter_map(|(_, told)| of(told));
    let most = others.fold(0.0, f64::max);
    (mine >= 100.0 && mine >= 5.0 * most)
        .then(|| format!("TCP sent {mine:.0} segments again there, on any other node at most {most:.0}"))
}

/// Whether what a process waits for could be read.
#[must_use]
pub fn waits_are_told(process: &JobProcess) -> bool {
    matches!(process.wait_channel, Reading::Value(_)) || matches!(process.stack, Reading::Value(_))
}

#[cfg(test)]
mod tests {
    use super::super::case::Reached;
    use super::*;

    fn process(rank: u32, states: &str) -> JobProcess {
        JobProcess { pid: 100 + rank, rank: Some(rank), world: Some(6), states: states.into(), ..JobProcess::default() }
    }

    fn case(nodes: &[(&str, &[JobProcess])], unreached: &[&str]) -> Case {
        let mut case = Case::default();
        for (node, processes) in nodes {
            case.reached.push(Reached { node: (*node).into(), ..Reached::default() });
            let told = Processes { processes: processes.to_vec(), ..Processes::default() };
            case.processes.insert((*node).to_owned(), told);
        }
        for node in unreached {
            let why = Some("no route".to_owned());
            case.reached.push(Reached { node: (*node).into(), why, unreached: true, clock: None });
        }
        case
    }

    fn standings(case: &Case) -> Standings {
        Standings::of(case, &Layout::of(case))
    }

    #[test]
    fn stopped_frozen_and_blocked_processes_are_told_apart_from_waiting_ones() {
        let waits = |states: &str, channel: &str| JobProcess {
            wait_channel: Reading::Value(channel.into()),
            ..process(0, states)
        };
        assert!(matches!(doing(&process(0, "STTTTTTT")), Doing::Stopped(_)));
        assert!(matches!(doing(&process(0, "TTT")), Doing::Stopped(_)));
        for moved in ["TTTTTTTS", "tttttttS", "SSST", "SSSt"] {
            assert_eq!(doing(&process(0, moved)), Doing::Alive, "{moved}");
        }
        assert!(matches!(doing(&waits("SSSSSS", "do_freezer_trap")), Doing::Stopped(_)));
        assert_eq!(
            doing(&waits("DDDDDD", "rpc_wait_bit_killable")),
            Doing::Blocked("NFS", "rpc_wait_bit_killable".into())
        );
        let frozen = ["[<0>] percpu_rwsem_wait+0x15f/0x1d0", "[<0>] mnt_want_write+0x96/0xc0"];
        let frozen = JobProcess {
            stack: Reading::Value(frozen.map(str::to_owned).to_vec()),
            ..waits("DDDDDD", "percpu_rwsem_wait")
        };
        assert_eq!(doing(&frozen), Doing::Blocked("a file system", "mnt_want_write".into()));
        assert!(matches!(doing(&waits("SSSSSS", "request_wait_answer")), Doing::Blocked("a FUSE file system", _)));
        assert_eq!(doing(&waits("SSSSSS", "tcp_recvmsg")), Doing::Alive);
        assert_eq!(doing(&waits("SDSSRS", "io_schedule")), Doing::Alive);
        assert_eq!(doing(&process(0, "DDDDDD")), Doing::Uninterruptible("not known".into()));
        assert_eq!(doing(&process(0, "SSS-")), Doing::Ended);
        assert_eq!(doing(&process(0, "TT")), Doing::Alive, "two looks say nothing");
    }

    #[test]
    fn a_rank_without_a_process_vanished_only_where_its_node_answered() {
        let pair = |a: u32| [process(a, "SSSS"), process(a + 1, "SSSS")];
        let whole = case(&[("a", &pair(0)), ("b", &pair(2)[..1]), ("c", &pair(4))], &[]);
        assert_eq!(standings(&whole).vanished, [(3, Some("b".to_owned()))].into());
        let cut = case(&[("a", &pair(0)), ("b", &pair(2))], &["c"]);
        assert_eq!(standings(&cut).vanished, BTreeMap::new());
        assert_eq!(standings(&cut).unreached.len(), 1);
        let both = case(&[("a", &pair(0)), ("b", &pair(2)[1..])], &["c"]);
        assert_eq!(standings(&both).vanished, [(2, Some("b".to_owned()))].into());
        // Nobody was asked: a bundle put together by hand says nothing of who is not in it.
        let mut by_hand = whole;
        by_hand.reached.clear();
        assert!(standings(&by_hand).vanished.is_empty());
    }

    #[test]
    fn one_that_computes_while_all_others_wait_is_named_and_spinning_ranks_are_not() {
        let with = |cpus: &[f64]| {
            let ranks: Vec<JobProcess> = cpus
                .iter()
                .zip(0..)
                .map(|(cpu, rank)| JobProcess { cpu: Some(*cpu), ..process(rank, "SSSS") })
                .collect();
            standings(&case(&[("a", &ranks)], &[])).busy
        };
        assert_eq!(with(&[0.0, 1.0, 0.1, 0.0]), Some(1));
        assert_eq!(with(&[1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(with(&[0.0, 1.0, 0.5, 0.0]), None);
        assert_eq!(
            (with(&[0.0, 1.0, 0.0]), with(&[0.0, 1.0])),
            (Some(1), None),
            "of two nobody says who is the odd one"
        );
    }

    #[test]
    fn a_node_that_data_waits_to_get_to_and_from_is_found_by_full_connections() {
        let mut case = case(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])], &[]);
        let queue = |peer: &str, full| Queue { peer: peer.into(), full, looks: 13, most: 1 << 19 };
        for (node, peer, full) in [("a", "b", 1), ("b", "c", 7), ("c", "d", 5), ("d", "a", 0)] {
            case.processes.get_mut(node).unwrap().queues.push(queue(peer, full));
        }
        let found = standings(&case).backlog.unwrap();
        assert_eq!((found.node.as_str(), found.waits.len(), found.again), ("c", 2, None));
        // Everybody's connections are full: the network is used, and nobody is slow.
        for told in case.processes.values_mut() {
            told.queues[0].full = 8;
        }
        assert_eq!(standings(&case).backlog, None);
    }

    #[test]
    fn of_one_full_pair_only_the_end_that_sends_again_is_named() {
        let mut case = case(&[("a", &[]), ("b", &[]), ("c", &[])], &[]);
        case.processes.get_mut("a").unwrap().queues.push(Queue {
            peer: "b".into(),
            full: 12,
            looks: 13,
            most: 1 << 19,
        });
        assert_eq!(standings(&case).backlog, None);
        let counter = |last| muster_wire::Counter {
            device: "tcp".into(),
            name: "RetransSegs".into(),
            first: 0.0,
            last,
            seconds: None,
        };
        for (node, last) in [("a", 3.0), ("b", 900.0), ("c", 2.0)] {
            case.processes.get_mut(node).unwrap().counters.push(counter(last));
        }
        assert_eq!(standings(&case).backlog.map(|found| found.node).as_deref(), Some("b"));
        case.processes.get_mut("a").unwrap().counters[0].last = 1_000.0;
        assert_eq!(standings(&case).backlog, None, "both send again");
        case.processes.get_mut("a").unwrap().counters[0].last = 9_000.0;
        assert_eq!(standings(&case).backlog.map(|found| found.node).as_deref(), Some("a"));
    }
    /// The node that is held for slow by connections from one to another that were full at so many of ten looks.
    fn slow_by(full: &[(&str, &str, u32)]) -> Option<String> {
        let mut case = case(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])], &[]);
        for (from, to, full) in full {
            let queue = Queue { peer: (*to).into(), full: *full, looks: 10, most: 1 << 19 };
            case.processes.get_mut(*from).unwrap().queues.push(queue);
        }
        standings(&case).backlog.map(|found| found.node)
    }

    #[test]
    fn data_waits_for_a_node_at_three_of_five_looks_and_hardly_anywhere_else() {
        let c = Some("c".to_owned());
        assert_eq!(slow_by(&[("b", "c", 3), ("c", "d", 3)]), c);
        assert_eq!(slow_by(&[("b", "c", 3), ("c", "d", 2)]), None, "at half of them");
        assert_eq!(slow_by(&[("b", "c", 9), ("c", "d", 9), ("a", "b", 3)]), c);
        assert_eq!(slow_by(&[("b", "c", 9), ("c", "d", 9), ("a", "b", 4)]), None, "others wait, too");
        assert_eq!(slow_by(&[("b", "c", 9), ("c", "d", 1)]), None, "one of ten looks is no second end");
        assert_eq!(slow_by(&[("b", "c", 9), ("c", "d", 2)]), c);
        assert_eq!(slow_by(&[("c", "c", 9), ("c", "d", 9)]), None, "a node is no peer of itself");
    }

    #[test]
    fn two_looks_at_a_connection_say_nothing() {
        let mut case = case(&[("a", &[]), ("b", &[]), ("c", &[])], &[]);
        let queues =
            |looks| ["a", "b"].map(|peer| Queue { peer: peer.into(), full: looks, looks, most: 1 << 19 }).to_vec();
        case.processes.get_mut("c").unwrap().queues = queues(2);
        assert_eq!(standings(&case).backlog, None);
        case.processes.get_mut("c").unwrap().queues = queues(3);
        assert_eq!(standings(&case).backlog.map(|found| found.node).as_deref(), Some("c"));
    }

    #[test]
    fn who_waits_for_an_answer_uses_no_cpu_and_what_may_not_be_read_is_no_place() {
        let waits = |cpu| JobProcess {
            cpu: Some(cpu),
            wait_channel: Reading::Value("request_wait_answer".into()),
            ..process(0, "SSSSSS")
        };
        assert!(matches!(doing(&waits(0.04)), Doing::Blocked(..)));
        assert_eq!(doing(&waits(0.05)), Doing::Alive);
        for hidden in ["denied", "unknown"] {
            let thread = |channel: &str| format!("python3 (thread 7): {channel}");
            let blocked = |threads: &[&str]| JobProcess {
                wait_channel: Reading::Value(hidden.into()),
                blocked: threads.iter().map(|channel| thread(channel)).collect(),
                ..process(0, "DDDDDD")
            };
            assert_eq!(doing(&blocked(&[])), Doing::Uninterruptible("not known".into()));
            assert_eq!(doing(&blocked(&[hidden, "nvidia_ioctl"])), Doing::Uninterruptible("nvidia_ioctl".into()));
            assert_eq!(doing(&blocked(&["rpc_wait_bit"])), Doing::Blocked("NFS", "rpc_wait_bit".into()));
        }
    }
}
