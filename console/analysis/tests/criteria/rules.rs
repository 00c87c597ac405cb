//! SuperBench's diagnosis on small fleets whose answers its own unit tests state (tests/analyzer, 0.12).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_analysis::rules::{Baseline, Diagnosis, RuleFile, diagnose};
use muster_analysis::{State, Table};

/// A node and what was measured on it.
type Row<'a> = (&'a str, &'a [(&'a str, Option<f64>)]);

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new();
    for (node, cells) in rows {
        table.row(*node);
        for (metric, value) in *cells {
            let column = table.column_of(metric);
            table.put(column, value.unwrap_or(f64::NAN));
        }
    }
    table
}

fn run(rules: &str, baseline: &str, table: &Table) -> Vec<Diagnosis> {
    diagnose(table, &RuleFile::parse(rules).unwrap(), &Baseline::parse(baseline).unwrap())
}

fn text(diagnosis: &Diagnosis) -> String {
    diagnosis.details.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

const VARIANCE: &str = "
superbench:
  rules:
    slow:
      function: variance
      criteria: lambda x:x<-0.5
      categories: CNN
      metrics:
        - mem-bw/D2H_Mem_BW
        - kernel-launch/wall_overhead
";

#[test]
fn a_variance_beyond_the_criterion_fails_in_superbench_s_words() {
    let fleet = table(&[
        ("sb-04", &[("kernel-launch/wall_overhead", Some(0.00596)), ("mem-bw/D2H_Mem_BW", Some(25.0))]),
        ("sb-05", &[("kernel-launch/wall_overhead", Some(0.005)), ("mem-bw/D2H_Mem_BW", Some(10.0))]),
    ]);
    let found = run(VARIANCE, r#"{"kernel-launch/wall_overhead": 0.01026, "mem-bw/D2H_Mem_BW": 24.3}"#, &fleet);
    assert_eq!([found[0].state, found[1].state], [State::Pass, State::Fail]);
    assert_eq!(
        text(&found[1]),
        "kernel-launch/wall_overhead(B/L: 0.0103 VAL: 0.0050 VAR: -51.27% Rule:lambda x:x<-0.5),\
         mem-bw/D2H_Mem_BW(B/L: 24.3000 VAL: 10.0000 VAR: -58.85% Rule:lambda x:x<-0.5)"
    );
    assert!(found[1].categories.contains("CNN") && found[0].details.is_empty());
    let summary: Vec<Option<f64>> = found[1].summary.iter().map(|s| s.1).collect();
    assert!((summary[1].unwrap() - (10.0 - 24.3) / 24.3).abs() < 1e-12);
}

#[test]
fn a_failure_check_wants_every_metric_to_be_there() {
    let rules = "
superbench:
  rules:
    rule1:
      categories: FailedTest
      criteria: 'lambda x:x!=0'
      function: failure_check
      metrics:
        - gemm-flops/return_code:0
        - gemm-flops/return_code:1
        - gemm-flops/return_code:2
        - resnet_models/pytorch-resnet152/return_code
";
    let cells = |a, b, c| {
        [
            ("gemm-flops/return_code:0", a),
            ("gemm-flops/return_code:1", b),
            ("resnet_models/pytorch-resnet152/return_code", c),
        ]
    };
    let fleet =
        table(&[("sb-04", &cells(Some(0.0), Some(0.0), Some(0.0))), ("sb-05", &cells(Some(-1.0), None, Some(-1.0)))]);
    let found = run(rules, "{}", &fleet);
    assert_eq!(text(&found[0]), "gemm-flops/return_code:2_miss");
    assert_eq!(
        text(&found[1]),
        "gemm-flops/return_code:0(VAL: -1.0000 Rule:lambda x:x!=0),gemm-flops/return_code:1_miss,\
         gemm-flops/return_code:2_miss,resnet_models/pytorch-resnet152/return_code(VAL: -1.0000 Rule:lambda x:x!=0)"
    );
    assert!(found.iter().all(|d| d.state == State::Fail && d.categories.contains("FailedTest")));
}

#[test]
fn superbench_s_defects_are_not_repeated() {
    // A missing metric is accepted there; here it is undecided, and the others go on without their baseline too.
    let fleet = table(&[
        ("a", &[("mem-bw/D2H_Mem_BW", Some(25.0)), ("kernel-launch/wall_overhead", Some(0.01))]),
        ("b", &[("kernel-launch/wall_overhead", Some(0.01))]),
        ("a", &[("mem-bw/D2H_Mem_BW", Some(5.0)), ("kernel-launch/wall_overhead", Some(0.01))]),
    ]);
    let whole = r#"{"kernel-launch/wall_overhead": 0.01, "mem-bw/D2H_Mem_BW": 24.3}"#;
    let states = |baseline: &str| run(VARIANCE, baseline, &fleet).iter().map(|d| d.state).collect::<Vec<_>>();
    assert_eq!(states(whole), [State::Pass, State::Unknown, State::Fail]);
    let zero = r#"{"kernel-launch/wall_overhead": 0, "mem-bw/D2H_Mem_BW": 24.3}"#;
    assert_eq!(states(zero), [State::Unknown, State::Unknown, State::Fail]);
    let found = &run(VARIANCE, zero, &fleet)[0];
    assert!(found.undecided[0].contains("kernel-launch/wall_overhead has no baseline"), "{found:?}");
}

#[test]
fn a_refused_rule_lets_nobody_pass_and_a_stored_one_accuses_nobody() {
    let rules = "
superbench:
  rules:
    stored:
      function: value
      criteria: lambda x:x>0
      categories: KernelLaunch
      store: True
      metrics: kernel-launch/event_overhead:\\d+
    collected:
      categories: Mem
      store: True
      metrics:
        - mem-bw/H2D_Mem_BW:\\d+
    combined:
      function: multi_rules
      criteria: 'lambda label: bool(min(label[\"collected\"].values())<0.95)'
      categories: Mem
";
    let file = RuleFile::parse(rules).unwrap();
    assert_eq!((file.rules.len(), file.refused.len(), file.refused[0].line), (2, 1, 16));
    let fleet = table(&[("a", &[("kernel-launch/event_overhead:0", Some(1.0)), ("mem-bw/H2D_Mem_BW:0", Some(20.0))])]);
    let found = diagnose(&fleet, &file, &Baseline::default());
    assert_eq!((found[0].state, found[0].details.len()), (State::Unknown, 1));
    assert!(found[0].undecided[0].contains("line 16"), "{:?}", found[0].undecided);
}
