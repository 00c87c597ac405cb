//! A real Slurm on four nodes: what muster reads of it, what it does with it, and what it leaves alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::time::{Duration, Instant};

use muster_tests::{Console, FOLDER, Fleet, Lacks, Options, Ran, Slurm, conforms, is_root, run as run_program, skip};
use serde_json::Value;

const STEPS: &str = r#"
name = "two"
title = "Two short steps"
profile = "quick"
[[steps]]
id = "first"
collect = ["identity"]
[[steps]]
id = "second"
run = ["cpu-dispatch"]
"#;

/// Four nodes with Slurm, reached by SSH, or why `test` does not run.
fn by_ssh(test: &str) -> Option<(Fleet, Slurm, Console)> {
    if !is_root() {
        skip(test, Lacks::Root, "namespaces for the nodes");
        return None;
    }
    if let Some(program) = Slurm::lacks() {
        skip(test, Lacks::Tool, &format!("Slurm's {program}"));
        return None;
    }
    let fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let slurm = Slurm::up(&fleet).unwrap();
    let console = slurm.console(fleet.console());
    Some((fleet, slurm, console))
}

/// The same, reached by Slurm and by nothing else.
fn fleet(test: &str) -> Option<(Fleet, Slurm, Console)> {
    let (fleet, slurm, console) = by_ssh(test)?;
    std::fs::write(fleet.path("inventory.toml"), "transport = \"slurm\"\n[slurm]\npartition = \"all\"\nwait = 120\n")
        .unwrap();
    std::fs::write(fleet.path("two.toml"), STEPS).unwrap();
    Some((fleet, slurm, console))
}

/// The values of `key` of each node of a document.
fn each<'a>(document: &'a Value, key: &str) -> Vec<&'a str> {
    document["nodes"].as_array().unwrap().iter().map(|node| node[key].as_str().unwrap()).collect()
}

fn picked(console: &Console, arguments: &[&str]) -> Vec<String> {
    let ran = console.run(&[&["nodes", "--json"], arguments].concat()).unwrap();
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
    each(&ran.json().unwrap(), "node").into_iter().map(str::to_owned).collect()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing of muster's is left: no job, no probe, no file that was broadcast.
fn nothing_left(fleet: &mut Fleet, slurm: &Slurm, nodes: &[&str]) {
    until("the job is over", || slurm.jobs().is_ok_and(|jobs| jobs.is_empty()));
    for name in nodes {
        let node = fleet.node(name);
        until("no probe", || node.probes() == 0);
        assert_eq!(node.sh("ls /tmp | grep -c seed || true").unwrap().trim(), "0", "{name}");
    }
}

fn node<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == name).unwrap()
}

/// Number of metrics of which a node has a value.
fn values(report: &Value, name: &str) -> usize {
    node(report, name)["verdicts"].as_array().unwrap().iter().filter(|verdict| verdict["value"].is_number()).count()
}

#[test]
fn nodes_groups_leaves_and_jobs_come_from_slurm() {
    let Some((_fleet, slurm, console)) = fleet("nodes_groups_leaves_and_jobs_come_from_slurm") else { return };
    let bare = console.clone().bare();
    let ran = bare.run(&["nodes", "--json", "--slurm"]).unwrap();
    let document = ran.json().unwrap();
    conforms("muster.nodes.json", &document, "");
    assert_eq!(each(&document, "node"), ["n001", "n002", "n003", "n004"]);
    let first = node(&document, "n001");
    assert_eq!(first["host"], "10.79.1.1");
    assert_eq!(first["groups"], serde_json::json!(["all", "feature:h100", "feature:ib", "small"]));
    assert_eq!(first["labels"], serde_json::json!({"leaf": "leaf1", "sku": "gpu:h100:2", "state": "idle"}));
    assert_eq!(
        picked(&console, &["-w", "@feature:a100"]),
        ["n003", "n004"],
        "an inventory that leaves its nodes to Slurm"
    );
    assert_eq!(picked(&console, &["-w", "@leaf=leaf1", "-x", "@small"]), ["n002"]);

    let mut job = slurm.start(&["srun", "-D", "/", "-w", "n[002-003]", "-N2", "sleep", "100"]).unwrap();
    until("the job runs", || {
        slurm.run(&["squeue", "-h", "-t", "R", "-o", "%i"]).is_ok_and(|jobs| !jobs.trim().is_empty())
    });
    let id = slurm.jobs().unwrap().remove(0);
    assert_eq!(picked(&console, &["--job", &id]), ["n002", "n003"]);
    slurm.run(&["scancel", &id]).unwrap();
    job.wait().unwrap();
    let doctor = console.run(&["doctor", "--json"]).unwrap().json().unwrap();
    let rows = doctor["checks"].as_array().unwrap();
    let told = rows.iter().find(|row| row["name"] == "slurm").unwrap();
    let said = told["said"].as_str().unwrap();
    assert!(told["state"] == "ok" && said.starts_with("slurm") && said.contains(": 4 nodes, "), "{said}");
}

#[test]
fn own_drains_come_back_and_those_of_others_stay() {
    let Some((_fleet, slurm, console)) = fleet("own_drains_come_back_and_those_of_others_stay") else { return };
    let drained = |reason: &str| ("IDLE+DRAIN".to_owned(), reason.to_owned());
    let ask = |arguments: &[&str]| -> (Option<i32>, Value) {
        let ran = console.run(&[arguments, &["--json", "--yes"]].concat()).unwrap();
        let document = ran.json().unwrap();
        conforms("muster.drain.json", &document, "");
        (ran.code, document)
    };
    slurm.run(&["scontrol", "update", "NodeName=n001", "State=DRAIN", "Reason=bad fan"]).unwrap();

    let refused = |arguments: &[&str]| assert_eq!(console.run(arguments).unwrap().code, Some(64), "{arguments:?}");
    refused(&["drain", "-w", "n002", "--reason", "slow"]);
    refused(&["drain", "-w", "n002", "--reason", "slow", "--yes", "--read-only"]);
    refused(&["drain", "--reason", "slow", "--yes"]);
    refused(&["drain", "-w", "n009", "--reason", "slow", "--yes"]);
    assert_eq!(slurm.state("n002").unwrap(), ("IDLE".to_owned(), String::new()));

    let (code, said) = ask(&["drain", "-w", "n[001-003]", "--reason", "cpu-stream 30 % slow"]);
    assert_eq!((code, each(&said, "outcome")), (Some(1), vec!["left", "drained", "drained"]), "{said}");
    assert_eq!(slurm.state("n001").unwrap(), drained("bad fan"));
    assert_eq!(slurm.state("n003").unwrap(), drained("muster: cpu-stream 30 % slow"));
    let (code, said) = ask(&["drain", "-w", "n003", "--reason", "RMA 4711"]);
    assert_eq!((code, each(&said, "outcome")), (Some(0), vec!["renewed"]), "{said}");
    assert_eq!(slurm.state("n003").unwrap(), drained("muster: RMA 4711"));

    let (code, said) = ask(&["resume", "-w", "@all"]);
    assert_eq!((code, each(&said, "outcome")), (Some(1), vec!["left", "resumed", "resumed", "left"]), "{said}");
    assert!(node(&said, "n001")["why"].as_str().unwrap().contains("bad fan"), "{said}");
    assert_eq!(slurm.state("n001").unwrap(), drained("bad fan"));
    for name in ["n002", "n003"] {
        // Slurm calls a node that was resumed not responding until it has asked it again, and some versions leave it the reason.
        let idle = |(state, reason): (String, String)| {
            state == "IDLE" && (reason.is_empty() || reason.starts_with("muster: "))
        };
        until("it is idle", || slurm.state(name).is_ok_and(idle));
    }

    // Others take their drain back. Where Slurm keeps the reason, it is no reason to leave the node.
    slurm.run(&["scontrol", "update", "NodeName=n001", "State=RESUME"]).unwrap();
    until("it is idle", || slurm.state("n001").is_ok_and(|(state, _)| state == "IDLE"));
    let (_, kept) = slurm.state("n001").unwrap();
    let (code, said) = ask(&["drain", "-w", "n001", "--reason", "slow"]);
    assert_eq!((code, each(&said, "outcome")), (Some(0), vec!["drained"]), "{said}");
    assert_eq!(node(&said, "n001")["why"].as_str().unwrap_or_default().contains("bad fan"), !kept.is_empty(), "{said}");
    assert_eq!(slurm.state("n001").unwrap(), drained("muster: slow"));
}

#[test]
fn a_scan_by_srun_measures_every_node_that_slurm_gives_and_leaves_nothing() {
    let name = "a_scan_by_srun_measures_every_node_that_slurm_gives_and_leaves_nothing";
    let Some((mut fleet, slurm, console)) = fleet(name) else { return };
    slurm.run(&["scontrol", "update", "NodeName=n004", "State=DRAIN", "Reason=bad fan"]).unwrap();
    let file = fleet.path("two.toml");
    let scan = |console: &Console, more: &[&str]| {
        let ran = console.run(&[&["run", &file, "--new", "--visits", "1", "--json"], more].concat()).unwrap();
        ran.json().unwrap_or_else(|why| panic!("{why:#}: {}", ran.err))
    };
    let (console, broadcasts) = counted(&fleet, console, "sbcast");
    let report = scan(&console, &[]);
    for name in ["n001", "n002", "n003"] {
        assert!(values(&report, name) > 0, "{name}: {}", node(&report, name));
    }
    assert_eq!(broadcasts(), 1);
    let refused = scan(&console, &["-w", "n001", "--slurm=reservation=none-such"]);
    let why = node(&refused, "n001")["reasons"].to_string();
    assert!(why.contains("salloc gave no nodes") && why.contains("reservation"), "{why}");
    let again = scan(&console, &["-w", "n[001-002]"]);
    assert!(values(&again, "n001") > 0 && values(&again, "n002") > 0, "{again}");
    assert_eq!(broadcasts(), 1, "nodes that have the probe are not sent it again");
    let fourth = node(&report, "n004").to_string();
    assert!(fourth.contains("IDLE+DRAIN (bad fan)"), "{fourth}");
    nothing_left(&mut fleet, &slurm, &["n001", "n002", "n003", "n004"]);

    let ran = console.run(&["clean", "-w", "n[001-002]", "--yes"]).unwrap();
    assert_eq!((ran.code, ran.out.matches("removed /").count()), (Some(0), 2), "{}{}", ran.out, ran.err);
    nothing_left(&mut fleet, &slurm, &["n001", "n002"]);

    // In an allocation that is there already, which stays; with the probe on a path that all nodes see.
    slurm.run(&["salloc", "-D", "/", "-w", "n[001-002]", "-N2", "--no-shell"]).unwrap();
    let id = slurm.jobs().unwrap().remove(0);
    assert_eq!(picked(&console, &[&format!("--slurm=job={id}")]), ["n001", "n002"]);
    let report = scan(&console, &[&format!("--slurm=job={id},shared={}", slurm.path(""))]);
    assert_eq!(each(&report, "node"), ["n001", "n002"], "no node outside of the job is tried");
    assert!(values(&report, "n001") > 0 && values(&report, "n002") > 0, "{report}");
    assert_eq!(slurm.jobs().unwrap(), [id.as_str()]);
    // The same job by the environment of its processes.
    let inside = console.clone().with("SLURM_JOB_ID", &id);
    let planned = inside.run(&["run", &file, "--dry-run"]).unwrap();
    assert!(planned.out.contains("\n2 nodes, "), "{}", planned.out);
    assert!(planned.err.contains(&format!("using the nodes of Slurm job {id}")), "{}", planned.err);
    assert_eq!(picked(&inside, &[]).len(), 4, "a list is of all nodes");
    let shared = std::fs::read_dir(slurm.path("")).unwrap().filter_map(Result::ok);
    let shared = shared.filter(|file| file.file_name().to_string_lossy().starts_with("muster-probe-")).count();
    // One for each architecture that the console has a probe for.
    let doctor = console.run(&["doctor"]).unwrap().out;
    assert_eq!(shared, doctor.matches(", sha256 ").count(), "{doctor}");
    slurm.run(&["scancel", &id]).unwrap();
    nothing_left(&mut fleet, &slurm, &["n001", "n002"]);
}

/// `console`, and how often it has started `program` of Slurm.
fn counted(fleet: &Fleet, console: Console, program: &str) -> (Console, impl Fn() -> usize + use<>) {
    let (folder, starts) = (fleet.path("counted"), fleet.path("starts"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = format!("{folder}/{program}");
    let path = std::env::var("PATH").unwrap();
    std::fs::write(&file, format!("#!/bin/sh\necho >> {starts}\nPATH={path} exec {program} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let console = console.with("PATH", &format!("{folder}:{path}"));
    (console, move || std::fs::read_to_string(&starts).unwrap_or_default().lines().count())
}

#[test]
fn a_lost_node_a_cancelled_job_and_a_killed_console_end_what_is_theirs_and_no_more() {
    let name = "a_lost_node_a_cancelled_job_and_a_killed_console_end_what_is_theirs_and_no_more";
    let Some((mut fleet, slurm, console)) = fleet(name) else { return };
    let file = fleet.path("two.toml");
    let start = |nodes: &str| console.start(&["run", &file, "-w", nodes, "--new", "--visits", "1", "--json"]).unwrap();
    let run = start("@all");
    fleet.wait_until_measuring("n003").unwrap();
    fleet.node("n003").kill();
    let ran: Ran = run.wait_with_output().unwrap().into();
    let report = ran.json().unwrap();
    for name in ["n001", "n002", "n004"] {
        assert!(values(&report, name) > 0, "{name}: {}", node(&report, name));
    }
    let lost = node(&report, "n003");
    assert!(lost.to_string().contains("cpu-dispatch") && values(&report, "n003") == 0, "{lost}\n{}", ran.err);
    nothing_left(&mut fleet, &slurm, &["n001", "n002", "n004"]);

    let run = start("n[001-002]");
    fleet.wait_until_measuring("n001").unwrap();
    let id = slurm.jobs().unwrap().remove(0);
    slurm.run(&["scancel", &id]).unwrap();
    let ran: Ran = run.wait_with_output().unwrap().into();
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let report = ran.json().unwrap();
    let cause = node(&report, "n001")["reasons"][0].as_str().unwrap_or_default().to_owned();
    assert!(cause.contains("Slurm"), "the cause comes first: {cause}\n{}", ran.err);
    let runs = console.run(&["runs", "--json"]).unwrap().json().unwrap();
    assert_eq!(runs["runs"][0]["state"], "incomplete", "{}", ran.err);
    assert_eq!(ran.err.matches("has them").count(), 1, "no other job: {}", ran.err);
    nothing_left(&mut fleet, &slurm, &["n001", "n002"]);

    let mut run = start("n[001-002]");
    fleet.wait_until_measuring("n001").unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    nothing_left(&mut fleet, &slurm, &["n001", "n002"]);

    // Granted, and taken back while the prolog still runs.
    slurm.prolog("#!/bin/sh\nsleep 5\n").unwrap();
    let run = start("n[001-002]");
    let granted = || slurm.run(&["squeue", "-h", "-t", "CF,R", "-o", "%i"]).unwrap_or_default().trim().to_owned();
    until("the job is granted", || !granted().is_empty());
    // Not before salloc has said so.
    std::thread::sleep(Duration::from_secs(1));
    slurm.run(&["scancel", &granted()]).unwrap();
    let ran: Ran = run.wait_with_output().unwrap().into();
    let report = ran.json().unwrap();
    for name in ["n001", "n002"] {
        let told = node(&report, name)["reasons"].to_string();
        assert!(told.contains("Slurm took them back"), "{told}\n{}", ran.err);
    }
    nothing_left(&mut fleet, &slurm, &["n001", "n002"]);
}

#[test]
fn a_prolog_keeps_a_job_from_a_node_that_must_not_run() {
    let Some((fleet, slurm, console)) = fleet("a_prolog_keeps_a_job_from_a_node_that_must_not_run") else { return };
    let (program, db, log) = (slurm.path("muster"), slurm.path("db"), slurm.path("gate.log"));
    std::fs::copy(muster_tests::binary(), &program).unwrap();
    let added = console.run(&["incidents", "add", "-w", "n002", "--reason", "Xid 79 on GPU 3"]).unwrap();
    assert_eq!(added.code, Some(0), "{}", added.err);
    // Where the nodes see it, too.
    run_program(&["cp", "-r", &fleet.path("db"), &db]).unwrap();
    // The one of the documentation.
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SLURM.md")).unwrap();
    let (_, script) = page.split_once("```sh\n#!/bin/sh\n# muster-prolog.sh").unwrap();
    let script = format!("#!/bin/sh\n#{}", script.split("```").next().unwrap());
    let places = [("/opt/muster/muster", &program), ("/nfs/muster/db", &db), ("/var/log/muster-gate.log", &log)];
    let script = places.iter().fold(script, |script, (from, to)| {
        assert!(script.contains(from), "{from}");
        script.replace(from, to)
    });
    slurm.prolog(&script).unwrap();
    let run = |node: &str| slurm.run(&["timeout", "20", "srun", "-D", "/", "-w", node, "hostname"]);
    assert_eq!(run("n001").unwrap().trim(), "n001");
    run("n002").unwrap_err();
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    assert!(said().contains("do not run"), "{}", said());
    until("the node is drained", || slurm.state("n002").is_ok_and(|(state, _)| state.contains("DRAIN")));
    assert_eq!(slurm.state("n002").unwrap().1, "Prolog error");
    assert_eq!(slurm.state("n001").unwrap().0.split('+').next(), Some("IDLE"), "{}", said());
}

#[test]
fn the_rank_that_a_job_of_slurm_waits_for_is_named_by_the_number_of_the_job() {
    let name = "the_rank_that_a_job_of_slurm_waits_for_is_named_by_the_number_of_the_job";
    let Some((mut fleet, slurm, console)) = by_ssh(name) else { return };
    let peers: Vec<String> = (0..6).map(|rank| format!("{}:{}", fleet.address(rank / 2), 7000 + rank % 2)).collect();
    let script = format!(
        "mkdir -p {FOLDER}; exec {} train-ddp --rank $SLURM_PROCID --world 6 --ranks-per-node 2 --peers {} --seconds 600 --timeout 300 \
         --ras-patience 2 --pause 50 --dir {FOLDER} > {FOLDER}/rank_$SLURM_PROCID.log 2>&1",
        muster_tests::probe().display(),
        peers.join(",")
    );
    let words = ["srun", "-D", "/", "-w", "n[001-003]", "-N3", "-n6", "--ntasks-per-node=2", "sh", "-c", &script];
    let mut job = slurm.start(&words).unwrap();
    let begun = format!("grep -c ' iteration ' {FOLDER}/rank_0.log || true");
    let first = fleet.node("n001");
    until("the job runs", || first.sh(&begun).is_ok_and(|steps| steps.trim().parse().unwrap_or(0) > 3));
    let id = slurm.jobs().unwrap().remove(0);
    let triage = || {
        let ran = console.run(&["triage", "--job", &id, "--json"]).unwrap();
        (ran.code, ran.json().unwrap_or_else(|why| panic!("{why}: {}", ran.err)))
    };
    let (code, healthy) = triage();
    assert_eq!((code, healthy["ranks"]["n"].as_u64()), (Some(3), Some(6)), "{healthy:#}");
    assert_eq!(healthy["suspects"], serde_json::json!([]), "{healthy:#}");

    fleet.node("n002").sh("pkill -STOP -f '[t]rain-ddp --rank 3 '").unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let (code, stopped) = triage();
    let suspect = &stopped["suspects"][0];
    assert_eq!((suspect["node"].as_str(), suspect["rank"].as_u64()), (Some("n002"), Some(3)), "{stopped:#}");
    assert_eq!((code, &stopped["category"]), (Some(2), &"hang-not-launched".into()), "{stopped:#}");
    assert_eq!(stopped["suspects"].as_array().unwrap().len(), 1, "{stopped:#}");

    fleet.node("n002").sh("pkill -CONT -f '[t]rain-ddp --rank 3 '").unwrap();
    slurm.run(&["scancel", &id]).unwrap();
    job.wait().unwrap();
    nothing_left(&mut fleet, &slurm, &["n001", "n002", "n003"]);
}
