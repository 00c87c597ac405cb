//! The detector on jobs of an independent simulator, with seeds that nothing was tuned on: who is named, who moved first.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fmt::Write;

use super::sim::{Fault, Kind, METRICS, Made, START, made};
use muster_watch::{Alert, AlertKind, Settings, Watch};

fn watched(made: &Made, settings: Settings) -> Watch {
    let mut watch = Watch::new(settings);
    let nodes: Vec<_> = (0..made.nodes).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    let metrics: Vec<_> = METRICS.iter().map(|(name, ..)| watch.metric(name).unwrap()).collect();
    made.ticks.iter().for_each(|&(time, node, metric, value)| watch.push(time, nodes[node], metrics[metric], value));
    watch.finish();
    watch
}

#[derive(Default)]
struct Score {
    right: usize,
    wrong: usize,
    faults: usize,
    found: usize,
    delays: Vec<f64>,
    firsts: usize,
    false_firsts: usize,
    machine_days: f64,
}

impl Score {
    fn add(&mut self, made: &Made, watch: &Watch) {
        let of = |fault: &Fault, node: &str, at: f64| {
            node == format!("n{}", fault.node) && (fault.onset_s..=fault.end_s + 60.0).contains(&(at - START))
        };
        for alert in watch.alerts().iter().filter(|alert| alert.group.is_none()) {
            let right = made.faults.iter().any(|fault| of(fault, &alert.node, alert.alerted_s));
            let first = alert.kind == AlertKind::FirstMover;
            let drags = made.kind == Kind::Drag && right;
            self.right += usize::from(right);
            self.wrong += usize::from(!right);
            self.firsts += usize::from(first && drags);
            self.false_firsts += usize::from(first && !drags);
            if !right || (first && !drags) {
                println!("  {:?} {} nodes: {:?} {}", made.kind, made.nodes, made.faults, alert.sentence);
            }
        }
        for fault in &made.faults {
            let named = watch.alerts().iter().find(|alert| of(fault, &alert.node, alert.alerted_s));
            self.faults += 1;
            self.found += usize::from(named.is_some());
            self.delays.extend(named.map(|alert| alert.alerted_s - START - fault.onset_s));
        }
        self.machine_days += made.nodes as f64 * made.seconds as f64 / 86_400.0;
    }

    fn told(&self) -> String {
        let delay = self.delays.iter().sum::<f64>() / self.delays.len().max(1) as f64;
        format!(
            "{} right, {} wrong, {} of {} faults, {delay:.0} s, {} moved first, {} wrongly; {:.1} machine-days",
            self.right, self.wrong, self.found, self.faults, self.firsts, self.false_firsts, self.machine_days
        )
    }
}

/// Seeds of each kind: a few, or those before the number that `MUSTER_SEEDS` says.
fn seeds() -> std::ops::Range<u64> {
    let told = |name: &str| std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok());
    told("MUSTER_FIRST_SEED").unwrap_or(0)..told("MUSTER_SEEDS").unwrap_or(6)
}

#[test]
fn faults_of_an_independent_simulator_are_named_and_healthy_machines_are_not() {
    let mut all = Score::default();
    for kind in Kind::ALL {
        let mut score = Score::default();
        for seed in seeds() {
            let made = made(kind, seed);
            let watch = watched(&made, Settings::default());
            score.add(&made, &watch);
            all.add(&made, &watch);
            if std::env::var_os("MUSTER_SEEDS").is_some() {
                println!("    {:?}", watch.calibration());
            }
        }
        println!("{kind:?}: {}", score.told());
    }
    println!("all: {}", all.told());
    let precision = all.right as f64 / (all.right + all.wrong).max(1) as f64;
    let recall = all.found as f64 / all.faults as f64;
    assert!(precision >= 0.95, "precision {precision:.3}");
    assert!(recall >= 0.9, "recall {recall:.3}");
    assert_eq!(all.false_firsts, 0, "an order that is not there");
    assert!(all.firsts > 0, "an order that is there is told at least sometimes");
}

/// All that a person can read of an alert, times from the `start` of the recording.
pub(super) fn words(alert: &Alert, start: f64) -> String {
    let also: Vec<String> = alert.also.iter().map(|also| format!("{} {:.1}", also.metric, also.score)).collect();
    format!(
        "{:?} since {:.0} told {:.0} until {:.0?}, {:.1} deviations, also {also:?}, {:?} {:.3?} of {} beside {:.3?}: {}",
        alert.kind,
        alert.since_s - start,
        alert.alerted_s - start,
        alert.until_s.map(|until| until - start),
        alert.score,
        alert.group,
        alert.value,
        alert.unit,
        alert.peer_median,
        alert.sentence
    )
}

/// With `MUSTER_BLESS=1` it is written instead; read the difference before you commit it.
#[test]
fn of_each_kind_of_job_the_same_is_said_word_for_word() {
    let mut text = String::new();
    for kind in Kind::ALL {
        let made = made(kind, 1);
        let watch = watched(&made, Settings::default());
        writeln!(text, "{kind:?}, {} nodes, {} s", made.nodes, made.seconds).unwrap();
        let lines = watch.alerts().iter().map(|alert| words(alert, START)).chain(watch.notes());
        lines.for_each(|line| writeln!(text, "    {line}").unwrap());
    }
    muster_golden::hold(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/detector/words.txt")), &text);
}
