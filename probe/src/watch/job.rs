//! What the processes of the job do, taken together: those of the Slurm job that was named, where this node has any; else those that used
//! most CPU time lately, without the kernel's and our own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use muster_wire::DEMO_NODE;

use super::look::Look;
use crate::collect::Root;

/// Processes that stand for the job.
const CHOSEN: usize = 32;
/// Looks from one choice to the next: going through all processes costs more than all else.
const CHOOSE: u32 = 10;
/// Processes that are gone through.
const MOST: usize = 65_536;
/// The kernel's own threads are children of this process.
pub(crate) const KERNEL: u32 = 2;

/// A process is its number and when it started, since numbers are used again.
type Who = (u32, u64);

/// Who was chosen.
#[derive(Default)]
pub(super) struct Source {
    /// Id of the Slurm job.
    job: Option<String>,
    /// Our node's name, where nodes share a machine.
    node: Option<String>,
    looks: u32,
    /// CPU time of everybody when last chosen.
    before: BTreeMap<Who, u64>,
    chosen: Vec<Who>,
}

/// What `/proc/PID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// Hundredths of a second, of all its threads.
    pub(crate) ticks: u64,
    /// Hundredths of a second after the node booted.
    pub(crate) started: u64,
    /// Pages in memory.
    pub(crate) pages: u64,
}

impl Source {
    pub(super) fn of(job: Option<String>) -> Self {
        Self { job, node: std::env::var(DEMO_NODE).ok(), ..Self::default() }
    }

    pub(super) fn look(&mut self, root: &Root, look: &mut Look) {
        if self.looks.is_multiple_of(CHOOSE) {
            self.choose(root);
        }
        self.looks = self.looks.wrapping_add(1);
        let (cpus, memory) = (cpus(root), memory(root));
        let (mut pages, mut blocked, mut stopped, mut there) = (0, 0, 0, 0);
        for &(pid, started) in &self.chosen {
            let Some(process) = read(root, pid).filter(|process| process.started == started) else { continue };
            pages += process.pages;
            blocked += u32::from(process.state == 'D');
            stopped += u32::from(matches!(process.state, 'T' | 't'));
            there += 1;
            let device = format!("{pid}/{started}");
            look.count("job_cpu_pct", &device, process.ticks as f64 / cpus);
            if let Some((waited_ns, turns)) = waited(root, pid) {
                // A nanosecond of a second is a ten-millionth of a percent.
                look.count_most("job_wait_pct", &device, waited_ns * 1e-7);
                look.count("job_switches_per_s", &device, turns);
            }
            if let Some((read, written)) = bytes(root, pid) {
                look.count("job_read_gbs", &device, read * 1e-9);
                look.count("job_write_gbs", &device, written * 1e-9);
            }
        }
        look.level("job_blocked", f64::from(blocked));
        if there > 0 {
            look.level("job_stopped_pct", 100.0 * f64::from(stopped) / f64::from(there));
        }
        if let Some(memory) = memory {
            look.level("job_mem_pct", 100.0 * (pages as f64 * rustix::param::page_size() as f64 / memory).min(1.0));
        }
    }

    fn choose(&mut self, root: &Root) {
        // What this probe starts stays in its group. Its session may be that of others, where no login began it.
        let own = read(root, std::process::id()).map_or(0, |own| own.group);
        let names = root.names("/proc").value().cloned().unwrap_or_default();
        let pids = names.iter().filter_map(|name| name.parse().ok()).take(MOST);
        let all = pids.filter_map(|pid: u32| Some((pid, read(root, pid)?)));
        let others = all.filter(|(pid, of)| *pid != KERNEL && of.parent != KERNEL && (own == 0 || of.group != own));
        let here = |pid: u32| self.node.as_ref().is_none_or(|node| has(root, pid, DEMO_NODE, node));
        let others = others.filter(|(pid, _)| here(*pid));
        let mut now: BTreeMap<Who, u64> = others.map(|(pid, of)| ((pid, of.started), of.ticks)).collect();
        if let Some(job) = &self.job {
            let of_job = now.iter().filter(|((pid, _), _)| belongs(root, *pid, job));
            let of_job: BTreeMap<Who, u64> = of_job.map(|(who, ticks)| (*who, *ticks)).collect();
            if !of_job.is_empty() {
                now = of_job;
            }
        }
        let lately = |(who, ticks): (&Who, &u64)| {
            (ticks.saturating_sub(self.before.get(who).copied().unwrap_or(0)), *ticks, *who)
        };
        let mut busiest: Vec<_> = now.iter().map(lately).collect();
        busiest.sort_by_key(|(lately, ticks, who)| Reverse((*lately, *ticks, Reverse(*who))));
        self.chosen = busiest.into_iter().take(CHOSEN).map(|(.., who)| who).collect();
        self.before = now;
    }
}

pub(crate) fn read(root: &Root, pid: u32) -> Option<Process> {
    parse(root.text(&format!("/proc/{pid}/stat")).value()?)
}

/// `pid (comm) state parent group session …`: comm may hold spaces and brackets, so fields are counted from the last bracket.
pub(crate) fn parse(text: &str) -> Option<Process> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).ok()?,
        ticks: number(11)?.saturating_add(number(12)?),
        started: number(19)?,
        pages: number(21)?,
    })
}

/// Whether a process is one of the Slurm job `id`: by its control group, or by its environment where that may be read.
pub(crate) fn belongs(root: &Root, pid: u32, id: &str) -> bool {
    let group = root.text(&format!("/proc/{pid}/cgroup"));
    let folder = format!("job_{id}");
    if group.value().is_some_and(|text| text.split(['/', '\n']).any(|part| part == folder)) {
        return true;
    }
    has(root, pid, "SLURM_JOB_ID", id)
}

/// Whether a process was started with this environment variable; not where that may not be read.
pub(crate) fn has(root: &Root, pid: u32, variable: &str, value: &str) -> bool {
    let environment = root.text(&format!("/proc/{pid}/environ"));
    let mut pairs = environment.value().into_iter().flat_map(|text| text.split('\0'));
    pairs.any(|pair| pair.split_once('=') == Some((variable, value)))
}

/// Nanoseconds in which the first thread of a process was ready and got no CPU: others had them, or a limit held it back; and how often
/// it got one.
fn waited(root: &Root, pid: u32) -> Option<(f64, f64)> {
    let text = root.text(&format!("/proc/{pid}/schedstat"));
    let mut numbers = text.value()?.split_whitespace().skip(1).map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Bytes read from and written to disks; readable for our own user's processes, and for all as root.
fn bytes(root: &Root, pid: u32) -> Option<(f64, f64)> {
    let text = root.text(&format!("/proc/{pid}/io"));
    let field = |name: &str| text.value()?.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((field("read_bytes:")?, field("write_bytes:")?))
}

/// CPUs that are online, at least one.
fn cpus(root: &Root) -> f64 {
    let text = root.text("/proc/stat");
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    text.value().map_or(1, |text| text.lines().filter(is_cpu).count().max(1)) as f64
}

/// Bytes of memory.
fn memory(root: &Root) -> Option<f64> {
    let text = root.text("/proc/meminfo");
    let line = text.value()?.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.write("proc/stat", "cpu 1\ncpu0 1\ncpu1 1\n");
            machine.write("proc/meminfo", "MemTotal: 40960 kB\n");
            machine
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn process(&self, pid: u32, parent: u32, ticks: u64) {
            let (pages, page) = (10_u64 << 20, rustix::param::page_size() as u64);
            let stat = format!(
                "{pid} (tr) ain) D {parent} 1 {pid} 0 -1 0 1 0 0 0 {ticks} 0 0 0 20 0 1 0 77 9 {}",
                pages / page
            );
            self.write(&format!("proc/{pid}/stat"), &stat);
            self.write(&format!("proc/{pid}/schedstat"), &format!("1 {} 3", ticks * u64::from(pid) * 100_000));
            self.write(
                &format!("proc/{pid}/io"),
                &format!("rchar: 1\nread_bytes: {}\nwrite_bytes: 0\n", ticks * 1_000),
            );
        }
    }

    #[test]
    fn the_processes_of_the_job_are_taken_together_and_the_kernel_is_none() {
        let machine = Machine::new();
        let root = Root::at(machine.0.path());
        let mut source = Source::default();
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        machine.process(50, 1, 1_000);
        machine.process(51, 1, 2_000);
        machine.process(9, KERNEL, 9_000);
        source.look(&root, &mut first);
        machine.process(50, 1, 1_080);
        machine.process(51, 1, 2_060);
        machine.process(9, KERNEL, 9_100);
        source.look(&root, &mut second);
        let found = second.since(&first);
        let of = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        assert_eq!((of("job_cpu_pct"), of("job_blocked"), of("job_mem_pct")), (Some(70.0), Some(2.0), Some(50.0)));
        // 80 ticks of process 50 are 400 ms here, 60 of process 51 are 306.
        assert!((of("job_wait_pct").unwrap() - 40.0).abs() < 1e-9, "{found:?}");
        assert!((of("job_read_gbs").unwrap() - 140e-6).abs() < 1e-12);
    }

    #[test]
    fn the_processes_of_the_slurm_job_come_before_busier_ones() {
        let machine = Machine::new();
        let root = Root::at(machine.0.path());
        (100..150).for_each(|pid| machine.process(pid, 1, 10_000));
        machine.process(30, 1, 5);
        machine.write("proc/30/cgroup", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0");
        machine.process(31, 1, 5);
        machine.write("proc/31/environ", "HOME=/\0SLURM_JOB_ID=4711\0X=1\0");
        machine.process(32, 1, 5);
        machine.write("proc/32/cgroup", "0::/system.slice/slurmstepd.scope/job_47110/step_0");
        let chosen = |job: &str| {
            let mut source = Source::of(Some(job.to_owned()));
            source.choose(&root);
            let mut pids: Vec<u32> = source.chosen.iter().map(|(pid, _)| *pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(chosen("4711"), [30, 31]);
        assert_eq!(chosen("9").len(), CHOSEN, "without any of the job, the busiest stand for it");
    }

    #[test]
    fn of_nodes_that_share_a_machine_each_takes_its_own_processes_and_tells_how_many_are_stopped() {
        let machine = Machine::new();
        let root = Root::at(machine.0.path());
        for (pid, node) in [(60, "demo-01"), (61, "demo-02"), (62, "demo-01")] {
            machine.process(pid, 1, 100);
            machine.write(&format!("proc/{pid}/environ"), &format!("{DEMO_NODE}={node}\0"));
        }
        let stat = machine.0.path().join("proc/62/stat");
        let stopped = std::fs::read_to_string(&stat).unwrap().replace(") D ", ") T ");
        std::fs::write(stat, stopped).unwrap();
        let mut source = Source { node: Some("demo-01".to_owned()), ..Source::default() };
        let mut look = Look::at(0);
        source.look(&root, &mut look);
        let mut pids: Vec<u32> = source.chosen.iter().map(|(pid, _)| *pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [60, 62]);
        assert!(look.since(&Look::at(0)).contains(&("job_stopped_pct", 50.0)));
    }

    #[test]
    fn the_busiest_lately_stand_for_the_job() {
        let machine = Machine::new();
        let root = Root::at(machine.0.path());
        (100..150).for_each(|pid| machine.process(pid, 1, 10_000));
        let mut source = Source::default();
        source.choose(&root);
        (100..150).for_each(|pid| machine.process(pid, 1, 10_000 + u64::from(pid)));
        source.choose(&root);
        let pids: Vec<u32> = source.chosen.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(pids, (118..150).rev().collect::<Vec<u32>>());
    }
}
