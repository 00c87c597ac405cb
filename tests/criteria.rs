//! Criteria through the command line: learned, kept, frozen, compared, and never changing what was said before.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;

use muster_tests::{Lacks, Place, skip};
use serde_json::Value;

/// Noise between 0 and 1 that is the same on every machine.
fn noise(seed: usize) -> f64 {
    let mixed = (seed as u64).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// Bandwidth and latency of `nodes` nodes, 32 steps each, at `level` of the usual speed; every tenth node is 6 to 40 %
/// slower in one of them.
fn rows(nodes: usize, level: f64) -> (String, Vec<String>) {
    let (mut text, mut planted) = ("node,metric,value,step\n".to_owned(), Vec::new());
    for node in 0..nodes {
        let bad = node % 10 == 3;
        let loss = 0.06 + 0.34 * (node / 10) as f64 / (nodes / 10 - 1) as f64;
        if bad {
            planted.push(format!("n{node:03}"));
        }
        for (at, metric) in ["net/bandwidth@own", "mem/latency@own"].into_iter().enumerate() {
            let slow = if bad && node / 10 % 2 == at { 1.0 - loss } else { 1.0 };
            for step in 0..32 {
                let speed = level * slow * (1.0 + 0.004 * noise(node * 7919 + at * 104_729 + step));
                let value = if at == 0 { 100.0 * speed } else { 100.0 / speed };
                text += &format!("n{node:03},{metric},{value},{step}\n");
            }
        }
    }
    (text, planted)
}

const LOWER: [&str; 2] = ["--lower-is-better", "*latency*"];

fn import(place: &Place, file: &str) -> String {
    let report = place.json(
        0,
        "muster.import.json",
        &["import", "--json", file, LOWER[0], LOWER[1], "--higher-is-better", "*bandwidth*"],
    );
    report["run"].as_str().unwrap().to_owned()
}

fn defects(report: &Value) -> Vec<String> {
    let of = |c: &Value| {
        c["defects"].as_array().unwrap().iter().map(|d| d["node"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = report["criteria"].as_array().unwrap().iter().flat_map(of).collect();
    all.sort();
    all
}

fn failed(report: &Value) -> Vec<&str> {
    let nodes = report["nodes"].as_array().unwrap().iter().filter(|n| n["state"] == "fail");
    nodes.map(|n| n["node"].as_str().unwrap()).collect()
}

#[test]
fn defects_of_6_to_40_percent_are_all_found_and_nobody_else_is_accused() {
    let place = Place::new();
    let (text, planted) = rows(200, 1.0);
    let file = place.file("fleet.csv", &text);
    let learn = ["criteria", "learn", "--json", "--from", &file, LOWER[0], LOWER[1]];
    assert_eq!(defects(&place.json(0, "muster.criteria.json", &learn)), planted);
    // As a run, with all evidence weighed, the same.
    import(&place, &file);
    assert_eq!(failed(&place.results(&[])), planted);
}

#[test]
fn a_frozen_criterion_judges_later_runs_and_earlier_verdicts_stay() {
    let place = Place::new();
    let (usual, planted) = rows(40, 1.0);
    let first = import(&place, &place.file("monday.csv", &usual));
    place.json(0, "muster.criteria.json", &["criteria", "learn", "--json"]);
    let before = place.results(&[&first]);
    assert_eq!(failed(&before), planted);
    let listed = place.json(0, "muster.criteria.json", &["criteria", "list", "--json"]);
    assert_eq!(listed["criteria"].as_array().unwrap().len(), 2);
    assert!(listed["criteria"][0]["frozen"].is_null() && listed["criteria"][0]["group"] == "profile=standard");

    place.text(0, &["criteria", "freeze", "--all"]);
    let listed = place.json(0, "muster.criteria.json", &["criteria", "list", "--json"]);
    assert!(listed["criteria"].as_array().unwrap().iter().all(|c| c["frozen"] == true));
    // All nodes 10 % slower: in agreement with each other, and worse than what is frozen. Nobody passes; only those that are
    // slower than the others of their own run fail.
    let (slower, _) = rows(40, 0.9);
    let second = import(&place, &place.file("tuesday.csv", &slower));
    let report = place.results(&[&second]);
    assert_eq!(
        (failed(&report), &report["summary"]["pass"]),
        (planted.iter().map(String::as_str).collect(), &0.into())
    );
    let why = report["nodes"][0]["reasons"].to_string();
    assert!(why.contains("the whole run's net/bandwidth is 10 % below the frozen criterion (median 100"), "{why}");
    assert!(why.contains("the whole run's mem/latency is 11 % above the frozen criterion"), "{why}");
    assert_eq!(report["criteria"][0]["frozen"], true);
    assert_eq!(report["nodes"][0]["verdicts"][0]["criterion"]["id"], report["criteria"][0]["id"].clone());
    let alarms = report["alarms"].as_array().unwrap();
    assert!(alarms[0].as_str().unwrap().contains("suspect the check or the last roll-out first"), "{alarms:?}");
    assert!(place.text(0, &["export", "--format", "markdown", &second]).contains("suspect the check"));

    // Monday's verdicts are Monday's, whatever was frozen since; another alpha is another judgement and says so.
    assert_eq!(place.results(&[&first]), before);
    let again = place.results(&["--alpha", "0.99", &first]);
    assert_eq!(again["rejudged"], "alpha 0.99 instead of 0.95");

    // The fleet has moved away from what is frozen.
    let drift = place.json(1, "muster.drift.json", &["criteria", "drift", "--json"]);
    assert!(drift["fleet"].as_array().unwrap().iter().all(|f| f["drift"] == "worse"), "{drift}");

    place.text(0, &["criteria", "thaw", "net/*"]);
    let (third, planted) = rows(40, 0.9);
    let third = import(&place, &place.file("wednesday.csv", &third));
    let report = place.results(&[&third]);
    let frozen = |c: &Value| c["frozen"] == true;
    assert_eq!(report["criteria"].as_array().unwrap().iter().filter(|c| frozen(c)).count(), 1);
    place.text(0, &["criteria", "thaw", "--all"]);
    assert!(place.text(64, &["criteria", "thaw", "--all"]).contains("nothing of that is frozen"));
    let fourth = import(&place, &place.file("thursday.csv", &rows(40, 0.9).0));
    assert_eq!(failed(&place.results(&[&fourth])), planted);
    assert_eq!(place.results(&[&second])["summary"]["pass"], 0);
    let _ = third;
}

#[test]
fn what_fails_on_as_many_nodes_in_every_run_is_no_alarm() {
    let place = Place::new();
    let alarms = |slow: usize| {
        let row = |n: usize| format!("n{n:02},net/bandwidth@own,{}\n", if n < slow { 50 } else { 100 }).repeat(8);
        let rows = (0..20).map(row).collect::<String>();
        let run = import(&place, &place.file("fleet.csv", &format!("node,metric,value\n{rows}")));
        let report = place.results(&[&run]);
        assert_eq!(failed(&report).len(), slow);
        report["alarms"].as_array().map_or(String::new(), |all| all.iter().map(Value::to_string).collect())
    };
    assert_eq!(alarms(0), "");
    place.json(0, "muster.criteria.json", &["criteria", "learn", "--json"]);
    place.text(0, &["criteria", "freeze", "--all"]);
    for _ in 0..2 {
        assert!(alarms(3).contains("net fails on 3 of 20 nodes (15 %): suspect the check"));
    }
    // Three runs say what is usual.
    assert_eq!(alarms(3), "");
    assert!(alarms(13).contains("(65 %, usually 15.0 %)"));
}

#[test]
fn versions_are_compared_exported_and_taken_over_elsewhere() {
    let (place, other) = (Place::new(), Place::new());
    import(&place, &place.file("a.csv", &rows(40, 1.0).0));
    place.json(0, "muster.criteria.json", &["criteria", "learn", "--json"]);
    let old = place.json(0, "muster.criteria.json", &["criteria", "show", "--json", "net/bandwidth"]);
    let old = old["criteria"][0]["id"].as_str().unwrap().to_owned();
    import(&place, &place.file("b.csv", &rows(40, 0.9).0));
    place.json(0, "muster.criteria.json", &["criteria", "learn", "--json"]);
    let diff = place.json(0, "muster.criteria-diff.json", &["criteria", "diff", "--json", &old, "net/bandwidth"]);
    assert_ne!(diff["old"], diff["new"]);
    assert!(diff["changes"].as_array().unwrap().iter().any(|c| !c["centre"].is_null()), "{diff}");
    // Every healthy node of the slower run is outside the old version.
    assert!(diff["flips"].as_array().unwrap().len() >= 36, "{diff}");
    assert!(place.text(0, &["criteria", "show", &old]).contains("outside: n003, similarity"));
    assert_eq!(
        place.json(0, "muster.criteria.json", &["criteria", "list", "--all", "--json"])["criteria"]
            .as_array()
            .unwrap()
            .len(),
        4
    );

    let file = place.path("set.json");
    place.text(0, &["criteria", "export", &file]);
    assert!(other.text(0, &["criteria", "import", &file]).contains("4 new versions of 4"));
    assert!(other.text(0, &["criteria", "import", &file]).contains("0 new versions of 4"));
    other.text(0, &["criteria", "freeze", &old]);
    let set: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let schema = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas/muster.criteria-set.json"),
    )
    .unwrap();
    assert!(jsonschema::is_valid(&serde_json::from_str(&schema).unwrap(), &set));
    let forged = std::fs::read_to_string(&file).unwrap().replacen("\"alpha\": 0.95", "\"alpha\": 0.5", 1);
    assert!(
        other
            .text(78, &["criteria", "import", &other.file("forged.json", &forged)])
            .contains("was changed after it was learned")
    );
}

#[test]
fn small_fleets_and_mixed_ones_are_not_frozen_unasked() {
    let place = Place::new();
    let rows: String = (0..3).map(|n| format!("n{n},net/bandwidth@own,10{n}\n")).collect();
    import(&place, &place.file("few.csv", &format!("node,metric,value\n{rows}")));
    place.text(0, &["criteria", "learn"]);
    assert!(place.text(64, &["criteria", "freeze", "net/bandwidth"]).contains("only 3 nodes agreed on it"));
    place.text(0, &["criteria", "freeze", "--force", "net/bandwidth"]);
    let mixed: String =
        (0..20).map(|n| format!("n{n},net/bandwidth@own,{}\n", if n < 10 { 100 } else { 200 })).collect();
    import(&place, &place.file("mixed.csv", &format!("node,metric,value\n{mixed}")));
    place.text(0, &["criteria", "learn"]);
    assert!(place.text(64, &["criteria", "freeze", "net/bandwidth"]).contains("two groups: learn it per group"));
}

#[test]
fn what_flips_headless_is_what_learning_anew_says() {
    let place = Place::new();
    let file = place.file("fleet.csv", &rows(100, 1.0).0);
    let moved = place.json(
        0,
        "muster.what-if.json",
        &["criteria", "what-if", "--json", "--alpha", "0.9", "--to", "0.95", "--from", &file, LOWER[0], LOWER[1]],
    );
    let flagged = |alpha: &str| {
        defects(&place.json(
            0,
            "muster.criteria.json",
            &["criteria", "learn", "--json", "--alpha", alpha, "--from", &file, LOWER[0], LOWER[1]],
        ))
    };
    let (low, high) = (flagged("0.9"), flagged("0.95"));
    let mut flips: Vec<&str> = moved["flips"].as_array().unwrap().iter().map(|f| f["node"].as_str().unwrap()).collect();
    flips.sort_unstable();
    assert!(!flips.is_empty());
    assert_eq!(flips, high.iter().filter(|n| !low.contains(n)).map(String::as_str).collect::<Vec<_>>());
    assert_eq!(moved["flagged"], serde_json::json!([low.len(), high.len()]));
}

#[test]
fn methods_are_compared_where_the_truth_is_known() {
    let place = Place::new();
    let report = place.json(0, "muster.comparison.json", &["criteria", "compare", "--scenario", "all", "--json"]);
    let fleets = report["fleets"].as_array().unwrap();
    assert_eq!(fleets.len(), 5);
    for fleet in fleets {
        let own = &fleet["methods"][0];
        assert_eq!((own["method"].as_str(), own["recall"].as_f64()), (Some("algorithm2"), Some(1.0)), "{fleet}");
        assert!(own["precision"].as_f64().unwrap() > 0.5 && own["margin"].as_f64().unwrap() > 1.0, "{fleet}");
    }
    assert!(
        place
            .text(64, &["criteria", "compare", "--scenario", "alexnet"])
            .contains("resnet, densenet, vgg, bert, gpt2 or all")
    );
    let file = place.file("fleet.csv", &rows(40, 1.0).0);
    let report = place.json(
        0,
        "muster.comparison.json",
        &["criteria", "compare", "--json", "--from", &file, LOWER[0], LOWER[1]],
    );
    assert!(report["fleets"][0]["defective"].is_null());
}

#[test]
fn superbench_rules_give_superbench_s_verdicts_and_code_is_refused() {
    let place = Place::new();
    let results = place.file(
        "results.jsonl",
        "{\"mem-bw/return_code\": 0, \"mem-bw/h2d_bw:0\": 26.0, \"node\": \"good\"}\n\
         {\"mem-bw/return_code\": 0, \"mem-bw/h2d_bw:0\": 20.0, \"node\": \"slow\"}\n\
         {\"mem-bw/return_code\": 1, \"node\": \"broken\"}\n",
    );
    let baseline = place.file("baseline.json", "{\"mem-bw/h2d_bw:0\": 26.0}");
    let rules = "version: v0.12\nsuperbench:\n  rules:\n    failed:\n      function: failure_check\n      criteria: \"lambda x:x>0\"\n      \
                 categories: FailedTest\n      metrics:\n        - mem-bw/return_code\n    slow:\n      function: variance\n      \
                 criteria: \"lambda x:x<-0.05\"\n      categories: Memory\n      metrics:\n        - mem-bw/h2d_bw:\\d+\n";
    let file = place.file("rules.yaml", rules);
    let judge = ["criteria", "judge", "--json", "--rules", &file, "--baseline", &baseline, "--from", &results];
    let report = place.json(2, "muster.diagnosis.json", &judge);
    let nodes = report["nodes"].as_array().unwrap();
    let states: Vec<&str> = nodes.iter().map(|n| n["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["pass", "fail", "fail"]);
    let said = nodes[1]["details"][0].as_str().unwrap();
    assert_eq!(said, "mem-bw/h2d_bw:0(B/L: 26.0000 VAL: 20.0000 VAR: -23.08% Rule:lambda x:x<-0.05)");
    let code = rules.replace("lambda x:x<-0.05", "lambda x:__import__('os').system('true')");
    let file = place.file("code.yaml", &code);
    let judge = ["criteria", "judge", "--json", "--rules", &file, "--from", &results];
    let report = place.json(2, "muster.diagnosis.json", &judge);
    assert_eq!(
        (report["refused"][0]["rule"].as_str(), report["refused"][0]["line"].as_u64()),
        (Some("slow"), Some(12))
    );
    assert_eq!(report["nodes"][0]["state"], "unknown");
}

#[test]
fn a_superbench_baseline_says_nothing_of_how_nodes_differ_and_is_frozen_by_force_only() {
    let place = Place::new();
    let baseline = place.file("baseline.json", "{\"mem-bw/h2d_bw:0\": 26.0, \"gemm-flops/fp32_flops:0\": 18353.0}");
    assert!(place.text(0, &["criteria", "import", &baseline]).contains("2 new versions of 2"));
    let refused = place.text(0, &["criteria", "freeze", "--all"]);
    assert!(refused.contains("not frozen: one value does not say how far healthy nodes differ"), "{refused}");
    place.text(0, &["criteria", "freeze", "--all", "--force"]);
    let line =
        |n: usize| format!("{{\"mem-bw/h2d_bw:0\": {}, \"node\": \"n{n}\"}}\n", if n == 2 { 22.0 } else { 25.9 });
    let results = place.file("results.jsonl", &(0..6).map(line).collect::<String>());
    import(&place, &results);
    let report = place.results(&[]);
    assert_eq!(failed(&report), ["n2"]);
    assert_eq!(report["criteria"][0]["frozen"], true);
    // All at 85 % of it: nobody can fail by a number that says nothing of healthy nodes, and nobody passes.
    let line = |n: usize| format!("{{\"mem-bw/h2d_bw:0\": 22.0, \"node\": \"n{n}\"}}\n");
    import(&place, &place.file("slow.jsonl", &(0..6).map(line).collect::<String>()));
    let report = place.results(&[]);
    assert_eq!((failed(&report), &report["summary"]["warn"]), (Vec::new(), &6.into()));
    let why = report["nodes"][0]["reasons"].to_string();
    assert!(why.contains("22.0 GB/s, 15 % below the frozen criterion (26.0 GB/s)"), "{why}");
}

/// Measured GPUs of two clusters (Sinha et al., SC'22), where the data is at hand.
#[test]
fn slow_gpus_of_two_clusters_are_named_and_noise_names_nobody() {
    let Some(data) = std::env::var_os("MUSTER_DATA") else {
        let test = "slow_gpus_of_two_clusters_are_named_and_noise_names_nobody";
        return skip(test, Lacks::Data, "MUSTER_DATA names no folder with the measured GPUs");
    };
    let place = Place::new();
    let learned = |file: &str| {
        let file = Path::new(&data).join("bench/gpu_variability").join(file).display().to_string();
        let arguments = [
            "criteria",
            "learn",
            "--json",
            "--columns",
            "node=uuid,value=perf",
            "--lower-is-better",
            "perf",
            "--from",
            &file,
        ];
        let report = place.json(0, "muster.criteria.json", &arguments);
        (defects(&report), report["criteria"][0]["status"].as_str().unwrap().to_owned())
    };
    let (slow, status) = learned("sgemm-longhorn-agg.csv");
    assert!((4..10).contains(&slow.len()) && status == "ok", "{slow:?}");
    let (slow, status) = learned("resnet-ls6-agg.csv");
    assert!(
        (6..12).contains(&slow.len()) && status == "not_repeatable" && slow.contains(&"c317-12-1".to_owned()),
        "{slow:?}"
    );
    assert_eq!(learned("resnet-longhorn-agg.csv"), (Vec::new(), "not_repeatable".to_owned()));
}

#[test]
fn a_mixed_fleet_is_learned_and_judged_apart_by_its_labels() {
    let place = Place::new();
    let inventory = place.file(
        "fleet.toml",
        "[[nodes]]\nnames = \"a[01-10]\"\nlabels = { sku = \"old\" }\n[[nodes]]\nnames = \"b[01-10]\"\nlabels = { sku = \"new\" }\n",
    );
    let mut rows = "node,metric,value\n".to_owned();
    for n in 1..=10 {
        let slow = if n == 4 { 0.8 } else { 1.0 };
        rows += &format!("a{n:02},net/bandwidth@own,{}\n", 100.0 * slow + 0.01 * f64::from(n));
        rows += &format!("b{n:02},net/bandwidth@own,{}\n", 200.0 + 0.01 * f64::from(n));
    }
    let samples = place.file("mixed.csv", &rows);
    let learn = ["criteria", "learn", "--json", "-i", &inventory, "--from", &samples, "--higher-is-better", "*"];
    let together = place.json(0, "muster.criteria.json", &learn);
    assert_ne!(together["criteria"][0]["status"], "ok");
    let apart = place.json(0, "muster.criteria.json", &[&learn[..], &["--group-by", "sku"]].concat());
    let groups: Vec<_> = apart["criteria"].as_array().unwrap().iter().map(|c| (&c["group"], &c["status"])).collect();
    assert_eq!(groups, [(&Value::from("sku=new"), &Value::from("ok")), (&Value::from("sku=old"), &Value::from("ok"))]);
    assert_eq!(defects(&apart), ["a04"]);
    let one = place.json(0, "muster.criteria.json", &[&learn[..], &["--group", "sku=old"]].concat());
    assert_eq!((one["criteria"].as_array().unwrap().len(), one["criteria"][0]["n"].as_u64()), (1, Some(10)));
    assert!(
        place
            .text(64, &[&learn[..], &["--group-by", "colour"]].concat())
            .contains("no node has a label or fact 'colour'")
    );

    // Where the configuration compares apart, so do runs, and they remember it.
    let config = place.file("config.toml", "group_by = [\"sku\"]\n");
    let import = ["import", "-i", &inventory, "--config", &config, "--higher-is-better", "*", &samples];
    place.text(0, &import);
    // A single step may have been stalled; an average of many was not.
    let report = place.results(&[]);
    assert_eq!((failed(&report), &report["summary"]["unknown"]), (Vec::new(), &1.into()));
    place.text(0, &[&import[..], &["--aggregated"]].concat());
    let report = place.results(&[]);
    assert_eq!(failed(&report), ["a04"]);
    assert_eq!(report["criteria"][0]["group"], "profile=standard,sku=new");
}
