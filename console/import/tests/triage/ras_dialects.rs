//! RAS in its dialects from 2.24 to 2.30, as text and JSON, whole and torn; `ras/README.md` says where the texts come from.

use muster_import::bundle::{gather, part};
use muster_logs::Category;
use muster_logs::Rules;
use muster_triage::SURE;
use muster_triage::diagnose;
use muster_triage::report::Report;

pub(super) const DIALECTS: [(&str, &str); 5] = [
    ("2.24.txt", include_str!("../ras/2.24.txt")),
    ("2.27.txt", include_str!("../ras/2.27.txt")),
    ("2.28.7.json", include_str!("../ras/2.28.7.json")),
    ("2.28.9.json", include_str!("../ras/2.28.9.json")),
    ("2.30.json", include_str!("../ras/2.30.json")),
];
const JOB: &str = r#"{"world_size": 4, "nodes": [{"node": "n1", "ip": ["10.0.0.1"]}, {"node": "n2", "ip": ["10.0.0.2"]}],
    "ranks": [{"rank": 0, "node": "n1", "pid": 100}, {"rank": 1, "node": "n1", "pid": 101},
              {"rank": 2, "node": "n2", "pid": 200}, {"rank": 3, "node": "n2", "pid": 201}]}"#;

fn triage(files: &[(&str, String)]) -> (Report, Vec<String>) {
    let rules = Rules::built_in().unwrap();
    let case = gather(files.iter().map(|(path, text)| ((*path).to_owned(), part(path, text.as_bytes(), &rules))));
    (diagnose(&case, &rules), case.damage)
}

/// The same answer eleven seconds later.
pub(super) fn later(text: &str) -> String {
    text.replace("00:23:44", "00:23:55")
}

pub(super) fn polls(name: &str, first: &str, second: &str) -> Vec<(&'static str, String)> {
    let paths =
        if name.ends_with("txt") { ["ras/poll1.txt", "ras/poll2.txt"] } else { ["ras/poll1.json", "ras/poll2.json"] };
    vec![("job.json", JOB.to_owned()), (paths[0], first.to_owned()), (paths[1], second.to_owned())]
}

#[test]
fn every_dialect_names_the_rank_that_is_behind_or_gives_no_data() {
    for (name, text) in DIALECTS {
        let (report, damage) = triage(&polls(name, text, &later(text)));
        assert_eq!(damage, Vec::<String>::new(), "{name}");
        let named: Vec<_> = report.suspects.iter().map(|suspect| (suspect.node.as_deref(), suspect.rank)).collect();
        assert_eq!(named, [(Some("n2"), Some(3))], "{name} {report:#?}");
        // Of one that gives no data nothing tells whether it still runs.
        let silent = name == "2.28.9.json";
        let expected = if silent { Category::ProcessExited } else { Category::HangNotLaunched };
        assert_eq!(report.category, expected, "{name}");
        assert_eq!(report.suspects[0].confidence >= SURE, !silent, "{name} {report:#?}");
    }
}

#[test]
fn a_torn_answer_is_said_and_the_verdict_stands_without_it() {
    let stopped = r#"{"processes": [{"pid": 200, "rank": 2, "world": 4, "states": "SSSSSS"}, {"pid": 201, "rank": 3, "world": 4, "states": "TTTTTT"}]}"#;
    let others = r#"{"processes": [{"pid": 100, "rank": 0, "world": 4, "states": "SSSSSS"}, {"pid": 101, "rank": 1, "world": 4, "states": "SSSSSS"}]}"#;
    for (name, text) in DIALECTS {
        for cut in [1, text.len() / 3, text.len() * 2 / 3, text.len() - 3] {
            let mut files = polls(name, &text[..cut], &text[..cut]);
            files.push(("processes/n1.json", others.to_owned()));
            files.push(("processes/n2.json", stopped.to_owned()));
            let (report, damage) = triage(&files);
            let suspect = &report.suspects[0];
            assert_eq!((suspect.node.as_deref(), suspect.rank), (Some("n2"), Some(3)), "{name} {cut} {report:#?}");
            assert!(suspect.confidence >= SURE, "{name} {cut}");
            // A torn JSON is no answer; a torn text is one that tells less.
            assert!(damage.len() == 2 || !name.ends_with("json"), "{name} {cut} {damage:?}");
        }
    }
}
