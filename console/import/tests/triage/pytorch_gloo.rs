//! Triage of a real PyTorch job on Gloo that was broken for real; `pytorch_gloo/README.md` says how.

#![expect(clippy::disallowed_methods, reason = "opens the files whose text the library is given")]

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use muster_import::bundle::{gather, part};
use muster_logs::Category;
use muster_logs::Rules;
use muster_logs::fault::Fault;
use muster_triage::diagnose;
use muster_triage::report::Report;

/// Files of a tar.gz, by name.
pub(super) fn unpack(name: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pytorch_gloo/{name}.tar.gz"));
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let (mut files, mut at) = (Vec::new(), 0);
    while bytes.len() >= at + 512 && bytes[at] != 0 {
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(&bytes[at + from..at + to]).trim_matches(['\0', ' ']).to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).unwrap();
        files.push((text(0, 100), bytes[at + 512..at + 512 + size].to_vec()));
        at += 512 + size.div_ceil(512) * 512;
    }
    files
}

fn triage(name: &str, without: &[&str]) -> Report {
    let rules = Rules::built_in().unwrap();
    let files = unpack(name);
    assert!(files.len() > 5, "{name}");
    let kept = files.iter().filter(|(path, _)| !without.iter().any(|start| path.starts_with(start)));
    let case = gather(kept.map(|(path, bytes)| (path.clone(), part(path, &bytes[..], &rules))));
    assert_eq!(case.damage, Vec::<String>::new(), "{name}");
    diagnose(&case, &rules)
}

fn named(report: &Report) -> Vec<(Option<&str>, Option<u32>)> {
    report.suspects.iter().map(|suspect| (suspect.node.as_deref(), suspect.rank)).collect()
}

#[test]
fn the_job_that_works_has_nobody_accused() {
    let report = triage("healthy", &[]);
    assert_eq!((report.category, named(&report)), (Category::Undecided, vec![]), "{report:#?}");
    assert_eq!((report.ranks.n, report.ranks.missing.as_slice()), (8, &[][..]));
}

#[test]
fn the_stopped_rank_is_named_and_let_go_on() {
    for without in [&[][..], &["fr/"]] {
        let report = triage("sigstop", without);
        assert_eq!(
            (report.category, named(&report)),
            (Category::HangNotLaunched, vec![(Some("n003"), Some(5))]),
            "{report:#?}"
        );
        assert_eq!(report.suspects[0].cause.fault, Some(Fault::Stopped));
        assert!(report.action.contains("on n003: kill -CONT 39."), "{}", report.action);
    }
}

#[test]
fn the_rank_that_sleeps_outside_of_the_collective_is_named() {
    for (bundle, without) in [("hang", &[][..]), ("hang-ended", &[]), ("hang-ended", &["fr/"])] {
        let report = triage(bundle, without);
        assert_eq!(report.category, Category::HangNotLaunched, "{bundle} {without:?} {report:#?}");
        assert_eq!(named(&report), [(Some("n002"), Some(3))], "{bundle} {without:?} {report:#?}");
    }
    let action = triage("hang", &[]).action;
    assert!(action.contains("py-spy dump --pid 139 on n002"), "{action}");
    // Without dumps nothing tells who is late while all wait: then nobody is named.
    let report = triage("hang", &["fr/"]);
    assert_eq!(named(&report), [], "{report:#?}");
}

#[test]
fn the_rank_that_sums_another_size_is_named_as_the_programs_error() {
    for bundle in ["mismatch", "mismatch-ended"] {
        let report = triage(bundle, &[]);
        assert_eq!(
            (report.category, named(&report)),
            (Category::UserBug, vec![(Some("n004"), Some(6))]),
            "{bundle} {report:#?}"
        );
        assert_eq!(report.drain, None);
    }
}

#[test]
fn the_rank_with_the_exception_is_named_and_not_those_whose_connections_it_closed() {
    let report = triage("exception", &[]);
    let ranks: Vec<Option<u32>> = report.suspects.iter().map(|suspect| suspect.rank).collect();
    assert_eq!((report.category, ranks), (Category::UserBug, vec![Some(4)]), "{report:#?}");
    assert!(report.suspects[0].evidence.iter().any(|seen| seen.text.contains("shapes cannot be multiplied")));
}
