//! A training over real nodes as a step of a playbook, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use muster_tests::{Console, Fleet, Lacks, Options, Ran, Try, decide_where_steady, is_root, skip};
use serde_json::Value;

const NODES: u8 = 6;
const TRAIN: &str = "train-ddp";

/// A playbook of one training of `seconds`, two ranks a node.
fn playbook(fleet: &Fleet, seconds: u32) -> String {
    let path = fleet.path("train.toml");
    let text = format!(
        "name = \"train\"\ntitle = \"Training\"\nprofile = \"smoke\"\n[[steps]]\nid = \"train\"\n\
         train_ddp = {{ ranks_per_node = 2, seconds = {seconds} }}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn reasons(report: &Value, node: &str) -> String {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().find(|of| of["node"] == node).unwrap()["reasons"].to_string()
}

fn failed(report: &Value) -> Vec<String> {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().filter(|of| of["state"] == "fail").map(|of| of["node"].as_str().unwrap().to_owned()).collect()
}

/// Ranks on all nodes.
fn ranks(fleet: &mut Fleet) -> usize {
    (1..=NODES)
        .map(|at| fleet.node(&format!("n{at:03}")).sh("pgrep -fc '[t]rain-ddp' || true").unwrap())
        .map(|n| n.trim().parse().unwrap_or(0))
        .sum()
}

fn wait_for_ranks(fleet: &mut Fleet) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while ranks(fleet) < 2 * usize::from(NODES) {
        assert!(Instant::now() < deadline, "the ranks never started");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What the samples of the newest run are of.
fn metrics(console: &Console) -> BTreeSet<String> {
    let ran = console.run(&["export", "--format", "samples"]).unwrap();
    ran.out.lines().skip(1).filter_map(|line| line.split(',').nth(1)).map(str::to_owned).collect()
}

#[test]
fn a_training_over_all_nodes_is_the_same_on_all_and_names_the_slow_and_the_dead() {
    let name = "a_training_over_all_nodes_is_the_same_on_all_and_names_the_slow_and_the_dead";
    if !is_root() {
        return skip(name, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: NODES }).unwrap();
    let console = fleet.console();
    let short = playbook(&fleet, 30);
    let sound = console.run(&["run", &short, "--json"]).unwrap();
    let report = sound.json().unwrap();
    assert_eq!(failed(&report), Vec::<String>::new(), "{report:#}");
    assert!(sound.err.contains("the same weights on 6 nodes after every step, digest "), "{}", sound.err);
    let told = metrics(&console);
    for metric in ["compute_time", "step_time", "comm_time"] {
        assert!(told.contains(&format!("{TRAIN}/{metric}@gpt2-nano-2")), "{metric}: {told:?}");
    }
    assert_eq!(ranks(&mut fleet), 0);

    decide_where_steady(name, 2, || {
        let load = muster_tests::Load::start(Some(&fleet));
        fleet.node("n003").limit_cpu(10).unwrap();
        let ran = console.run(&["run", &short, "--new", "--json"]).unwrap();
        fleet.node("n003").limit_cpu(100).unwrap();
        let report = ran.json().unwrap();
        let named = failed(&report);
        let others = load.others(Some(&fleet));
        if named.is_empty() {
            return Try::new(Some(reasons(&report, "n003")), others);
        }
        let sound = named.iter().filter(|name| *name != "n003");
        let accused: Vec<String> = sound.map(|name| format!("{name}: {}", reasons(&report, name))).collect();
        if accused.is_empty() {
            assert!(reasons(&report, "n003").contains("compute"), "{report:#}");
        }
        Try { accused, ..Try::new(None, others) }
    });
    dead(&mut fleet, &console);
}

/// A rank that is killed fails its own node alone; a console that is killed leaves no rank.
fn dead(fleet: &mut Fleet, console: &Console) {
    let long = playbook(fleet, 120);
    let running = console.start(&["run", &long, "--new", "--json"]).unwrap();
    wait_for_ranks(fleet);
    fleet.node("n002").sh("pkill -9 -f '[t]rain-ddp.*--rank 3 '").unwrap();
    let ran: Ran = running.wait_with_output().unwrap().into();
    let report = ran.json().unwrap();
    assert_eq!(failed(&report), ["n002"], "{report:#}");
    assert!(reasons(&report, "n002").contains("rank 3 was ended by signal 9"), "{report:#}");
    assert!(reasons(&report, "n005").contains("n002: rank 3 was ended by signal 9"), "{report:#}");

    let mut running = console.start(&["run", &long, "--new", "--json"]).unwrap();
    wait_for_ranks(fleet);
    running.kill().unwrap();
    running.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while ranks(fleet) > 0 {
        assert!(Instant::now() < deadline, "{} ranks are left", ranks(fleet));
        std::thread::sleep(Duration::from_millis(200));
    }
}
