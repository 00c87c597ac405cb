//! RDMA adapters on real OpenSSH nodes: the pushed probe, its worker, and a libibverbs that moves bytes and has faults. Each fault
//! is found and named with its adapter, and nobody else is blamed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_tests::{Adapter, Fleet, Lacks, Options, is_root, skip, verbs_library};
use serde_json::Value;

/// What every node has beside what is said of it below.
const SETTINGS: &str = "rate 2e8\nadapter mlx5_0 infiniband\nadapter mlx5_1 ethernet\n";
const UP: &str = "4: ACTIVE";

/// What a node has.
enum Has {
    /// Two adapters with these faults.
    Faults(&'static str),
    /// Two, the second of which has no link.
    Down,
    /// Two and no libibverbs that knows them.
    NoLibrary,
    /// None.
    Nothing,
}

/// Node, what it has, its state, and what is said of it: between `…` anything may stand.
const NODES: [(&str, Has, &str, &[&str]); 11] = [
    ("n001", Has::Faults(""), "pass", &[]),
    // Its peers may be too noisy to fail it; it is named all the same.
    ("n002", Has::Faults("mlx5_1 slow factor=20\n"), "fail or warn", &["ib-loopback/write- … :mlx5_1:1 … % below "]),
    (
        "n003",
        Has::Faults("mlx5_0 flip bit=3 every=3000000\n"),
        "fail",
        &["ib-loopback failed: mlx5_0/1: write-8MiB: 2 of 2097152 words arrived wrong, the first is 749999"],
    ),
    ("n004", Has::Down, "fail", &["ib-port: port.mlx5_1/1.state is DOWN"]),
    (
        "n005",
        Has::Faults("mlx5_1 status 12 after=5\n"),
        "fail",
        &["ib-loopback failed: mlx5_1/1: write-8MiB: message ", "status 12, transport retry counter exceeded"],
    ),
    (
        "n006",
        Has::Faults("mlx5_0 hang after=3\n"),
        "fail",
        &["ib-loopback failed: mlx5_0/1: hang: no progress for 12 s after 'mlx5_0/1: write-8MiB'", "(1 of 2 ports)"],
    ),
    ("n007", Has::NoLibrary, "pass", &[]),
    ("n008", Has::Nothing, "pass", &[]),
    (
        "n009",
        Has::Faults("mlx5_0 counts packet_seq_err 3\n"),
        "warn",
        &["ib-loopback-errors: mlx5_0/1: 3 errors during ib-loopback, most of them packet_seq_err"],
    ),
    ("n010", Has::Faults(""), "pass", &[]),
    ("n011", Has::Faults(""), "pass", &[]),
];

const BOOK: &str = "name = \"adapters\"\ntitle = \"Adapters\"\nprofile = \"smoke\"\n\
    [[steps]]\nid = \"adapters\"\ncheck = [\"ib-port\", \"ib-loopback-errors\"]\nrun = [\"cpu-dispatch\", \"ib-loopback\"]\n";

#[test]
fn every_broken_adapter_is_named_and_nobody_else_is_blamed() {
    let test = "every_broken_adapter_is_named_and_nobody_else_is_blamed";
    if !is_root() {
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: NODES.len() as u8 }).unwrap();
    NODES.iter().for_each(|(name, has, ..)| prepare(&mut fleet, name, has));
    let book = fleet.path("adapters");
    std::fs::write(&book, BOOK).unwrap();
    // One at a time, as they share this machine's cores; no figure of the CPUs is different enough to accuse a node.
    let ran = fleet.console().run(&["run", &book, "--one-at-a-time", "--alpha", "0.001", "--json", "--new"]).unwrap();
    let report = ran.json().unwrap();
    let wrong: Vec<String> =
        NODES.iter().filter_map(|(node, _, state, words)| complaint(&report, node, state, words)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.err);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(ports(&report, "n001"), ["mlx5_0:1", "mlx5_1:1"]);
    assert_eq!(ports(&report, "n004"), ["mlx5_0:1"], "a port without a link takes nothing from the other");
    assert_eq!(ports(&report, "n006"), ["mlx5_1:1"], "nor does one that hangs");
    assert_eq!(ports(&report, "n008"), [""; 0]);
}

fn prepare(fleet: &mut Fleet, name: &str, has: &Has) {
    let state = if matches!(has, Has::Down) { "1: DOWN" } else { UP };
    let adapters = [
        Adapter { name: "mlx5_0", layer: "InfiniBand", state: UP },
        Adapter { name: "mlx5_1", layer: "Ethernet", state },
    ];
    let node = fleet.node(name);
    if !matches!(has, Has::Nothing) {
        node.show_adapters(&adapters).unwrap();
    }
    let faults = match has {
        Has::Faults(faults) => faults,
        Has::Down => "mlx5_1 down\n",
        Has::NoLibrary | Has::Nothing => return,
    };
    node.drive_adapters(&verbs_library(), &format!("{SETTINGS}{faults}")).unwrap();
}

/// What is wrong in the report about one node.
fn complaint(report: &Value, node: &str, state: &str, words: &[&str]) -> Option<String> {
    let found = of(report, node);
    let reasons: Vec<&str> = found["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let told = |word: &&str| reasons.iter().any(|reason| word.split(" … ").all(|part| reason.contains(part)));
    // Of a node without adapters it is said that nobody measured those of its peers.
    let excused = ["too noisy to judge", "libibverbs", "not measured"];
    let accused =
        reasons.iter().any(|reason| reason.contains("mlx5_") && !excused.iter().any(|why| reason.contains(why)));
    // A machine may be too noisy to let a healthy node pass; it must never accuse one.
    let right = match state {
        "pass" => found["state"] != "fail" && !accused,
        "warn" => found["state"] != "fail" && words.iter().all(told),
        "fail or warn" => (found["state"] == "fail" || found["state"] == "warn") && words.iter().all(told),
        state => found["state"] == state && words.iter().all(told),
    };
    (!right).then(|| format!("{node} is to be {state} for {words:?}, and is {}: {reasons:#?}", found["state"]))
}

fn of<'a>(report: &'a Value, node: &str) -> &'a Value {
    report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node).unwrap()
}

/// Ports of `node` that were measured to the end.
fn ports(report: &Value, node: &str) -> Vec<String> {
    let verdicts = of(report, node)["verdicts"].as_array().unwrap();
    let measured = verdicts.iter().filter(|verdict| verdict["value"].is_number());
    let metric = measured.filter_map(|verdict| verdict["metric"].as_str()?.strip_prefix("ib-loopback/write-64KiB:"));
    let mut ports: Vec<String> = metric.map(str::to_owned).collect();
    ports.sort_unstable();
    ports
}
