//! How small a fault is still named on real OpenSSH nodes, and whether anybody else is: nodes whose CPU runs for a part of the
//! time, and a node with a slow disk, on a quiet machine and on one with a busy core.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::{Child, Command};

use muster_tests::{BUSY, Fleet, Lacks, Load, Options, Try, decide_where_steady, is_root, skip};
use serde_json::Value;

const NODES: u8 = 12;

/// What is wrong with the nodes of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// So many nodes have this part of their CPU, percent.
    Cpu { speed: u32, nodes: usize },
    /// One node's disk carries so many bytes per second.
    Disk(u64),
}

/// In how many of five tries a fault is named at least, by a failure or a warning of every node that has it, on a quiet machine: the
/// least of the machines in docs/SENSITIVITY.md.
/// These are what the campaign holds the counts against; nobody else is ever accused, and no faulty node passes as sound at twice
/// the time.
const EXPECTED: [(Fault, u32); 7] = [
    (Fault::Cpu { speed: 50, nodes: 1 }, 5),
    (Fault::Cpu { speed: 50, nodes: 2 }, 5),
    (Fault::Cpu { speed: 70, nodes: 1 }, 4),
    (Fault::Cpu { speed: 70, nodes: 2 }, 1),
    (Fault::Cpu { speed: 85, nodes: 1 }, 0),
    (Fault::Cpu { speed: 85, nodes: 2 }, 0),
    (Fault::Disk(20_000_000), 5),
];

/// The nodes that have the fault: not the first, and not neighbours.
const FAULTY: [&str; 2] = ["n004", "n009"];

impl Fault {
    fn nodes(self) -> &'static [&'static str] {
        match self {
            Self::Cpu { nodes, .. } => &FAULTY[..nodes],
            Self::Disk(_) => &FAULTY[..1],
        }
    }

    fn set(self, fleet: &mut Fleet) {
        for name in self.nodes() {
            match self {
                Self::Cpu { speed, .. } => fleet.node(name).limit_cpu(speed).unwrap(),
                Self::Disk(rate) => fleet.node(name).limit_disk(rate).unwrap(),
            }
        }
    }

    /// Share of its speed that a node loses, where that is known.
    fn loss(self) -> Option<f64> {
        match self {
            Self::Cpu { speed, .. } => Some(1.0 - f64::from(speed) / 100.0),
            Self::Disk(_) => None,
        }
    }

    fn title(self) -> String {
        match self {
            Self::Cpu { speed, nodes } => {
                format!("CPU at {speed} % ({:.2} times the time) on {nodes} of {NODES}", 100.0 / f64::from(speed))
            }
            Self::Disk(rate) => format!("disk at {} MB/s on 1 of {NODES}", rate / 1_000_000),
        }
    }
}

/// What one run says of a scenario.
#[derive(Debug, Default)]
struct Said {
    failed: Vec<String>,
    /// Faulty nodes that are named by a warning.
    warned: Vec<String>,
    /// Faulty nodes that nothing is said of, with the reason.
    undecided: Vec<String>,
    /// Faulty nodes that passed, with the loss that the verdict says it cannot rule out.
    passed: Vec<(String, f64)>,
    /// Sound nodes that are accused, with the reason.
    accused: Vec<String>,
    /// Sound nodes that nothing is said of.
    doubted: usize,
    others: f64,
}

/// A core that a program of somebody else's keeps busy; free when dropped.
struct BusyCore(Child);

impl BusyCore {
    fn new() -> Self {
        Self(Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One run of a new fleet with this fault.
fn run(fault: Fault) -> Said {
    let mut fleet = Fleet::up(Options { nodes: NODES }).unwrap();
    fault.set(&mut fleet);
    let load = Load::start(Some(&fleet));
    // One at a time: the nodes share this machine's cores.
    let ran = fleet.console().run(&["run", "demo", "--one-at-a-time", "--json", "--new"]).unwrap();
    let others = load.others(Some(&fleet));
    let report = ran.json().unwrap();
    if let Some(dir) = std::env::var_os("MUSTER_KEEP") {
        std::fs::create_dir_all(&dir).unwrap();
        let file = Path::new(&dir).join(format!("{}.json", report["run"]["id"].as_str().unwrap()));
        std::fs::write(file, &ran.out).unwrap();
    }
    let mut said = Said { others, ..Said::default() };
    for node in report["nodes"].as_array().unwrap() {
        said.take(node, fault.nodes());
    }
    assert!(said.failed.is_empty() && said.accused.is_empty() || ran.code == Some(2), "{:?}: {}", ran.code, ran.err);
    said
}

impl Said {
    fn take(&mut self, node: &Value, faulty: &[&str]) {
        let (name, state) = (node["node"].as_str().unwrap(), node["state"].as_str().unwrap());
        let why = format!("{name}: {}", node["reasons"][0].as_str().unwrap_or_default());
        match (faulty.contains(&name), state) {
            (true, "fail") => self.failed.push(name.to_owned()),
            (true, "warn") => self.warned.push(name.to_owned()),
            (true, "pass") => self.passed.push((name.to_owned(), open_loss(node))),
            (true, _) => self.undecided.push(why),
            (false, "fail") => self.accused.push(why),
            (false, "pass" | "warn") => {}
            (false, _) => self.doubted += 1,
        }
    }
}

/// Share of its speed that the CPU of a node that passed may have lost all the same, as its verdict says.
fn open_loss(node: &Value) -> f64 {
    let of = |name: &str| node["components"].as_array().unwrap().iter().find(|of| of["component"] == name).cloned();
    of("cpu").and_then(|cpu| cpu["resolution"].as_f64()).unwrap_or(1.0)
}

#[test]
#[ignore = "a campaign: tests/campaign verdicts"]
fn a_node_that_takes_twice_the_time_is_named_or_undecided_and_nobody_else_is_accused() {
    const TEST: &str = "a_node_that_takes_twice_the_time_is_named_or_undecided_and_nobody_else_is_accused";
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces and cgroups");
    }
    let fault = EXPECTED[0].0;
    decide_where_steady(TEST, 2, || {
        let said = run(fault);
        assert!(said.passed.is_empty(), "{said:?}");
        Try { open: said.undecided.first().cloned(), accused: said.accused, others: said.others }
    });
}

fn list(name: &str, usual: &str) -> Vec<u32> {
    let text = std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    text.split(',').filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect()
}

/// A row of the table: what a scenario came to, and what is wrong with that.
fn row(fault: Fault, busy: bool, said: &[Said]) -> (String, Option<String>) {
    let tries = said.len() as u32;
    let all = |said: &&Said| said.failed.len() + said.warned.len() == fault.nodes().len();
    let named = said.iter().filter(all).count() as u32;
    let sum = |of: fn(&Said) -> usize| said.iter().map(of).sum::<usize>();
    let (failed, warned) = (sum(|s| s.failed.len()), sum(|s| s.warned.len()));
    let (undecided, passed, accused) = (sum(|s| s.undecided.len()), sum(|s| s.passed.len()), sum(|s| s.accused.len()));
    // A pass that says it cannot rule out such a loss is no wrong one.
    let wrongly = |(_, open): &&(String, f64)| fault.loss().is_none_or(|loss| *open < loss);
    let wrongly = said.iter().flat_map(|said| &said.passed).filter(wrongly).count();
    let others = said.iter().map(|said| said.others).fold(0.0, f64::max);
    let reasons: Vec<&str> =
        said.iter().flat_map(|s| s.undecided.iter().chain(&s.accused)).map(String::as_str).collect();
    let quiet = said.iter().all(|said| said.others <= BUSY);
    let machine = match (busy, quiet) {
        (true, _) => "one core busy",
        (false, true) => "quiet",
        (false, false) => "others at work",
    };
    let line = format!(
        "| {} | {machine} ({others:.1}) | {tries} | {named} | {failed} | {warned} | {undecided} | {passed} | {wrongly} | {accused} | {} | {} |",
        fault.title(),
        sum(|s| s.doubted),
        reasons.first().map_or(String::new(), |why| why.replace('|', "/")),
    );
    let least = EXPECTED.iter().find(|(known, _)| *known == fault).map_or(0, |(_, of_five)| of_five * tries / 5);
    let wrong = if accused > 0 {
        Some(format!("{}: others accused", fault.title()))
    } else if quiet && named < least {
        Some(format!("{}: named in {named} of {tries} tries, {least} expected", fault.title()))
    } else {
        None
    };
    (line, wrong)
}

/// `tests/campaign sensitivity --speeds 50,70,85 --slow 1,2 --disks 20 --times 5 --busy`
#[test]
#[ignore = "a campaign: tests/campaign sensitivity"]
fn how_small_a_fault_is_named() {
    if !is_root() {
        return skip("how_small_a_fault_is_named", Lacks::Root, "for namespaces and cgroups");
    }
    let (speeds, slow) = (list("MUSTER_SPEEDS", "50,70,85"), list("MUSTER_SLOW", "1,2"));
    let cpus = slow.iter().flat_map(|nodes| speeds.iter().map(|speed| (*speed, *nodes as usize)));
    let cpus = cpus.map(|(speed, nodes)| Fault::Cpu { speed, nodes });
    let disks = list("MUSTER_DISKS", "20").into_iter().map(|megabytes| Fault::Disk(u64::from(megabytes) * 1_000_000));
    let (times, busy) = (list("MUSTER_TIMES", "5")[0], std::env::var_os("MUSTER_BUSY").is_some());
    let core = busy.then(BusyCore::new);
    println!(
        "| fault | machine (CPUs of others, most) | tries | all named | failed | warned | undecided | passed | of these, said to be sound to less than the fault | others accused | others undecided | first reason |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for fault in cpus.chain(disks) {
        let said: Vec<Said> = (0..times).map(|_| run(fault)).collect();
        let (line, trouble) = row(fault, busy, &said);
        println!("{line}");
        wrong.extend(trouble);
    }
    drop(core);
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
