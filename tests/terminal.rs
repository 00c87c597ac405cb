//! The console as people use it: on a real terminal, by its keys.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use muster_tests::{Fleet, Lacks, Options, Terminal, binary, is_root, skip};
use rustix::process::Signal;

const SIZE: (NonZero<u16>, NonZero<u16>) = (NonZero::new(40).unwrap(), NonZero::new(120).unwrap());

/// The usual value of each metric; a node's own is a little beside it, so that no two values are alike.
const METRICS: [(&str, f64); 4] =
    [("gemm/fp16", 200.0), ("mem-bw/h2d", 400.0), ("disk/read", 600.0), ("nccl/busbw", 900.0)];

fn value(metric: &str, node: usize, run: usize) -> f64 {
    let usual = METRICS.iter().find(|(name, _)| *name == metric).unwrap().1;
    usual * (1.0 + 0.001 * node as f64 + 0.0003 * run as f64)
}

/// A CSV of steady values.
fn csv(metrics: &[&str], nodes: std::ops::Range<usize>, run: usize) -> String {
    let mut out = "node,metric,value\n".to_owned();
    for (node, metric) in nodes.flat_map(|node| metrics.iter().map(move |metric| (node, metric))) {
        for step in 0..16 {
            let value = value(metric, node, run) * (1.0 + 1e-5 * f64::from(step % 3));
            writeln!(out, "n{node:03},{metric},{value}").unwrap();
        }
    }
    out
}

fn muster(db: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("--db").arg(db).args(["--inventory", "/nonexistent/inventory.toml"]).args(arguments);
    command
}

/// Imports a CSV into the database in `dir`, which this gives.
fn import(dir: &Path, csv: &str) -> PathBuf {
    let (db, file) = (dir.join("db"), dir.join("import.csv"));
    std::fs::write(&file, csv).unwrap();
    let ran = muster(&db, &["import", file.to_str().unwrap()]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    db
}

/// Lines of the node's verdicts: metric and value, as they are shown.
fn verdicts(screen: &str) -> BTreeMap<String, String> {
    let lines = screen.lines().filter_map(|line| line.trim_start_matches('│').split('│').next());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let verdict = |words: Vec<&str>| match words.as_slice() {
        ["✓" | "✗" | "?" | "▲", _, metric, value, rest @ ..] if metric.contains('/') => {
            let unit = rest.first().filter(|word| word.chars().all(|c| c.is_alphabetic() || c == '/'));
            let unit = unit.map_or(String::new(), |unit| format!(" {unit}"));
            Some(((*metric).to_owned(), format!("{value}{unit}")))
        }
        _ => None,
    };
    words.filter_map(verdict).collect()
}

/// Metric and value of every row of the file in `dir` whose name ends so.
fn exported(dir: &Path, ending: &str) -> BTreeMap<String, f64> {
    let mut files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let text = std::fs::read_to_string(files.find(|file| file.to_string_lossy().ends_with(ending)).unwrap()).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|title| *title == name).unwrap();
    let (metric, value) = (column("metric"), column("value"));
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.map(|row| (row[metric].to_owned(), row[value].parse().unwrap())).collect()
}

#[test]
fn three_imports_with_other_metrics_leave_every_value_under_its_own_name_on_every_screen() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let imports: [(&[&str], std::ops::Range<usize>); 3] = [
        (&["gemm/fp16", "mem-bw/h2d", "disk/read"], 0..20),
        (&["nccl/busbw", "mem-bw/h2d"], 0..12),
        (&["disk/read"], 3..9),
    ];
    let mut newest: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for (run, (metrics, nodes)) in imports.iter().enumerate() {
        import(dir.path(), &csv(metrics, nodes.clone(), run));
        newest.extend(nodes.clone().flat_map(|node| metrics.iter().map(move |metric| ((node, *metric), run))));
    }
    // No inventory: the fleet is whoever was measured.
    let mut screen = Terminal::open(muster(&db, &[]).current_dir(dir.path()), SIZE).unwrap();
    screen.wait("all runs", |text| text.contains("3 stored runs are shown")).unwrap();
    for node in [0, 4, 11, 15] {
        screen.press(&format!(":n{node:03}\r")).unwrap();
        let wanted: BTreeMap<String, f64> = newest
            .iter()
            .filter(|((of, _), _)| *of == node)
            .map(|((_, metric), run)| (format!("csv/{metric}"), value(metric, node, *run)))
            .collect();
        let shown = screen.wait("the node", |text| verdicts(text).len() == wanted.len()).unwrap();
        for (metric, shown) in verdicts(&shown) {
            let (digits, wanted) = (shown.split(' ').next().unwrap(), wanted[&metric]);
            // Three digits are shown.
            let value: f64 = digits.parse().unwrap_or_else(|_| panic!("{metric}: {shown}\n{screen}"));
            assert!((value / wanted - 1.0).abs() < 0.006, "{metric} of n{node:03}: {shown} and not {wanted}\n{screen}");
        }
        // The same in a file.
        screen.press("ec").unwrap();
        screen.shows("written to ").unwrap();
        let exported = exported(dir.path(), &format!("-n{node:03}.csv"));
        assert_eq!(exported.len(), wanted.len(), "{exported:?}");
        for (metric, value) in exported {
            assert!((value / wanted[&metric] - 1.0).abs() < 1e-3, "{metric} of n{node:03}: {value}");
        }
        screen.press("\x1b").unwrap();
        screen.shows(" by state").unwrap();
    }
    // One run alone holds what it measured and nothing else.
    screen.press("9").unwrap();
    screen.shows("Current: ").unwrap();
    screen.press("\r").unwrap();
    screen.shows("Nodes 6 ").unwrap();
    screen.press("2").unwrap();
    let alone = screen.wait("the node", |text| verdicts(text).len() == 1).unwrap();
    assert!(verdicts(&alone).contains_key("csv/disk/read"), "{alone}");
    screen.press("\x1b").unwrap();
    screen.shows("Nodes 6 ").unwrap();
    screen.press("\x1b").unwrap();
    screen.shows("Nodes 20 ").unwrap();
    screen.press("q").unwrap();
}

/// How many keys it takes, from a cold start on a database of an import, to learn what is asked.
#[test]
fn what_an_engineer_asks_takes_six_keys_at_most() {
    let dir = tempfile::tempdir().unwrap();
    for run in 0..2 {
        let all = csv(&METRICS.map(|(name, _)| name), 0..24, run);
        let slow = all.lines().map(|line| match line.split_once(",mem-bw/h2d,") {
            Some(("n017", value)) => format!("n017,mem-bw/h2d,{}", value.parse::<f64>().unwrap() * 0.6),
            _ => line.to_owned(),
        });
        import(dir.path(), &slow.collect::<Vec<_>>().join("\n"));
    }
    answered(dir.path(), ("n017", "csv/mem-bw/h2d"));
}

/// The same of 1,000 nodes with 2,323 metrics each, with the seconds that each answer takes from the first key.
#[test]
#[ignore = "a campaign: tests/campaign keys"]
fn what_an_engineer_asks_of_a_thousand_nodes_takes_as_many_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = muster_tests::Draw::new(5);
    // Four values decide nothing alone: eight metrics of a benchmark are slow together.
    let slow: Vec<usize> = (0..8).map(|nr| 1_205 + 40 * nr).collect();
    for _ in 0..2 {
        let mut out = "node,metric,value\n".to_owned();
        for (node, metric) in (0..1_000).flat_map(|node| (0..2_323).map(move |metric| (node, metric))) {
            let factor = if node == 17 && slow.contains(&metric) { 0.6 } else { 1.0 };
            for _ in 0..4 {
                let value = 1_000.0 * factor * (1.0 + 0.01 * noise.normal());
                writeln!(out, "n{node:04},b{:02}/m{metric:04},{value:.6}", metric % 40).unwrap();
            }
        }
        import(dir.path(), &out);
    }
    answered(dir.path(), ("n0017", "csv/b05/m1205"));
}

/// Asks what an engineer asks of the worst node of the database in `dir`, whose worst metric is this one; prints how many keys
/// that took, and how long.
fn answered(dir: &Path, (node, metric): (&str, &str)) {
    let begin = Instant::now();
    let mut screen = Terminal::open(muster(&dir.join("db"), &[]).current_dir(dir), SIZE).unwrap();
    let questions = [
        ("which node", "", format!("▸ {node} ")),
        ("which metric", "\r", format!("✗ fail    {metric}")),
        ("what changed", "", "2 stored runs: ".to_owned()),
        ("its CDF", "\r", format!("A {node}")),
        ("another alpha", "+", "alpha 0.955".to_owned()),
        ("as a ticket", "\x1bem", "written to ".to_owned()),
    ];
    let mut most = 0;
    println!("| question | keys | seconds since the start |\n|---|---|---|");
    for (what, keys, answer) in questions {
        screen.press(keys).unwrap();
        screen.shows(&answer).unwrap_or_else(|why| panic!("{what}: {why}"));
        let pressed = screen.pressed();
        println!("| {what} | {pressed} | {:.1} |", begin.elapsed().as_secs_f64());
        most = most.max(pressed);
    }
    assert!(most <= 6, "{most}");
}

#[test]
fn a_second_console_looks_on_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let db = import(dir.path(), &csv(&["gemm/fp16"], 0..8, 0));
    let first = Terminal::open(&muster(&db, &[]), SIZE).unwrap();
    first.shows("1 stored run is shown").unwrap();
    let mut second = Terminal::open(&muster(&db, &[]), SIZE).unwrap();
    second.shows("(read-only)").unwrap();
    second.shows("n007").unwrap();
    // What only reads works as ever; what would write says why it cannot.
    second.press("3").unwrap();
    second.shows("csv/gemm/fp16").unwrap();
    second.press("1R").unwrap();
    second.shows("another muster has the database").unwrap();
    drop(first);
}

#[test]
fn a_run_on_one_node_by_keys_hides_no_other_node_and_no_other_metric() {
    const TEST: &str = "a_run_on_one_node_by_keys_hides_no_other_node_and_no_other_metric";
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces");
    }
    let fleet = Fleet::up(Options { nodes: 5 }).unwrap();
    let console = fleet.console();
    let mut screen = Terminal::open(&console.on_terminal(&[]), SIZE).unwrap();
    screen.shows("n005").unwrap();
    // From a cold start: run, on all.
    screen.press(":run demo\r").unwrap();
    screen.shows("Run demo on all 5 nodes").unwrap();
    screen.press("y").unwrap();
    screen.shows("demo on n[001-005] finished").unwrap();
    let of = |screen: &mut Terminal, node: &str| {
        screen.press(&format!(":{node}\r")).unwrap();
        let there = |text: &str| text.contains(&format!("┌ {node}")) && verdicts(text).len() > 8;
        verdicts(&screen.wait(node, there).unwrap())
    };
    let (before, other) = (of(&mut screen, "n002"), of(&mut screen, "n004"));
    // Another playbook on one node alone; it measures some things again and others for the first time.
    of(&mut screen, "n002");
    screen.press(" R").unwrap();
    screen.shows("Commands").unwrap();
    screen.press("cbd-light\r").unwrap();
    screen.shows("Run cbd-light on the marked 1 node").unwrap();
    screen.press("y").unwrap();
    screen.shows("cbd-light on n002 finished").unwrap();
    let again = ["cpu-stream", "cpu-dispatch", "disk", "cpu-gemm"];
    let kept = |metric: &&String| !again.iter().any(|benchmark| metric.starts_with(&format!("{benchmark}/")));
    let after = verdicts(&screen.text());
    assert!(before.keys().any(|metric| kept(&metric)), "{before:?}");
    for (metric, value) in before.iter().filter(|(metric, _)| kept(metric)) {
        assert!(after.get(metric).is_none_or(|now| now == value), "{metric} was {value}\n{screen}");
    }
    if !screen.text().contains("train-gpt2/") {
        screen.press("G").unwrap();
    }
    screen.shows("train-gpt2/").unwrap();
    assert_eq!(of(&mut screen, "n004"), other, "{screen}");
    screen.press("9").unwrap();
    screen.shows("cbd-light").unwrap();
    screen.press("q").unwrap();
}

#[test]
fn a_console_that_is_told_to_end_leaves_the_terminal_as_it_was_and_says_by_what_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let db = import(dir.path(), &csv(&["disk/read"], 1..7, 0));
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut terminal = Terminal::open(&muster(&db, &[]), SIZE).unwrap();
        terminal.shows("n001").unwrap();
        assert!(terminal.is_taken(), "{terminal}");
        assert_eq!(terminal.end_by(signal).unwrap(), Some(code));
        let begin = std::time::Instant::now();
        while terminal.is_taken() && begin.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(!terminal.is_taken(), "{signal:?}: {terminal}");
    }
}

#[test]
fn a_console_whose_terminal_is_closed_ends() {
    let dir = tempfile::tempdir().unwrap();
    let db = import(dir.path(), &csv(&["disk/read"], 1..7, 0));
    let mut terminal = Terminal::open(&muster(&db, &[]), SIZE).unwrap();
    terminal.shows("n001").unwrap();
    terminal.close().unwrap();
}

#[test]
fn a_run_at_a_terminal_lists_the_new_host_keys_and_asks_about_all_of_them_once() {
    const TEST: &str = "a_run_at_a_terminal_lists_the_new_host_keys_and_asks_about_all_of_them_once";
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces");
    }
    let fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    let (console, known) = (fleet.console(), fleet.path("known_hosts"));
    let recorded = std::fs::read_to_string(&known).unwrap();
    std::fs::write(&known, "").unwrap();
    let file = fleet.path("look.toml");
    let look =
        "name = \"look\"\ntitle = \"Look\"\nprofile = \"smoke\"\n[[steps]]\nid = \"look\"\ncollect = [\"identity\"]\n";
    std::fs::write(&file, look).unwrap();
    let run = || Terminal::open(&console.on_terminal(&["run", &file, "--new"]), SIZE).unwrap();
    let keys = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();

    let mut refused = run();
    refused.shows("no record of 3 host keys").unwrap();
    let shown = refused.shows("record these keys?").unwrap();
    assert_eq!(shown.matches("SHA256:").count(), 3, "{shown}");
    refused.press("n\r").unwrap();
    refused.shows("--host-keys accept-new").unwrap();
    assert_eq!(keys(&std::fs::read_to_string(&known).unwrap()), 0, "nothing is recorded against a person's word");
    // The database is free once it has ended, which it may have by itself.
    let _ = refused.close();

    let mut asked = run();
    asked.shows("record these keys?").unwrap();
    asked.press("y\r").unwrap();
    asked.shows("3 nodes: 3 unknown").unwrap();
    let now = std::fs::read_to_string(&known).unwrap();
    assert_eq!(keys(&now), 3, "{now}");
    for key in recorded.split_whitespace().filter(|word| word.starts_with("AAAA")) {
        assert!(now.contains(key), "{now}");
    }
    let _ = asked.close();
    let again = run();
    assert!(!again.shows("3 nodes: 3 unknown").unwrap().contains("no record of"), "known keys are not asked about");
}
