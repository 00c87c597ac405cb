//! Faults of real nodes under a real job, and what `muster watch` says of them while they last. By hand, with `tests/campaign odd`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use muster_tests::{FOLDER, Fleet, Job, JobOptions, Load, Options, is_root};

const NODES: u8 = 8;
/// What a rank does: a part of the time it computes, so that eight nodes fit on one machine, and saves its weights now and then.
const WITH: &str = "--batches 8 --pause 300 --checkpoint /root/.cache/job --checkpoint-every 5";
/// What a link carries, and a tenth of it.
const LINK: (&str, &str) = ("200mbit", "20mbit");
/// What a disk does, bytes a second.
const DISK: u64 = 20_000_000;
/// Learning what is usual takes so long.
const LEARNS: Duration = Duration::from_secs(200);
/// A fault lasts until it is named, at most so long, and a little longer for whoever is named wrongly.
const LASTS: Duration = Duration::from_secs(240);
const LONGER: Duration = Duration::from_secs(20);
/// How long a standstill of all lasts, and how long a fault has been over when the next one begins.
const STANDS: Duration = Duration::from_secs(150);
const BETWEEN: Duration = Duration::from_secs(110);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The compute part of a step takes twice as long.
    CpuHalved,
    /// A tenth of what the link carried, both ways.
    SlowLink,
    /// Others write to the node's disk all the time.
    DiskSaturated,
    /// Half the CPU on one node, a saturated disk on another.
    Two,
    /// All ranks are stopped.
    Everybody,
    /// All processes of a node are frozen.
    Frozen,
    /// A node's cable is out.
    Unplugged,
}

impl Fault {
    /// In an order in which each leaves a job that still runs.
    const ALL: [Self; 8] = [
        Self::Nothing,
        Self::CpuHalved,
        Self::SlowLink,
        Self::DiskSaturated,
        Self::Two,
        Self::Everybody,
        Self::Frozen,
        Self::Unplugged,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "healthy",
            Self::CpuHalved => "CPU halved",
            Self::SlowLink => "link at a tenth",
            Self::DiskSaturated => "disk saturated",
            Self::Two => "CPU halved, disk saturated elsewhere",
            Self::Everybody => "everybody stands still",
            Self::Frozen => "node frozen",
            Self::Unplugged => "node unplugged",
        }
    }

    /// Which nodes it is done to, in a round.
    fn nodes(self, round: usize) -> Vec<String> {
        let at = |place: usize| format!("n{:03}", 1 + (place + 3 * round) % usize::from(NODES));
        match self {
            Self::Nothing | Self::Everybody => Vec::new(),
            Self::CpuHalved => vec![at(2)],
            Self::SlowLink => vec![at(4)],
            Self::DiskSaturated => vec![at(6)],
            Self::Two => vec![at(1), at(5)],
            Self::Frozen => vec![at(3)],
            Self::Unplugged => vec![at(7)],
        }
    }
}

/// A fleet, its job, and the watch of it.
struct Scene {
    fleet: Fleet,
    job: Job,
    watch: Child,
    lines: Receiver<(Instant, String)>,
    said: Option<std::fs::File>,
}

impl Scene {
    fn new(round: usize) -> Self {
        let mut fleet = Fleet::up(Options { nodes: NODES }).unwrap();
        for (at, name) in fleet.names().iter().enumerate() {
            fleet.node(name).limit_disk(DISK).unwrap();
            fleet.shape_link(at, LINK.0).unwrap();
        }
        let job = Job::start(&mut fleet, JobOptions { each: 1, with: WITH, broken: None }).unwrap();
        let mut watch = fleet.console().start(&["watch", "--record"]).unwrap();
        let (teller, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(watch.stdout.take().unwrap()), Box::new(watch.stderr.take().unwrap())];
        for stream in streams {
            let teller = teller.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = teller.send((Instant::now(), line));
                }
            });
        }
        let keep = std::env::var_os("MUSTER_KEEP").map(PathBuf::from);
        let said = keep.map(|folder| std::fs::File::create(folder.join(format!("watch-{round}.txt"))).unwrap());
        Self { fleet, job, watch, lines, said }
    }

    /// Until `over` or all of `wanted` are named: who was named, when, and in which words.
    fn hear(&mut self, over: Instant, wanted: &[String]) -> Vec<(Instant, String, String)> {
        let mut heard: Vec<(Instant, String, String)> = Vec::new();
        loop {
            let all = !wanted.is_empty() && wanted.iter().all(|node| heard.iter().any(|(_, of, _)| of == node));
            let left = over.saturating_duration_since(Instant::now());
            if all || left.is_zero() {
                return heard;
            }
            let Ok((at, line)) = self.lines.recv_timeout(left) else { continue };
            if let Some(said) = &mut self.said {
                writeln!(said, "{line}").unwrap();
            }
            if let Some((node, text)) = accusation(&line) {
                heard.push((at, node, text));
            }
        }
    }

    /// One fault from its begin to well after its end, as a row of the table; whether all was said that had to be, and nothing else.
    fn play(&mut self, fault: Fault, round: usize, healthy: Duration) -> bool {
        let nodes = fault.nodes(round);
        let load = Load::start(Some(&self.fleet));
        self.begin(fault, &nodes);
        let begun = Instant::now();
        let lasts = match fault {
            Fault::Nothing => healthy,
            Fault::Everybody => STANDS,
            _ => LASTS,
        };
        let mut heard = self.hear(begun + lasts, &nodes);
        if !nodes.is_empty() {
            heard.extend(self.hear(Instant::now() + LONGER, &[]));
        }
        self.end(fault, &nodes);
        heard.extend(self.hear(Instant::now() + BETWEEN, &[]));
        let others: BTreeSet<&str> =
            heard.iter().map(|(_, node, _)| node.as_str()).filter(|node| !nodes.iter().any(|of| of == node)).collect();
        let of = |node: &String| heard.iter().find(|(_, named, _)| named == node);
        let after =
            |node| of(node).map_or("never".to_owned(), |(at, ..)| format!("{:.0}", (*at - begun).as_secs_f64()));
        let said = |(_, node, text): &(Instant, String, String)| {
            format!("{node}: {}", text.split(". ").next().unwrap_or_default())
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {:.1} |",
            round + 1,
            fault.name(),
            nodes.join(", "),
            nodes.iter().map(after).collect::<Vec<_>>().join(", "),
            others.iter().copied().collect::<Vec<_>>().join(", "),
            heard.iter().map(said).collect::<Vec<_>>().join("; "),
            load.others(Some(&self.fleet))
        );
        others.is_empty() && nodes.iter().all(|node| of(node).is_some())
    }

    fn begin(&mut self, fault: Fault, nodes: &[String]) {
        let half = nodes.first().cloned().unwrap_or_default();
        match fault {
            Fault::Nothing => {}
            Fault::CpuHalved => self.halve(&half),
            Fault::SlowLink => self.fleet.shape_link(place(&half), LINK.1).unwrap(),
            Fault::DiskSaturated => self.write(&half),
            Fault::Two => {
                self.halve(&half);
                self.write(&nodes[1]);
            }
            Fault::Everybody => self.job.signal_all(&mut self.fleet, "STOP").unwrap(),
            Fault::Frozen => self.fleet.node(&half).freeze(true).unwrap(),
            Fault::Unplugged => self.fleet.unplug(&half).unwrap(),
        }
    }

    fn end(&mut self, fault: Fault, nodes: &[String]) {
        let first = nodes.first().cloned().unwrap_or_default();
        match fault {
            Fault::Nothing => {}
            Fault::CpuHalved => self.fleet.node(&first).limit_cpu(400).unwrap(),
            Fault::SlowLink => self.fleet.shape_link(place(&first), LINK.0).unwrap(),
            Fault::DiskSaturated => self.write_no_more(&first),
            Fault::Two => {
                self.fleet.node(&first).limit_cpu(400).unwrap();
                self.write_no_more(&nodes[1]);
            }
            Fault::Everybody => self.job.signal_all(&mut self.fleet, "CONT").unwrap(),
            Fault::Frozen => self.fleet.node(&first).freeze(false).unwrap(),
            Fault::Unplugged => self.fleet.plug_in(&first).unwrap(),
        }
    }

    /// So much CPU that computing takes twice the time that it takes beside the other nodes now.
    fn halve(&mut self, name: &str) {
        let node = self.fleet.node(name);
        let computes = |node: &muster_tests::Node| -> (f64, f64) {
            let last = format!("tail -n 20 {FOLDER}/rank_*.log | sed -n 's/.* compute \\([0-9.]*\\) s.*/\\1/p'");
            let times: Vec<f64> = node.sh(&last).unwrap().lines().filter_map(|time| time.parse().ok()).collect();
            let ticks = node.sh(&format!("cut -d' ' -f14,15 /proc/$(cat {FOLDER}/pid_*)/stat")).unwrap();
            let ticks: f64 = ticks.split_whitespace().filter_map(|word| word.parse::<f64>().ok()).sum();
            (times.iter().sum::<f64>() / times.len().max(1) as f64, ticks / 100.0)
        };
        let begun = Instant::now();
        let (_, before) = computes(node);
        let steps = self.job.steps(&mut self.fleet).unwrap();
        std::thread::sleep(Duration::from_secs(8));
        let (compute, after) = computes(self.fleet.node(name));
        let steps = self.job.steps(&mut self.fleet).unwrap() - steps;
        let percent = 100.0 * (after - before) / steps as f64 / (2.0 * compute);
        let percent = (percent.round() as u32).clamp(2, 100);
        eprintln!(
            "{name}: {compute:.3} s of compute in a step, {steps} steps in {:.1} s, now {percent} % of a CPU",
            begun.elapsed().as_secs_f64()
        );
        self.fleet.node(name).limit_cpu(percent).unwrap();
    }

    /// Writes to the node's disk without end.
    fn write(&mut self, name: &str) {
        let each = "while :; do dd if=/dev/zero of=/root/.cache/other$at bs=256k count=64 oflag=direct conv=notrunc 2> /dev/null; done";
        let script = format!(
            "for at in 1 2 3; do setsid sh -c 'at='$at'; {each}' > /dev/null 2>&1 < /dev/null & echo $! >> /run/writers; done"
        );
        self.fleet.node(name).sh_within(&script).unwrap();
    }

    fn write_no_more(&mut self, name: &str) {
        self.fleet.node(name).sh("for pid in $(cat /run/writers); do kill -KILL -$pid; done; rm /run/writers").unwrap();
    }
}

fn place(name: &str) -> usize {
    name.trim_start_matches(['n', '0']).parse::<usize>().unwrap() - 1
}

/// A line of `muster watch` that names a machine: `2026-11-25T09:03:15Z  n003: …`.
fn accusation(line: &str) -> Option<(String, String)> {
    let (time, rest) = line.split_once("Z  ")?;
    let (node, text) = rest.split_once(": ")?;
    let is_time = time.len() == 19 && time.starts_with("20");
    is_time.then(|| (node.to_owned(), text.to_owned()))
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
#[ignore = "by hand: tests/campaign odd"]
fn faults_of_real_nodes_are_named_while_the_job_runs() {
    assert!(is_root(), "needs root, for namespaces");
    let (times, first) = (setting("MUSTER_TIMES", 3) as usize, setting("MUSTER_FIRST", 0) as usize);
    let healthy = Duration::from_secs(60 * setting("MUSTER_HEALTHY", 30));
    let only = std::env::var("MUSTER_FAULTS").unwrap_or_default();
    println!("| round | done | to | named after, s | others named | said | CPUs that others used |");
    println!("|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for round in first..first + times {
        let mut scene = Scene::new(round);
        let early = scene.hear(Instant::now() + LEARNS, &[]);
        assert!(early.is_empty(), "named before anything was done: {early:?}");
        let chosen = |fault: &Fault| only.is_empty() || only.split(',').any(|one| one == format!("{fault:?}"));
        for fault in Fault::ALL.into_iter().filter(chosen) {
            if !scene.play(fault, round, healthy) {
                wrong.push((round + 1, fault.name()));
            }
        }
        keep_recording(&scene.fleet, round);
        scene.watch.kill().unwrap();
        scene.watch.wait().unwrap();
        scene.job.end(&mut scene.fleet).unwrap();
    }
    assert!(wrong.is_empty(), "not as it must be: {wrong:?}");
}

/// The recording of a round, for whoever asks why.
fn keep_recording(fleet: &Fleet, round: usize) {
    let Some(folder) = std::env::var_os("MUSTER_KEEP").map(PathBuf::from) else { return };
    let out = folder.join(format!("round-{round}.csv")).display().to_string();
    let listed = fleet.console().run(&["watch", "--list", "--json"]).unwrap().json().unwrap();
    let id = listed["recordings"][0]["id"].as_str().unwrap().to_owned();
    fleet.console().run(&["export", "--recording", &id, "--format", "csv", "-o", &out]).unwrap();
}
