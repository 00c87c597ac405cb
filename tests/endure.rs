//! What must hold for hours: consoles killed at random moments, and runs one after another on nodes with random faults. By hand,
//! with `tests/campaign kills` and `tests/campaign soak`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muster_tests::{Console, Draw, Fleet, Options};

/// Two short steps, so that a kill may fall into every stage of a run, and between two.
const TWO_STEPS: &str = r#"
name = "endure"
title = "Two short steps"
profile = "smoke"
[[steps]]
id = "look"
collect = ["identity", "cpu"]
[[steps]]
id = "measure"
run = ["cpu-dispatch", "cpu-latency"]
"#;

/// A setting of a campaign.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn playbook(fleet: &Fleet) -> String {
    let file = fleet.path("endure.toml");
    std::fs::write(&file, TWO_STEPS).unwrap();
    file
}

/// Every raw value that a reader finds, as its line of the table.
fn samples(console: &Console) -> BTreeSet<String> {
    // A console killed before its first write leaves no database.
    let Ok(runs) = console.run(&["runs", "--limit", "100000", "--json"]).unwrap().json() else {
        return BTreeSet::new();
    };
    let mut all = BTreeSet::new();
    for run in runs["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        let table = console.run(&["export", id, "--format", "samples", "--strict"]).unwrap();
        assert_eq!(table.code, Some(0), "{id}: {}", table.err);
        all.extend(table.out.lines().skip(1).map(|line| format!("{id},{line}")));
    }
    all
}

/// Nodes on which a probe is left once it has had three seconds to notice.
fn left_behind(fleet: &mut Fleet, names: &[String]) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(3);
    loop {
        let left: Vec<String> = names.iter().filter(|name| fleet.node(name).probes() > 0).cloned().collect();
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn names(nodes: u8) -> Vec<String> {
    (1..=nodes).map(|nr| format!("n{nr:03}")).collect()
}

#[test]
#[ignore = "by hand: tests/campaign kills"]
fn kills_at_random_moments_lose_no_value_and_leave_no_probe() {
    let (kills, seed) = (setting("MUSTER_KILLS", 100), setting("MUSTER_SEED", 1));
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let (console, file, all) = (fleet.console(), playbook(&fleet), names(4));
    let mut draw = Draw::new(seed);
    let begun = Instant::now();
    let calm = console.run(&["run", &file, "--alpha", "0.001", "--visits", "1", "--json"]).unwrap();
    assert!(calm.json().is_ok(), "{}", calm.err);
    let usual = begun.elapsed().as_secs_f64();
    let (mut before, mut finished, mut left) = (samples(&console), 0, 0);
    for kill in 1..=kills {
        let mut running = console.start(&["run", &file, "--alpha", "0.001", "--visits", "1", "--json"]).unwrap();
        std::thread::sleep(Duration::from_secs_f64(draw.unit() * usual));
        finished += u64::from(running.try_wait().unwrap().is_some());
        running.kill().unwrap();
        running.wait().unwrap();
        let now = samples(&console);
        let lost: Vec<_> = before.difference(&now).take(3).collect();
        assert!(lost.is_empty(), "kill {kill} lost {lost:?}");
        before = now;
        left += left_behind(&mut fleet, &all).len();
    }
    let last = console.run(&["run", &file, "--alpha", "0.001", "--visits", "1", "--json"]).unwrap();
    assert!(last.json().is_ok(), "{}", last.err);
    assert!(before.is_subset(&samples(&console)));
    let check = console.run(&["db", "check"]).unwrap();
    assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    let runs = console.run(&["runs", "--limit", "100000", "--json"]).unwrap().json().unwrap();
    let runs = runs["runs"].as_array().unwrap();
    let open = runs.iter().filter(|run| run["state"] != "finished").count();
    println!(
        "| kills | came after the end | runs | not finished | values kept, all found again | nodes with a probe after 3 s |"
    );
    println!("|---|---|---|---|---|---|");
    println!(
        "| {kills} within {usual:.1} s (seed {seed}) | {finished} | {} | {open} | {} | {left} |",
        runs.len(),
        before.len()
    );
    assert_eq!((open, left), (0, 0));
}

/// What happens to a fleet during one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Nothing,
    /// A node loses its power and has it again after the run.
    PowerCut,
    /// A node's cable is out for 20 s.
    Cable,
    /// The switch is off for 18 s.
    Switch,
    /// A node is frozen for 20 s.
    Frozen,
    /// A node runs at half its speed during the run.
    Slow,
    /// The probe of a node is killed.
    Probe,
    /// The console is killed and begun again.
    Console,
}

const FAULTS: [Fault; 8] = [
    Fault::Nothing,
    Fault::PowerCut,
    Fault::Cable,
    Fault::Switch,
    Fault::Frozen,
    Fault::Slow,
    Fault::Probe,
    Fault::Console,
];

fn happens(fault: Fault, node: &str, fleet: &mut Fleet, running: &mut Child) {
    let pause = |seconds| std::thread::sleep(Duration::from_secs(seconds));
    match fault {
        Fault::Nothing => {}
        Fault::PowerCut => fleet.node(node).kill(),
        Fault::Cable => {
            fleet.unplug(node).unwrap();
            pause(20);
            fleet.plug_in(node).unwrap();
        }
        Fault::Switch => {
            fleet.bridge(false).unwrap();
            pause(18);
            fleet.bridge(true).unwrap();
        }
        Fault::Frozen => {
            fleet.node(node).freeze(true).unwrap();
            pause(20);
            fleet.node(node).freeze(false).unwrap();
        }
        Fault::Slow => fleet.node(node).limit_cpu(50).unwrap(),
        Fault::Probe => drop(fleet.node(node).kill_probe()),
        Fault::Console => running.kill().unwrap(),
    }
}

fn is_over(fault: Fault, node: &str, fleet: &mut Fleet) {
    match fault {
        Fault::PowerCut => fleet.node(node).boot().unwrap(),
        Fault::Slow => fleet.node(node).limit_cpu(10_000).unwrap(),
        _ => {}
    }
}

/// Follows a console to its end: the most memory that it has had, megabytes, and the most files that it had open.
fn followed(process: u32) -> JoinHandle<(f64, usize)> {
    let peak = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
    };
    std::thread::spawn(move || {
        let (mut memory, mut files) = (0.0_f64, 0);
        // What has ended has no memory, though nobody may have asked for its exit code yet.
        while let Some(now) =
            std::fs::read_to_string(format!("/proc/{process}/status")).ok().and_then(|status| peak(&status))
        {
            memory = memory.max(now);
            files = files.max(std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count));
            std::thread::sleep(Duration::from_millis(50));
        }
        (memory, files)
    })
}

/// What came of one run.
struct Turn {
    fault: Fault,
    code: Option<i32>,
    /// Most memory of the console, megabytes.
    memory: f64,
    files: usize,
    /// Nodes with a probe three seconds later.
    left: usize,
}

/// One run, during which `fault` happens to `node` after a while.
fn turn(fleet: &mut Fleet, (fault, node): (Fault, &str), after: Duration, all: &[String]) -> Turn {
    let (console, file) = (fleet.console(), playbook(fleet));
    let mut running = console.start(&["run", &file, "--new", "--alpha", "0.001", "--visits", "1", "--json"]).unwrap();
    let said = [drain(running.stdout.take().unwrap()), drain(running.stderr.take().unwrap())];
    let used = followed(running.id());
    std::thread::sleep(after);
    happens(fault, node, fleet, &mut running);
    let code = running.wait().unwrap().code();
    let (memory, files) = used.join().unwrap();
    said.into_iter().for_each(|thread| thread.join().unwrap());
    is_over(fault, node, fleet);
    Turn { fault, code, memory, files, left: left_behind(fleet, all).len() }
}

#[test]
#[ignore = "by hand: tests/campaign soak"]
fn runs_one_after_another_on_nodes_with_random_faults_stay_sound() {
    let (minutes, every) = (setting("MUSTER_MINUTES", 360), setting("MUSTER_EVERY", 300));
    let mut fleet = Fleet::up(Options { nodes: 12 }).unwrap();
    let (console, all) = (fleet.console(), names(12));
    let (mut draw, begun) = (Draw::new(setting("MUSTER_SEED", 1)), Instant::now());
    let mut turns = Vec::new();
    while begun.elapsed() < Duration::from_secs(60 * minutes) {
        let (now, fault) = (Instant::now(), FAULTS[(draw.unit() * FAULTS.len() as f64) as usize]);
        let node = all[(draw.unit() * all.len() as f64) as usize].clone();
        let after = Duration::from_millis((draw.unit() * 8_000.0) as u64);
        let one = turn(&mut fleet, (fault, &node), after, &all);
        let (Turn { code, memory, files, left, .. }, at) = (&one, begun.elapsed().as_secs());
        eprintln!(
            "{at:5} s {fault:?} at {node}: exit code {code:?}, {memory:.1} MB, {files} files, {left} probes left"
        );
        turns.push(one);
        std::thread::sleep(Duration::from_secs(every).saturating_sub(now.elapsed()));
    }
    let check = console.run(&["db", "check"]).unwrap();
    assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    told(&turns, begun.elapsed().as_secs_f64() / 60.0, samples(&console).len());
    assert_eq!(turns.iter().map(|turn| turn.left).sum::<usize>(), 0);
}

/// The table of a soak.
fn told(turns: &[Turn], minutes: f64, kept: usize) {
    let mut counts: BTreeMap<Fault, BTreeMap<Option<i32>, usize>> = BTreeMap::new();
    for turn in turns {
        *counts.entry(turn.fault).or_default().entry(turn.code).or_default() += 1;
    }
    println!("| fault in the run | runs by exit code |");
    println!("|---|---|");
    for (fault, codes) in &counts {
        let code = |code: &Option<i32>| code.map_or("killed".to_owned(), |code| format!("exit {code}"));
        let codes: Vec<String> = codes.iter().map(|(of, runs)| format!("{runs} x {}", code(of))).collect();
        println!("| {fault:?} | {} |", codes.join(", "));
    }
    // A console that was killed has not had all that it would have needed.
    let ended: Vec<f64> = turns.iter().filter(|turn| turn.code.is_some()).map(|turn| turn.memory).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let quarter = (ended.len() / 4).max(1).min(ended.len());
    let (first, last) = (mean(&ended[..quarter]), mean(&ended[ended.len() - quarter..]));
    let files = turns.iter().map(|turn| turn.files).max().unwrap_or(0);
    let left: usize = turns.iter().map(|turn| turn.left).sum();
    println!(
        "| all, {minutes:.0} min | {} runs; peak memory {first:.1} MB in the first quarter and {last:.1} MB in the last, at most \
         {files} files open, {kept} values kept, {left} probes left behind |",
        turns.len()
    );
}

/// Reads to the end beside what goes on.
fn drain(mut stream: impl std::io::Read + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || drop(std::io::copy(&mut stream, &mut std::io::sink())))
}
