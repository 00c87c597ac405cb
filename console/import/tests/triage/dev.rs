//! The whole of triage on bundles with known culprits, and on real flight-recorder dumps.
//!
//! Needs the data directory that `MUSTER_DATA` names, with `triage_dev/` and `flight_recorder/` below it; says so and passes where there is none.

#![expect(clippy::disallowed_methods, reason = "opens the files whose text the library is given")]

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use muster_import::bundle::{gather, part};
use muster_logs::Category;
use muster_logs::Rules;
use muster_skip::Lacks;
use muster_triage::diagnose;
use muster_triage::report::Report;
use serde_json::Value;

/// Files of a tar, by name.
fn unpack(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    GzDecoder::new(BufReader::new(std::fs::File::open(path).unwrap())).read_to_end(&mut bytes).unwrap();
    let (mut files, mut at) = (Vec::new(), 0);
    while bytes.len() >= at + 512 && bytes[at] != 0 {
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(&bytes[at + from..at + to]).trim_matches(['\0', ' ']).to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).unwrap();
        if matches!(bytes[at + 156], b'0' | 0) {
            files.push((text(0, 100), bytes[at + 512..at + 512 + size].to_vec()));
        }
        at += 512 + size.div_ceil(512) * 512;
    }
    files
}

fn triage(files: &[(String, Vec<u8>)], rules: &Rules, without: &str) -> Report {
    let kept = files.iter().filter(|(name, _)| without.is_empty() || !name.contains(without));
    let case = gather(kept.map(|(name, bytes)| (name.clone(), part(name, &bytes[..], rules))));
    diagnose(&case, rules)
}

fn data(folder: &str) -> Option<PathBuf> {
    let found =
        std::env::var_os("MUSTER_DATA").map(|root| PathBuf::from(root).join(folder)).filter(|path| path.is_dir());
    if found.is_none() {
        muster_skip::skip(
            "culprits_are_named_and_nobody_else",
            Lacks::Data,
            "MUSTER_DATA names no folder with triage bundles",
        );
    }
    found
}

/// Whether a suspect is who the truth says.
fn right(report: &Report, truth: &Value) -> bool {
    let category = serde_json::to_value(report.category).unwrap();
    let accepted = truth["accept_categories"].as_array().unwrap().contains(&category);
    accepted && names(report, truth)
}

fn names(report: &Report, truth: &Value) -> bool {
    let Some(first) = report.suspects.first() else { return false };
    let root = &truth["root"];
    let kind = serde_json::to_value(first.kind).unwrap();
    let is = |value: &Value| {
        let node = value["node"].as_str().is_none_or(|node| first.node.as_deref() == Some(node));
        let rank =
            first.rank.is_none() || value["rank"].is_null() || value["rank"].as_u64() == first.rank.map(u64::from);
        node && rank
    };
    let element = root["kind"] != "storage" || root["element"].as_str() == first.element.as_deref();
    let who = root["kind"] == "none" || is(root) || truth["also"].as_array().unwrap().iter().any(is);
    truth["accept_kinds"].as_array().unwrap().contains(&kind) && who && element
}

#[test]
fn the_culprit_of_every_bundle_is_named_first() {
    let Some(folder) = data("triage_dev") else { return };
    let rules = Rules::built_in().unwrap();
    let mut wrong = Vec::new();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let mut files = unpack(&path);
        let at = files.iter().position(|(name, _)| name.ends_with("truth.json")).unwrap();
        let truth: Value = serde_json::from_slice(&files.remove(at).1).unwrap();
        let report = triage(&files, &rules, "");
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let said = report.suspects.first().map(|s| {
            format!("{} {:?} {:?} {:.2}: {}", report.category.name(), s.node, s.rank, s.confidence, s.sentence)
        });
        println!(
            "{} {name} {}",
            if right(&report, &truth) { "right" } else { "WRONG" },
            said.clone().unwrap_or_else(|| report.category.name().to_owned())
        );
        if !right(&report, &truth) {
            wrong.push(name.clone());
        }
        for without in ["dmesg/", "ras/", "fr/", "inspector/", "logs/", "job.json"] {
            let report = triage(&files, &rules, without);
            let sure = report.category != Category::Undecided
                && report.suspects.first().is_some_and(|first| first.confidence >= 0.8);
            // What storage held up is seen even where storage is not.
            let held = truth["root"]["kind"] == "storage" && report.category == Category::HangNotLaunched;
            if sure && !held && !names(&report, &truth) {
                let first = &report.suspects[0];
                println!("WRONG {name} without {without}: {} {}", report.category.name(), first.sentence);
                wrong.push(format!("{name} without {without}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn both_culprits_of_each_real_set_of_dumps_are_named_and_nobody_else() {
    let Some(folder) = data("flight_recorder") else { return };
    let rules = Rules::built_in().unwrap();
    for set in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let truth: Value = serde_json::from_slice(&std::fs::read(set.join("truth.json")).unwrap()).unwrap();
        let files = std::fs::read_dir(&set).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            (format!("fr/{}", path.file_name().unwrap().to_string_lossy()), std::fs::read(&path).unwrap())
        });
        let report = triage(&files.collect::<Vec<_>>(), &rules, "");
        let named: Vec<u64> = report.suspects.iter().filter_map(|suspect| suspect.rank).map(u64::from).collect();
        println!("{}: {} {named:?}", set.display(), report.category.name());
        let culprits: Vec<u64> = truth["culprit_ranks"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        assert_eq!(
            {
                let mut named = named;
                named.sort_unstable();
                named
            },
            culprits,
            "{}",
            set.display()
        );
        assert!(
            truth["accept_categories"].as_array().unwrap().contains(&serde_json::to_value(report.category).unwrap())
        );
    }
}
