//! Do the documents that the console writes keep to the JSON Schemas that it publishes?
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is the failed test")]

use std::path::Path;

use muster_analysis::checks::{self, CheckResult, Found};
use muster_analysis::findings::{Compared, Effect, Finding, Source};
use muster_analysis::{NodeVerdict, Observation, Params, State, learn};
use muster_playbook::report::{Basis, Cost, CriteriaReport, Demo, Dropped, NodeFindings, RunInfo, RunReport};
use muster_wire::{Component, Direction, MetricId, Profile, Unit};
use serde_json::{Value, json};

/// Checks a value against the part of JSON Schema that our schemas use; any other keyword is a panic, so that a schema
/// cannot say more than this checks. (A full validator would bring forty crates for two files.)
struct Validator {
    root: Value,
}

impl Validator {
    fn load(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/schemas").join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        Self { root: serde_json::from_str(&text).unwrap() }
    }

    fn check(&self, value: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        self.walk(&self.root, value, "$", &mut wrong);
        wrong
    }

    fn walk(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        for (keyword, wanted) in schema.as_object().unwrap() {
            let good = match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => true,
                // Handled with "properties".
                "additionalProperties" => *wanted == json!(false) && schema.get("properties").is_some(),
                "$ref" => {
                    let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                    self.walk(self.root.pointer(pointer).unwrap(), value, at, wrong);
                    true
                }
                "anyOf" => wanted.as_array().unwrap().iter().any(|option| {
                    let mut inner = Vec::new();
                    self.walk(option, value, at, &mut inner);
                    inner.is_empty()
                }),
                "properties" => {
                    self.properties(schema, value, at, wrong);
                    true
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.walk(wanted, item, &format!("{at}[{index}]"), wrong);
                    }
                    true
                }
                "required" => value.as_object().is_none_or(|object| {
                    wanted.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
                }),
                _ => leaf(keyword, wanted, value),
            };
            if !good {
                wrong.push(format!("{at}: {keyword} {wanted}, found {value}"));
            }
        }
    }

    fn properties(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        let closed = schema.get("additionalProperties") == Some(&json!(false));
        for (key, item) in value.as_object().into_iter().flatten() {
            match schema["properties"].get(key) {
                Some(inner) => self.walk(inner, item, &format!("{at}.{key}"), wrong),
                None if closed => wrong.push(format!("{at}: unknown property {key}")),
                None => {}
            }
        }
    }
}

fn leaf(keyword: &str, wanted: &Value, value: &Value) -> bool {
    match keyword {
        "const" => value == wanted,
        "enum" => wanted.as_array().unwrap().contains(value),
        "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= wanted.as_u64().unwrap()),
        "format" if wanted == "date-time" => value.as_str().is_none_or(is_instant),
        "type" => match wanted {
            Value::Array(types) => types.iter().any(|one| is_type(one.as_str().unwrap(), value)),
            one => is_type(one.as_str().unwrap(), value),
        },
        other => panic!("the schema uses {other}, which this validator does not know"),
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the schema uses type {other}, which this validator does not know"),
    }
}

/// `2026-11-21T14:30:08Z`, the one form we write.
fn is_instant(text: &str) -> bool {
    text.len() == 20
        && text
            .chars()
            .zip("0000-00-00T00:00:00Z".chars())
            .all(|(c, p)| if p == '0' { c.is_ascii_digit() } else { c == p })
}

/// A finding with everything that one may have.
fn finding(verdict: &NodeVerdict, unit: Unit, direction: Direction) -> Finding {
    let (metric, component) = (verdict.metric.clone(), Component::GpuLink(0, 1));
    let value = verdict.value.unwrap_or(f64::NAN);
    let effect = Effect { metric: metric.clone(), unit, direction, value, usual: 1.0, scale: 0.01 };
    let compared = Compared { group: "cpu=a".to_owned(), peers: 6, criterion: Some("bench/triad@own#1".to_owned()) };
    Finding {
        effect: Some(effect),
        compared: Some(compared),
        since_ms: Some(1_795_271_408_000),
        ..Finding::new(&verdict.node, component, Source::Metric(metric), verdict.state, verdict.reason.clone())
    }
    .next("run it again")
}

const STATES: [State; 6] = [State::Pass, State::Warn, State::Fail, State::Unknown, State::NotRun, State::NotApplicable];

/// Two metrics over seven nodes, judged by the real analysis: one node slow, one failed, one missing; then a node for
/// every state there is, and one of which nothing is known.
fn documents(levels: &[f64]) -> (RunReport, CriteriaReport) {
    let params = Params::default();
    let (mut criteria, mut report) = (Vec::new(), CriteriaReport::default());
    let mut nodes: Vec<NodeFindings> =
        (0..levels.len() + 2).map(|n| NodeFindings { node: format!("n{n}"), ..NodeFindings::default() }).collect();
    let metrics =
        [("triad", Unit::BytesPerSec, Direction::HigherIsBetter), ("dram", Unit::Nanos, Direction::LowerIsBetter)];
    for (name, unit, direction) in metrics {
        let mut observed: Vec<(String, Observation)> = levels
            .iter()
            .enumerate()
            .map(|(n, level)| {
                let values: Vec<f64> = (0..40).map(|i| level * (1.0 + f64::from(i % 7) * 1e-3)).collect();
                (format!("n{n}"), Observation::from_values(&values))
            })
            .collect();
        observed.push((format!("n{}", levels.len()), Observation::Failed("crashed".to_owned())));
        observed.push((format!("n{}", levels.len() + 1), Observation::Missing("node was busy".to_owned())));
        let learned = learn(&MetricId::new("bench", name, "own"), unit, direction, &observed, &params);
        for (node, verdict) in nodes.iter_mut().zip(&learned.verdicts) {
            node.findings.push(finding(verdict, unit, direction));
            node.verdicts.push(verdict.clone());
        }
        report.push(&learned);
        report.push_in(Some(&format!("csv {name}")), "sku=a", &learned);
        let outside = [("n3", Some(0.5)), ("n7", None)].into_iter();
        report.push_version(&learned.criterion, outside, ("profile=quick", 1_795_271_408_000, "r1"), true);
        criteria.push(learned);
    }
    for state in STATES {
        let name = format!("x{}", state.name());
        let finding = Finding::new(&name, Component::Node, Source::Link, state, "a reason".to_owned());
        nodes.push(NodeFindings { node: name, findings: vec![finding], ..NodeFindings::default() });
    }
    nodes.push(NodeFindings { node: "nothing".to_owned(), ..NodeFindings::default() });
    // Nobody looked, so that every check answers "not run"; and one that failed.
    let all: Vec<_> = checks::checks().collect();
    let looked = checks::evaluate(&all, &[checks::NodeFacts::new("unseen", "")], &checks::Policy::default()).remove(0);
    nodes.push(NodeFindings { node: "unseen".to_owned(), checks: looked, ..NodeFindings::default() });
    let failed = CheckResult { check: all[0], found: Found::fail("a reason"), demanded: false };
    nodes.push(NodeFindings { node: "bad".to_owned(), checks: vec![failed], ..NodeFindings::default() });
    let info = RunInfo::new("r1", "cbd", Profile::Quick, 1_795_271_408_000, None);
    let basis: Vec<Basis<'_>> = criteria
        .iter()
        .map(|learned| Basis { criterion: &learned.criterion, group: "profile=quick", frozen: true, nodes: None })
        .collect();
    let mut run = RunReport::new(info, &nodes, &basis);
    run.alarms = vec!["bench fails on most nodes".to_owned()];
    run.dropped = vec![Dropped { node: "n3".into(), step: "look".into(), reason: "n3: nic-mtu: 1400".into() }];
    run.rejudged = Some("alpha 0.9 instead of 0.95".to_owned());
    run.demo = Some(Demo { slowed: vec!["n3".to_owned()] });
    run.cost = Some(Cost { cpu_s: 1.5, rss_mb: 80.0, wall_s: 9.0, verdict_s: 0.1, bytes: 7 });
    (run, report)
}

/// Fleets that give a sound, a provisional, an empty and a split criterion.
const FLEETS: [&[f64]; 4] = [&[9.0, 9.0, 9.0, 4.0, 9.0, 9.0, 9.0], &[9.0, 9.0], &[], &[9.0, 4.0, 9.0, 4.0, 9.0, 4.0]];

#[test]
fn real_reports_keep_to_the_published_schemas() {
    let (of_run, of_criteria) = (Validator::load("muster.run.json"), Validator::load("muster.criteria.json"));
    for levels in FLEETS {
        let (run, criteria) = documents(levels);
        assert_eq!(of_run.check(&serde_json::to_value(&run).unwrap()), [""; 0], "{levels:?}");
        assert_eq!(of_criteria.check(&serde_json::to_value(&criteria).unwrap()), [""; 0], "{levels:?}");
    }
}

#[test]
fn documents_that_break_the_schema_are_refused() {
    let validator = Validator::load("muster.run.json");
    let good = serde_json::to_value(documents(FLEETS[0]).0).unwrap();
    for (pointer, value) in [
        ("/schema", json!("muster.other")),
        ("/version", json!(2)),
        ("/run/profile", json!("huge")),
        ("/run/started", json!("yesterday")),
        ("/summary/pass", json!(-1)),
        ("/nodes/0/state", json!("PASS")),
        ("/nodes/0/verdicts/0/similarity", json!(1.5)),
        ("/nodes/0/verdicts/0/unit", json!("furlongs")),
        ("/nodes/0/verdicts/0/criterion", json!({"id": "x", "n": 1})),
        ("/nodes/0/checks", json!([{"id": "x", "severity": "bad", "state": "pass", "said": "y"}])),
        ("/criteria/0/status", json!("fine")),
        ("/demo", json!({"slowed": ["n1"], "secret": 1})),
        ("/cost", json!({"cpu_s": 1, "rss_mb": 1, "wall_s": 1, "verdict_s": -1, "bytes": 1})),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.check(&bad).is_empty(), "{pointer} was accepted");
    }
    let mut short = good;
    short.as_object_mut().unwrap().remove("criteria");
    assert!(!validator.check(&short).is_empty());
}

#[test]
fn the_enumerations_of_the_schema_are_those_of_the_program() {
    let schema = Validator::load("muster.run.json").root;
    let states: Vec<Value> = STATES.iter().map(|state| serde_json::to_value(state).unwrap()).collect();
    assert_eq!(schema["$defs"]["state"]["enum"], Value::Array(states));
    let profiles: Vec<Value> = Profile::ALL.iter().map(|profile| serde_json::to_value(profile).unwrap()).collect();
    assert_eq!(schema["properties"]["run"]["properties"]["profile"]["enum"], Value::Array(profiles));
    for unit in schema["$defs"]["unit"]["enum"].as_array().unwrap() {
        assert!(serde_json::from_value::<Unit>(unit.clone()).is_ok(), "{unit}");
    }
}

#[test]
fn both_schemas_mean_the_same_by_a_criterion() {
    let (run, criteria) = (Validator::load("muster.run.json").root, Validator::load("muster.criteria.json").root);
    for name in ["criterion", "defect", "unit", "status"] {
        assert_eq!(run["$defs"][name], criteria["$defs"][name], "{name}");
    }
}

#[test]
fn the_document_has_exactly_the_published_keys() {
    let run = serde_json::to_value(documents(FLEETS[0]).0).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&run), "alarms cost criteria demo dropped nodes rejudged run schema summary version");
    assert_eq!(keys(&run["nodes"][0]), "checks components findings node reasons state undecided verdicts");
    assert_eq!(keys(&run["nodes"][0]["verdicts"][0]), "alpha criterion engine metric similarity state tau unit value");
    assert_eq!(keys(&run["nodes"][0]["verdicts"][0]["criterion"]), "id n status");
    let failed = run["criteria"][0]["defects"].as_array().unwrap();
    assert_eq!(failed[0], json!({"node": "n7", "similarity": null}));
    assert_eq!(failed[1]["node"], "n3");
}

#[test]
fn what_counts_visits_of_pairs_is_described_as_visits() {
    let root = Validator::load("muster.pairs.json").root;
    for of in ["/$defs/suspect", "/$defs/undecided", "/properties/warnings/items"] {
        let said = root.pointer(&format!("{of}/properties/pairs/description")).and_then(Value::as_str);
        assert!(said.is_some_and(|said| said.starts_with("Visits ") && said.ends_with("not pairs.")), "{of}: {said:?}");
    }
}
