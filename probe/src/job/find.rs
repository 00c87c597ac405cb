//! Which processes are the job's, and which of them are its ranks?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_wire::{DEMO_NODE, JobOrder, PROCESSES};

use super::open::within;
use super::words::{self, Place};
use crate::collect::Root;
use crate::watch::job::{KERNEL, Process, belongs, has, read};

/// Processes that are gone through.
const MOST: usize = 65_536;
/// Longest wait for a process's command line or environment: the kernel gives them only when it gets hold of the process's memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// Processes that may hang so before no more are asked.
const STUCK: usize = 4;

/// One process of the job, as it was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) pid: u32,
    pub(super) first: Process,
    pub(super) arguments: Vec<String>,
    /// Nothing where it may not be read.
    pub(super) environment: Option<BTreeMap<String, String>>,
    pub(super) place: Place,
}

/// The ranks of the job on this node.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    /// Ranks in their order, then processes of the job whose rank nothing tells, where no rank is told at all.
    pub(super) found: Vec<Found>,
    pub(super) others: u32,
    pub(super) found_by: String,
    pub(super) notes: Vec<String>,
}

/// Finds them.
pub(super) fn ranks(root: &Root, order: &JobOrder) -> Ranks {
    let mut ranks = Ranks { found_by: found_by(order), ..Ranks::default() };
    // What this probe starts stays in its group.
    let own = read(root, std::process::id()).map_or(0, |own| own.group);
    let node = std::env::var(DEMO_NODE).ok();
    let names = root.names("/proc").value().cloned().unwrap_or_default();
    let mut stuck = 0;
    let mut all = Vec::new();
    for pid in names.iter().filter_map(|name| name.parse::<u32>().ok()).take(MOST) {
        let Some(first) = read(root, pid) else { continue };
        if pid == KERNEL || first.parent == KERNEL || first.state == 'Z' || (own != 0 && first.group == own) {
            continue;
        }
        if !order.pids.is_empty() && !order.pids.contains(&pid) {
            continue;
        }
        if node.as_ref().is_some_and(|node| !has(root, pid, DEMO_NODE, node)) {
            continue;
        }
        if stuck >= STUCK {
            break;
        }
        match meant(root, order, pid, first) {
            Ok(found) => all.extend(found),
            Err(()) => {
                stuck += 1;
                ranks.notes.push(format!("Process {pid}: its command line and environment were not readable within 2 s; its memory is locked, as in a page fault that does not end."));
            }
        }
    }
    if order.job.is_none() && order.pids.is_empty() && order.pattern.is_none() {
        all.retain(|found| found.place.is_told() || words::is_own(&found.arguments));
    }
    choose(all, &mut ranks);
    ranks
}

fn found_by(order: &JobOrder) -> String {
    match (&order.job, &order.pattern) {
        (Some(job), _) => format!("Slurm job {job}"),
        (None, _) if !order.pids.is_empty() => "the given process numbers".to_owned(),
        (None, Some(pattern)) => format!("command line holds {pattern}"),
        (None, None) => "a rank in the environment, or muster's train-ddp".to_owned(),
    }
}

/// The process, if it is one of the job; an error where it did not let itself be looked at in time.
fn meant(root: &Root, order: &JobOrder, pid: u32, first: Process) -> Result<Option<Found>, ()> {
    let (root, order) = (root.clone(), order.clone());
    let look = move || {
        if order.job.as_ref().is_some_and(|job| !belongs(&root, pid, job)) {
            return None;
        }
        let line = root.text(&format!("/proc/{pid}/cmdline"));
        let arguments: Vec<String> = line.value()?.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
        if let Some(pattern) = order.pattern.as_ref().filter(|_| order.job.is_none() && order.pids.is_empty())
            && !arguments.join(" ").contains(pattern.as_str())
        {
            return None;
        }
        let environment = root.text(&format!("/proc/{pid}/environ"));
        let environment = match &environment {
            muster_wire::Reading::Value(text) => Some(words::told(text)),
            muster_wire::Reading::Absent => Some(BTreeMap::new()),
            _ => None,
        };
        let place = Place::of(environment.as_ref().unwrap_or(&BTreeMap::new()), &arguments);
        Some(Found { pid, first, arguments, environment, place })
    };
    within(PATIENCE, look).ok_or(())
}

/// Of the processes that say the same rank, the one that works: loaders and shells inherit it.
fn choose(all: Vec<Found>, ranks: &mut Ranks) {
    let count = all.len();
    let (told, untold): (Vec<Found>, Vec<Found>) = all.into_iter().partition(|found| found.place.rank.is_some());
    let mut of_rank: BTreeMap<u32, Found> = BTreeMap::new();
    let mut twice: BTreeSet<u32> = BTreeSet::new();
    for found in told {
        let rank = found.place.rank.unwrap_or(0);
        match of_rank.get(&rank) {
            Some(other) => {
                if master(other) != master(&found) {
                    twice.insert(rank);
                }
                // The one with more CPU time; of two alike, the older one.
                if found.first.ticks > other.first.ticks {
                    of_rank.insert(rank, found);
                }
            }
            None => drop(of_rank.insert(rank, found)),
        }
    }
    if let Some(rank) = twice.first() {
        ranks.notes.push(format!("Rank {rank} is there in several jobs on this node: name one with --job or --match."));
    }
    if of_rank.is_empty() {
        let mut untold = untold;
        untold.sort_by_key(|found| (u64::MAX - found.first.ticks, found.pid));
        ranks.found = untold.into_iter().take(PROCESSES / 8).collect();
        if !ranks.found.is_empty() {
            ranks.notes.push("No process tells its rank: the environment is denied, or has none.".to_owned());
        }
    } else {
        ranks.found = of_rank.into_values().take(PROCESSES).collect();
    }
    ranks.others = u32::try_from(count - ranks.found.len()).unwrap_or(u32::MAX);
}

fn master(found: &Found) -> Option<(&String, Option<&String>)> {
    let words = found.environment.as_ref()?;
    Some((words.get("MASTER_ADDR")?, words.get("MASTER_PORT")))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn process(&self, pid: u32, ticks: u64, command: &str, environment: &str) {
            let stat = format!("{pid} (x) S 1 1 {pid} 0 -1 0 1 0 0 0 {ticks} 0 0 0 20 0 1 0 77 9 5");
            self.write(&format!("proc/{pid}/stat"), &stat);
            self.write(&format!("proc/{pid}/cmdline"), &command.replace(' ', "\0"));
            self.write(&format!("proc/{pid}/environ"), &environment.replace(' ', "\0"));
        }
    }

    fn order() -> JobOrder {
        JobOrder { since_s: 3600, file_bytes: 1, all_bytes: 1, ..JobOrder::default() }
    }

    #[test]
    fn ranks_are_found_by_job_by_number_by_text_or_by_their_words() {
        let machine = Machine(tempfile::tempdir().unwrap());
        let root = Root::at(machine.0.path());
        machine.process(100, 9, "sh run.sh", "SLURM_JOB_ID=47 SLURM_PROCID=0 SLURM_NTASKS=2");
        machine.process(101, 900, "python train.py", "SLURM_JOB_ID=47 SLURM_PROCID=0 SLURM_NTASKS=2");
        machine.process(102, 800, "python train.py", "SLURM_JOB_ID=47 SLURM_PROCID=1 SLURM_NTASKS=2");
        machine.process(103, 1, "muster-probe train-ddp --rank 7 --world 8", "HOME=/");
        machine.process(104, 1, "vi train.py", "HOME=/");
        let pids = |order: &JobOrder| ranks(&root, order).found.iter().map(|found| found.pid).collect::<Vec<_>>();
        assert_eq!(pids(&JobOrder { job: Some("47".into()), ..order() }), [101, 102]);
        assert_eq!(pids(&JobOrder { pattern: Some("train-ddp".into()), ..order() }), [103]);
        assert_eq!(pids(&JobOrder { pids: vec![102], ..order() }), [102]);
        assert_eq!(pids(&order()), [101, 102, 103]);
        let found = ranks(&root, &order());
        assert_eq!((found.others, found.found_by.as_str()), (1, "a rank in the environment, or muster's train-ddp"));
        assert!(pids(&JobOrder { job: Some("9".into()), ..order() }).is_empty());
    }
}
