//! Turns findings into the rows and curves that a screen can draw.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use muster_analysis::checks::CheckResult;
use muster_analysis::{Learned, Sample, State, cdf_points};
use muster_playbook::report::{NodeFindings, NodeReport};
use muster_store::Record;
use muster_tui::judgement::severity;
use muster_tui::snapshot::{
    Band, CheckRow, Counts, Curve, FactRow, MetricRow, NodeCurve, NodeRow, Score, VerdictRow, Worst,
};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{Datum, Reading, clean};

use super::Assessment;

/// Points of a curve: more than a wide terminal's braille columns.
pub const POINTS: usize = 240;
/// Defects that get a line of their own.
const DEFECTS: usize = 6;

/// One row per metric, in the order of `assessment`.
pub fn metrics(
    assessment: &Assessment,
    records: &[Arc<Record>],
    places: &HashMap<String, usize>,
) -> Arc<[Arc<MetricRow>]> {
    assessment.learned.iter().map(|learned| Arc::new(metric(learned, assessment, records, places))).collect()
}

fn metric(
    learned: &Learned,
    assessment: &Assessment,
    records: &[Arc<Record>],
    places: &HashMap<String, usize>,
) -> MetricRow {
    let criterion = &learned.criterion;
    // The node's final verdicts, which may differ from the metric's own after weighing all evidence.
    let own: HashSet<&str> = learned.verdicts.iter().map(|v| v.node.as_str()).collect();
    let findings = assessment.nodes.iter().filter(|f| own.contains(f.node.as_str()));
    let verdicts = findings.flat_map(|f| &f.verdicts).filter(|v| v.metric == criterion.metric);
    let mut scores: Vec<(Score, &str)> = verdicts
        .filter_map(|v| {
            let node = *places.get(&v.node)?;
            Some((Score { node, similarity: v.similarity, state: v.state }, v.node.as_str()))
        })
        .collect();
    scores.sort_by(|a, b| order(a.0.similarity).total_cmp(&order(b.0.similarity)));
    let samples = samples(learned, records);
    let curve_of = |node: &str| samples.get(node).map(curve);
    let defects = scores
        .iter()
        .filter(|(score, _)| score.state == State::Fail)
        .take(DEFECTS)
        .filter_map(|(_, node)| Some(NodeCurve { node: (*node).to_owned(), curve: curve_of(node)? }))
        .collect();
    let healthy: Vec<&Sample> = scores
        .iter()
        .filter(|(score, _)| score.state != State::Fail)
        .filter_map(|(_, node)| samples.get(*node))
        .collect();
    MetricRow {
        id: criterion.metric.clone(),
        unit: criterion.unit,
        direction: criterion.direction,
        status: Some(criterion.status),
        version: criterion.id.clone(),
        n: criterion.n,
        healthy: criterion.healthy,
        repeatability: criterion.repeatability,
        alpha: criterion.alpha,
        tau: criterion.tau,
        median: criterion.sample.as_ref().map(Sample::median),
        criterion: criterion.sample.as_ref().map_or_else(|| Arc::from([]), curve),
        peers: (healthy.len() >= 2).then(|| band(&healthy)),
        defects,
        counts: Counts::of(scores.iter().map(|(score, _)| score.state)),
        scores: scores.into_iter().map(|(score, _)| score).collect(),
    }
}

fn order(similarity: Option<f64>) -> f64 {
    similarity.unwrap_or(f64::INFINITY)
}

fn samples<'a>(learned: &Learned, records: &'a [Arc<Record>]) -> HashMap<&'a str, Sample> {
    let metric = &learned.criterion.metric;
    let mut samples = HashMap::new();
    for record in records.iter().filter(|r| r.benchmark() == metric.benchmark) {
        if let Ok(sample) = Sample::new(&record.values_of(metric)) {
            samples.insert(record.node.as_str(), sample);
        }
    }
    samples
}

fn curve(sample: &Sample) -> Curve {
    cdf_points(sample, POINTS).into()
}

/// At levels between 0 and 1 the leftmost and the rightmost of the peers.
fn band(samples: &[&Sample]) -> Band {
    let levels = 64;
    let edge = |pick: fn(f64, f64) -> f64, start: f64| -> Curve {
        (1..=levels)
            .map(|level| {
                let share = f64::from(level) / f64::from(levels);
                let at = |s: &&Sample| {
                    let rank = (share * s.len() as f64).ceil() as usize;
                    s.values()[rank.clamp(1, s.len()) - 1]
                };
                (samples.iter().map(at).fold(start, pick), share)
            })
            .collect()
    };
    Band { lower: edge(f64::max, f64::NEG_INFINITY), upper: edge(f64::min, f64::INFINITY) }
}

/// Puts what was found of a node into its row.
pub fn judged(row: &mut NodeRow, report: &NodeReport, finding: &NodeFindings, learned: &[Learned]) {
    row.state = report.state;
    row.reasons = report.reasons.iter().cloned().collect();
    let own = learned.iter().enumerate().filter(|(_, l)| l.verdicts.iter().any(|v| v.node == finding.node));
    let place: HashMap<_, _> = own.map(|(i, l)| (&l.criterion.metric, (i, l))).collect();
    let verdicts: Vec<VerdictRow> = finding
        .verdicts
        .iter()
        .filter_map(|v| {
            let (metric, learned) = place.get(&v.metric)?;
            let normal = learned.criterion.sample.as_ref().map(Sample::median).filter(|m| *m != 0.0);
            let deviation = v.value.zip(normal).map(|(value, normal)| value / normal - 1.0);
            let (state, similarity, value) = (v.state, v.similarity, v.value);
            Some(VerdictRow { metric: *metric, state, similarity, value, deviation, reason: v.reason.clone() })
        })
        .collect();
    row.worst = worst(&verdicts).map(|v| Worst {
        metric: v.metric,
        similarity: v.similarity,
        deviation: v.deviation,
        sentence: v.reason.clone(),
    });
    row.verdicts = verdicts.into();
    let check = |result: &CheckResult| CheckRow {
        id: result.check.id,
        area: result.check.area,
        state: result.found.state,
        said: clean(&result.found.said, TEXT_BYTES),
        next: result.check.next,
    };
    let mut checks: Vec<CheckRow> = finding.checks.iter().map(check).collect();
    checks.sort_by_key(|row| severity(row.state));
    row.checks = checks.into();
}

/// The verdict furthest from its peers, failed ones first. What was not decided counts for nothing, however unlike the
/// criterion it is.
fn worst(verdicts: &[VerdictRow]) -> Option<&VerdictRow> {
    let decided = |v: &&VerdictRow| matches!(v.state, State::Fail | State::Warn | State::Pass);
    let similar = verdicts.iter().filter(decided).filter_map(|v| Some((v, v.similarity?)));
    let worst = similar.min_by(|a, b| severity(a.0.state).cmp(&severity(b.0.state)).then(a.1.total_cmp(&b.1)));
    worst.map(|(verdict, _)| verdict)
}

/// What a collector saw, as rows.
pub fn facts(record: &Record) -> Vec<FactRow> {
    let Some(collector) = record.work.strip_prefix("collect/") else { return Vec::new() };
    let row = |fact: &muster_wire::Fact| {
        let (value, known) = match &fact.reading {
            Reading::Value(Datum::Number(n)) => (fact.unit.map_or_else(|| n.to_string(), |unit| unit.show(*n)), true),
            Reading::Value(Datum::Text(text)) => (text.clone(), true),
            Reading::Value(Datum::Flag(flag)) => (if *flag { "yes" } else { "no" }.to_owned(), true),
            Reading::Absent => ("–".to_owned(), false),
            Reading::Denied => ("denied".to_owned(), false),
            Reading::Failed(why) => (why.clone(), false),
        };
        FactRow { collector: collector.to_owned(), key: fact.key.clone(), value, known }
    };
    record.facts.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_node_is_a_verdict_that_counted() {
        let verdict = |metric, state, similarity| VerdictRow {
            metric,
            state,
            similarity,
            value: None,
            deviation: None,
            reason: String::new(),
        };
        let mut rows = vec![verdict(0, State::Unknown, Some(0.0)), verdict(1, State::NotRun, None)];
        assert!(worst(&rows).is_none());
        rows.extend([verdict(2, State::Pass, Some(0.97)), verdict(3, State::Pass, Some(0.99))]);
        assert_eq!(worst(&rows).unwrap().metric, 2);
        rows.extend([verdict(4, State::Warn, Some(0.94)), verdict(5, State::Fail, Some(0.94))]);
        assert_eq!(worst(&rows).unwrap().metric, 5);
    }
}
