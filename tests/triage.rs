//! Triage of a job that runs on real nodes: muster's own training, broken for real, and what is named then.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::time::Duration;

use muster_tests::{Console, Fleet, Job, JobOptions, Lacks, Options, conforms, is_root, simulated_driver, skip};
use serde_json::Value;

/// Two ranks a node that leave the machine some time.
const fn usual() -> JobOptions<'static> {
    JobOptions { each: 2, with: "--pause 50", broken: None }
}

/// What the console says, with its exit code; what it prints is the published document.
fn triage(console: &Console, arguments: &[&str]) -> (Option<i32>, Value) {
    let ran = console.run(&[&["triage", "--json"], arguments].concat()).unwrap();
    let report = ran.json().unwrap_or_else(|why| panic!("{why}: {}", ran.err));
    conforms("muster.triage.json", &report, &ran.err);
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
    let job = Job::start(&mut fleet, usual()).unwrap();
    let (code, healthy) = triage(&console, &[]);
    assert_eq!((code, named(&healthy)), (Some(3), vec![]), "{healthy:#}");
    assert_eq!(healthy["ranks"]["n"], 8, "{healthy:#}");
    assert_eq!(healthy["ranks"]["missing"], serde_json::json!([]), "{healthy:#}");

    // A machine that is not set up as the others: alone it is no certainty, and it does not hide what stops the job.
    fleet.node("n002").sh("ip link set eth0 mtu 1400").unwrap();
    let (code, set_up) = triage(&console, &["--no-ras"]);
    assert_eq!((code, named(&set_up)), (Some(3), vec![(Some("n002"), None)]), "{set_up:#}");
    assert_eq!(set_up["suspects"][0]["evidence"][0]["source"], "check", "{set_up:#}");

    job.signal(&mut fleet, 5, "STOP").unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let kept = fleet.path("kept");
    let (code, stopped) = triage(&console, &["--save", &kept]);
    assert_eq!(named(&stopped), [(Some("n003"), Some(5))], "{stopped:#}");
    assert_eq!((code, &stopped["category"]), (Some(2), &"hang-not-launched".into()), "{stopped:#}");
    let (again, read) = triage(&console, &["--from", &kept]);
    assert_eq!((again, &read), (code, &stopped));
    job.end(&mut fleet).unwrap();
}

#[test]
fn a_deadlocked_a_mistaken_and_a_killed_rank_are_named_live() {
    if !is_root() {
        return skip("a_deadlocked_a_mistaken_and_a_killed_rank_are_named_live", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let of_dead = ["--logs", "/tmp/job/rank_*.log", "--dumps", "/tmp/job"];
    let job = Job::start(&mut fleet, JobOptions { broken: Some((3, "deadlock@20")), ..usual() }).unwrap();
    std::thread::sleep(Duration::from_secs(5));
    let (_, report) = triage(&console, &[]);
    // Ranks 2 and 3 wait for each other, in two orders: counts cannot tell which of them is wrong.
    let on_node =
        |(node, rank): &(Option<&str>, Option<u64>)| *node == Some("n002") && rank.is_none_or(|of| of / 2 == 1);
    assert!(!named(&report).is_empty() && named(&report).iter().all(on_node), "{report:#}");
    job.end(&mut fleet).unwrap();

    let job = Job::start(&mut fleet, JobOptions { broken: Some((6, "wrong-size@20")), ..usual() }).unwrap();
    std::thread::sleep(Duration::from_secs(8));
    let (code, report) = triage(&console, &of_dead);
    assert_eq!(
        (named(&report), &report["category"]),
        (vec![(Some("n004"), Some(6))], &"user-bug".into()),
        "{report:#}"
    );
    assert_eq!(code, Some(2), "{report:#}");
    job.end(&mut fleet).unwrap();

    let job = Job::start(&mut fleet, usual()).unwrap();
    job.signal(&mut fleet, 2, "KILL").unwrap();
    std::thread::sleep(Duration::from_secs(8));
    let (code, report) = triage(&console, &of_dead);
    assert_eq!(
        (named(&report), &report["category"]),
        (vec![(Some("n002"), Some(2))], &"process-exited".into()),
        "{report:#}"
    );
    assert_eq!(code, Some(2), "{report:#}");
}

#[test]
fn a_gpu_whose_links_are_trained_again_while_the_job_runs_is_named_live() {
    if !is_root() {
        return skip(
            "a_gpu_whose_links_are_trained_again_while_the_job_runs_is_named_live",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    let console = fleet.console();
    let small = |identity: u8| format!("devices 2\nsms 1\nthreads 32\nmemory 4194304\nidentity {identity}\n");
    for (at, name) in (0..).zip(fleet.names()) {
        fleet.node(&name).drive_gpus(&simulated_driver(), &small(at)).unwrap();
    }
    let job = Job::start(&mut fleet, JobOptions { each: 1, ..usual() }).unwrap();
    let (code, healthy) = triage(&console, &["--no-ras"]);
    assert_eq!((code, named(&healthy)), (Some(3), vec![]), "{healthy:#}");
    let told = healthy["steps"].to_string();
    assert!(told.contains("on 3 nodes no part counts errors that the others do not"), "{healthy:#}");

    // Every look starts a driver anew: what its GPU has counted so far lies in its settings.
    let growing = format!(
        "cd /usr/local/simulated; count=0; while sleep 0.5; do count=$((count + 1)); \
         printf '{}gpu 1 sensor nvlink_recoveries.7 %s\\n' $count > next; mv next libcuda.conf; done",
        small(1).replace('\n', "\\n")
    );
    let node = fleet.node("n002");
    node.sh(&format!("cat > /tmp/grow <<'END'\n{growing}\nEND")).unwrap();
    node.sh_within("setsid nohup sh /tmp/grow > /dev/null 2>&1 < /dev/null &").unwrap();
    let (code, broken) = triage(&console, &["--no-ras"]);
    let suspect = &broken["suspects"][0];
    assert_eq!((code, broken["suspects"].as_array().unwrap().len()), (Some(3), 1), "{broken:#}");
    assert_eq!(
        (&suspect["node"], &suspect["gpu"], &suspect["kind"]),
        (&"n002".into(), &1.into(), &"gpu".into()),
        "{broken:#}"
    );
    assert_eq!(suspect["evidence"][0]["source"], "counter", "{broken:#}");
    let said = suspect["evidence"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("GPU 1 of n002: ") && said.contains(" NVLinks trained again within "), "{said}");
    job.end(&mut fleet).unwrap();
}
