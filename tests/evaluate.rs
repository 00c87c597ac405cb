//! `muster watch evaluate` and `muster watch learn` as scripts meet them: labelled recordings in a folder, scores and a model out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_tests::{Lacks, Place, skip};
use serde_json::{Value, json};

const START: u32 = 1_760_000_000;

/// Six nodes for twelve minutes; node `hurt`, if any, loses 40 % of its power after five.
fn recording(place: &Place, name: &str, hurt: Option<u32>) {
    let mut rows = "time_s,node,metric,value\n".to_owned();
    for (second, node) in (0..720).flat_map(|second| (1..=6).map(move |node| (second, node))) {
        for (metric, level) in [("gpu_power_w", 500.0), ("tensor_active", 0.6)] {
            let noise = 1.0 + 0.02 * f64::from((second * 7 + node * 13) % 11) / 11.0;
            let share = if hurt == Some(node) && second >= 300 && metric == "gpu_power_w" { 0.6 } else { 1.0 };
            rows += &format!("{},n{node:02},{metric},{}\n", START + second, level * noise * share);
        }
    }
    let _ = place.file(&format!("{name}.csv"), &rows);
    let fault = |node: u32| json!({"node": format!("n{node:02}"), "onset_s": START + 300, "end_s": START + 720});
    let faulty: Vec<Value> = hurt.map(fault).into_iter().collect();
    let truth = json!({"schema": "muster.watch.truth", "faulty": faulty});
    let _ = place.file(&format!("{name}.truth.json"), &truth.to_string());
}

/// Four recordings, two of them with a fault.
fn labelled() -> Place {
    let place = Place::new();
    for (name, hurt) in [("a", Some(3)), ("b", None), ("c", Some(5)), ("d", None)] {
        recording(&place, name, hurt);
    }
    place
}

fn method<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["methods"].as_array().unwrap().iter().find(|method| method["method"] == name).unwrap()
}

#[test]
fn all_methods_are_scored_over_the_same_recordings_and_what_is_not_used_is_said() {
    let place = labelled();
    let _ = place.file("e.csv", "time_s,node,metric,value\n1,a,m,2\n");
    let folder = place.path("");
    let scored = ["watch", "evaluate", &folder, "--parts", "4", "--epochs", "2", "--json"];
    let report = place.json(0, "muster.watch-evaluation.json", &scored);
    assert_eq!(report["left_out"], json!([{"name": "e.csv", "why": "no truth file e.truth.json"}]));
    assert_eq!((&report["taught_by"], &report["parts"], &report["seen"]), (&"parts".into(), &4.into(), &json!([])));
    assert_eq!((report["recordings"].as_array().unwrap().len(), report["methods"].as_array().unwrap().len()), (4, 8));
    for name in ["muster", "minder_raw"] {
        let of = method(&report, name);
        assert_eq!((&of["precision"]["value"], &of["recall"]["value"]), (&1.0.into(), &1.0.into()), "{name}: {of}");
        assert_eq!(of["clean_accused"]["count"], 0, "{name}");
    }
    let told = &method(&report, "minder_raw")["recordings"][0]["told"][0];
    assert_eq!((&told["node"], &told["metric"]), (&"n03".into(), &"gpu_power_w".into()));
    let delay = |name: &str| method(&report, name)["delay"]["mean_s"].as_f64().unwrap();
    assert!(delay("muster") < 150.0 && delay("minder_raw") >= 240.0);
    let said = place.text(0, &["watch", "evaluate", &folder, "--method", "muster"]);
    assert!(
        said.contains("1.00 (2/2, ") && said.contains("4 recordings, ") && said.contains("e.csv left out"),
        "{said}"
    );
}

#[test]
fn what_was_learned_is_stored_and_scoring_what_it_saw_is_said() {
    let place = labelled();
    let (folder, model) = (place.path(""), place.path("model.json"));
    let said = place.text(0, &["watch", "learn", &folder, "-o", &model, "--epochs", "1"]);
    assert!(said.contains("1      gpu_power_w") && said.contains("learned from 4 recordings with 2 faults"), "{said}");
    let scored = ["watch", "evaluate", &folder, "--model", &model, "--method", "minder_raw", "--json"];
    let report = place.json(0, "muster.watch-evaluation.json", &scored);
    assert_eq!(
        (&report["taught_by"], &report["seen"]),
        (&"model".into(), &json!(["a.csv", "b.csv", "c.csv", "d.csv"]))
    );
    assert_eq!(method(&report, "minder_raw")["recall"]["count"], 2);
    let text = std::fs::read_to_string(&model).unwrap();
    for (bad, said) in [
        (text.replacen("0.", "1.", 1), "the file is damaged or was changed"),
        (text.replace("\"version\":1", "\"version\":9"), "version 9"),
        ("garbage".to_owned(), "no model of `muster watch learn`"),
    ] {
        let file = place.file("bad.json", &bad);
        let answer = place.text(78, &["watch", "evaluate", &folder, "--model", &file]);
        assert!(answer.contains("bad.json") && answer.contains(said), "{answer}");
    }
}

#[test]
fn a_bad_truth_is_named_with_its_reason_and_nothing_to_score_is_undecided() {
    let place = Place::new();
    let folder = place.path("");
    let said = place.text(3, &["watch", "evaluate", &folder]);
    assert!(said.contains("0 recordings"), "{said}");
    assert!(
        place.text(3, &["watch", "learn", &folder, "-o", &place.path("m")]).contains("no recording with a truth file")
    );
    recording(&place, "a", Some(3));
    let scored = ["watch", "evaluate", &folder, "--method", "muster", "--method", "mean"];
    let said = place.text(0, &scored);
    assert!(said.contains("1 recording not scored, as there was nothing to learn from"), "{said}");
    recording(&place, "b", None);
    for (truth, why) in [
        ("{}", "b.csv left out: b.truth.json: no truth file: missing field `schema`"),
        (
            r#"{"schema":"muster.watch.truth","faulty":[{"node":"n77","onset_s":1760000100}]}"#,
            "the faulty node n77 is not in the recording",
        ),
    ] {
        let _ = place.file("b.truth.json", truth);
        let said = place.text(78, &scored);
        assert!(said.contains(why) && said.contains("1 recording, "), "{said}");
    }
    assert!(place.text(74, &["watch", "evaluate", &place.path("nosuch")]).contains("nosuch"));
    assert!(place.text(64, &["watch", "evaluate", &folder, "--method", "magic"]).contains("minder_raw"));
}

#[test]
fn on_the_recordings_it_was_developed_with_ours_finds_all_and_more_than_minder() {
    let test = "on_the_recordings_it_was_developed_with_ours_finds_all_and_more_than_minder";
    let folder = std::env::var("MUSTER_DATA").map(|root| format!("{root}/watch_dev")).unwrap_or_default();
    if !std::path::Path::new(&folder).is_dir() {
        return skip(test, Lacks::Data, "MUSTER_DATA names no folder with watch_dev");
    }
    let scored = ["watch", "evaluate", &folder, "--method", "muster", "--method", "minder_raw", "--json"];
    let report = Place::new().json(0, "muster.watch-evaluation.json", &scored);
    let f1 = |name: &str| method(&report, name)["f1"].as_f64().unwrap();
    assert!(f1("muster") >= 0.97 && f1("minder_raw") > 0.4, "{} {}", f1("muster"), f1("minder_raw"));
    assert_eq!(report["best_method"], "muster");
}
