//! The check before delivery on real nodes: a slow core and a slow disk are each named by the benchmark that is there for
//! it, and nobody else is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_tests::{Fleet, Lacks, Load, Options, Try, decide_where_steady, is_root, skip, tried};
use serde_json::Value;

const TEST: &str = "a_slow_core_and_a_slow_disk_are_named_by_cbd";

/// `cbd` in its shortest profile, up to the step after both have left. The nodes share this machine's kernel, whose log is
/// nobody's own.
fn book() -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../playbooks/cbd.toml")).unwrap();
    let whole = text.split("[[steps]]\nid = \"gpu\"").next().unwrap();
    whole
        .replace("profile = \"quick\"", "profile = \"smoke\"")
        .replace("idle_s = 30", "idle_s = 1")
        .replace("\"kernel-log\", ", "")
}

#[test]
#[ignore = "a campaign: tests/campaign verdicts"]
fn a_slow_core_and_a_slow_disk_are_named_by_cbd() {
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces and cgroups");
    }
    let siblings = std::fs::read_to_string("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list");
    if siblings.is_ok_and(|list| list.trim() != "1") || !std::path::Path::new("/sys/devices/system/cpu/cpu1").exists() {
        return skip(TEST, Lacks::Tool, "a second core that shares nothing with the first");
    }
    // Of twelve, sound disks that differ by 5 % hide a dead slow one from a verdict; of sixteen, twice that is needed.
    let mut fleet = Fleet::up(Options { nodes: 16 }).unwrap();
    let slow = match fleet.node("n003").slow_core(1) {
        Ok(slow) => slow,
        Err(why) => return skip(TEST, Lacks::Tool, &format!("{why:#}")),
    };
    fleet.node("n005").limit_disk(20_000_000).unwrap();
    let file = fleet.path("book.toml");
    std::fs::write(&file, book()).unwrap();
    // A machine may be too busy to tell a slow core from a held one; nobody may be accused of what he has not.
    decide_where_steady(TEST, 1, || {
        let load = Load::start(Some(&fleet));
        // One at a time: the nodes share this machine's cores.
        let ran = fleet.console().run(&["run", &file, "--json", "--new", "--one-at-a-time"]).unwrap();
        let (report, others) = (ran.json().unwrap(), load.others(Some(&fleet)));
        let (open, accused) = (undecided(&report), accused(&report));
        if !accused.is_empty() {
            return Try { accused, ..Try::new(open, others) };
        }
        if open.is_none() {
            assert_eq!(ran.code, Some(2), "{}", ran.err);
            left(&report);
        }
        Try::new(open, others)
    });
    drop(slow);
}

/// Nodes without a fault that failed.
fn accused(report: &Value) -> Vec<String> {
    let failed = report["nodes"].as_array().unwrap().iter().filter(|node| node["state"] == "fail");
    let sound = failed.filter(|node| SHOWN.iter().all(|(name, _)| node["node"] != *name));
    sound.map(|node| format!("{}: {}", node["node"], node["reasons"])).collect()
}

/// Why a fault was not named, where the machine is to blame for it. Neither of the two may pass.
fn undecided(report: &Value) -> Option<String> {
    let mut open = None;
    for node in report["nodes"].as_array().unwrap() {
        let (name, state) = (node["node"].as_str().unwrap(), node["state"].as_str().unwrap());
        let said = node["reasons"].to_string();
        let named = match name {
            "n003" => core_named(node, state, &said),
            "n005" => {
                assert!(state != "pass" && (said.contains(" disk metrics") || unclear(node, "disk")), "{name}: {said}");
                said.contains(" disk metrics")
            }
            _ => continue,
        };
        if !named {
            open = Some(format!("{name}: {said}"));
        }
    }
    open
}

/// Whether the slow core failed its node, by itself or beside the cores of other nodes.
///
/// # Panics
/// When the core was judged, and neither found slow nor left open.
fn core_named(node: &Value, state: &str, said: &str) -> bool {
    // Severity and doubt are told apart: a warning of the clock, say, leaves the faulty part as open as it is.
    if state != "fail" && (unclear(node, "core:1") || said.contains("measure again")) {
        return false;
    }
    let words = ["n003: core 1 takes ", " times as long as 1 other cores of the node (cpu-core, "];
    assert!(state == "fail" && words.iter().all(|word| said.contains(word)), "n003 is {state}: {said}");
    true
}

/// Whether nothing is known of a part of a node.
fn unclear(node: &Value, part: &str) -> bool {
    let parts = node["components"].as_array().unwrap();
    parts.iter().any(|of| of["component"] == part && of["undecided"] == true)
}

/// The step that shows the fault of each.
const SHOWN: [(&str, &str); 2] = [("n003", "parts"), ("n005", "input-output")];

/// Nodes that left, and after which step.
fn dropped(report: &Value) -> Vec<(&str, &str)> {
    let all = report["dropped"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().map(|left| (left["node"].as_str().unwrap(), left["step"].as_str().unwrap())).collect()
}

/// Who left did so after the step that showed its fault, and was not measured any further. A fault may be decided on by a later
/// visit, or the disk only warned of: a loss is at most all of the speed, and where this machine gives sound disks as unequal
/// shares, that is no more than chance may do.
fn left(report: &Value) {
    let dropped = dropped(report);
    assert!(dropped.iter().all(|left| SHOWN.contains(left)), "{report}");
    for (name, _) in SHOWN.iter().filter(|(name, _)| !dropped.iter().any(|(left, _)| left == name)) {
        let node = report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == *name).unwrap();
        let (state, reasons) = (&node["state"], &node["reasons"]);
        tried(
            TEST,
            &format!(
                "{name} was not decided on at the end of its step; in the end {state}: {reasons}; {}",
                disk(report)
            ),
        );
    }
    for node in report["nodes"].as_array().unwrap() {
        let verdicts = node["verdicts"].as_array().unwrap().iter();
        let mut later = verdicts.filter(|verdict| verdict["metric"].as_str().unwrap().starts_with("cpu-gemm/"));
        let stayed = later.any(|verdict| verdict["value"].is_number());
        let left = dropped.iter().any(|(left, _)| node["node"] == *left);
        assert_eq!(stayed, !left, "{node}");
    }
}

/// What the disks of all nodes were measured to do.
fn disk(report: &Value) -> String {
    let of = |node: &Value| {
        let verdicts = node["verdicts"].as_array().unwrap().iter();
        let disk = verdicts.filter(|verdict| verdict["metric"].as_str().unwrap().starts_with("disk/"));
        let values = disk.map(|verdict| format!("{} {}", verdict["metric"].as_str().unwrap(), verdict["value"]));
        format!("{}: {}", node["node"].as_str().unwrap(), values.collect::<Vec<_>>().join(", "))
    };
    report["nodes"].as_array().unwrap().iter().map(of).collect::<Vec<_>>().join("; ")
}
