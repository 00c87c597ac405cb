//! How busy others keep this node: CPU time that is not ours, over a moment, from two looks at /proc.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{FOREIGN_CPU, Fact, Reading, Unit};

use crate::collect::{Facts, Root, Then};

const MOMENT: Duration = Duration::from_millis(200);
/// Foreign processes named.
const NAMED: usize = 5;
/// Processes looked at.
const MOST: usize = 65_536;

/// CPU time since boot, in clock ticks, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    total: u64,
    /// Neither idle nor waiting for disks.
    busy: u64,
    /// Taken by the hypervisor; part of `busy`.
    steal: u64,
    /// In programs, not in the kernel.
    user: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    comm: String,
    ticks: u64,
    /// Of these, in the program itself.
    user: u64,
    started: u64,
}

struct Snapshot {
    cpus: Reading<Ticks>,
    own: u64,
    processes: HashMap<u32, Process>,
}

/// How much of the CPUs other programs use while a piece of work runs.
///
/// Only time in programs counts: what the kernel does for our own packets and disk requests is booked on its
/// threads and interrupts, and must not look like somebody else's work.
pub(crate) struct Watch {
    cpus: Option<Ticks>,
    own: u64,
}

impl Watch {
    /// Begins now.
    pub(crate) fn start(root: &Root) -> Self {
        let cpus = root.text("/proc/stat").value().and_then(|text| parse_cpus(text));
        let own = root.text("/proc/self/stat").value().and_then(|text| with_children(text));
        Self { cpus, own: own.unwrap_or(0) }
    }

    /// Share of all CPUs since then, 0 to 1; `None` where the kernel does not say.
    pub(crate) fn share(&self, root: &Root) -> Option<f64> {
        let now = Self::start(root);
        let (before, after) = (self.cpus?, now.cpus?);
        let total = after.total.checked_sub(before.total).filter(|ticks| *ticks > 0)?;
        let user = after.user.saturating_sub(before.user).saturating_sub(now.own.saturating_sub(self.own));
        Some((user as f64 / total as f64).min(1.0))
    }
}

/// Looks twice, 200 ms apart: shares of all CPUs used by others and by the hypervisor, and who the others are.
pub(crate) fn look(root: &Root) -> Vec<Fact> {
    let first = Snapshot::take(root);
    let begin = Instant::now();
    thread::sleep(MOMENT);
    let passed = begin.elapsed();
    let mut facts = Facts::default();
    differences(&first, &Snapshot::take(root), &mut facts);
    facts.number("foreign.over", Reading::Value(passed.as_secs_f64()), Some(Unit::Seconds));
    facts.done()
}

impl Snapshot {
    fn take(root: &Root) -> Self {
        let own_pid = std::process::id();
        let cpus = root.text("/proc/stat").and_then(|text| {
            parse_cpus(&text).map_or_else(|| Reading::Failed("no cpu line".to_owned()), Reading::Value)
        });
        let mut processes: HashMap<u32, Process> = root
            .names("/proc")
            .value()
            .into_iter()
            .flatten()
            .filter_map(|name| name.parse().ok())
            .take(MOST)
            .filter_map(|pid: u32| Some((pid, parse_process(root.text(&format!("/proc/{pid}/stat")).value()?)?)))
            .collect();
        let own = processes.remove(&own_pid).map_or(0, |process| process.ticks);
        Self { cpus, own, processes }
    }
}

fn differences(first: &Snapshot, second: &Snapshot, facts: &mut Facts) {
    let (Some(a), Some(b)) = (first.cpus.value(), second.cpus.value()) else {
        facts.number(FOREIGN_CPU, second.cpus.clone().map(|_| 0.0), Some(Unit::Ratio));
        return;
    };
    let total = b.total.saturating_sub(a.total);
    let own = second.own.saturating_sub(first.own);
    let share = |ticks: u64| {
        if total == 0 {
            return Reading::Failed("the CPU clock did not move".to_owned());
        }
        Reading::Value((ticks as f64 / total as f64).min(1.0))
    };
    facts.number(FOREIGN_CPU, share(b.busy.saturating_sub(a.busy).saturating_sub(own)), Some(Unit::Ratio));
    facts.number("foreign.steal", share(b.steal.saturating_sub(a.steal)), Some(Unit::Ratio));
    for (place, (pid, process, ticks)) in busiest(first, second).into_iter().enumerate() {
        facts.text(&format!("foreign.{place}.comm"), Reading::Value(process.comm.clone()));
        facts.number(&format!("foreign.{place}.pid"), Reading::Value(f64::from(pid)), Some(Unit::Count));
        facts.number(&format!("foreign.{place}.cpu"), share(ticks), Some(Unit::Ratio));
    }
}

/// The processes that used most CPU time between two looks, at most [`NAMED`].
fn busiest<'a>(first: &Snapshot, second: &'a Snapshot) -> Vec<(u32, &'a Process, u64)> {
    let mut used: Vec<_> = second
        .processes
        .iter()
        .filter_map(|(pid, now)| {
            let before = first.processes.get(pid).filter(|before| before.started == now.started);
            let ticks = now.ticks.saturating_sub(before.map_or(now.ticks, |before| before.ticks));
            (ticks > 0).then_some((*pid, now, ticks))
        })
        .collect();
    used.sort_by_key(|(pid, _, ticks)| (std::cmp::Reverse(*ticks), *pid));
    used.truncate(NAMED);
    used
}

/// The `cpu` line of /proc/stat: user nice system idle iowait irq softirq steal, then guest times that are
/// already in user and nice.
fn parse_cpus(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let [_, _, _, idle, ..] = ticks[..] else { return None };
    let total: u64 = ticks.iter().fold(0, |sum, part| sum.saturating_add(*part));
    let waiting = ticks.get(4).copied().unwrap_or(0);
    let busy = total.saturating_sub(idle).saturating_sub(waiting);
    let user = ticks.iter().take(2).fold(0, |sum: u64, part| sum.saturating_add(*part));
    Some(Ticks { total, busy, steal: ticks.get(7).copied().unwrap_or(0), user })
}

/// `pid (comm) state …`: comm may hold spaces and brackets, so fields are counted from the last bracket.
fn parse_process(text: &str) -> Option<Process> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let comm = text.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let user = number(11)?;
    Some(Process { comm, ticks: user.saturating_add(number(12)?), user, started: number(19)? })
}

/// Time in the program of a process and of the children it has seen end: GPU workers are our own work.
fn with_children(text: &str) -> Option<u64> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace().skip(11);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (user, _system, children) = (number()?, number()?, number()?);
    Some(user.saturating_add(children))
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;

    use super::*;

    fn snapshot(cpus: &str, own: u64, processes: &[(u32, u64, u64)]) -> Snapshot {
        let cpus = Reading::Value(parse_cpus(cpus).unwrap());
        let process = |ticks, started| Process { comm: "train".into(), ticks, user: 0, started };
        Snapshot { cpus, own, processes: processes.iter().map(|(pid, t, s)| (*pid, process(*t, *s))).collect() }
    }

    fn value(facts: &[Fact], key: &str) -> Option<Reading<Datum>> {
        facts.iter().find(|fact| fact.key == key).map(|fact| fact.reading.clone())
    }

    #[test]
    fn foreign_is_what_is_busy_and_not_ours() {
        let first = snapshot("cpu 100 0 100 800 0 0 0 0", 10, &[(7, 50, 1)]);
        let second = snapshot("cpu 130 0 110 850 0 0 0 10 99 99", 30, &[(7, 75, 1), (8, 90, 2)]);
        let mut facts = Facts::default();
        differences(&first, &second, &mut facts);
        let facts = facts.done();
        assert_eq!(value(&facts, FOREIGN_CPU), Some(Reading::Value(Datum::Number(0.3))));
        assert_eq!(value(&facts, "foreign.steal"), Some(Reading::Value(Datum::Number(0.1))));
        assert_eq!(value(&facts, "foreign.0.pid"), Some(Reading::Value(Datum::Number(7.0))));
        assert_eq!(value(&facts, "foreign.0.cpu"), Some(Reading::Value(Datum::Number(0.25))));
        assert_eq!(value(&facts, "foreign.1.pid"), None);
    }

    #[test]
    fn the_work_of_children_that_ended_is_ours() {
        assert_eq!(with_children("42 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 50 22 7 3 20 0 1 0 777 1 1"), Some(57));
        assert_eq!(with_children("42 (a"), None);
    }

    #[test]
    fn what_others_compute_meanwhile_is_seen_and_our_own_work_is_not() {
        let root = Root::system();
        let spin = |length: Duration| {
            let begin = Instant::now();
            while begin.elapsed() < length {
                std::hint::spin_loop();
            }
        };
        let cpus = thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let mut other = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let watch = Watch::start(&root);
        spin(Duration::from_millis(600));
        let with = watch.share(&root).unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(with > 0.25 / cpus, "{with}");

        let mine = Watch { cpus: parse_cpus("cpu 100 0 0 900"), own: 10 };
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/stat", "cpu 150 0 50 1000 0 0 0 0");
        write("proc/self/stat", "42 (p) S 1 1 1 0 -1 4194560 1 0 0 0 50 22 0 0 20 0 1 0 777 1 1");
        assert_eq!(mine.share(&Root::at(tree.path())), Some(0.05));
    }

    #[test]
    fn a_clock_that_stands_still_is_no_idle_node() {
        let still = snapshot("cpu 1 2 3 4", 0, &[]);
        let mut facts = Facts::default();
        differences(&still, &still, &mut facts);
        assert!(matches!(value(&facts.done(), FOREIGN_CPU), Some(Reading::Failed(_))));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let line = "42 (a) b (c)) S 1 1 1 0 -1 4194560 1 0 0 0 11 22 0 0 20 0 1 0 777 1 1";
        assert_eq!(parse_process(line), Some(Process { comm: "a) b (c)".into(), ticks: 33, user: 11, started: 777 }));
        assert_eq!(parse_process("42 (a"), None);
        assert_eq!(parse_cpus("intr 1 2 3"), None);
    }
}
