//! What runs on the node: services, the dead and the stuck, and what this login may lock in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use muster_wire::{Reading, Unit};
use rustix::process::{Resource, getrlimit};

use super::{Facts, Root, Then};

/// Between the two looks at a stuck process.
const MOMENT: Duration = Duration::from_millis(250);
/// Processes looked at, and stuck ones named.
const MOST: usize = 65_536;
const NAMED: usize = 8;
/// Services whose presence is a property of the node, by the first 15 letters of their process.
const SERVICES: [&str; 22] = [
    "sshd",
    "slurmd",
    "munged",
    "containerd",
    "dockerd",
    "kubelet",
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "ptp4l",
    "phc2sys",
    "nv-hostengine",
    "nv-fabricmanage",
    "nvidia-persiste",
    "nvidia-imex",
    "dcgm-exporter",
    "node_exporter",
    "opensm",
    "irqbalance",
    "rasdaemon",
    "mcelog",
    "ipmi-exporter",
];

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    comm: String,
    state: char,
    kernel: bool,
}

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let processes = match processes(root) {
        Reading::Value(processes) => processes,
        other => {
            facts.count("total", other.map(|_| 0.0));
            return limits(root, facts);
        }
    };
    facts.count("total", Reading::Value(processes.len() as f64));
    let zombies = processes.values().filter(|process| process.state == 'Z').count();
    facts.count("zombies", Reading::Value(zombies as f64));
    let running: BTreeSet<&str> = processes.values().map(|process| process.comm.as_str()).collect();
    for service in SERVICES.into_iter().filter(|service| running.contains(service)) {
        facts.flag(&format!("service.{service}"), Reading::Value(true));
    }
    let stuck = stuck(root, &processes);
    facts.count("stuck", Reading::Value(stuck.len() as f64));
    for (at, (pid, comm)) in stuck.iter().take(NAMED).enumerate() {
        facts.text(&format!("stuck.{at}.comm"), Reading::Value(comm.as_str()));
        facts.count(&format!("stuck.{at}.pid"), Reading::Value(f64::from(*pid)));
    }
    limits(root, facts);
}

fn processes(root: &Root) -> Reading<BTreeMap<u32, Process>> {
    root.names("/proc").and_then(|names| {
        let pids = names.into_iter().filter_map(|name| name.parse::<u32>().ok()).take(MOST);
        let found: BTreeMap<u32, Process> = pids.filter_map(|pid| Some((pid, process(root, pid)?))).collect();
        if found.is_empty() { Reading::Absent } else { Reading::Value(found) }
    })
}

fn process(root: &Root, pid: u32) -> Option<Process> {
    parse(root.text(&format!("/proc/{pid}/stat")).value()?)
}

/// `4711 (name with ) spaces) D 1 …`; the flags, ninth, tell a thread of the kernel.
fn parse(stat: &str) -> Option<Process> {
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let (before, after) = stat.rsplit_once(')')?;
    let (_, comm) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let flags: u64 = fields.get(6)?.parse().ok()?;
    Some(Process { comm: comm.to_owned(), state: fields.first()?.chars().next()?, kernel: flags & KERNEL_THREAD != 0 })
}

/// Programs that waited for a device at both looks and did not run between them. Nothing tells since when.
fn stuck(root: &Root, first: &BTreeMap<u32, Process>) -> Vec<(u32, String)> {
    let waiting = |process: &Process| process.state == 'D' && !process.kernel;
    let suspects: Vec<(u32, &Process, Reading<String>)> = first
        .iter()
        .filter(|(_, process)| waiting(process))
        .map(|(pid, process)| (*pid, process, switches(root, *pid)))
        .collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    thread::sleep(MOMENT);
    let still = |(pid, process, before): &(u32, &Process, Reading<String>)| {
        let now = self::process(root, *pid);
        now.as_ref().is_some_and(|now| waiting(now) && now.comm == process.comm) && switches(root, *pid) == *before
    };
    suspects.iter().filter(|suspect| still(suspect)).map(|(pid, process, _)| (*pid, process.comm.clone())).collect()
}

/// How often it was switched, as the kernel writes it.
fn switches(root: &Root, pid: u32) -> Reading<String> {
    root.text(&format!("/proc/{pid}/status"))
        .map(|text| text.lines().filter(|line| line.contains("ctxt_switches")).collect::<Vec<_>>().join(" "))
}

/// Limits of this login, which are those of a job started the same way. Absent where there is none.
fn limits(root: &Root, facts: &mut Facts) {
    let own = root.is_system();
    for (key, resource, unit) in
        [("limit.memlock", Resource::Memlock, Unit::Bytes), ("limit.nofile", Resource::Nofile, Unit::Count)]
    {
        let limit = if own { getrlimit(resource).current } else { None };
        facts.flag(&format!("{key}.unlimited"), if own { Reading::Value(limit.is_none()) } else { Reading::Absent });
        facts.number(key, limit.map_or(Reading::Absent, |limit| Reading::Value(limit as f64)), Some(unit));
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;
    use proptest::prelude::*;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn the_dead_and_the_stuck_are_counted_and_services_are_named() {
        let tree = Tree::new(&[
            ("/proc/1/stat", "1 (sshd) S 0 1 1 0 -1 4194560 1"),
            ("/proc/20/stat", "20 (a (b) c) Z 1 1 1 0 -1 4194560 1"),
            ("/proc/30/stat", "30 (nvidia-smi) D 1 1 1 0 -1 4194560 1"),
            ("/proc/30/status", "Name: x\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n"),
            ("/proc/40/stat", "40 (kworker/0:1) D 2 0 0 0 -1 69238880 1"),
            ("/proc/50/stat", "broken"),
            ("/proc/self/stat", "1 (x) S"),
        ]);
        let facts = tree.look(look);
        assert_eq!((number(&facts, "total"), number(&facts, "zombies"), number(&facts, "stuck")), (4.0, 1.0, 1.0));
        assert_eq!(text(&facts, "stuck.0.comm"), "nvidia-smi");
        assert_eq!(reading_of(&facts, "service.sshd"), Reading::Value(Datum::Flag(true)));
        assert!(!facts.iter().any(|fact| fact.key == "service.slurmd"));
        assert_eq!(reading_of(&facts, "limit.memlock"), Reading::Absent);
    }

    #[test]
    fn the_limits_of_this_process_are_told() {
        let mut facts = Facts::default();
        limits(&Root::system(), &mut facts);
        let facts = facts.done();
        let Reading::Value(Datum::Flag(unlimited)) = reading_of(&facts, "limit.nofile.unlimited") else {
            panic!("{facts:?}")
        };
        assert_eq!(unlimited, reading_of(&facts, "limit.nofile") == Reading::Absent);
    }

    proptest! {
        #[test]
        fn any_stat_line_is_read_without_a_panic(any in ".{0,200}") {
            let _ = parse(&any);
        }
    }
}
