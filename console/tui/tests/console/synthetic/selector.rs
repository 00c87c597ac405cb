//! What the Selector says of a made-up fleet before a job of a day.

use std::sync::Arc;

use muster_analysis::risk::Category;
use muster_analysis::selector::{Outcome, Pick, Selection, Why};
use muster_tui::snapshot::{Ask, CoverageTable, Model, RiskRow, Selector, SurvivalStep};

use super::Rng;

/// An answer about these nodes.
pub(crate) fn selector(names: &[String]) -> Selector {
    let mut rng = Rng(0x5e1);
    let mut nodes: Vec<RiskRow> = names.iter().enumerate().map(|(i, name)| row(i, name, &mut rng)).collect();
    nodes.sort_by(|a, b| (b.down, b.risk).partial_cmp(&(a.down, a.risk)).expect("risks are numbers"));
    nodes.iter_mut().take(3).for_each(|n| n.validate = !n.down);
    let selection = selection();
    Selector {
        ask: Ask { job_hours: 24.0, budget_minutes: Some(30.0), p0: Some(0.2) },
        model: Model {
            name: "cox_time".to_owned(),
            reason: "cox_time: best held-out Brier score, 0.0712".to_owned(),
            incidents: 214,
            log_hours: 4_320.0,
        },
        nodes: nodes.into(),
        joint: selection.risk_before,
        p0: 0.2,
        fleet: (0..24)
            .map(|i| SurvivalStep {
                hours: f64::from(i) * 30.0,
                survival: 0.97_f64.powi(i),
                at_risk: 214 - 8 * i as usize,
            })
            .collect(),
        selection: Arc::new(selection),
        coverage: Arc::new(coverage()),
    }
}

fn row(i: usize, name: &str, rng: &mut Rng) -> RiskRow {
    let rate = 0.0004 * (1.0 + 9.0 * rng.next().powi(6));
    let incidents = (rate * 4_000.0) as usize;
    RiskRow {
        name: name.to_owned(),
        risk: 1.0 - (-24.0 * rate).exp(),
        validate: false,
        down: i % 97 == 13,
        incidents,
        quiet_hours: (incidents > 0).then(|| 900.0 * rng.next()),
        curve: (1..=24).map(|step| (f64::from(step) * 30.0, (-f64::from(step) * 30.0 * rate).exp())).collect(),
        reasons: Arc::from([("incidents_30d".to_owned(), 0.041 * rng.next()), ("hours_since_last".to_owned(), -0.012)]),
    }
}

fn selection() -> Selection {
    let pick = |benchmark: &str, minutes: f64, before: f64, after: f64, why: Why| Pick {
        benchmark: benchmark.to_owned(),
        minutes,
        risk_after: after,
        gain_per_minute: (before - after) / minutes,
        why,
        reason: match why {
            Why::Exploration => "has not run for 21 days".to_owned(),
            _ => format!("lowers the risk from {before:.2} to {after:.2} in {minutes:.0} min"),
        },
    };
    Selection {
        outcome: Outcome::Reached,
        picks: vec![
            pick("net-pair", 3.0, 0.41, 0.29, Why::Coverage),
            pick("cpu-gemm", 4.0, 0.29, 0.21, Why::Coverage),
            pick("disk", 5.0, 0.21, 0.18, Why::Exploration),
        ],
        minutes: 12.0,
        risk_before: 0.41,
        risk_after: 0.18,
        coverage: 0.56,
        gap: Some(0.0),
        reason: "run 3 of 7 benchmarks, 12 min; the risk falls from 0.41 to 0.18".to_owned(),
    }
}

fn coverage() -> CoverageTable {
    let benchmarks = ["cpu-gemm", "cpu-stream", "cpu-latency", "cpu-burn", "disk", "net-loopback", "net-pair"];
    let categories = [Category::Network, Category::CpuMemory, Category::Disk, Category::Unknown];
    let found = |b: usize, c: usize| match (b, c) {
        (6, 0) => Some(0.81),
        (0, 1) => Some(0.64),
        (1..=3, 1) => Some(0.22 * b as f64 / 2.0),
        (4, 2) => Some(0.92),
        (_, 3) => None,
        _ => Some(0.0),
    };
    CoverageTable {
        benchmarks: benchmarks.map(str::to_owned).into(),
        categories: Arc::from(categories),
        defects: Arc::from([31, 22, 12, 0]),
        found: (0..benchmarks.len() * 4).map(|i| found(i / 4, i % 4)).collect(),
    }
}
