//! The command line as scripts meet it: one exit code per kind of error, documents with schema and version, and which nodes
//! of a run are shown.

use muster_tests::{Lacks, Place, skip};
use serde_json::Value;

const SAMPLES: &str = "node,metric,value\n";

/// Twelve nodes of which n07 is slow, with values as averages.
fn imported(place: &Place) {
    let mut rows = SAMPLES.to_owned();
    for node in 1..=12 {
        for metric in ["copy", "triad", "scale"] {
            let value = if node == 7 { 60.0 } else { 100.0 + 0.01 * f64::from(node) };
            rows += &format!("n{node:02},{metric},{value}\n");
        }
    }
    place.json(0, "muster.import.json", &["import", "--json", "--aggregated", &place.file("samples.csv", &rows)]);
}

#[test]
fn a_file_that_is_missing_is_74_whatever_it_was_for() {
    let place = Place::new();
    imported(&place);
    let (csv, none) = (place.file("good.csv", "src,dst,metric,value\na,b,bandwidth,1\n"), place.path("nosuch"));
    let toml = place.path("nosuch.toml");
    for arguments in [
        &["criteria", "learn", "--from", &none][..],
        &["criteria", "compare", "--from", &none],
        &["criteria", "judge", "--from", &none, "--rules", &none],
        &["criteria", "import", &none],
        &["criteria", "what-if", "--from", &none, "--to", "0.9"],
        &["import", &none],
        &["pairs", "--from", &none],
        &["pairs", "--from", &csv, "--topology", &none],
        &["tune", "--from", &none],
        &["watch", "--from", &none],
        &["replay", &none],
        &["select", "-w", "n01", "--incidents", &none],
        &["select", "-w", "n01", "--model", &none],
        &["gate", "-w", "n01", "--incidents", &none],
        &["model", "train", "--incidents", &none],
        &["model", "evaluate", "--from", &none],
        &["simulate", "--incidents", &none],
        &["simulate", "--jobs", &none],
        &["incidents", "import", &none],
        &["playbook", "check", &toml],
        &["playbook", "show", &toml],
        &["run", &toml, "-w", "n01"],
        &["--config", &none, "config"],
        &["-i", &none, "nodes"],
        &["-F", &none, "run", "cbd-light", "-w", "n01"],
        &["--db", &none, "results"],
    ] {
        let said = place.text(74, arguments);
        assert!(said.contains("nosuch"), "{arguments:?} does not name the file: {said}");
    }
}

#[test]
fn a_slip_on_the_command_line_is_64_and_says_what_was_probably_meant() {
    let place = Place::new();
    imported(&place);
    for (arguments, said) in [
        (&["reslts"][..], "results"),
        (&["results", "--node", "n0"], "n0"),
        (&["results", "--node", "nosuch"], "nosuch"),
        (&["results", "-w", "n[01-13]"], "n13"),
        (&["results", "nosuchrun"], "muster runs"),
        (&["--run", "nosuchrun"], "muster runs"),
        (&["--run", "import"], "did you mean 2"),
        (&["--run", "x", "runs"], "no subcommand"),
        (&["runs", "-w", "nosuch"], "nosuch"),
        (&["run", "cbdlight", "-w", "n01"], "cbd-light"),
        (&["export", "nosuchrun"], "muster runs"),
        (&["export", "--format", "parquet"], "--output"),
        (&["criteria", "show", "nosuch"], "nosuch"),
        (&["model", "show", "9"], "model"),
        (&["pairs", "--run"], "measured no pairs"),
        (&["collective", "nosuch"], "allreduce"),
        (&["incidents", "add", "--category", "gpu"], "-w"),
    ] {
        let text = place.text(64, arguments);
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}

/// Telemetry of six nodes for twelve minutes; n03 loses two fifths of its power after half of it, if `hurt`.
fn telemetry(place: &Place, hurt: bool) -> String {
    let mut rows = "time_s,node,metric,value\n".to_owned();
    for (second, node) in (0..720).flat_map(|second| (1..=6).map(move |node| (second, node))) {
        for (metric, level) in [("gpu_power_w", 500.0), ("tensor_active", 0.6)] {
            let noise = 1.0 + 0.02 * f64::from((second * 7 + node * 13) % 11) / 11.0;
            let share = if hurt && node == 3 && second >= 360 { 0.6 } else { 1.0 };
            rows += &format!("{},n{node:02},{metric},{}\n", 1_760_000_000 + second, level * noise * share);
        }
    }
    place.file(if hurt { "hurt.csv" } else { "healthy.csv" }, &rows)
}

#[test]
fn a_recording_with_an_odd_machine_exits_2_a_healthy_one_0_and_too_little_3() {
    let place = Place::new();
    let (hurt, healthy) = (telemetry(&place, true), telemetry(&place, false));
    let report = place.json(2, "muster.watch.json", &["watch", "--from", &hurt, "--json"]);
    assert_eq!(report["alerts"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!((&report["alerts"][0]["node"], &report["nodes"]), (&Value::from("n03"), &Value::from(6)));
    let said = place.text(2, &["watch", "--from", &hurt]);
    assert!(said.contains("n03: ") && said.contains("% below 5 peers (median"), "{said}");
    let report = place.json(0, "muster.watch.json", &["watch", "--from", &healthy, "--json"]);
    assert_eq!(report["alerts"].as_array().unwrap().len(), 0, "{report}");
    let said = place.text(0, &["watch", "--from", &hurt, "-x", "n03"]);
    assert!(said.contains("5 nodes, 2 metrics") && said.contains("nothing odd"), "{said}");
    for (arguments, missing) in [
        (&["-w", "n01"][..], "only 1 node reports; at least 4 are needed"),
        (&["--metrics", "gpu_*"], "only 1 metric; at least 2 are needed"),
    ] {
        let said = place.text(3, &[&["watch", "--from", &healthy], arguments].concat());
        assert!(said.contains(missing), "{said}");
    }
    for (arguments, known) in
        [(&["-w", "n09"][..], "n09"), (&["--metrics", "gpu_temp"], "it has gpu_power_w, tensor_active")]
    {
        let said = place.text(64, &[&["watch", "--from", &healthy], arguments].concat());
        assert!(said.contains(known), "{said}");
    }
    for (arguments, near) in
        [(&["-w", "n00"][..], "did you mean n0"), (&["--metrics", "gpu_power"], "did you mean gpu_power_w?")]
    {
        let said = place.text(64, &[&["watch", "--from", &healthy], arguments].concat());
        assert!(said.contains(near), "{said}");
    }
    let broken = place.file("broken.csv", "time_s,node,metric,value\n1,a,m,2\n1,a,m,x\n");
    let said = place.text(78, &["watch", "--from", &broken]);
    assert!(said.contains("broken.csv: line 3: the value 'x' is not a number"), "{said}");
}

/// The same job as Prometheus tells it: two GPUs a node, a sample every 15 s, half an hour.
fn prometheus(step: usize) -> String {
    let mut series = Vec::new();
    for (node, gpu) in (1..=6).flat_map(|node| (0..2).map(move |gpu| (node, gpu))) {
        for (name, level) in [("DCGM_FI_DEV_POWER_USAGE", 500.0), ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.6)] {
            let value = |second: usize| {
                let noise = 1.0 + 0.02 * ((second / step * 7 + node * 13 + gpu * 5) % 11) as f64 / 11.0;
                level * noise * if node == 3 && second >= 900 { 0.6 } else { 1.0 }
            };
            let pair = |second: usize| format!("[{},\"{}\"]", 1_760_000_000 + second, value(second));
            let pairs: Vec<String> = (0..1_800).step_by(step).map(pair).collect();
            series.push(format!(
                "{{\"metric\":{{\"__name__\":\"{name}\",\"Hostname\":\"n{node:02}\",\"gpu\":\"{gpu}\"}},\"values\":[{}]}}",
                pairs.join(",")
            ));
        }
    }
    series.push(
        "{\"metric\":{\"__name__\":\"node_load1\",\"instance\":\"n01:9100\"},\"values\":[[1760000000,\"1\"]]}"
            .to_owned(),
    );
    format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}", series.join(","))
}

#[test]
fn what_prometheus_answered_names_the_odd_machine_and_what_is_too_coarse_is_said() {
    let place = Place::new();
    let file = place.file("dcgm.json", &prometheus(15));
    let report = place.json(2, "muster.watch.json", &["watch", "--from", &file, "--json"]);
    assert_eq!(report["alerts"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!((&report["alerts"][0]["node"], &report["nodes"]), (&Value::from("n03"), &Value::from(6)));
    let metrics = serde_json::json!(["gpu_power_least_w", "gpu_power_w", "tensor_active", "tensor_least_active"]);
    assert_eq!(report["metrics"], metrics);
    let notes = report["notes"].to_string();
    assert!(notes.contains("node_load1 (1 series)") && notes.contains("a sample only every 15 s"), "{notes}");
    let file = place.file("coarse.json", &prometheus(60));
    let said = place.text(3, &["watch", "--from", &file]);
    assert!(
        said.contains("a sample is needed every 30 s at least: gpu_power_least_w (60 s), gpu_power_w (60 s)"),
        "{said}"
    );
}

#[test]
fn a_recording_that_is_empty_torn_or_not_there_says_so() {
    let place = Place::new();
    let empty = place.file("empty.csv", "");
    let said = place.text(78, &["watch", "--from", &empty]);
    assert!(said.contains("empty.csv: line 1: the file is empty"), "{said}");
    let bare = place.file("bare.csv", "time_s,node,metric,value\n");
    let report = place.json(3, "muster.watch.json", &["watch", "--from", &bare, "--json"]);
    assert!(report["notes"].to_string().contains("no node reports"), "{report}");
    let parquet = place.file("torn.parquet", "PAR1 and then nothing");
    assert!(place.text(74, &["watch", "--from", &parquet]).contains("it is cut off"));
    let query =
        place.file("query.json", "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}");
    assert!(place.text(78, &["watch", "--from", &query]).contains("Prometheus said: query timed out"));
    let other = place.file("other.json", "{\"kind\":\"nic\"}");
    assert!(place.text(78, &["watch", "--from", &other]).contains("no answer of Prometheus' query_range"));
    let said = place.text(64, &["watch", "--from", "20260101T000000Z-watch-aaaa"]);
    assert!(said.contains("no recording of that id; `muster watch --list` names the recordings"), "{said}");
    let listed = place.json(0, "muster.recordings.json", &["watch", "--list", "--json"]);
    assert_eq!(listed["recordings"], serde_json::json!([]));
    assert!(place.text(64, &["export", "--recording", "none", "--format", "csv"]).contains("no recording of that id"));
}

#[test]
fn what_configures_wrongly_is_78_with_its_place() {
    let place = Place::new();
    let broken = place.file("broken.toml", "fan_out = \n");
    let absurd = place.file("absurd.toml", "alpha = 7.0\n");
    let empty = place.file("inventory.toml", "[[nodes]]\nnames = 7\n");
    for (arguments, said) in [
        (&["--config", &broken, "config"][..], "line 1"),
        (&["--config", &absurd, "config"], "between 0 and 1"),
        (&["-i", &empty, "nodes"], "inventory.toml:2"),
        (&["playbook", "check", &broken], "broken.toml:1"),
        (&["playbook", "show", &broken], "broken.toml:1"),
    ] {
        let text = place.text(78, arguments);
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}

#[test]
fn results_exit_by_the_verdicts_of_the_nodes_they_show() {
    let place = Place::new();
    imported(&place);
    let report = place.json(2, "muster.run.json", &["results", "--json"]);
    assert_eq!(report["summary"]["fail"], 1);
    let one = place.json(2, "muster.run.json", &["results", "--json", "--node", "n07"]);
    assert_eq!((one["nodes"].as_array().unwrap().len(), &one["nodes"][0]["node"]), (1, &Value::from("n07")));
    assert_eq!(one["summary"]["pass"], 0);
    let sound = place.json(0, "muster.run.json", &["results", "--json", "-w", "n[01-12]", "-x", "n07"]);
    assert_eq!((sound["nodes"].as_array().unwrap().len(), &sound["summary"]["pass"]), (11, &Value::from(11)));
    place.text(0, &["results", "-w", "n01,n02"]);
    let slip = place.text(64, &["results", "--node", "n7"]);
    assert!(slip.contains("n7; did you mean n07?"), "{slip}");
}

#[test]
fn every_list_as_json_has_schema_and_version() {
    let place = Place::new();
    imported(&place);
    let inventory = place.file("fleet.toml", "[[nodes]]\nnames = \"n[01-02]\"\nrack = \"r1\"\n");
    let runs = place.json(0, "muster.runs.json", &["runs", "--json"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(place.json(0, "muster.runs.json", &["runs", "--json", "-w", "n05"])["runs"], runs["runs"]);
    assert_eq!(
        place.json(0, "muster.runs.json", &["-i", &inventory, "runs", "--json", "-w", "@rack=r1"])["runs"],
        runs["runs"]
    );
    let nodes = place.json(0, "muster.nodes.json", &["-i", &inventory, "nodes", "--json"]);
    assert_eq!(nodes["nodes"][0]["runs"], 1);
    place.json(0, "muster.doctor.json", &["doctor", "--json"]);
    let settings = place.json(0, "muster.config.json", &["config", "--json"]);
    assert!(settings["settings"].as_array().unwrap().iter().any(|s| s["name"] == "db" && s["source"] != "default"));
    let playbooks = place.json(0, "muster.playbooks.json", &["playbook", "list", "--json"]);
    assert!(playbooks["playbooks"].as_array().unwrap().iter().any(|p| p["name"] == "cbd"));
    let state = place.json(0, "muster.db.json", &["db", "check", "--json"]);
    assert!(state["sound"] == true && state["files"][0]["records"].as_u64().unwrap() >= 12, "{state}");
    place.json(0, "muster.db.json", &["db", "rebuild", "--json"]);
}

#[test]
fn a_value_that_cannot_be_read_is_refused_and_with_lenient_convicts_nobody() {
    let place = Place::new();
    let mut rows = SAMPLES.to_owned();
    for node in 1..=12 {
        rows +=
            &format!("n{node:02},copy,{}\n", if node == 3 { "n/a".to_owned() } else { format!("{}", 100 + node % 3) });
        rows += &format!("n{node:02},triad,{}\n", 200 + node % 2);
    }
    let file = place.file("odd.csv", &rows);
    let said = place.text(78, &["import", "--aggregated", &file]);
    assert!(said.contains("odd.csv:6: the value 'n/a' of n03 in copy is not a number"), "{said}");
    let said = place.text(0, &["import", "--aggregated", "--lenient", &file]);
    assert!(said.contains("1 unreadable value was left out, the first in line 6; of n03"), "{said}");
    let output = place.muster(&["results", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["fail"], 0, "{}", report["summary"]);
}

#[test]
fn a_prolog_stops_a_job_only_for_a_node_that_must_not_run() {
    let place = Place::new();
    imported(&place);
    let nothing = place.muster(&["gate", "-w", "n50", "--job-hours", "24"]);
    assert_eq!(nothing.status.code(), Some(3), "{}", String::from_utf8_lossy(&nothing.stdout));
    let nothing = place.muster(&["gate", "-w", "n50", "--job-hours", "24", "--prolog"]);
    assert_eq!(nothing.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("too little is known"));
    place.text(0, &["incidents", "add", "-w", "n50", "--category", "gpu", "--reason", "fell off the bus"]);
    let down = place.muster(&["gate", "-w", "n50", "--job-hours", "24", "--prolog"]);
    assert_eq!(down.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&down.stderr).contains("n50"), "{}", String::from_utf8_lossy(&down.stdout));
    let file = place.file("no-database", "a file");
    let broken = place.muster(&["gate", "-w", "n50", "--job-hours", "24", "--prolog", "--db", &file]);
    let said = String::from_utf8_lossy(&broken.stderr);
    assert!(broken.status.code() == Some(0) && said.contains("not decided, so the job may run"), "{said}");
}

#[test]
fn what_is_measured_and_exported_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    imported(&place);
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    let mut folders = vec![std::path::PathBuf::from(place.path("db"))];
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                assert_eq!(mode(&entry), 0o600, "{}", entry.display());
            }
        }
    }
    let (json, metrics) = (place.path("run.json"), place.path("muster.prom"));
    place.text(0, &["export", "--output", &json]);
    place.text(0, &["export", "--format", "openmetrics", "--output", &metrics]);
    assert_eq!([json, metrics].map(|file| mode(file.as_ref())), [0o600, 0o644]);
}

#[test]
fn a_flipped_bit_is_told_where_its_run_is_read_and_is_an_error_only_if_asked_for() {
    let place = Place::new();
    imported(&place);
    let runs = std::path::PathBuf::from(place.path("db/runs"));
    let mut files = std::fs::read_dir(runs).expect("runs").map(|entry| entry.expect("an entry").path());
    let log = files.find(|file| file.extension().is_some_and(|ending| ending == "log")).expect("one run");
    let mut bytes = std::fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).expect("it can be written");
    for command in ["results", "export"] {
        let output = place.muster(&[command, "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("damaged and left out") && said.contains("muster db check"), "{command}: {said}");
        assert_ne!(output.status.code(), Some(74), "{command}");
        place.text(74, &[command, "--json", "--strict"]);
    }
    assert_eq!(place.json(74, "muster.db.json", &["db", "check", "--json"])["sound"], false);
}

/// Files of a bundle, written into a folder of this name.
fn bundle(dir: &std::path::Path, name: &str, files: &[(&str, String)]) -> String {
    for (path, text) in files {
        let file = dir.join(name).join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("it can be written");
    }
    dir.join(name).to_string_lossy().into_owned()
}

const JOB: &str = r#"{"nodes": [{"node": "n0", "ranks": [0, 1]}, {"node": "n1", "ranks": [2, 3]}]}"#;

/// Two polls of four ranks, the last of which is an operation behind.
fn hang(dir: &std::path::Path) -> String {
    let poll = |minute: u32| {
        let rank = |rank: u64| {
            format!(
                r#"{{"rank": {rank}, "host": "n{}", "pid": {rank}, "cuda_dev": {rank}, "nvml_dev": {rank}, "collective_counts": {{"AllReduce": {}}}}}"#,
                rank / 2,
                if rank == 3 { 8 } else { 9 }
            )
        };
        let ranks: Vec<String> = (0..4).map(rank).collect();
        format!(
            r#"{{"timestamp": "2026-03-04 05:{minute:02}:00", "communicators": [{{"hash": "0x1", "size": 4, "ranks": [{}], "missing_ranks": []}}]}}"#,
            ranks.join(", ")
        )
    };
    bundle(dir, "hang", &[("job.json", JOB.to_owned()), ("ras/poll1.json", poll(1)), ("ras/poll2.json", poll(2))])
}

#[test]
fn a_bundle_of_a_hang_exits_2_with_the_rank_a_preempted_one_0_and_an_empty_one_64() {
    let (place, dir) = (Place::new(), tempfile::tempdir().unwrap());
    let hang = hang(dir.path());
    let report = place.json(2, "muster.triage.json", &["triage", "--from", &hang, "--json"]);
    assert_eq!(
        (&report["category"], &report["suspects"][0]["rank"]),
        (&Value::from("hang-not-launched"), &Value::from(3))
    );
    let said = place.text(2, &["triage", "--from", &hang]);
    assert!(
        said.starts_with("hang-not-launched: rank 3 on n1")
            && said.contains("Next: ")
            && said.contains("Not looked at"),
        "{said}"
    );
    let log = "[2026-03-04 05:00:00] iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 |\nslurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2026-03-04T05:00:30 DUE TO PREEMPTION ***\n";
    let ended = bundle(dir.path(), "ended", &[("job.json", JOB.to_owned()), ("logs/rank_0.log", log.to_owned())]);
    place.json(0, "muster.triage.json", &["triage", "--from", &ended, "--json"]);
    let empty = bundle(dir.path(), "empty", &[("readme", String::new())]);
    assert!(place.text(64, &["triage", "--from", &empty]).contains("no part of a bundle"));
}

#[test]
fn a_ticket_of_a_bundle_has_no_names_unless_asked_for_and_a_marked_suspect_is_passed_over() {
    let (place, dir) = (Place::new(), tempfile::tempdir().unwrap());
    let hang = hang(dir.path());
    let ticket = dir.path().join("ticket.md");
    let ticket_of = |arguments: &[&str]| {
        let all = [&["triage", "--from", &hang, "--ticket", ticket.to_str().unwrap()], arguments].concat();
        place.text(2, &all);
        std::fs::read_to_string(&ticket).unwrap()
    };
    let said = ticket_of(&[]);
    assert!(said.starts_with("# Triage: hang-not-launched") && !said.contains("n1"), "{said}");
    assert!(ticket_of(&["--redact", "none"]).contains("rank 3 on n1"));
    assert!(place.text(64, &["triage", "--from", &hang, "--ticket", "ticket.pdf"]).contains("ends in .md"));
    let marks = r#"{"schema": "muster.triage-marks", "version": 1, "confirmed": [],
        "wrong": [{"kind": "rank", "node": "n1", "rank": 3, "gpu": 1, "element": null}]}"#;
    let beside = dir.path().join("hang.triage.json");
    std::fs::write(&beside, marks).unwrap();
    let report = place.json(3, "muster.triage.json", &["triage", "--from", &hang, "--json"]);
    assert_eq!(report["marked_wrong"][0]["rank"], Value::from(3), "{report}");
    std::fs::write(&beside, "no marks").unwrap();
    assert!(place.text(2, &["triage", "--from", &hang]).contains("marks of this case are not used"));
}

#[test]
fn an_account_of_two_attempts_tells_the_pause_and_the_steps_done_again() {
    let place = Place::new();
    let dir = tempfile::tempdir().unwrap();
    let attempt = |name: &str, minute: u32, steps: std::ops::Range<u32>| {
        let first = steps.start;
        let line = |step: u32| {
            let second = (step - first) * 2;
            format!(
                "[2026-03-04 05:{minute:02}:{second:02}] iteration {step}/ 90 | elapsed time per iteration (ms): 2000.0 |\n"
            )
        };
        let file = dir.path().join(name).join("logs/rank_0.log");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, steps.map(line).collect::<String>()).unwrap();
        dir.path().join(name).to_string_lossy().into_owned()
    };
    let (first, second) = (attempt("a", 0, 1..11), attempt("b", 5, 8..18));
    // The order of times counts, not that of the command line.
    let from = ["triage", "account", "--from", &second, &first];
    let account = place.json(0, "muster.triage-account.json", &[&from[..], &["--json"]].concat());
    let total = &account["total"];
    assert_eq!((&account["attempts"][0]["name"], &total["attempts"]), (&Value::from("a"), &Value::from(2)));
    assert_eq!((&total["repeated_steps"], &total["lost_between_s"]), (&Value::from(3), &Value::from(280.0)));
    assert_eq!((&total["steps"], &total["useful_s"]), (&Value::from(20), &Value::from(34.0)));
    let said = place.text(0, &from);
    assert!(said.contains("2 attempts in 5 min 20 s") && said.contains("between attempts"), "{said}");
    let silent = dir.path().join("silent/logs");
    std::fs::create_dir_all(&silent).unwrap();
    std::fs::write(silent.join("rank_0.log"), "hello\n").unwrap();
    let silent = dir.path().join("silent").to_string_lossy().into_owned();
    assert!(place.text(3, &["triage", "account", "--from", &silent]).contains("no log tells how long steps took"));
    let none = dir.path().join("none");
    std::fs::create_dir_all(&none).unwrap();
    assert!(place.text(64, &["triage", "account", "--from", none.to_str().unwrap()]).contains("no log of a job"));
}

#[test]
fn help_knows_subcommands_at_every_depth_and_topics_whatever_the_settings_are() {
    let place = Place::new();
    assert!(place.text(0, &["help"]).contains("muster help exit-codes"));
    assert!(place.text(0, &["help", "selection"]).contains("WHICH NODES ARE MEANT"));
    assert!(place.text(0, &["help", "exit-codes"]).contains("at least one node failed"));
    assert!(place.text(0, &["help", "run"]).contains("Usage: muster run"));
    for words in [&["help", "playbook", "list"][..], &["playbook", "help", "list"], &["playbook", "list", "--help"]] {
        assert!(place.text(0, words).contains("Usage: muster playbook list"), "{words:?}");
    }
    let slip = place.text(64, &["help", "selections"]);
    assert!(slip.contains("selections") && slip.contains("muster help selection "), "{slip}");
}

#[test]
fn the_manual_is_written_for_everybody_and_groff_finds_nothing_wrong_with_it() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let folder = place.path("manual");
    place.text(0, &["man", "--out", &folder]);
    let inner =
        |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let pages: Vec<_> = inner(&folder).iter().flat_map(|part| inner(part.to_str().unwrap())).collect();
    assert!(pages.len() > 55, "{}", pages.len());
    for path in pages.iter().chain(&inner(&folder)) {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o444, 0o444, "{}", path.display());
    }
    let mut groff = std::process::Command::new("groff");
    let Ok(output) = groff.args(["-man", "-ww", "-Tutf8", "-z"]).args(&pages).output() else {
        return skip("the_manual_is_written_for_everybody", Lacks::Tool, "groff");
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
