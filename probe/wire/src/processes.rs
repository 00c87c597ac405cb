//! What a node says of a job's processes: a JSON document that lies in a bundle as `processes/NODE.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::{NAME_BYTES, TEXT_BYTES};
use crate::{Reading, clean};

/// Most processes that a node tells of.
pub const PROCESSES: usize = 512;
/// Most bytes of the document.
pub const PROCESSES_BYTES: usize = 4 << 20;
/// Most items of any list in it.
const ITEMS: usize = 4_096;
/// Frames of a stack, threads that are told one by one.
const FEW: usize = 64;
/// Bytes of a command line.
const COMMAND: usize = 1_024;

/// What a GPU counts that tells of trouble, as facts call it behind `nvml.N.`: errors, and milliseconds of clocks held down.
pub const GPU_COUNTERS: [&str; 23] = [
    "ecc.corrected",
    "ecc.uncorrected",
    "remap.corrected",
    "remap.uncorrected",
    "pcie.replays",
    "pcie.recoveries",
    "pcie.correctable",
    "pcie.naks",
    "pcie.bad-tlp",
    "pcie.nonfatal",
    "pcie.fatal",
    "nvlink.replays",
    "nvlink.recoveries",
    "nvlink.crc",
    "nvlink.retrained",
    "nvlink.lost",
    "nvlink.symbols",
    "held.power",
    "held.heat",
    "held.board",
    "held.reliability",
    "held.hardware",
    "held.brake",
];

/// What a node says of a job's processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    /// Host name the node gives itself.
    pub hostname: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// How the processes were found, in words: `Slurm job 4711`, `command line holds train-ddp`.
    pub found_by: String,
    /// When the first look was, epoch seconds by the node's wall clock.
    pub at_s: f64,
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Looks at each process.
    pub looks: u32,
    /// The processes, by rank.
    pub processes: Vec<JobProcess>,
    /// Processes of the job that are not listed: helpers of ranks, shells.
    pub others: u32,
    /// Seconds by which the wall clock that the processes write into their logs is ahead of UTC.
    pub zone_s: Reading<i32>,
    /// Lines of the kernel log that were sent.
    pub kernel_log: Option<Reading<u64>>,
    /// What came of asking RAS; empty where it was not asked.
    pub ras: Vec<String>,
    /// Files that could not be read in time: their storage does not answer.
    pub stalled: Vec<String>,
    /// Where data of the job waited to be sent, by the other end.
    pub queues: Vec<Queue>,
    /// Counters of adapters and GPUs at the first look and the last.
    pub counters: Vec<Counter>,
    /// What was left out or could not be done, in sentences.
    pub notes: Vec<String>,
}

/// One process of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobProcess {
    /// Its number on the node.
    pub pid: u32,
    /// Its number in its own namespace, which is what it calls itself.
    pub inner_pid: u32,
    /// Rank in the job.
    pub rank: Option<u32>,
    /// What tells the rank: the name of a variable, or `command line`.
    pub rank_from: Option<String>,
    /// Rank on the node.
    pub local_rank: Option<u32>,
    /// Ranks of the job.
    pub world: Option<u32>,
    /// Command line, without what looks like a secret, cut.
    pub command: String,
    /// Variables that tell rank, world and addresses; nothing else of the environment.
    pub environment: Reading<BTreeMap<String, String>>,
    /// When it began, epoch seconds by the node's wall clock.
    pub started_s: f64,
    /// Letter of its state at each look, such as `SSSS`, `TTTT`; `-` once it was gone.
    pub states: String,
    /// What it waits for in the kernel, at the last look.
    pub wait_channel: Reading<String>,
    /// Kernel stack at the last look, innermost first.
    pub stack: Reading<Vec<String>>,
    /// Threads.
    pub threads: u32,
    /// Threads by the letter of their state at the last look.
    pub thread_states: BTreeMap<String, u32>,
    /// Threads that wait for a device at the last look: name and wait channel.
    pub blocked: Vec<String>,
    /// Share of one CPU that it used between the looks.
    pub cpu: Option<f64>,
    /// Memory that it holds, bytes.
    pub resident: u64,
    /// GPUs that it has open, by their number in /dev.
    pub gpus: Reading<Vec<u32>>,
    /// Where its output goes, where that is a file.
    pub outputs: Vec<String>,
}

/// A counter of an adapter or a GPU, at both ends of the looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counter {
    /// Adapter or GPU, such as `eth0`, `mlx5_0/1`, `GPU 3`.
    pub device: String,
    /// Counter by the kernel's name, or as [`GPU_COUNTERS`] calls it.
    pub name: String,
    /// At the first look.
    pub first: f64,
    /// At the last.
    pub last: f64,
    /// Seconds between both, where they are not those between the first look and the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What the job's connections to one other address had to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The other end.
    pub peer: String,
    /// Looks at which more than 64 KiB waited to be sent or acknowledged.
    pub full: u32,
    /// Looks at which there was a connection.
    pub looks: u32,
    /// Most bytes that waited at one look.
    pub most: u64,
}

impl Processes {
    /// The same with every text made harmless and every list cut: what comes from a node may be anything.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let real = |value: &mut f64| *value = if value.is_finite() { *value } else { 0.0 };
        real(&mut self.at_s);
        real(&mut self.seconds);
        name(&mut self.hostname);
        name(&mut self.found_by);
        list(&mut self.addresses, FEW, NAME_BYTES);
        list(&mut self.ras, FEW, TEXT_BYTES);
        list(&mut self.notes, ITEMS, TEXT_BYTES);
        list(&mut self.stalled, FEW, TEXT_BYTES);
        self.queues.truncate(ITEMS);
        self.queues.iter_mut().for_each(|queue| name(&mut queue.peer));
        self.counters.truncate(ITEMS);
        for counter in &mut self.counters {
            name(&mut counter.device);
            name(&mut counter.name);
            real(&mut counter.first);
            real(&mut counter.last);
            counter.seconds = counter.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        }
        match &mut self.zone_s {
            // The zones of this world lie within a day.
            Reading::Value(seconds) if seconds.unsigned_abs() > 86_400 => self.zone_s = Reading::Absent,
            Reading::Failed(why) => *why = clean(why, NAME_BYTES),
            _ => {}
        }
        if let Some(Reading::Failed(why)) = &mut self.kernel_log {
            *why = clean(why, NAME_BYTES);
        }
        self.processes.truncate(PROCESSES);
        self.processes.iter_mut().for_each(JobProcess::bound);
        self
    }
}

impl JobProcess {
    fn bound(&mut self) {
        self.started_s = if self.started_s.is_finite() { self.started_s } else { 0.0 };
        self.cpu = self.cpu.filter(|share| share.is_finite());
        self.command = clean(&self.command, COMMAND);
        name(&mut self.states);
        if let Some(from) = &mut self.rank_from {
            name(from);
        }
        match &mut self.environment {
            Reading::Value(words) => {
                let kept = std::mem::take(words).into_iter().take(FEW * 4);
                *words = kept.map(|(key, value)| (clean(&key, NAME_BYTES), clean(&value, TEXT_BYTES))).collect();
            }
            Reading::Failed(why) => *why = clean(why, NAME_BYTES),
            _ => {}
        }
        match &mut self.wait_channel {
            Reading::Value(text) | Reading::Failed(text) => *text = clean(text, NAME_BYTES),
            _ => {}
        }
        match &mut self.stack {
            Reading::Value(frames) => list(frames, FEW, NAME_BYTES),
            Reading::Failed(why) => *why = clean(why, NAME_BYTES),
            _ => {}
        }
        let states = std::mem::take(&mut self.thread_states).into_iter().take(FEW);
        self.thread_states = states.map(|(state, count)| (clean(&state, 8), count)).collect();
        list(&mut self.blocked, FEW, NAME_BYTES);
        list(&mut self.outputs, FEW, TEXT_BYTES);
        match &mut self.gpus {
            Reading::Value(gpus) => gpus.truncate(FEW),
            Reading::Failed(why) => *why = clean(why, NAME_BYTES),
            _ => {}
        }
    }
}

fn name(text: &mut String) {
    *text = clean(text, NAME_BYTES);
}

fn list(texts: &mut Vec<String>, most: usize, each: usize) {
    texts.truncate(most);
    texts.iter_mut().for_each(|text| *text = clean(text, each));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_is_made_harmless_and_cut() {
        let process = JobProcess {
            command: "x".repeat(9_000) + "\u{1b}[2J",
            wait_channel: Reading::Value("nfs\u{1b}[31m_wait".into()),
            cpu: Some(f64::NAN),
            blocked: vec!["a".into(); 900],
            ..JobProcess::default()
        };
        let told = Processes { processes: vec![process; 600], at_s: f64::INFINITY, ..Processes::default() }.bounded();
        let one = &told.processes[0];
        assert_eq!((told.processes.len(), told.at_s, one.command.len()), (PROCESSES, 0.0, COMMAND));
        assert_eq!((&one.wait_channel, one.cpu, one.blocked.len()), (&Reading::Value("nfs_wait".into()), None, FEW));
    }

    #[test]
    fn variables_of_the_environment_are_made_harmless_and_few() {
        let variables = (0..4 * FEW + 9).map(|at| (format!("K{at:05}\u{1b}[2J"), "v\u{1b}[2J".to_owned())).collect();
        let process = JobProcess { environment: Reading::Value(variables), ..JobProcess::default() };
        let told = Processes { processes: vec![process], ..Processes::default() }.bounded();
        let Reading::Value(kept) = &told.processes[0].environment else { panic!("{told:?}") };
        assert_eq!(kept.len(), 4 * FEW);
        assert!(kept.iter().all(|(key, value)| key.len() == 6 && value == "v"), "{kept:?}");
    }

    #[test]
    fn a_counter_s_time_is_kept_where_it_is_one() {
        let seconds = |seconds| {
            let counter = Counter { seconds: Some(seconds), first: f64::NAN, last: 3.0, ..Counter::default() };
            Processes { counters: vec![counter], ..Processes::default() }.bounded().counters.remove(0)
        };
        assert_eq!((seconds(0.5).seconds, seconds(0.5).first, seconds(0.5).last), (Some(0.5), 0.0, 3.0));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds(wrong).seconds, None, "{wrong}");
        }
    }

    #[test]
    fn a_document_of_another_version_is_read_as_far_as_it_is_known() {
        let told: Processes = Processes { hostname: "n1".into(), ..Processes::default() };
        assert_eq!(told.clone().bounded(), told);
        assert!(JobProcess::default().rank.is_none());
    }

    #[test]
    fn a_time_zone_is_within_a_day_and_reasons_are_made_harmless() {
        let zone = |zone_s| Processes { zone_s, ..Processes::default() }.bounded().zone_s;
        for kept in [-86_400, -34_200, 0, 86_400] {
            assert_eq!(zone(Reading::Value(kept)), Reading::Value(kept));
        }
        for wrong in [-86_401, 86_401] {
            assert_eq!(zone(Reading::Value(wrong)), Reading::Absent);
        }
        assert_eq!(zone(Reading::Failed("no\u{1b}[2J zone".into())), Reading::Failed("no zone".into()));
        let process = JobProcess {
            environment: Reading::Failed("not\u{1b}[2J ours".into()),
            wait_channel: Reading::Failed("not\u{1b}[2J ours".into()),
            stack: Reading::Failed("not\u{1b}[2J ours".into()),
            gpus: Reading::Failed("not\u{1b}[2J ours".into()),
            ..JobProcess::default()
        };
        let told = Processes { processes: vec![process], ..Processes::default() }.bounded();
        let one = &told.processes[0];
        assert_eq!(one.environment, Reading::Failed("not ours".into()));
        assert_eq!(one.wait_channel, Reading::Failed("not ours".into()));
        assert_eq!(one.stack, Reading::Failed("not ours".into()));
        assert_eq!(one.gpus, Reading::Failed("not ours".into()));
    }

    /// A process with too much of everything, and terminal control in every text.
    fn hostile() -> JobProcess {
        let bad = || "x\u{1b}[2J".repeat(50);
        JobProcess {
            rank_from: Some(bad()),
            command: bad(),
            states: bad(),
            started_s: f64::NAN,
            wait_channel: Reading::Value(bad()),
            stack: Reading::Value(vec![bad(); FEW + 1]),
            thread_states: (0..=FEW as u32).map(|at| (format!("{at:02}\u{1b}[2J"), at)).collect(),
            blocked: vec![bad(); FEW + 1],
            gpus: Reading::Value((0..=FEW as u32).collect()),
            outputs: vec![bad(); FEW + 1],
            ..JobProcess::default()
        }
    }

    #[test]
    fn every_text_of_a_document_is_made_harmless_and_every_list_is_cut() {
        let bad = || "x\u{1b}[2J".repeat(50);
        let told = Processes {
            hostname: bad(),
            addresses: vec![bad(); FEW + 1],
            found_by: bad(),
            at_s: f64::NAN,
            seconds: f64::NEG_INFINITY,
            processes: vec![hostile()],
            kernel_log: Some(Reading::Failed(bad())),
            ras: vec![bad(); FEW + 1],
            stalled: vec![bad(); FEW + 1],
            queues: vec![Queue { peer: bad(), ..Queue::default() }; ITEMS + 1],
            counters: vec![Counter { device: bad(), name: bad(), ..Counter::default() }; ITEMS + 1],
            notes: vec![bad(); ITEMS + 1],
            ..Processes::default()
        };
        let told = told.bounded();
        assert!(!format!("{told:?}").contains("\\u{1b}"), "{told:?}");
        assert_eq!((told.hostname.as_str(), told.at_s, told.seconds), (&*"x".repeat(50), 0.0, 0.0));
        assert_eq!([told.addresses.len(), told.ras.len(), told.stalled.len()], [FEW; 3]);
        assert_eq!([told.queues.len(), told.counters.len(), told.notes.len()], [ITEMS; 3]);
        let one = &told.processes[0];
        assert_eq!((one.started_s, one.states.len(), one.rank_from.as_deref()), (0.0, 50, Some(&*"x".repeat(50))));
        assert_eq!([one.thread_states.len(), one.blocked.len(), one.outputs.len()], [FEW; 3]);
        assert_eq!(one.thread_states.first_key_value(), Some((&"00".to_owned(), &0)));
        assert_eq!(one.gpus.value().map(Vec::len), Some(FEW));
        assert_eq!(one.stack.value(), Some(&vec!["x".repeat(50); FEW]));
    }

    #[test]
    fn what_a_node_usually_says_stays_as_it_is() {
        let process = JobProcess {
            command: "python train.py".into(),
            states: "SSSS".into(),
            started_s: 12.5,
            cpu: Some(0.97),
            stack: Reading::Value(vec!["futex_wait".into()]),
            gpus: Reading::Value(vec![3]),
            thread_states: BTreeMap::from([("S".to_owned(), 7)]),
            environment: Reading::Value(BTreeMap::from([("RANK".to_owned(), "3".to_owned())])),
            ..JobProcess::default()
        };
        let told = Processes {
            hostname: "n1".into(),
            at_s: 1.7e9,
            seconds: 3.0,
            zone_s: Reading::Value(3_600),
            kernel_log: Some(Reading::Value(9)),
            queues: vec![Queue { peer: "10.0.0.2".into(), full: 1, looks: 2, most: 3 }],
            counters: vec![Counter { device: "eth0".into(), name: "rx".into(), first: 1.0, last: 2.0, seconds: None }],
            processes: vec![process],
            ..Processes::default()
        };
        assert_eq!(told.clone().bounded(), told);
    }
}
