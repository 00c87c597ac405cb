//! `muster criteria drift`: nodes against their own past, and the fleet against what is frozen.

use std::collections::{BTreeMap, HashMap};

use clap::Args;
use muster_analysis::history::{Drift as Word, Past, Trend, fleet_drift, node_drift};
use muster_analysis::{Observation, Sample};
use muster_run::{Record, Run, joined};
use muster_store::Store;
use muster_wire::{Direction, MetricId, Unit};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, WARN};
use crate::judge::{Judged, Judging};
use crate::options::Pick;
use crate::{database, judge, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster criteria drift\n  muster criteria drift --node node007 --json\n  \
                  muster criteria drift --run 20261121T143000Z-cbd-1f2e --past 50\n\nA node needs three earlier runs of the same profile before it can be worse than itself.")]
pub struct Drift {
    /// Run that is compared with those before it; the newest when left out.
    #[arg(long)]
    pub run: Option<String>,
    /// Only this node.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Earlier runs looked at.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub past: usize,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    run: String,
    /// Earlier runs, newest first.
    past: Vec<String>,
    /// Nodes that are not steady, worst first, and how many are.
    nodes: Vec<OfNode>,
    steady: usize,
    /// Metrics with a frozen criterion.
    fleet: Vec<OfFleet>,
}

#[derive(Serialize)]
struct OfNode {
    node: String,
    metric: String,
    unit: Unit,
    /// Earlier measurements.
    n: usize,
    #[serde(flatten)]
    trend: Trend,
}

#[derive(Serialize)]
struct OfFleet {
    metric: String,
    group: String,
    /// The frozen version.
    criterion: String,
    unit: Unit,
    #[serde(flatten)]
    trend: Trend,
}

/// Compares and prints. Exit code 1 when something became worse.
pub fn run(options: &Drift, config: &Config) -> Ended {
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.run.as_deref())?;
    let picked = match &options.node {
        Some(node) => Some(Pick { include: vec![node.clone()], ..Pick::default() }.of_run(&run, config)?),
        None => None,
    };
    let runs = store.runs().code(IO)?.into_iter();
    let past: Vec<Run> = runs
        .filter(|r| r.profile == run.profile && (r.started_ms, &r.id) < (run.started_ms, &run.id))
        .take(options.past)
        .collect();
    let records = store.records(&run.id).code(IO)?;
    let (nodes, steady) = nodes(&*store, (&run, &records), &past, (picked.as_deref(), config))?;
    let fleet = fleet(&*store, &run, &records, config)?;
    let past = past.into_iter().map(|r| r.id).collect();
    let report = Report { schema: "muster.drift", version: 1, run: run.id, past, nodes, steady, fleet };
    let worse = report.nodes.iter().map(|n| &n.trend).chain(report.fleet.iter().map(|f| &f.trend));
    let code = if worse.clone().any(|t| t.drift == Word::Worse) { WARN } else { PASS };
    if options.json {
        out::json(&report)?;
        return Ok(code);
    }
    for n in &report.nodes {
        let what = format!("{}: {}", n.node, n.metric);
        out::line(&sentence(&what, &n.trend, n.unit, &format!("{} earlier runs", n.n)))?;
    }
    out::line(&format!("{} of the nodes' metrics are steady", report.steady))?;
    for f in &report.fleet {
        out::line(&sentence(&format!("the fleet: {}", f.metric), &f.trend, f.unit, &f.criterion))?;
    }
    Ok(code)
}

fn sentence(what: &str, trend: &Trend, unit: Unit, against: &str) -> String {
    let word = match trend.drift {
        Word::Steady => "steady",
        Word::Improved => "better",
        Word::Worse => "worse",
        Word::Undecided => "undecided",
    };
    let was = trend.was.map_or("unknown".to_owned(), |v| unit.show(v));
    let similarity = trend.similarity.map_or(String::new(), |s| format!(", similarity {s:.3}"));
    let slope = trend.per_day.map_or(String::new(), |share| format!(", loses {:+.3} % a day", share * 100.0));
    format!("{what} {word}: {was} before, {} now{similarity} ({against}{slope})", unit.show(trend.is))
}

/// Samples of every metric and node of some records, disturbed ones left out.
fn samples(records: &[Record]) -> HashMap<(&str, &MetricId), (Sample, Unit, Direction, u64)> {
    let mut found = HashMap::new();
    for record in records.iter().filter(|r| muster_analysis::records::company(r).is_none()) {
        for (metric, series) in record.by_metric() {
            let Observation::Sample(sample) = Observation::from_values(&joined(series.iter().copied())) else {
                continue;
            };
            let of = (sample, series[0].unit, series[0].direction, record.at_ms);
            found.entry((record.node.as_str(), metric)).or_insert(of);
        }
    }
    found
}

fn nodes(
    store: &dyn Store,
    (run, records): (&Run, &[Record]),
    past: &[Run],
    (picked, config): (Option<&[String]>, &Config),
) -> Result<(Vec<OfNode>, usize), Problem> {
    let now = samples(records);
    let mut before: BTreeMap<(String, MetricId), Vec<Past>> = BTreeMap::new();
    for earlier in past {
        let records = store.records(&earlier.id).code(IO)?;
        for ((node, metric), (sample, _, _, at_ms)) in samples(&records) {
            let at = i64::try_from(at_ms / 1000).unwrap_or(i64::MAX);
            before.entry((node.to_owned(), metric.clone())).or_default().push(Past { at, sample });
        }
    }
    let params = session::params(config);
    let (mut found, mut steady) = (Vec::new(), 0);
    for ((node, metric), (sample, unit, direction, at_ms)) in &now {
        let is_picked = picked.is_none_or(|names| names.iter().any(|name| name == node));
        if !is_picked || !run.nodes.iter().any(|n| n == node) {
            continue;
        }
        let past = before.get(&((*node).to_owned(), (*metric).clone())).map_or(&[][..], Vec::as_slice);
        let now = Past { at: i64::try_from(at_ms / 1000).unwrap_or(i64::MAX), sample: sample.clone() };
        let trend = node_drift(past, &now, *direction, &params);
        match trend.drift {
            Word::Steady => steady += 1,
            // Without any past there is nothing to say.
            Word::Undecided if past.is_empty() => {}
            _ => found.push(OfNode {
                node: (*node).to_owned(),
                metric: metric.to_string(),
                unit: *unit,
                n: past.len(),
                trend,
            }),
        }
    }
    let rank = |n: &OfNode| (n.trend.drift != Word::Worse, n.trend.drift == Word::Undecided);
    found.sort_by(|a, b| {
        let similarity = |n: &OfNode| n.trend.similarity.unwrap_or(1.0);
        rank(a).cmp(&rank(b)).then(similarity(a).total_cmp(&similarity(b))).then(a.node.cmp(&b.node))
    });
    Ok((found, steady))
}

fn fleet(store: &dyn Store, run: &Run, records: &[Record], config: &Config) -> Result<Vec<OfFleet>, Problem> {
    let params = session::params(config);
    let frozen = Judging::of(store, run, params.clone()).code(IO)?;
    let now = Judging::now(store, params.clone(), frozen.terms.groups.clone()).code(IO)?;
    let mut today = Judging::own(params);
    today.terms.groups.clone_from(&now.terms.groups);
    let found = judge::assess(run, records, &today);
    let of = found.judged.iter().filter_map(|Judged { criterion, basis, .. }| {
        let metric = &criterion.metric;
        let frozen = now.context.criterion(&basis.group, metric)?;
        Some(OfFleet {
            metric: metric.to_string(),
            group: basis.group.clone(),
            criterion: frozen.id.clone(),
            unit: frozen.unit,
            trend: fleet_drift(frozen, criterion)?,
        })
    });
    Ok(of.collect())
}
