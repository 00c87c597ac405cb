//! A scan of many nodes by SSH and by Slurm, one after the other: how long each takes, and what Slurm's controller has to do. By hand, with
//! `tests/campaign slurm-speed`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::time::Instant;

use muster_tests::{Fleet, Lacks, Options, Slurm, is_root, skip};
use serde_json::Value;

const PLAYBOOK: &str = "name = \"scan\"\ntitle = \"A look at every node\"\nprofile = \"smoke\"\n[[steps]]\nid = \"look\"\n\
    collect = [\"identity\", \"cpu\", \"memory\", \"disk\", \"nic\"]\nrun = [@RUN@]\n";
/// Of a scan that takes seconds, and of one that takes minutes where 64 nodes share two cores.
const SCANS: [(&str, &str); 2] = [
    ("one benchmark", "\"cpu-dispatch\""),
    ("six benchmarks", "\"cpu-gemm\", \"cpu-stream\", \"cpu-latency\", \"cpu-dispatch\", \"disk\", \"net-loopback\""),
];
const BY_SLURM: &str = "transport = \"slurm\"\n[slurm]\npartition = \"all\"\nwait = 120\n";
const ROUNDS: usize = 3;

#[test]
#[ignore = "a campaign: tests/campaign slurm-speed"]
fn scans_by_srun_and_by_ssh_are_timed_in_turns() {
    let name = "scans_by_srun_and_by_ssh_are_timed_in_turns";
    if !is_root() {
        return skip(name, Lacks::Root, "namespaces for the nodes");
    }
    if let Some(program) = Slurm::lacks() {
        return skip(name, Lacks::Tool, &format!("Slurm's {program}"));
    }
    let nodes = std::env::var("MUSTER_NODES").map_or(64, |text| text.parse().unwrap());
    let fleet = Fleet::up(Options { nodes }).unwrap();
    let slurm = Slurm::up(&fleet).unwrap();
    let console = slurm.console(fleet.console());
    let (file, inventory) = (fleet.path("scan.toml"), fleet.path("inventory.toml"));
    let by_ssh = std::fs::read_to_string(&inventory).unwrap();
    println!(
        "| {nodes} nodes, scan | by | round | s | measured | CPU s of slurmctld |\n| --- | --- | --- | --- | --- | --- |"
    );
    for (scan, run) in SCANS {
        std::fs::write(&file, PLAYBOOK.replace("@RUN@", run)).unwrap();
        let mut took = [Vec::new(), Vec::new()];
        for round in 1..=ROUNDS {
            for (way, (title, text)) in [("SSH", by_ssh.as_str()), ("Slurm", BY_SLURM)].into_iter().enumerate() {
                std::fs::write(&inventory, text).unwrap();
                let (begun, before) = (Instant::now(), slurm.controller_cpu_s().unwrap());
                let ran = console.run(&["run", &file, "--json", "--new", "--visits", "1"]).unwrap();
                let (seconds, cpu) = (begun.elapsed().as_secs_f64(), slurm.controller_cpu_s().unwrap() - before);
                let answered = measured(&ran.json().unwrap());
                println!("| {scan} | {title} | {round} | {seconds:.2} | {answered} | {cpu:.2} |");
                assert_eq!(answered, usize::from(nodes), "{title}: {}", ran.err);
                took[way].push(seconds);
            }
        }
        let best = took.map(|all| all.into_iter().fold(f64::INFINITY, f64::min));
        println!("| {scan} | Slurm : SSH | shortest of {ROUNDS} | {:.2} | | |", best[1] / best[0]);
    }
}

/// Nodes of which anything was measured.
fn measured(report: &Value) -> usize {
    let any = |node: &&Value| node["verdicts"].as_array().unwrap().iter().any(|verdict| verdict["value"].is_number());
    report["nodes"].as_array().unwrap().iter().filter(any).count()
}
