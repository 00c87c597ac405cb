//! Jobs on real nodes, broken for real, and what `muster triage` says of them, with the time it takes. By hand, with
//! `tests/campaign broken`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use muster_tests::{FOLDER, Fleet, Job, JobOptions, Load, Options, is_root};
use serde_json::Value;

const NODES: u8 = 8;
const EACH: usize = 2;
/// Weights go to a file system of their own every few steps.
const WITH: &str = "--pause 100 --checkpoint /srv/job --checkpoint-every 5";
/// What a link carries, and a tenth of it.
const LINK: (&str, &str) = ("200mbit", "20mbit");
/// What a rank may take beside what it has, and soon has with a leak.
const MEMORY: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    Stopped,
    Cut,
    Killed,
    WrongSize,
    Deadlock,
    SlowLink,
    Storage,
    OutOfMemory,
    Scheduler,
}

/// Who has to be named.
enum Wanted {
    Nobody,
    /// This rank, and nobody else.
    Rank(usize),
    /// This node or ranks of it, and nobody else.
    Node(String),
}

impl Fault {
    const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Stopped,
        Self::Cut,
        Self::Killed,
        Self::WrongSize,
        Self::Deadlock,
        Self::SlowLink,
        Self::Storage,
        Self::OutOfMemory,
        Self::Scheduler,
    ];

    const fn done(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Stopped => "SIGSTOP of a rank",
            Self::Cut => "link of a node down",
            Self::Killed => "SIGKILL of a rank",
            Self::WrongSize => "a rank sums one number less",
            Self::Deadlock => "a rank launches in another order",
            Self::SlowLink => "link of a node at a tenth",
            Self::Storage => "file system of a node's checkpoints frozen (fsfreeze)",
            Self::OutOfMemory => "a rank leaks memory up to the limit of its control group",
            Self::Scheduler => "SIGTERM to all ranks, a line of slurmstepd in each log",
        }
    }

    /// Categories that are right.
    const fn categories(self) -> &'static [&'static str] {
        match self {
            Self::Nothing => &["undecided", "none"],
            Self::Stopped => &["hang-not-launched"],
            Self::Cut => &["distributed-error"],
            Self::Killed => &["process-exited"],
            Self::WrongSize | Self::Deadlock => &["user-bug"],
            Self::SlowLink => &["slow-link"],
            Self::Storage => &["storage"],
            Self::OutOfMemory => &["host-stall", "process-exited", "user-bug"],
            Self::Scheduler => &["none"],
        }
    }

    /// Whether ranks end, so that their logs have to be pointed at.
    const fn ends(self) -> bool {
        matches!(self, Self::Killed | Self::WrongSize | Self::OutOfMemory | Self::Scheduler)
    }

    /// Until it shows.
    const fn shows_after(self) -> Duration {
        Duration::from_secs(match self {
            Self::Nothing => 1,
            Self::SlowLink => 15,
            _ => 8,
        })
    }
}

struct Scene {
    fleet: Fleet,
    victim: usize,
    fault: Fault,
}

impl Scene {
    fn new(fault: Fault, round: usize) -> Self {
        let victim = (5 + 7 * round + 3 * (fault as usize)) % (usize::from(NODES) * EACH);
        Self { fleet: Fleet::up(Options { nodes: NODES }).unwrap(), victim, fault }
    }

    fn start(&mut self) -> Job {
        let disk = "truncate -s 32M /tmp/srv.img; mkfs.ext4 -q /tmp/srv.img; mount -o loop /tmp/srv.img /srv";
        for (at, name) in self.fleet.names().iter().enumerate() {
            self.fleet.shape_link(at, LINK.0).unwrap();
            self.fleet.node(name).sh(disk).unwrap();
        }
        let how = match self.fault {
            Fault::WrongSize => Some("wrong-size@40"),
            Fault::Deadlock => Some("deadlock@40"),
            Fault::OutOfMemory => Some("leak@50"),
            _ => None,
        };
        let broken = how.map(|how| (self.victim, how));
        let job = Job::start(&mut self.fleet, JobOptions { each: EACH, with: WITH, broken }).unwrap();
        // It has got going, so that something can go wrong.
        std::thread::sleep(Duration::from_secs(6));
        job
    }

    fn hurt(&mut self, job: &Job) {
        let name = job.node(self.victim).to_owned();
        match self.fault {
            Fault::Nothing | Fault::WrongSize | Fault::Deadlock => {}
            Fault::Stopped => job.signal(&mut self.fleet, self.victim, "STOP").unwrap(),
            Fault::Killed => job.signal(&mut self.fleet, self.victim, "KILL").unwrap(),
            Fault::Cut => self.fleet.unplug(&name).unwrap(),
            Fault::SlowLink => self.fleet.shape_link(self.victim / EACH, LINK.1).unwrap(),
            Fault::Storage => drop(self.fleet.node(&name).sh("fsfreeze -f /srv").unwrap()),
            Fault::OutOfMemory => {
                self.fleet.node(&name).limit_memory(&format!("--rank {} ", self.victim), MEMORY).unwrap();
            }
            Fault::Scheduler => {
                job.signal_all(&mut self.fleet, "TERM").unwrap();
                // Their last lines come before the scheduler's.
                std::thread::sleep(Duration::from_secs(3));
                let line =
                    "slurmstepd: error: *** JOB 4711 ON n001 CANCELLED AT $(date -u +%FT%T) DUE TO PREEMPTION ***";
                for name in self.fleet.names() {
                    let script = format!("for log in {FOLDER}/rank_*.log; do echo \"{line}\" >> $log; done");
                    self.fleet.node(&name).sh(&script).unwrap();
                }
            }
        }
    }

    fn mend(&mut self, job: &Job) {
        let name = job.node(self.victim).to_owned();
        match self.fault {
            Fault::Storage => drop(self.fleet.node(&name).sh("fsfreeze -u /srv").unwrap()),
            Fault::Cut => self.fleet.plug_in(&name).unwrap(),
            _ => {}
        }
    }

    fn wanted(&self, job: &Job) -> Wanted {
        match self.fault {
            Fault::Nothing | Fault::Scheduler => Wanted::Nobody,
            Fault::Stopped | Fault::Killed | Fault::WrongSize | Fault::OutOfMemory => Wanted::Rank(self.victim),
            // Two ranks of a node wait for each other: counts do not tell which of them is wrong.
            Fault::Deadlock | Fault::Cut | Fault::SlowLink | Fault::Storage => {
                Wanted::Node(job.node(self.victim).to_owned())
            }
        }
    }
}

/// Whether the suspects are those that have to be named, and nobody else.
fn right(report: &Value, wanted: &Wanted, job: &Job) -> bool {
    let suspects = report["suspects"].as_array().unwrap();
    let on = |suspect: &Value, node: &str| match (suspect["node"].as_str(), suspect["rank"].as_u64()) {
        (Some(named), _) => named == node,
        (None, Some(rank)) => job.node(rank as usize) == node,
        (None, None) => false,
    };
    match wanted {
        // That the scheduler ended the job is a finding about nobody.
        Wanted::Nobody => suspects.iter().all(|suspect| suspect["node"].is_null() && suspect["rank"].is_null()),
        Wanted::Rank(rank) => suspects.len() == 1 && suspects[0]["rank"] == *rank && on(&suspects[0], job.node(*rank)),
        Wanted::Node(node) => !suspects.is_empty() && suspects.iter().all(|suspect| on(suspect, node)),
    }
}

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
#[ignore = "by hand: tests/campaign broken"]
fn the_root_of_a_broken_job_is_named() {
    assert!(is_root(), "needs root, for namespaces");
    let (times, first) = (setting("MUSTER_TIMES", 3), setting("MUSTER_FIRST", 0));
    let only = std::env::var("MUSTER_FAULTS").unwrap_or_default();
    let keep = std::env::var_os("MUSTER_KEEP").map(PathBuf::from);
    println!("| done | round | to | named | category | confidence | exit | seconds | CPUs that others used |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    let chosen = |fault: &Fault| only.is_empty() || only.split(',').any(|one| one == format!("{fault:?}"));
    for fault in Fault::ALL.into_iter().filter(chosen) {
        for round in first..first + times {
            let mut scene = Scene::new(fault, round);
            let job = scene.start();
            let load = Load::start(Some(&scene.fleet));
            scene.hurt(&job);
            std::thread::sleep(fault.shows_after());
            let logs = format!("{FOLDER}/rank_*.log");
            let mut words = vec!["triage", "--json"];
            if fault.ends() {
                words.extend(["--logs", &logs, "--dumps", FOLDER]);
            }
            let bundle = keep.as_ref().map(|folder| folder.join(format!("{fault:?}-{round}")).display().to_string());
            words.extend(bundle.iter().flat_map(|bundle| ["--save", bundle]));
            let begun = Instant::now();
            let ran = scene.fleet.console().run(&words).unwrap();
            let took = begun.elapsed().as_secs_f64();
            scene.mend(&job);
            let report = ran.json().unwrap();
            let category = report["category"].as_str().unwrap();
            let of = |suspect: &Value| {
                let rank = suspect["rank"].as_u64().map(|rank| format!("rank {rank}"));
                [rank, suspect["node"].as_str().map(str::to_owned)]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(" on ")
            };
            let suspects = report["suspects"].as_array().unwrap();
            let first = suspects.first().map_or(&Value::Null, |suspect| &suspect["confidence"]);
            println!(
                "| {} | {} | rank {} on {} | {} | {category} | {first} | {} | {took:.1} | {:.1} |",
                fault.done(),
                round + 1,
                scene.victim,
                job.node(scene.victim),
                suspects.iter().map(of).collect::<Vec<_>>().join("; "),
                ran.code.unwrap_or(-1),
                load.others(Some(&scene.fleet))
            );
            if !fault.categories().contains(&category) || !right(&report, &scene.wanted(&job), &job) {
                wrong.push(format!("{fault:?} {}", round + 1));
            }
            job.end(&mut scene.fleet).unwrap();
        }
    }
    assert!(wrong.is_empty(), "not as it must be: {wrong:?}");
}

/// CPU seconds of all children that have ended.
fn of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let ticks: Vec<f64> = after_name.split_whitespace().map(|word| word.parse().unwrap_or(0.0)).collect();
    // The fields cutime and cstime, in the hundredths of a second that Linux tells.
    (ticks[13] + ticks[14]) / 100.0
}

#[test]
#[ignore = "by hand: tests/campaign triage"]
fn the_stopped_rank_of_512_on_64_nodes_is_named_within_a_minute() {
    const EACH_OF_MANY: usize = 8;
    assert!(is_root(), "needs root, for namespaces");
    let mut fleet = Fleet::up(Options { nodes: 64 }).unwrap();
    let options = JobOptions { each: EACH_OF_MANY, with: "--pause 2000", broken: None };
    let job = Job::start(&mut fleet, options).unwrap();
    println!("| nodes | ranks | rank stopped | named | confidence | exit | time, s | CPU of the console, s |");
    println!("|---|---|---|---|---|---|---|---|");
    for stopped in [37_usize, 300, 511] {
        job.signal(&mut fleet, stopped, "STOP").unwrap();
        std::thread::sleep(Duration::from_secs(20));
        let (begun, before) = (Instant::now(), of_children());
        let ran = fleet.console().run(&["triage", "--json"]).unwrap();
        let (took, cpu) = (begun.elapsed().as_secs_f64(), of_children() - before);
        job.signal(&mut fleet, stopped, "CONT").unwrap();
        let report = ran.json().unwrap();
        let suspects = report["suspects"].as_array().unwrap();
        println!(
            "| 64 | {} | {stopped} | {} | {} | {} | {took:.1} | {cpu:.2} |",
            report["ranks"]["n"],
            suspects.iter().map(|suspect| suspect["rank"].to_string()).collect::<Vec<_>>().join(", "),
            suspects.first().map_or(&Value::Null, |suspect| &suspect["confidence"]),
            ran.code.unwrap_or(-1),
        );
        assert!(right(&report, &Wanted::Rank(stopped), &job), "{report:#}");
        // It gets going again before the next one stops.
        std::thread::sleep(Duration::from_secs(20));
    }
    job.end(&mut fleet).unwrap();
}
