//! Nodes of several architectures in one run: each gets the probe that it can run. By hand, with `tests/campaign arm`: QEMU runs the
//! programs for Arm.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;

use muster_tests::{Fleet, Lacks, Options, is_root, run, skip};
use serde_json::Value;

/// Where the kernel is told what runs programs of other machines.
const KINDS: &str = "/proc/sys/fs/binfmt_misc";
/// Programs of 64-bit Arm, by their first bytes; the kernel opens QEMU when told, so that nodes need no file of it.
const ARM: &str = r":muster-arm:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfc\xff\xff\xff:/usr/bin/qemu-aarch64-static:F";
const PLAYBOOK: &str = "name = \"kinds\"\ntitle = \"Nodes of several architectures\"\nprofile = \"smoke\"\n[[steps]]\nid = \"look\"\n\
    collect = [\"identity\", \"cpu\", \"memory\"]\nrun = [\"cpu-dispatch\", \"cpu-stream\"]\n";

/// That the kernel runs programs for Arm; it no longer does when this is dropped.
struct Registered;

impl Drop for Registered {
    fn drop(&mut self) {
        let _ = std::fs::write(Path::new(KINDS).join("muster-arm"), "-1");
    }
}

fn state<'a>(report: &'a Value, node: &str) -> (&'a str, String) {
    let nodes = report["nodes"].as_array().unwrap();
    let of = nodes.iter().find(|of| of["node"] == node).unwrap();
    (of["state"].as_str().unwrap(), of["reasons"].to_string())
}

#[test]
#[ignore = "a campaign: tests/campaign arm"]
fn an_arm_node_gets_the_probe_for_arm_and_one_of_an_unknown_architecture_says_so() {
    let name = "an_arm_node_gets_the_probe_for_arm_and_one_of_an_unknown_architecture_says_so";
    if !is_root() {
        return skip(name, Lacks::Root, "for namespaces");
    }
    if !Path::new("/usr/bin/qemu-aarch64-static").exists() {
        return skip(name, Lacks::Tool, "qemu-user-static");
    }
    if !Path::new(KINDS).join("register").exists() {
        run(&["mount", "-t", "binfmt_misc", "none", KINDS]).unwrap();
    }
    std::fs::write(Path::new(KINDS).join("register"), ARM).unwrap();
    let _registered = Registered;
    let mut fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    for (node, machine) in [("n002", "aarch64"), ("n003", "riscv64")] {
        let uname = format!("#!/bin/sh\\n[ \"$1\" = -m ] && echo {machine} || exec /bin/uname \"$@\"\\n");
        let write = format!("printf '{uname}' > /usr/local/bin/uname && chmod 755 /usr/local/bin/uname");
        fleet.node(node).sh(&write).unwrap();
    }
    let file = fleet.path("kinds.toml");
    std::fs::write(&file, PLAYBOOK).unwrap();
    let console = fleet.console();
    let ran = console.run(&["run", &file, "--json", "--new", "--visits", "1"]).unwrap();
    let report = ran.json().unwrap();
    println!("| node | state | reasons |\n| --- | --- | --- |");
    for node in ["n001", "n002", "n003"] {
        let (state, reasons) = state(&report, node);
        println!("| {node} | {state} | {reasons} |");
    }
    let (found, reasons) = state(&report, "n003");
    assert_eq!(found, "unknown");
    assert!(reasons.contains("its architecture is riscv64, and this muster has a probe for "), "{reasons}");
    let samples = console.run(&["export", "--format", "samples"]).unwrap().out;
    for (node, machine) in [("n001", "x86_64"), ("n002", "aarch64")] {
        for metric in ["cpu-dispatch/", "cpu-stream/"] {
            assert!(samples.lines().any(|line| line.contains(node) && line.contains(metric)), "{node}: {metric}");
        }
        assert!(!state(&report, node).1.contains("architecture"), "{node}: {}", state(&report, node).1);
        // What its file says it is for.
        let told = fleet.node(node).sh("od -An -tx1 -j18 -N1 /root/.cache/muster-0/probe-*").unwrap();
        assert_eq!(told.trim(), if machine == "aarch64" { "b7" } else { "3e" }, "{node}");
    }
    println!("| each has the program for its architecture | yes | |");
}
