//! The rules that muster brings: their examples are their tests, and harmless lines condemn nobody.

#![expect(clippy::disallowed_methods, reason = "reads what MUSTER_DATA names, which the library never does")]

use std::collections::BTreeSet;

use muster_logs::{Kind, Part, Rule, Rules, Scan, Stream};
use serde_json::Value;

fn rules() -> Rules {
    Rules::built_in().unwrap_or_else(|why| panic!("{why}"))
}

/// Rules that know some line of the text.
fn known<'r>(rules: &'r Rules, text: &str) -> Vec<&'r Rule> {
    let (mut places, mut scan) = (BTreeSet::new(), Scan::new(rules, Stream::Any));
    scan.feed(text.as_bytes(), &mut |hit| _ = places.insert(hit.rule.place()));
    scan.finish(&mut |hit| _ = places.insert(hit.rule.place()));
    places.into_iter().map(|place| rules.rule(place)).collect()
}

#[test]
fn every_rule_knows_its_examples_and_no_critical_rule_of_another_family_does() {
    let rules = rules();
    for rule in rules.iter() {
        for example in &rule.examples {
            let all = known(&rules, example);
            assert!(all.iter().any(|other| other.id == rule.id), "{} does not know its example: {example}", rule.id);
            for other in all {
                let foreign = other.family != rule.family && rule.kind != Kind::Critical;
                assert!(
                    !(foreign && other.kind == Kind::Critical),
                    "{} knows {}'s example: {example}",
                    other.id,
                    rule.id
                );
            }
        }
    }
}

#[test]
fn no_rule_knows_what_only_looks_alike() {
    let rules = rules();
    for rule in rules.iter() {
        for line in &rule.not {
            assert!(known(&rules, line).iter().all(|other| other.id != rule.id), "{} knows {line}", rule.id);
        }
    }
}

#[test]
fn no_harmless_line_is_called_a_cause() {
    let rules = rules();
    for rule in rules.iter().filter(|rule| matches!(rule.kind, Kind::Benign | Kind::Progress)) {
        for example in &rule.examples {
            let cause = known(&rules, example).into_iter().find(|other| other.kind.may_be_root());
            assert!(cause.is_none(), "{} calls a cause what {} calls harmless: {example}", cause.unwrap().id, rule.id);
        }
    }
}

#[test]
fn each_code_of_a_table_is_found_by_its_own_row() {
    let rules = rules();
    let mut seen = 0;
    for code in 0..256 {
        let line = format!("[1.000000] NVRM: Xid (PCI:0000:3b:00): {code}, pid=77, name=python3, something");
        let found = known(&rules, &line);
        let xid: Vec<_> = found.iter().filter(|rule| rule.id.starts_with("xid-")).collect();
        assert_eq!(xid.len(), 1, "{line}");
        seen += usize::from(xid[0].id.split('-').any(|word| word == code.to_string()));
    }
    assert!(seen > 95, "{seen} codes have a row of their own");
}

/// What the record calls the part, in ours. Empty: the record does not know, so no part is wrong unless a machine is condemned.
fn parts(component: &str) -> &'static [Part] {
    match component {
        "gpu" => &[Part::Gpu, Part::GpuMemory],
        "gpu_memory" => &[Part::GpuMemory, Part::Gpu],
        "nvlink" => &[Part::GpuLink, Part::GpuSwitch],
        "nvswitch" => &[Part::GpuSwitch],
        "fabric_manager" => &[Part::GpuSwitch],
        "driver" => &[Part::Driver],
        "pcie" => &[Part::Pcie],
        "nic" => &[Part::Nic, Part::IbPort],
        "cable" | "ib_port" | "link" => &[Part::IbPort, Part::Nic, Part::Network],
        "network" => &[Part::Network, Part::IbPort, Part::Nic],
        "network_config" | "container_config" | "software_config" | "pcie_config" => {
            &[Part::Settings, Part::Network, Part::IbPort]
        }
        "disk" => &[Part::Disk],
        "storage" => &[Part::Storage, Part::Disk],
        "dimm" | "memory" => &[Part::Memory],
        "cpu" => &[Part::Cpu],
        "psu" | "power" => &[Part::Power],
        "thermal" | "cooling" | "fan" => &[Part::Cooling],
        "firmware" => &[Part::Node, Part::Cpu],
        "user_code" | "software" => &[Part::Program],
        "scheduler" => &[Part::Scheduler],
        _ => &[],
    }
}

#[test]
fn recorded_fault_lines_name_the_part_that_was_at_fault() {
    const TEST: &str = "recorded_fault_lines_name_the_part_that_was_at_fault";
    let file = std::env::var_os("MUSTER_DATA").map(|root| std::path::PathBuf::from(root).join("loglines_dev.jsonl"));
    let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) else {
        return muster_skip::skip(
            TEST,
            muster_skip::Lacks::Data,
            "MUSTER_DATA names no folder with loglines_dev.jsonl",
        );
    };
    let rules = rules();
    let (mut right, mut all, mut told, mut wrongly) = (0, 0, Vec::new(), Vec::new());
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let is = |key: &str| record[key].as_bool().unwrap_or(false);
        if !is("verbatim") {
            continue;
        }
        let lines: Vec<_> = record["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let found = known(&rules, &lines.join("\n"));
        let likeliest = found.iter().min_by_key(|rule| (rule.kind, u8::MAX - rule.specificity));
        let wanted = parts(record["component"].as_str().unwrap());
        let critical = found.iter().any(|rule| rule.kind == Kind::Critical);
        let ok =
            likeliest.map_or(wanted.is_empty(), |rule| wanted.is_empty() && !critical || wanted.contains(&rule.part));
        if !is("critical") && critical && is("cause_confirmed") {
            wrongly.push(format!("{} {:?}", record["id"], found.iter().map(|r| &r.id).collect::<Vec<_>>()));
        }
        if is("cause_confirmed") {
            (right, all) = (right + usize::from(ok), all + 1);
        }
        if !ok {
            let ids: Vec<_> = found.iter().map(|rule| rule.id.as_str()).collect();
            told.push(format!(
                "{} {} confirmed={}: {ids:?} {}",
                record["id"],
                record["component"],
                is("cause_confirmed"),
                lines[0]
            ));
        }
    }
    println!("{right} of {all}\n{}", told.join("\n"));
    assert!(right * 10 >= all * 9, "{right} of {all}");
    assert!(wrongly.is_empty(), "called critical: {wrongly:?}");
}
