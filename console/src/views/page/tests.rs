use std::sync::Arc;

use muster_analysis::checks::Severity;
use muster_analysis::network::topology::{Source, from_csv};
use muster_analysis::network::{LeftOut, Matrix, PairsReport, PairsRun};
use muster_analysis::records::Dropped;
use muster_analysis::{Sample, State};
use muster_page::Page;
use muster_playbook::report::{CheckReport, FindingReport, NodeFindings, RunReport};
use muster_run::{Record, Run, RunState, Summary, joined, noted};
use muster_wire::{Datum, Direction, Fact, MetricId, Outcome, Profile, Reading, Series, Unit};

use super::*;
use crate::judge::{self, Assessment, Judging, Pairs};
use crate::redact::{Redact, Redaction};

/// A run of `nodes`, of which `slow` ones deliver a third less; `metrics` of one benchmark, and what a collector saw.
struct Fleet {
    run: Run,
    records: Vec<Record>,
    said: Assessment,
    report: RunReport,
    coverage: Coverage,
    pairs: Option<Pairs>,
}

fn fact(key: &str, value: &str) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Text(value.to_owned())), unit: None }
}

fn series(metric: &str, level: f64, nr: usize) -> Series {
    Series {
        metric: MetricId::new("cpu-stream", metric, "own"),
        unit: Unit::BytesPerSec,
        direction: Direction::HigherIsBetter,
        values: (0..32).map(|step| level * (1.0 + 1e-3 * ((step * 5 + nr) % 7) as f64)).collect(),
        warmup: 0,
        started_ns: 0,
    }
}

fn summary(record: &Record) -> Summary {
    Summary {
        node: record.node.clone(),
        work: record.work.clone(),
        outcome: record.outcome.clone(),
        at_ms: record.at_ms,
        elapsed_ns: record.elapsed_ns,
        series: record.series.len() as u64,
        values: 0,
        facts: record.facts.len() as u64,
    }
}

impl Fleet {
    fn of(names: &[String], slow: &[usize], metrics: &[String]) -> Self {
        let run = Run {
            id: "20261121T143000Z-cbd-1f2e".to_owned(),
            playbook: "cbd".to_owned(),
            profile: Profile::Quick,
            started_ms: 1_763_735_408_000,
            ended_ms: Some(1_763_735_500_000),
            nodes: names.to_vec(),
            plan: vec!["collect/cpu".to_owned(), "cpu-stream".to_owned(), "disk-seq".to_owned()],
            state: RunState::Finished,
        };
        let mut records = Vec::new();
        for (nr, node) in names.iter().enumerate() {
            let level = if slow.contains(&nr) { 0.66e11 } else { 1e11 };
            let all = metrics.iter().map(|metric| series(metric, level, nr)).collect();
            let facts = vec![fact("model", "EPYC 9654"), fact("serial", &format!("SERIAL-{nr:04}"))];
            records.push(Record { outcome: Outcome::Done, ..noted(&run.id, node, "collect/cpu", facts, 2) });
            records.push(Record {
                outcome: Outcome::Done,
                series: all,
                ..noted(&run.id, node, "cpu-stream", vec![], 2)
            });
            let gone = Outcome::NotRun("no room at 10.0.0.8".to_owned());
            records.push(Record {
                outcome: if nr == 1 { gone } else { Outcome::Done },
                ..noted(&run.id, node, "disk-seq", vec![], 2)
            });
        }
        let said = judge::assess(&run, &records, &Judging::default());
        let report = judge::report(&run, &said);
        let mut coverage = Coverage::of(&run.plan, &records.iter().map(summary).collect::<Vec<_>>());
        said.nodes.iter().for_each(|node: &NodeFindings| coverage.add(node));
        Self { run, records, said, report, coverage, pairs: None }
    }

    fn page(&self, of: impl Fn(&Ran<'_>) -> Page) -> Page {
        let sample = |node: &str, metric: &MetricId| {
            let own = self.records.iter().filter(|record| record.node == node).flat_map(|record| &record.series);
            Sample::new(&joined(own.filter(|series| series.metric == *metric))).ok()
        };
        let ran = Ran {
            report: &self.report,
            judged: &self.said.judged,
            facts: &self.records,
            coverage: &self.coverage,
            pairs: self.pairs.as_ref(),
            sample: &sample,
        };
        of(&ran)
    }

    fn html(&self, chosen: &[Redact], of: impl Fn(&Ran<'_>) -> Page) -> String {
        let mut page = self.page(of);
        let mut redaction = Redaction::of(chosen, &self.run, &self.records);
        page.settle(&mut |text| redaction.text(text), &|names| muster_fleet::hostlist::fold(names.iter().copied()));
        page.html().unwrap()
    }
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|nr| format!("rack7-{nr:04}")).collect()
}

fn small() -> Fleet {
    Fleet::of(&names(8), &[2], &["triad".to_owned(), "copy".to_owned()])
}

const PLAIN: [Redact; 2] = [Redact::Addresses, Redact::Serials];

#[test]
fn a_page_of_a_run_has_the_sentence_the_curve_the_coverage_the_criteria_and_what_is_not_known() {
    let html = small().html(&PLAIN, run_page);
    for part in [
        "<h1>cbd on 8 nodes</h1>",
        "rack7-0003: cpu-stream/",
        "34 % below",
        "id=\"evidence\"",
        "aria-label=\"cpu-stream/",
        "criterion: median 100",
        "Nodes and benchmarks",
        "rack7-[0001,0004-0008]",
        "no room at address-001",
        "Versions of 2 criteria",
        "EPYC 9654",
        "Nodes of one kind",
    ] {
        assert!(html.contains(part), "{part} is not in\n{html}");
    }
    let curves = html.matches("stroke=\"#C1281F\"").count();
    // One curve in each of two charts, and two selectors of the style sheet.
    assert_eq!(curves, 3, "{html}");
    assert!(!html.contains("SERIAL-") && !html.contains("10.0.0.8"));
}

#[test]
fn the_badge_says_how_many_nodes_are_in_part_undecided_as_the_markdown_does() {
    let mut fleet = small();
    for undecided in [0, 1] {
        fleet.report.summary.undecided = undecided;
        let html = fleet.html(&PLAIN, run_page);
        assert_eq!(html.contains("1 of those in part undecided"), undecided == 1, "{html}");
    }
}

#[test]
fn names_are_replaced_as_in_the_other_exports() {
    let all = [Redact::Names, Redact::Addresses, Redact::Serials];
    for html in [
        small().html(&all, run_page),
        small().html(&all, |ran| node_page(ran, "rack7-0003").unwrap()),
        small().html(&all, |ran| metric_page(ran, "cpu-stream/triad").unwrap()),
    ] {
        assert!(!html.contains("rack7") && !html.contains("SERIAL-"), "{html}");
        assert!(html.contains("node-003"), "{html}");
    }
}

#[test]
fn a_page_of_a_node_has_all_of_its_metrics_and_facts_and_nobody_elses() {
    let html = small().html(&PLAIN, |ran| node_page(ran, "rack7-0003").unwrap());
    for part in
        ["rack7-0003 in cbd", "Every metric beside its criterion", "66.2 GB/s", "Facts of rack7-0003", "serial-001"]
    {
        assert!(html.contains(part), "{part} is not in\n{html}");
    }
    assert!(!html.contains("rack7-0004"), "{html}");
    assert!(small().page(|ran| node_page(ran, "rack7-0001").unwrap()).state == Some(muster_page::State::Pass));
    let _page = small().page(|ran| {
        assert!(node_page(ran, "rack8").is_none() && metric_page(ran, "cpu-stream/x").is_none());
        run_page(ran)
    });
}

#[test]
fn a_page_of_a_metric_shows_every_node_whether_or_not_it_is_outside() {
    let html = small().html(&PLAIN, |ran| metric_page(ran, "cpu-stream/copy").unwrap());
    assert!(
        html.contains("Medians of cpu-stream/copy") && html.contains("8 nodes from 66.2 GB/s to 100 GB/s; 1 outside."),
        "{html}"
    );
    let sound = Fleet::of(&names(8), &[], &["triad".to_owned()]);
    let html = sound.html(&PLAIN, |ran| metric_page(ran, "cpu-stream/triad").unwrap());
    assert!(html.contains("criterion: median") && html.contains("; 0 outside."), "{html}");
}

#[test]
fn hostile_names_of_nodes_and_metrics_are_text() {
    let mut names = names(8);
    names[2] = "<script>alert(1)</script>\u{202e}\"'".to_owned();
    let metric = "<img src=x onerror=alert(2)>".to_owned();
    let fleet = Fleet::of(&names, &[2], std::slice::from_ref(&metric));
    for html in [
        fleet.html(&PLAIN, run_page),
        fleet.html(&PLAIN, |ran| node_page(ran, &ran.report.nodes[2].node).unwrap()),
        fleet.html(&PLAIN, |ran| metric_page(ran, metrics(ran.report).first().unwrap()).unwrap()),
    ] {
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains('\u{202e}'), "{html}");
        assert!(html.contains("alert(1)") || html.contains("alert(2)"), "{html}");
    }
}

/// What a fleet in which everything goes wrong is told.
fn worst(count: usize) -> Fleet {
    let metrics: Vec<String> = (0..40).map(|nr| format!("metric-with-a-long-name-{nr}")).collect();
    let mut fleet = Fleet::of(&names(count), &[], &metrics[..2]);
    let of = fleet.report.nodes[0].verdicts[0].of.clone();
    for (nr, node) in fleet.report.nodes.iter_mut().enumerate() {
        node.state = State::Fail;
        node.undecided = true;
        node.verdicts = metrics
            .iter()
            .map(|metric| {
                let of =
                    muster_playbook::report::MetricReport { metric: format!("cpu-stream/{metric}"), ..(*of).clone() };
                let (similarity, value) = (Some(0.1), Some(1e9 + nr as f64));
                muster_playbook::report::VerdictReport { of: Arc::new(of), state: State::Fail, similarity, value }
            })
            .collect();
        node.reasons = (0..20)
            .map(|at| format!("{}: reason number {at} of node {nr}, as long as sentences of findings are: 2.11 TB/s, 31 % below 63 peers (median 3.05 TB/s)", node.node))
            .collect();
        let finding = |reason: &String| FindingReport {
            component: "gpu:3".to_owned(),
            source: "metric".to_owned(),
            of: vec![format!("cpu-stream/{}", metrics[nr % 40])],
            state: State::Unknown,
            change: Some(-0.31),
            value: Some(2.11e12),
            peer_median: Some(3.05e12),
            unit: Some(Unit::BytesPerSec),
            scale: Some(0.01),
            peers: Some(63),
            group: "profile=quick,cpu=EPYC 9654".to_owned(),
            criterion: None,
            since: Some("2026-11-21T14:30:08Z".to_owned()),
            sentence: reason.clone(),
            next: "Run cbd on it, then check HBM temperature.".to_owned(),
        };
        node.findings = node.reasons.iter().map(finding).collect();
        let check = |at: usize| CheckReport {
            id: format!("check-{at}"),
            severity: Severity::Critical,
            state: State::Unknown,
            said: format!("no answer of node {nr} to question {at}"),
            next: "ask again".to_owned(),
        };
        node.checks = (0..20).map(check).collect();
        fleet.report.dropped.push(Dropped {
            node: node.node.clone(),
            step: "look".to_owned(),
            reason: format!("{}: gone {nr}", node.node),
        });
    }
    fleet
}

/// Pairs of every node with every other, none of them like its neighbour.
fn with_pairs(mut fleet: Fleet) -> Fleet {
    let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
    let count = fleet.run.nodes.len();
    for src in 0..count {
        for dst in (0..count).filter(|dst| *dst != src) {
            let level = 1e9 * (1.0 + 0.05 * ((src * 31 + dst * 17) % 23) as f64);
            matrix.push_named(&fleet.run.nodes[src], &fleet.run.nodes[dst], &[level], None);
        }
    }
    let mut network = PairsReport::new(Source::Flat);
    let left = |node: &String| LeftOut { node: node.clone(), reason: format!("{node} does not answer") };
    network.run = Some(PairsRun {
        id: "r".to_owned(),
        rounds: 9,
        visits: 9,
        failed: 0,
        again: 0,
        left_out: fleet.run.nodes.iter().take(50).map(left).collect(),
    });
    fleet.report.network = Some(network);
    let leaf = |(at, node): (usize, &String)| format!("{node},leaf{}\n", at / 4);
    let leaves: String = fleet.run.nodes.iter().enumerate().map(leaf).collect();
    let topology = from_csv(&leaves).unwrap();
    fleet.pairs = Some(Pairs {
        origin: "run r".to_owned(),
        matrices: [("throughput".to_owned(), matrix)].into(),
        units: [("throughput".to_owned(), Unit::BytesPerSec)].into(),
        topology,
        localised: std::collections::BTreeMap::new(),
        params: muster_analysis::Params::default(),
    });
    fleet
}

#[test]
fn a_page_whose_nodes_pass_is_not_all_well_where_pairs_of_them_are_not() {
    let mut fleet = Fleet::of(&names(8), &[], &["triad".to_owned()]);
    let nodes = fleet.page(run_page).state;
    fleet.report.network = Some(PairsReport::new(Source::Flat));
    assert_eq!(fleet.page(run_page).state, nodes, "nothing stands out");
    let mut network = PairsReport::new(Source::Flat);
    let left_out = vec![LeftOut { node: "rack7-0001".to_owned(), reason: "it does not answer".to_owned() }];
    network.run = Some(PairsRun { id: "r".to_owned(), rounds: 9, visits: 9, failed: 0, again: 0, left_out });
    fleet.report.network = Some(network);
    let page = fleet.page(run_page);
    assert_eq!(page.state, nodes.max(Some(muster_page::State::Unknown)));
    assert!(page.notes[0].contains("the network between them was not measured whole"), "{:?}", page.notes);
}

#[test]
fn a_page_of_a_thousand_nodes_stays_under_two_megabytes_whatever_is_wrong_with_them() {
    let sound = Fleet::of(&names(1_000), &[5, 77, 400, 401, 999], &["triad".to_owned()]).html(&PLAIN, run_page);
    assert!(sound.len() < 200_000, "{} bytes", sound.len());
    let bad = with_pairs(worst(1_000));
    let html = bad.html(&PLAIN, run_page);
    assert!(html.contains("further nodes did not pass") && html.contains("rows are left out"), "the caps are said");
    assert!(html.contains("Each square is the worst of") && html.contains("999000 pairs measured"), "{}", html.len());
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    let node = bad.html(&PLAIN, |ran| node_page(ran, "rack7-0500").unwrap());
    assert!(node.len() < 2_000_000, "{} bytes", node.len());
    let metric = bad.html(&PLAIN, |ran| metric_page(ran, "cpu-stream/metric-with-a-long-name-7").unwrap());
    assert!(metric.len() < 2_000_000, "{} bytes", metric.len());
}

#[test]
fn the_pair_that_loses_most_is_said_to_be_far_above_the_usual() {
    let mut fleet = with_pairs(small());
    let nodes = fleet.run.nodes.clone();
    let mut losses = Matrix::new("retransmits", Direction::LowerIsBetter);
    for (src, dst) in (0..nodes.len()).flat_map(|a| (0..nodes.len()).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let lost = if (src, dst) == (1, 6) { 0.1 } else { 0.002 };
        losses.push_named(&nodes[src], &nodes[dst], &[lost], None);
    }
    fleet.pairs.as_mut().unwrap().matrices = [("retransmits".to_owned(), losses)].into();
    let html = fleet.html(&PLAIN, run_page);
    let worst = format!("The worst is {} to {}: 50.0x the usual.", nodes[1], nodes[6]);
    for part in [worst.as_str(), "1 above 133 % of what is usual", "above 4x, or failed"] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn pairs_are_a_map_with_the_worst_in_words() {
    let fleet = with_pairs(small());
    let html = fleet.html(&PLAIN, run_page);
    assert!(html.contains("throughput between 8 endpoints") && html.contains("The worst is rack7-000"), "{html}");
    assert!(html.contains("Senders down, receivers across"), "{html}");
}
