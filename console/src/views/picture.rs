//! Turns findings into the rows and curves that a screen can draw.

mod verdicts;

pub use verdicts::verdicts_of;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use muster_analysis::checks::CheckResult;
use muster_analysis::findings::{Finding, Source};
use muster_analysis::{NodeVerdict, Sample, State, cdf_points};
use muster_playbook::report::Known;
use muster_run::Record;
use muster_tui::judgement::severity;
use muster_tui::snapshot::{
    Band, CheckRow, Counts, Curve, FactRow, GpuRow, MetricRow, Metrics, NodeCurve, NodeRow, Score, Worst,
};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{Datum, MetricId, Reading, clean};

use self::verdicts::Sources;
use super::{Earlier, gpus};
use crate::judge::{ByMetric, Judged, Told, is_result, known_of};

/// Points of a curve: more than a wide terminal's braille columns.
pub const POINTS: usize = 240;
/// Defects that get a line of their own.
const DEFECTS: usize = 6;

/// What the screen shows of the fleet.
#[derive(Debug, Default)]
pub struct Picture {
    /// Every metric that some node has.
    pub metrics: Metrics,
    /// One per node; `None` for a node that is in no run.
    pub nodes: Vec<Option<Opinion>>,
}

/// The state of one node and the reasons for it.
#[derive(Debug)]
pub struct Opinion {
    state: State,
    reasons: Vec<String>,
    worst: Option<Worst>,
    checks: Vec<CheckRow>,
    facts: Vec<FactRow>,
    gpus: Arc<[GpuRow]>,
    seen_ms: Option<u64>,
    result_ms: Option<u64>,
}

impl Opinion {
    /// The state of the node.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Writes it into the row of the node. Verdicts are made only for the node on the screen, by [`verdicts_of`].
    pub fn apply(self, row: &mut NodeRow) {
        (row.state, row.worst) = (self.state, self.worst);
        (row.reasons, row.checks) = (self.reasons.into(), self.checks.into());
        (row.facts, row.gpus) = (self.facts.into(), self.gpus);
        row.seen_ms = row.seen_ms.max(self.seen_ms);
        row.result_ms = row.result_ms.max(self.result_ms);
    }
}

/// The nodes called `names` as `runs`, newest first, leave them; `earlier` holds older results to compare with.
#[must_use]
pub fn picture(runs: &[Arc<Told>], names: &[String], earlier: &Earlier) -> Picture {
    let index: Vec<ByMetric<'_>> = runs.iter().map(|told| ByMetric::of(&told.assessment)).collect();
    let of_node: Vec<Option<(Vec<usize>, Known<'_>)>> = names.iter().map(|name| known_of(runs, name)).collect();
    let mut scores: HashMap<&MetricId, Vec<Place<'_>>> = HashMap::new();
    for (node, (places, known)) in of_node.iter().enumerate().filter_map(|(node, own)| Some((node, own.as_ref()?))) {
        let mut last: Option<((usize, &str), u64)> = None;
        for (verdict, place) in known.found.verdicts.iter().zip(&known.verdicts) {
            let (run, benchmark) = (places[*place], verdict.metric.benchmark.as_str());
            // Metrics of a benchmark stand together, and there are millions of them.
            let same = last.filter(|(of, _)| *of == (run, benchmark)).map(|(_, at_ms)| at_ms);
            let at_ms = same.unwrap_or_else(|| runs[run].measured_ms(&names[node], benchmark));
            last = Some(((run, benchmark), at_ms));
            scores.entry(&verdict.metric).or_default().push(Place { node, run, verdict, at_ms });
        }
    }
    let mut rows: Vec<Arc<MetricRow>> = Vec::new();
    for (at, own) in index.iter().enumerate() {
        for judged in &runs[at].assessment.judged {
            let of = scores.get(&judged.criterion.metric).map_or(&[][..], Vec::as_slice);
            if usual(of, runs.len()) == Some(at) {
                rows.push(Arc::new(metric((at, judged), own.apart(judged), of, (runs, &index, names))));
            }
        }
    }
    if runs.len() > 1 {
        rows.sort_by(|a, b| a.id.cmp(&b.id));
    }
    let metrics = Metrics::new(rows);
    let sources = Sources::new(runs, &index, (&metrics, earlier));
    let nodes = of_node.iter().zip(names).map(|(own, name)| {
        let (places, known) = own.as_ref()?;
        Some(opinion(&sources, (places, known), name))
    });
    let nodes = nodes.collect();
    Picture { metrics, nodes }
}

/// The run that gave most nodes their verdict, the newest of several. Its criterion stands for the fleet; that of a run on a few
/// nodes would not.
fn usual(of: &[Place<'_>], runs: usize) -> Option<usize> {
    let count = |run: &usize| of.iter().filter(|place| place.run == *run).count();
    (0..runs).rev().max_by_key(count).filter(|run| count(run) > 0)
}

/// A verdict in force, with the places of its node and of its run.
struct Place<'a> {
    node: usize,
    run: usize,
    verdict: &'a NodeVerdict,
    at_ms: u64,
}

fn metric(
    (at, Judged { criterion, chart, .. }): (usize, &Judged),
    group: Option<&BTreeSet<Arc<str>>>,
    of: &[Place<'_>],
    (runs, index, names): (&[Arc<Told>], &[ByMetric<'_>], &[String]),
) -> MetricRow {
    // A node of another run is shown beside all groups of this one: which it belongs to was not asked then.
    let own = |place: &&Place<'_>| place.run != at || group.is_none_or(|own| own.contains(names[place.node].as_str()));
    let mut own: Vec<&Place<'_>> = of.iter().filter(own).collect();
    own.sort_by(|a, b| order(a.verdict.similarity).total_cmp(&order(b.verdict.similarity)));
    // A benchmark that failed has no curve that belongs beside the others'.
    let compared = |place: &&&Place<'_>| place.verdict.state == State::Fail && place.verdict.similarity.is_some();
    let failed = own.iter().filter(compared).take(DEFECTS);
    let defect = |place: &&Place<'_>| {
        let node = &names[place.node];
        let judged = index[place.run].place(&criterion.metric, node)?;
        let sample = runs[place.run].assessment.judged[judged].chart.failed(node)?;
        Some(NodeCurve { node: node.clone(), curve: curve(sample) })
    };
    let defects = failed.filter_map(defect).collect();
    let score = |place: &&Place<'_>| Score::new(place.node, place.verdict.similarity, place.verdict.state, place.at_ms);
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
        peers: chart.band.as_ref().map(band),
        defects,
        counts: Counts::of(own.iter().map(|place| place.verdict.state)),
        scores: own.iter().map(score).collect(),
    }
}

fn order(similarity: Option<f64>) -> f64 {
    similarity.unwrap_or(f64::INFINITY)
}

fn curve(sample: &Sample) -> Curve {
    cdf_points(sample, POINTS).into()
}

/// Values at equal levels up to 1, as curves: the largest are the right edge.
fn band([least, most]: &[Vec<f64>; 2]) -> Band {
    let edge = |values: &[f64]| -> Curve {
        let levels = values.len() as f64;
        values.iter().zip(1..).map(|(value, level)| (*value, f64::from(level) / levels)).collect()
    };
    Band { lower: edge(most), upper: edge(least) }
}

fn opinion(sources: &Sources<'_>, (places, known): (&[usize], &Known<'_>), node: &str) -> Opinion {
    let (runs, found) = (sources.runs, &known.found);
    let (all, decided) = (found.all(), found.state());
    let check = |result: &CheckResult| CheckRow {
        id: result.check.id,
        area: result.check.area,
        state: result.found.state,
        said: clean(&result.found.said, TEXT_BYTES),
        next: result.check.next,
    };
    let mut checks: Vec<CheckRow> = found.checks.iter().map(check).collect();
    checks.sort_by_key(|row| severity(row.state));
    // Newest first; of each work the newest record that stands.
    let mut seen = HashSet::new();
    let newest: Vec<&Record> = places
        .iter()
        .flat_map(|at| runs[*at].records(node).iter().rev())
        .filter(|record| seen.insert(record.work.as_str()))
        .map(AsRef::as_ref)
        .collect();
    let worst = worst(&all, &found.verdicts).and_then(|nr| sources.verdict((places, known), nr)).map(|v| Worst {
        metric: v.metric.clone(),
        similarity: v.similarity,
        deviation: v.deviation,
        sentence: v.sentence(node),
    });
    Opinion {
        state: decided.state,
        reasons: found.reasons(&all, &decided),
        worst,
        checks,
        facts: newest.iter().rev().flat_map(|record| facts(record)).collect(),
        gpus: gpus::rows(newest.iter().rev().copied(), found),
        seen_ms: newest.iter().map(|record| record.at_ms).max(),
        result_ms: newest.iter().filter(|record| is_result(record)).map(|record| record.at_ms).max(),
    }
}

/// Index of the verdict that the first sentence of `findings` is about, so that a row shows the metric its sentence names; or else of
/// the one furthest from its peers, failed ones first. Of these, undecided verdicts are left out, however far they are from the
/// criterion.
fn worst(findings: &[Finding], verdicts: &[NodeVerdict]) -> Option<usize> {
    let said = findings.iter().find(|finding| !finding.sentence.is_empty());
    if let Some((state, metric)) = said.and_then(|finding| Some((finding.state, named(finding)?)))
        && let Some(nr) = verdicts.iter().position(|v| {
            // What ended without values is not said by a number.
            v.metric == *metric && (v.similarity.is_some() || state == State::Unknown)
        })
    {
        return Some(nr);
    }
    let decided = |v: &NodeVerdict| matches!(v.state, State::Fail | State::Warn | State::Pass);
    let all = verdicts.iter().enumerate().filter(|(_, v)| decided(v));
    let similar = all.filter_map(|(nr, v)| Some((nr, severity(v.state), v.similarity?)));
    similar.min_by(|a, b| a.1.cmp(&b.1).then(a.2.total_cmp(&b.2))).map(|(nr, ..)| nr)
}

/// The metric that the sentence of a finding names, of one that accuses or cannot decide.
fn named(finding: &Finding) -> Option<&MetricId> {
    let of_source = || match &finding.source {
        Source::Metric(id) => Some(id),
        // The worst of them.
        Source::Metrics(ids) => ids.first(),
        _ => None,
    };
    match finding.state {
        State::Fail | State::Warn => finding.effect.as_ref().map(|effect| &effect.metric),
        State::Unknown => finding.effect.as_ref().map(|effect| &effect.metric).or_else(of_source),
        State::NotRun | State::Pass | State::NotApplicable => None,
    }
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
    use muster_wire::Outcome;

    use super::*;
    use crate::judge::Judging;
    use muster_analysis::history::Shift;
    use muster_run::{Run, RunState};
    use muster_wire::{Component, Direction, Profile, Series, Unit};

    fn run(id: &str, nodes: &[&str], started_ms: u64) -> Run {
        Run {
            id: id.to_owned(),
            playbook: "cbd-light".to_owned(),
            profile: Profile::Smoke,
            started_ms,
            ended_ms: Some(started_ms + 9),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            plan: Vec::new(),
            state: RunState::Finished,
        }
    }

    /// What `node` gave in each of `metrics`: about `level` times the place of the metric in [`ALL`].
    fn record(run: &Run, node: &str, metrics: &[&str], level: f64) -> Vec<Arc<Record>> {
        let of = |metric: &&str| {
            let (benchmark, name) = metric.split_once('/').unwrap();
            let usual = usual_of(metric) * level;
            let series = Series {
                metric: MetricId::new(benchmark, name, "own"),
                unit: Unit::BytesPerSec,
                direction: Direction::HigherIsBetter,
                values: (0..32).map(|i| usual * (1.0 + 0.001 * f64::from(i % 7))).collect(),
                warmup: 0,
                started_ns: 0,
            };
            Arc::new(Record {
                run: run.id.clone(),
                node: node.to_owned(),
                work: benchmark.to_owned(),
                outcome: Outcome::Done,
                at_ms: run.started_ms,
                elapsed_ns: 1,
                series: vec![series],
                facts: Vec::new(),
            })
        };
        metrics.iter().map(of).collect()
    }

    const ALL: [&str; 4] = ["cpu-gemm/a", "cpu-stream/b", "disk/c", "net-loopback/d"];

    fn usual_of(metric: &str) -> f64 {
        1e3 * 10_f64.powi(ALL.iter().position(|of| *of == metric).unwrap() as i32)
    }

    fn told(run: Run, records: Vec<Arc<Record>>) -> Arc<Told> {
        Arc::new(Told::judge(run, &records, &Judging::default()))
    }

    #[test]
    fn every_value_is_under_its_own_metric_whichever_runs_it_came_from() {
        let names: Vec<String> = (1..=8).map(|n| format!("n{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let older = run("r1", &all, 1_000);
        let records = all.iter().flat_map(|node| record(&older, node, &[ALL[0], ALL[2], ALL[3]], 1.0)).collect();
        let older = told(older, records);
        // A few nodes, other metrics, one of them for the second time and at half its speed.
        let newer = run("r2", &all[..6], 2_000);
        let level = |node: &str| if node == "n3" { 0.5 } else { 1.0 };
        let records = all[..6].iter().flat_map(|node| record(&newer, node, &[ALL[1], ALL[2]], level(node))).collect();
        let newer = told(newer, records);

        let (runs, earlier) = ([newer, older], Earlier::default());
        let picture = picture(&runs, &names, &earlier);
        let shown: Vec<String> = picture.metrics.iter().map(|row| row.id.path()).collect();
        assert_eq!(shown, ALL);
        for name in &names {
            let verdicts = verdicts_of(&runs, (&picture.metrics, &earlier), name);
            let again = all[..6].contains(&name.as_str());
            assert_eq!(verdicts.len(), if again { 4 } else { 3 }, "{name}");
            for verdict in &verdicts {
                let row = picture.metrics.of(&verdict.metric).unwrap();
                assert_eq!(row.id, verdict.metric);
                let from = if again && [ALL[1], ALL[2]].contains(&row.id.path().as_str()) { "r2" } else { "r1" };
                assert_eq!((&*verdict.run, verdict.at_ms > 0), (from, true), "{name} {}", row.id);
                let factor = if from == "r2" { level(name) } else { 1.0 };
                let value = verdict.value.unwrap() / (usual_of(&row.id.path()) * factor);
                assert!((value - 1.0).abs() < 0.01, "{name} {}: {value}", row.id);
            }
        }
        let n3 = picture.nodes[2].as_ref().unwrap();
        assert_eq!(
            (n3.state, n3.worst.as_ref().unwrap().deviation.map(|d| (d * 10.0).round())),
            (State::Fail, Some(-5.0))
        );
        // The CDF of a metric is that of the run that most nodes have it from.
        let disk = picture.metrics.of(&MetricId::new("disk", "c", "own")).unwrap();
        assert_eq!((disk.n, disk.scores.len()), (6, 8));
    }

    #[test]
    fn each_row_knows_what_the_run_before_showed_whether_that_is_in_the_picture_or_earlier() {
        let names: Vec<String> = (1..=8).map(|n| format!("n{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let whole = |id: &str, at: u64, metrics: &[&str], slow: f64| {
            let run = run(id, &all, at);
            let level = |node: &str| if node == "n3" { slow } else { 1.0 };
            let records = all.iter().flat_map(|node| record(&run, node, metrics, level(node))).collect();
            told(run, records)
        };
        let (newest, middle) = (whole("r3", 3_000, &ALL[..2], 0.5), whole("r2", 2_000, &ALL[..1], 1.0));
        let oldest = whole("r1", 1_000, &ALL[..2], 1.0);
        let wanted = |told: &Told| ALL.map(|of| (of.split('/').next().unwrap(), told.run.nodes.clone()));
        let mut earlier = Earlier::default();
        for old in [&middle, &oldest] {
            let wanted = wanted(old);
            let nodes = wanted.iter().map(|(of, nodes)| (*of, nodes.iter().map(String::as_str).collect())).collect();
            earlier.add((&old.run, old.at_ms()), &old.assessment, &nodes);
        }
        let none = Earlier::default();
        let metrics = picture(std::slice::from_ref(&newest), &names, &none).metrics;
        let known = [(vec![newest.clone()], &earlier), (vec![newest.clone(), middle, oldest], &none)];
        for (runs, earlier) in known {
            for name in &names {
                for row in &verdicts_of(&runs, (&metrics, earlier), name) {
                    let before = row.before.as_ref().unwrap();
                    let (id, shift) = match (row.metric.path() == ALL[0], name == "n3") {
                        (true, true) => ("r2", Shift::Worse),
                        (true, false) => ("r2", Shift::Same),
                        (false, true) => ("r1", Shift::Worse),
                        (false, false) => ("r1", Shift::Same),
                    };
                    assert_eq!((before.from.id.as_str(), before.shift), (id, shift), "{name} {}", row.metric);
                    assert_eq!(before.state, State::Pass);
                    assert!((before.value.unwrap() / usual_of(&row.metric.path()) - 1.0).abs() < 0.01);
                }
            }
        }
        let alone = verdicts_of(&[newest], (&metrics, &none), "n1");
        assert!(alone.len() == 2 && alone.iter().all(|row| row.before.is_none()));
    }

    #[test]
    fn a_run_without_a_node_says_nothing_of_it() {
        let older = run("r1", &["n1", "n2"], 1_000);
        let records = record(&older, "n1", &ALL, 1.0);
        let names = ["n1".to_owned(), "n9".to_owned()];
        let picture = picture(&[told(older, records)], &names, &Earlier::default());
        assert!(picture.nodes[0].is_some() && picture.nodes[1].is_none());
    }

    #[test]
    fn the_worst_of_a_node_is_a_verdict_that_counted() {
        let verdict = |state, similarity| NodeVerdict {
            node: "n1".into(),
            metric: MetricId::new("disk", "a", "own"),
            state,
            similarity,
            value: None,
            reason: String::new(),
        };
        let mut all = vec![verdict(State::Unknown, Some(0.0)), verdict(State::NotRun, None)];
        assert_eq!(worst(&[], &all), None);
        all.extend([verdict(State::Pass, Some(0.97)), verdict(State::Pass, Some(0.99))]);
        assert_eq!(worst(&[], &all), Some(2));
        all.extend([verdict(State::Warn, Some(0.94)), verdict(State::Fail, Some(0.94))]);
        assert_eq!(worst(&[], &all), Some(5));
    }

    #[test]
    fn of_an_undecided_node_the_row_shows_the_metric_that_was_not_decided() {
        let verdict = |name: &str, state, similarity| NodeVerdict {
            node: "n1".into(),
            metric: MetricId::new("disk", name, "own"),
            state,
            similarity,
            value: None,
            reason: String::new(),
        };
        let all = [verdict("a", State::Pass, Some(0.97)), verdict("b", State::Unknown, Some(0.3))];
        let finding = |source, state, said: &str| Finding::new("n1", Component::Node, source, state, said.to_owned());
        let of = |name: &str| Source::Metrics(vec![MetricId::new("disk", name, "own")]);
        let open = finding(of("b"), State::Unknown, "n1: disk/b not decided");
        assert_eq!(worst(std::slice::from_ref(&open), &all), Some(1));
        let silent = finding(of("a"), State::Unknown, "");
        assert_eq!(worst(&[silent, open], &all), Some(1), "what says nothing names nothing");
        let lost = finding(Source::Link, State::Unknown, "n1: no answer");
        assert_eq!(worst(&[lost], &all), Some(0));
        let gone = finding(of("c"), State::Unknown, "n1: disk/c not decided");
        assert_eq!(worst(&[gone], &all), Some(0));
    }

    #[test]
    fn a_row_says_the_number_of_its_sentence() {
        let run = run("r1", &["n1", "n2", "n3", "n4", "n5", "n6"], 1_000);
        let records = run.nodes.iter().flat_map(|node| record(&run, node, &ALL, if node == "n3" { 0.5 } else { 1.0 }));
        let (names, runs) = (run.nodes.clone(), [told(run.clone(), records.collect())]);
        let earlier = Earlier::default();
        let picture = picture(&runs, &names, &earlier);
        let worst = picture.nodes[2].as_ref().unwrap().worst.as_ref().unwrap();
        let own = runs[0].of("n3").unwrap();
        let mut effects = own.findings.findings.iter().filter_map(|finding| finding.effect.as_ref());
        let said = effects.find(|effect| effect.metric == worst.metric).unwrap();
        assert_eq!(worst.deviation, Some(said.change()));
        let rows = verdicts_of(&runs, (&picture.metrics, &earlier), "n3");
        let row = rows.iter().find(|row| row.metric == said.metric).unwrap();
        assert_eq!((row.value, row.deviation), (Some(said.value), Some(said.change())));
        let others = verdicts_of(&runs, (&picture.metrics, &earlier), "n1");
        assert!(others.iter().all(|row| row.deviation.unwrap().abs() < 0.01));
    }

    #[test]
    fn the_worst_of_a_node_is_the_metric_that_its_first_sentence_names() {
        let run = run("r1", &["n1", "n2", "n3", "n4", "n5", "n6"], 1_000);
        let records = run.nodes.iter().flat_map(|node| record(&run, node, &ALL, if node == "n3" { 0.5 } else { 1.0 }));
        let names = run.nodes.clone();
        let picture = picture(&[told(run.clone(), records.collect())], &names, &Earlier::default());
        let n3 = picture.nodes[2].as_ref().unwrap();
        let (worst, said) = (n3.worst.as_ref().unwrap(), &n3.reasons[0]);
        assert!(said.contains(&worst.metric.path()), "{} is not in: {said}", worst.metric.path());
    }
}
