//! A watch of the nodes of a Slurm job: GPUs beside the rest, fine looks in the recording, and what is told to others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use muster_tests::{Fleet, Lacks, Options, Ran, is_root, simulated_driver, skip};

/// A program on the PATH that prints `text`.
fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_nodes_of_a_job_are_watched_with_their_gpus_and_others_are_told_of_it() {
    if !is_root() {
        let test = "the_nodes_of_a_job_are_watched_with_their_gpus_and_others_are_told_of_it";
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    fleet.node("n002").drive_gpus(&simulated_driver(), "devices 2\ngpu 1 sensor power 300000\n").unwrap();
    fleet.node("n003").gpu_on_the_bus().unwrap();
    let dir = tempfile::tempdir().unwrap();
    program(dir.path(), "squeue", "RUNNING n[002-003],x7");
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let scores = dir.path().join("muster.prom");
    let scores = scores.to_str().unwrap();
    let console = fleet.console();
    let watch = |arguments: &[&str]| -> Ran {
        console
            .on_terminal(&[&["watch", "--for", "12s"], arguments].concat())
            .env("PATH", &path)
            .output()
            .unwrap()
            .into()
    };
    let ran = watch(&["--job", "4711", "--hz", "20", "--log", "--record", "--openmetrics", scores, "--json"]);
    let report = ran.json().unwrap();
    assert_eq!((ran.code, &report["nodes"]), (Some(3), &2.into()), "{}", ran.err);
    assert!(ran.err.contains("nodes of job 4711 that are not in the inventory are left out: x7"), "{}", ran.err);
    let told: Vec<&str> = report["metrics"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["gpu_power_w", "gpu_power_least_w", "gpu_count", "sm_active", "blocked_tasks", "job_switches_per_s"] {
        assert!(told.contains(&name), "{name}: {told:?}");
    }
    assert!(!told.iter().any(|name| name.contains('@')), "{told:?}");
    assert!(ran.err.contains("n003: its GPUs are not watched: no NVIDIA management library"), "{}", ran.err);
    let text = std::fs::read_to_string(scores).unwrap();
    assert!(text.contains("muster_watch_alert{node=\"n002\"} 0\n") && text.ends_with("# EOF\n"), "{text}");

    let file = ran.err.lines().find_map(|line| line.strip_prefix("recording to ")).unwrap();
    let fine = console.run(&["watch", "--from", file, "--metrics", "*@fine", "--json"]).unwrap().json().unwrap();
    assert!(fine["metrics"].to_string().contains("net_tx_gbs@fine"), "{fine}");
    let whole = console.run(&["watch", "--from", file, "--json"]).unwrap().json().unwrap();
    assert!(!whole["metrics"].to_string().contains('@'), "{whole}");
    assert_eq!(fleet.node("n002").probes() + fleet.node("n003").probes(), 0);

    program(dir.path(), "squeue", "PENDING ");
    let pending = watch(&["--job", "4711"]);
    assert!(pending.err.contains("job 4711 has no nodes: Slurm says it is PENDING"), "{}", pending.err);
    program(dir.path(), "squeue", "RUNNING x[1-3]");
    let elsewhere = watch(&["--job", "4711"]);
    assert_eq!(elsewhere.code, Some(64));
    assert!(elsewhere.err.contains("no node of job 4711 is in the inventory: it runs on x[1-3]"), "{}", elsewhere.err);
}
