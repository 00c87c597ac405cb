//! Incident history, models, selection and simulation from the command line, in the published forms.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::process::Command;

use muster_tests::{Fleet, Lacks, Options, Ran, binary, conforms, is_root, skip};
use serde_json::Value;

/// A database of its own, without inventory and without a home.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn muster(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(binary());
        command.args(["--db", &self.0.path().join("db").display().to_string()]).args(arguments);
        command.env("HOME", self.0.path()).env("USER", "ann").env_remove("XDG_CONFIG_HOME");
        command.output().unwrap().into()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.muster(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
        ran.out
    }
}

fn listed(desk: &Desk, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["incidents", "list", "--json"];
    all.extend(arguments);
    let document: Value = serde_json::from_str(&desk.ok(&all)).unwrap();
    conforms("muster.incidents.json", &document, "");
    document["incidents"].as_array().unwrap().clone()
}

#[test]
fn incidents_are_added_imported_ended_and_come_back_from_an_export() {
    let desk = Desk::new();
    desk.ok(&["incidents", "add", "-w", "n[1-2]", "--start", "2026-11-01T08:00", "--reason", "Xid 79 on GPU 3"]);
    let events = "NodeName|TimeStart|TimeEnd|State|Reason|User\n\
                  n3|2026-10-01T07:00:00|2026-10-01T19:30:00|DOWN*|Not responding|slurm(1)\n\
                  n4|yesterday|Unknown|DOWN|?|root(0)\n";
    let file = desk.write("events.txt", events);
    let said = desk.muster(&["incidents", "import", &file]);
    assert_eq!(
        (said.code, said.out.trim()),
        (Some(1), "2 lines read, of which 1 new or changed, 0 already known, 1 left out")
    );
    assert!(said.err.contains("line 3"), "{}", said.err);
    let relative = desk.write("log.csv", "node,start_h,end_h,category,found_by\nn5,10,12.5,disk,disk;cpu-gemm\n");
    desk.ok(&["incidents", "import", &relative, "--origin", "2026-01-01"]);
    let all = listed(&desk, &[]);
    assert_eq!(all.len(), 4);
    assert_eq!((all[0]["category"].as_str(), all[0]["who"].as_str()), (Some("pcie"), Some("ann")));
    assert_eq!(
        (all[3]["start"].as_str(), all[3]["found_by"][1].as_str()),
        (Some("2026-01-01T10:00:00Z"), Some("cpu-gemm"))
    );
    assert_eq!(listed(&desk, &["--open"]).len(), 2);
    desk.ok(&["incidents", "close", "-w", "n1", "--at", "2026-11-02"]);
    assert_eq!(listed(&desk, &["-w", "n1"])[0]["end"], "2026-11-02T00:00:00Z");
    assert_eq!(listed(&desk, &["--since", "2026-11-03"]).len(), 1);
    for format in ["csv", "json"] {
        let copy = desk.write(&format!("copy.{format}"), &desk.ok(&["incidents", "export", "--format", format]));
        let said = desk.ok(&["incidents", "import", &copy]);
        assert_eq!(said.trim(), "4 lines read, of which 0 new or changed, 4 already known, 0 left out");
        let other = Desk::new();
        other.ok(&["incidents", "import", &copy]);
        assert_eq!(listed(&other, &[]), listed(&desk, &[]));
    }
}

#[test]
fn bad_incidents_are_refused_with_their_file_and_line() {
    let desk = Desk::new();
    let headless = desk.write("log.csv", "a,b\n1,2\n");
    let said = desk.muster(&["incidents", "import", &headless]);
    assert!(said.code == Some(78) && said.err.contains("log.csv") && said.err.contains("line 1"), "{}", said.err);
    let early = desk.write("early.csv", "node,start_h\nn1,-5\n");
    let said = desk.muster(&["incidents", "import", &early]);
    assert!(said.code == Some(78) && said.err.contains("--origin"), "{}", said.err);
    assert_eq!(desk.muster(&["incidents", "add", "-w", "n1", "--start", "soon"]).code, Some(64));
    let backwards = ["incidents", "add", "-w", "n1", "--start", "2026-11-02", "--end", "2026-11-01"];
    let said = desk.muster(&backwards);
    assert!(said.code == Some(64) && said.err.contains("n1") && said.err.contains("ends before"), "{}", said.err);
}

/// Thirty nodes for 2,000 hours: a and b break every 60 hours, mostly of what cpu-dispatch shows, the others never.
fn history() -> String {
    let mut rows = "node,start_h,end_h,category,found_by\n".to_owned();
    for (name, shift) in [("a", 0), ("b", 30)] {
        for k in 0..32 {
            let found = if k % 8 == 7 { "cpu-gemm" } else { "cpu-dispatch" };
            let start = 60 * k + shift;
            rows += &format!("{name},{start},{},cpu_memory,{found}\n", start + 4);
        }
    }
    (0..28).fold(rows, |rows, k| rows + &format!("c{k},0,0,software,\n"))
}

fn document(schema: &str, text: &str) -> Value {
    let document = serde_json::from_str(text).unwrap();
    conforms(schema, &document, "");
    document
}

#[test]
fn a_history_names_the_risky_nodes_and_the_cheapest_benchmark_that_finds_their_defects() {
    let desk = Desk::new();
    let file = desk.write("log.csv", &history());
    let ask = ["--incidents", &file, "--job-hours", "24", "--p0", "0.3", "--json"];
    let select = |more: &[&str]| {
        let arguments: Vec<&str> = ["select"].iter().chain(&ask).chain(more).copied().collect();
        document("muster.select.json", &desk.ok(&arguments))
    };
    let advice = select(&[]);
    assert_eq!(advice["selection"]["outcome"], "reached", "{advice}");
    assert_eq!(advice["selection"]["picks"][0]["benchmark"], "cpu-dispatch");
    let mut asked: Vec<&str> = advice["validate"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    asked.sort_unstable();
    assert!(!asked.is_empty() && asked.iter().all(|n| ["a", "b"].contains(n)), "{asked:?}");
    let calm = select(&["-w", "c[1-20]"]);
    assert_eq!(
        (calm["selection"]["outcome"].as_str(), calm["validate"].as_array().unwrap().len()),
        (Some("not_needed"), 0)
    );
    let gate = |nodes: &str| {
        let arguments: Vec<&str> = ["gate", "-w", nodes].iter().chain(&ask).copied().collect();
        let ran = desk.muster(&arguments);
        (ran.code, document("muster.gate.json", &ran.out)["decision"].as_str().unwrap().to_owned())
    };
    assert_eq!(gate("c[1-20]"), (Some(0), "run".to_owned()));
    assert_eq!(gate("a,b,c1"), (Some(1), "validate".to_owned()));
    let open = desk.write("open.csv", &(history() + "c3,1970,,gpu,\n"));
    let ran = desk.muster(&["gate", "-w", "c3,c4", "--incidents", &open]);
    assert!(ran.code == Some(2) && ran.out.contains("c3"), "{ran:?}");
    let empty = desk.write("empty.csv", "node,start_h\n");
    let ran = desk.muster(&["gate", "-w", "c3", "--incidents", &empty]);
    assert!(ran.code == Some(3) && ran.out.contains("low confidence"), "{ran:?}");
    let ran = desk.muster(&["gate", "-w", "c3,strange", "--incidents", &file, "--job-hours", "24"]);
    assert!(ran.code == Some(3) && ran.out.contains("strange is not in"), "{ran:?}");
}

#[test]
fn a_node_that_was_never_measured_is_not_let_through_on_the_incidents_of_others() {
    let desk = Desk::new();
    desk.ok(&["incidents", "add", "-w", "n[1-3]", "--start", "2026-01-01T08:00", "--end", "2026-01-01T09:00"]);
    let ran = desk.muster(&["gate", "-w", "never", "--job-hours", "1"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.out.contains("validate first: ") && ran.out.contains("never was measured here"), "{}", ran.out);
    let ran = desk.muster(&["gate", "-w", "never,n1", "--job-hours", "1", "--json"]);
    let gate = document("muster.gate.json", &ran.out);
    assert_eq!((ran.code, gate["decision"].as_str()), (Some(3), Some("validate")), "{gate}");
    assert_eq!(
        (names(&gate["validate"]), gate["benchmarks"].as_array().unwrap().is_empty()),
        (vec!["n1".to_owned(), "never".to_owned()], false)
    );
    let ran = desk.muster(&["gate", "-w", "never", "--job-hours", "1", "--prolog"]);
    assert_eq!(ran.code, Some(0), "a prolog stops a job only for a node that must not run");
    assert!(ran.out.is_empty() && ran.err.contains("too little is known"), "{ran:?}");
    let ran = desk.muster(&["select", "-w", "never", "--job-hours", "1"]);
    assert!(ran.code == Some(0) && ran.err.contains("never was measured here"), "{ran:?}");
}

#[test]
fn incidents_end_at_no_time_that_has_not_come_or_that_there_is_not() {
    let desk = Desk::new();
    desk.ok(&["incidents", "add", "-w", "y", "--start", "2026-01-01"]);
    for (arguments, said) in [
        (["close", "-w", "y", "--at", "2999-01-01"], "--at 2999-01-01T00:00:00Z is more than a day in the future"),
        (["add", "-w", "y", "--end", "2999-01-01"], "--end 2999-01-01T00:00:00Z is more than a day in the future"),
        (["close", "-w", "y", "--at", "2026-02-30"], "is not a time"),
        (["close", "-w", "y", "--at", "2026-11-20T24:30"], "is not a time"),
        (["close", "-w", "y", "--at", "2026-11-20T08:00+99:00"], "is not a time"),
    ] {
        let ran = desk.muster(&[&["incidents"], &arguments[..]].concat());
        assert!(ran.code == Some(64) && ran.err.contains(said), "{ran:?}");
    }
    assert_eq!(listed(&desk, &["--open"]).len(), 1);
    let cut = desk.write("cut.csv", "node,start\nm1,\"2026-11-20T08:00\n");
    let ran = desk.muster(&["incidents", "import", &cut]);
    assert!(ran.code == Some(78) && ran.err.contains("line 2: the quote that begins here never ends"), "{ran:?}");
    let rows = "node,start,end,category\nm1,2026-01-02,,gpu\nm1,2026-01-02,,gpu\nm2,2026-01-02,,gremlins\nm3,2026-01-02,2999-01-01,gpu\n";
    let ran = desk.muster(&["incidents", "import", &desk.write("rows.csv", rows)]);
    let counts = "4 lines read, of which 2 new or changed, 1 already known, 1 left out";
    assert_eq!((ran.code, ran.out.trim()), (Some(1), counts), "{ran:?}");
    assert!(ran.err.contains("line 4: the category \"gremlins\" is none of") && ran.err.contains("m3"), "{}", ran.err);
    let states = desk.muster(&["swap", "states"]);
    assert!(states.code == Some(0) && states.out.contains("m2"), "{states:?}");
    let added = desk.muster(&["incidents", "add", "-w", "z", "--found-by", "nosuch"]);
    assert!(added.code == Some(0) && added.err.contains("no benchmark and no check is called 'nosuch'"), "{added:?}");
}

#[test]
fn a_model_is_trained_kept_shown_and_used() {
    let desk = Desk::new();
    let file = desk.write("log.csv", &history());
    desk.ok(&["incidents", "import", &file, "--origin", "2026-01-01"]);
    let said = desk.ok(&["model", "train", "--model", "cox"]);
    assert!(said.starts_with("model 1: cox,"), "{said}");
    let out = desk.0.path().join("model.json").display().to_string();
    let said = desk.ok(&["model", "train", "--incidents", &file, "--nodes", "40", "--model", "weibull", "--out", &out]);
    assert!(said.contains("weibull"), "{said}");
    assert_eq!(desk.ok(&["model", "list"]).lines().count(), 2);
    for which in [vec![], vec!["1"], vec![out.as_str()]] {
        let arguments: Vec<&str> = ["model", "show", "--json"].into_iter().chain(which).collect();
        document("muster.risk.json", &desk.ok(&arguments));
    }
    assert!(desk.ok(&["model", "show"]).contains("feature"));
    let advice = document("muster.select.json", &desk.ok(&["select", "-w", "a,c1", "--job-hours", "24", "--json"]));
    assert_eq!(advice["model"]["name"], "cox");
    assert!(advice["model"]["reason"].as_str().unwrap().starts_with("model 1"));
    assert_eq!(advice["nodes"][0]["node"], "a");
    assert_eq!(desk.muster(&["model", "show", "7"]).code, Some(64));
    let other = Desk::new().muster(&["model", "train", "--incidents", &desk.write("none.csv", "node,start_h\n")]);
    assert_eq!(other.code, Some(3), "{}", other.err);
}

#[test]
fn models_are_evaluated_in_the_published_form_on_plain_files_and_on_logs() {
    let desk = Desk::new();
    let mut rows = "x,noise,t,died,k\n".to_owned();
    for i in 0..200_u32 {
        // Low-discrepancy numbers: no seed, no repetition.
        let unit = |by: f64| (f64::from(i) * by).fract();
        let x = unit(0.618_034);
        let t = -(1.0 - unit(0.754_878)).ln() * (2.0 - 3.0 * x).exp();
        rows += &format!("{x},{},{t},{},{}\n", unit(0.569_84), u8::from(i % 4 != 0), i % 5);
    }
    let file = desk.write("plain.csv", &rows);
    let plain = ["model", "evaluate", "--from", &file, "--duration", "t", "--event", "died", "--fold", "k", "--json"];
    let report = document("muster.model.json", &desk.ok(&[&plain[..], &["--seeds", "1"]].concat()));
    let score = |name: &str| report["models"].as_array().unwrap().iter().find(|m| m["name"] == name).unwrap().clone();
    assert_eq!(report["models"].as_array().unwrap().len(), 5, "no column to group by");
    assert!(score("cox")["ctd"].as_f64().unwrap() > 0.65 && score("cox")["runs"] == 5);
    assert!(score("cox")["ibs"].as_f64() < score("kaplan_meier")["ibs"].as_f64());
    let one = document("muster.model.json", &desk.ok(&[&plain[..], &["--model", "Cox-Time", "--seeds", "2"]].concat()));
    assert_eq!((one["models"][0]["name"].as_str(), one["models"][0]["runs"].as_u64()), (Some("cox_time"), Some(10)));
    let log = desk.write("log.csv", &history());
    let log =
        ["model", "evaluate", "--incidents", &log, "--nodes", "40", "--hours", "2000", "--model", "cox", "--json"];
    let report = document("muster.model.json", &desk.ok(&log));
    assert_eq!((report["split"].as_str(), report["by_time"][0]["brier"].as_array().unwrap().len()), (Some("node"), 3));
    let wrong = desk.muster(&["model", "evaluate", "--from", &file, "--duration", "time"]);
    assert!(wrong.code == Some(78) && wrong.err.contains("plain.csv") && wrong.err.contains("time"), "{}", wrong.err);
}

#[test]
fn a_simulation_ranks_the_policies_in_the_published_form() {
    let desk = Desk::new();
    let report = document("muster.simulate.json", &desk.ok(&["simulate", "--nodes", "150", "--seeds", "2", "--json"]));
    let policies = report["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|p| p["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["absence", "full", "selector", "ideal", "repair_only"]);
    let used: Vec<f64> = policies.iter().map(|p| p["utilisation"].as_f64().unwrap()).collect();
    assert!(used[0] < used[1] && used[1] < used[2], "{used:?}");
    assert!(policies.iter().all(|p| p["seeds"] == 2) && policies[3]["mtbi_h"].is_null());
    let log = desk.write("log.csv", &history());
    let jobs = desk.write("jobs.csv", "submit_s,duration_s,num_gpus\n0,36000,8\n3600,7200,16\n9000,90000,4\n");
    let replay = ["simulate", "--nodes", "30", "--seeds", "1", "--incidents", &log, "--jobs", &jobs, "--json"];
    let report = document("muster.simulate.json", &desk.ok(&replay));
    assert_eq!((report["incidents"].as_str(), report["jobs"].as_str()), (Some("replayed"), Some("trace")));
    for gain in report["gains"].as_array().unwrap() {
        let [all, validation, repair] =
            ["utilisation", "from_validation", "from_repair_rule"].map(|key| gain[key].as_f64().unwrap());
        assert!((all - validation - repair).abs() < 1e-9, "{gain}");
    }
    let text = desk.ok(&["simulate", "--nodes", "50", "--seeds", "1"]);
    assert!(text.contains("selector   |#") && text.contains("from validating"), "{text}");
    let jobs = desk.write("large.csv", "submit_s,duration_s,num_gpus\n0,36000,328\n");
    let large = desk.muster(&["simulate", "--nodes", "40", "--jobs", &jobs]);
    assert!(large.code == Some(64) && large.err.contains("needs 41 nodes and the cluster has 40"), "{}", large.err);
}

/// Names in an array, sorted.
fn names(array: &Value) -> Vec<String> {
    let mut names: Vec<String> = array.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_regular_run_executes_exactly_the_picked_benchmarks_on_exactly_the_risky_nodes() {
    if !is_root() {
        return skip(
            "a_regular_run_executes_exactly_the_picked_benchmarks_on_exactly_the_risky_nodes",
            Lacks::Root,
            "for namespaces",
        );
    }
    let fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let log = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
    let rows = history().replace("a,", "n001,").replace("b,", "n002,").replace("c3,", "n003,").replace("c4,", "n004,");
    std::fs::write(log.path(), rows).unwrap();
    // The history ends a few hours ago.
    let origin = Command::new("date").args(["-u", "-d", "2002 hours ago", "+%Y-%m-%dT%H:%M"]).output().unwrap();
    let origin = String::from_utf8(origin.stdout).unwrap();
    let file = log.path().display().to_string();
    let ran = console.run(&["incidents", "import", &file, "--origin", origin.trim()]).unwrap();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ask = ["--job-hours", "24", "--p0", "0.3", "--json"];
    let advice = console.run(&[&["select"], &ask[..]].concat()).unwrap().json().unwrap();
    conforms("muster.select.json", &advice, "");
    let validate = names(&advice["validate"]);
    assert!(!validate.is_empty() && validate.iter().all(|n| n == "n001" || n == "n002"), "{advice}");
    let picks = advice["selection"]["picks"].as_array().unwrap().iter().map(|p| p["benchmark"].clone()).collect();
    let picks = names(&Value::Array(picks));
    assert!(picks.contains(&"cpu-dispatch".to_owned()) && picks.len() < 6, "{picks:?}");

    let ran = console.run(&[&["run", "regular", "--one-at-a-time"], &ask[..]].concat()).unwrap();
    let report = ran.json().unwrap();
    let ran_on = report["nodes"].as_array().unwrap().iter().map(|n| n["node"].clone()).collect();
    assert_eq!(names(&Value::Array(ran_on)), validate, "{}", ran.err);
    let run = &console.run(&["runs", "--json"]).unwrap().json().unwrap()["runs"][0];
    let benchmarks = run["plan"].as_array().unwrap().iter().filter(|w| !w.as_str().unwrap().starts_with("collect/"));
    assert_eq!(names(&Value::Array(benchmarks.cloned().collect())), picks);
    let samples = console.run(&["export", "--format", "samples"]).unwrap().out;
    let mut measured: Vec<(String, String)> = samples
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (node, metric) = line.split_once(',')?;
            Some((node.to_owned(), metric.split('/').next()?.to_owned()))
        })
        .collect();
    measured.sort_unstable();
    measured.dedup();
    let expected: Vec<(String, String)> =
        validate.iter().flat_map(|n| picks.iter().map(move |b| (n.clone(), b.clone()))).collect();
    assert_eq!(measured, expected, "what the database holds");
}
