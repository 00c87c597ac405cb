//! Triage of a job that runs on real nodes: muster's own training, broken for real, and what is named then.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster_tests::{Console, Fleet, Lacks, Options, binary, is_root, skip};
use serde_json::Value;

const NODES: [&str; 4] = ["n001", "n002", "n003", "n004"];
const EACH: usize = 2;

/// The probe that the console was built with.
fn probe() -> PathBuf {
    let built = || {
        binary()
            .ancestors()
            .nth(2)
            .map(|target| target.join("probe-static/x86_64-unknown-linux-gnu/probe/muster-probe"))
    };
    std::env::var_os("MUSTER_PROBE").map(PathBuf::from).or_else(built).unwrap()
}

/// Starts two ranks on every node; `broken` is the rank that gets `--break how`.
fn start(fleet: &mut Fleet, broken: Option<(usize, &str)>) {
    let peers: Vec<String> =
        (0..NODES.len() * EACH).map(|rank| format!("10.79.1.{}:{}", rank / EACH + 1, 7000 + rank % EACH)).collect();
    let peers = peers.join(",");
    let probe = probe();
    for (at, name) in NODES.iter().enumerate() {
        let node = fleet.node(name);
        node.sh("rm -rf /tmp/job; mkdir -p /tmp/job").unwrap();
        for local in 0..EACH {
            let rank = at * EACH + local;
            let how = broken.filter(|(who, _)| *who == rank).map_or(String::new(), |(_, how)| format!("--break {how}"));
            let line = format!(
                "setsid nohup {} train-ddp --rank {rank} --world {} --ranks-per-node {EACH} --peers {peers} --seconds 900 \
                 --pause 50 --timeout 300 --ras-patience 2 --dir /tmp/job {how} > /tmp/job/rank_{rank}.log 2>&1 < /dev/null & \
                 echo $! > /tmp/job/pid_{rank}",
                probe.display(),
                NODES.len() * EACH
            );
            node.sh(&line).unwrap();
        }
    }
    let begun = Instant::now();
    while !fleet.node(NODES[0]).sh("grep -c 'iteration 3/' /tmp/job/rank_0.log || true").unwrap().starts_with('1') {
        assert!(begun.elapsed() < Duration::from_secs(120), "the job does not begin");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn signal(fleet: &mut Fleet, rank: usize, signal: &str) {
    fleet.node(NODES[rank / EACH]).sh(&format!("kill -{signal} $(cat /tmp/job/pid_{rank})")).unwrap();
}

fn end(fleet: &mut Fleet) {
    for name in NODES {
        let _ = fleet.node(name).sh("for pid in $(cat /tmp/job/pid_*); do kill -KILL $pid; done; true");
    }
}

/// What the console says, with its exit code; what it prints is the published document.
fn triage(console: &Console, arguments: &[&str]) -> (Option<i32>, Value) {
    let ran = console.run(&[&["triage", "--json"], arguments].concat()).unwrap();
    let report = ran.json().unwrap_or_else(|why| panic!("{why}: {}", ran.err));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas/muster.triage.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&report).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{}", ran.err);
    (ran.code, report)
}

fn named(report: &Value) -> Vec<(Option<&str>, Option<u64>)> {
    let suspects = report["suspects"].as_array().unwrap();
    suspects.iter().map(|suspect| (suspect["node"].as_str(), suspect["rank"].as_u64())).collect()
}

#[test]
fn the_rank_that_stops_is_named_live_and_the_kept_bundle_says_the_same() {
    if !is_root() {
        return skip(
            "the_rank_that_stops_is_named_live_and_the_kept_bundle_says_the_same",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    start(&mut fleet, None);
    let (code, healthy) = triage(&console, &[]);
    assert_eq!((code, named(&healthy)), (Some(3), vec![]), "{healthy:#}");
    assert_eq!(healthy["ranks"]["n"], 8, "{healthy:#}");
    assert_eq!(healthy["ranks"]["missing"], serde_json::json!([]), "{healthy:#}");

    signal(&mut fleet, 5, "STOP");
    std::thread::sleep(Duration::from_secs(2));
    let kept = fleet.path("kept");
    let (code, stopped) = triage(&console, &["--save", &kept]);
    assert_eq!(named(&stopped), [(Some("n003"), Some(5))], "{stopped:#}");
    assert_eq!((code, &stopped["category"]), (Some(2), &"hang-not-launched".into()), "{stopped:#}");
    let (again, read) = triage(&console, &["--from", &kept]);
    assert_eq!((again, &read), (code, &stopped));
    end(&mut fleet);
}

#[test]
fn a_deadlocked_a_mistaken_and_a_killed_rank_are_named_live() {
    if !is_root() {
        return skip("a_deadlocked_a_mistaken_and_a_killed_rank_are_named_live", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let of_dead = ["--logs", "/tmp/job/rank_*.log", "--dumps", "/tmp/job"];
    start(&mut fleet, Some((3, "deadlock@20")));
    std::thread::sleep(Duration::from_secs(5));
    let (_, report) = triage(&console, &[]);
    // Ranks 2 and 3 wait for each other, in two orders: counts cannot tell which of them is wrong.
    let on_node =
        |(node, rank): &(Option<&str>, Option<u64>)| *node == Some("n002") && rank.is_none_or(|of| of / 2 == 1);
    assert!(!named(&report).is_empty() && named(&report).iter().all(on_node), "{report:#}");
    end(&mut fleet);

    start(&mut fleet, Some((6, "wrong-size@20")));
    std::thread::sleep(Duration::from_secs(8));
    let (code, report) = triage(&console, &of_dead);
    assert_eq!(
        (named(&report), &report["category"]),
        (vec![(Some("n004"), Some(6))], &"user-bug".into()),
        "{report:#}"
    );
    assert_eq!(code, Some(2), "{report:#}");
    end(&mut fleet);

    start(&mut fleet, None);
    signal(&mut fleet, 2, "KILL");
    std::thread::sleep(Duration::from_secs(8));
    let (code, report) = triage(&console, &of_dead);
    assert_eq!(
        (named(&report), &report["category"]),
        (vec![(Some("n002"), Some(2))], &"process-exited".into()),
        "{report:#}"
    );
    assert_eq!(code, Some(2), "{report:#}");
}
