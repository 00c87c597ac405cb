//! `muster pairs`: what a matrix of pair measurements points at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::network::localise::{Candidate, Kind, Suspect, Undecided};
use muster_analysis::network::topology::{self, Source};
use muster_analysis::network::{Localisation, Matrix, Topology, direction_of, localise, read_matrix};
use muster_fleet::hostlist;
use muster_wire::Direction;
use serde::Serialize;

use super::{Better, matches_any};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, FAIL, PASS, Problem, UNDECIDED};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster pairs --from matrix.csv --topology topo.csv
  muster pairs --from matrix.csv --topology /etc/slurm/topology.conf --json
  muster pairs --from matrix.csv --metric bandwidth --alpha 0.9

The matrix has rows src,dst,metric,value and optionally up, the uplink that the pair crossed; several rows of a pair
are its sample. The topology is node,leaf[,aggregate...] rows, a Slurm topology.conf or the output of ibnetdiscover.")]
pub struct Options {
    /// CSV with the columns src,dst,metric,value and optionally up.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// Which node hangs under which leaf; guessed from latencies when left out.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Only metrics whose name matches, with * and ?.
    #[arg(long, value_name = "PATTERN")]
    pub metric: Vec<String>,
    /// Which way the metrics are better.
    #[command(flatten)]
    pub better: Better,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document; suspects of all metrics together.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    /// Where the distances come from.
    topology: &'static str,
    suspects: Vec<Of<Suspect>>,
    undecided: Vec<Of<Undecided>>,
    next_pairs: Vec<[String; 2]>,
}

/// A finding and the metric that shows it.
#[derive(Serialize)]
struct Of<T> {
    metric: String,
    #[serde(flatten)]
    found: T,
}

/// Reads, localises, prints. Exit code 2 with suspects, 3 where slow pairs are left unexplained.
pub fn run(options: &Options, config: &Config) -> Ended {
    let name = options.from.display().to_string();
    let text = read(&options.from)?;
    let direction = |metric: &str| options.better.direction(metric).unwrap_or_else(|| direction_of(metric));
    let mut matrices = read_matrix(&text, direction).with_context(|| name.clone()).code(CONFIG)?;
    if !options.metric.is_empty() {
        matrices.retain(|metric, _| matches_any(&options.metric, metric));
    }
    if matrices.is_empty() {
        return Err(Problem { code: CONFIG, error: anyhow!("{name}: no row of the metrics asked for") });
    }
    let topology = match &options.topology {
        Some(file) => parse(&read(file)?).with_context(|| file.display().to_string()).code(CONFIG)?,
        None => guess(matrices.values()),
    };
    let params = session::params(config);
    let found = matrices.iter().map(|(metric, matrix)| (metric.clone(), localise(matrix, &topology, &params)));
    let report = gather(found, topology.source());
    if options.json {
        out::json(&report)?;
    } else {
        out::line(table(&report).trim_end())?;
    }
    Ok(match (report.suspects.is_empty(), report.undecided.is_empty()) {
        (false, _) => FAIL,
        (true, false) => UNDECIDED,
        (true, true) => PASS,
    })
}

fn read(file: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(file).with_context(|| file.display().to_string()).code(CONFIG)
}

/// The forms are told apart by words that only one of them has.
fn parse(text: &str) -> anyhow::Result<Topology> {
    if text.lines().any(|line| line.trim_start().to_ascii_lowercase().starts_with("switchname=")) {
        return Ok(topology::slurm(text, hostlist::expand)?);
    }
    if text.contains("vendid=") || text.contains("switchguid=") {
        let fabric = topology::ibnetdiscover(text)?;
        return fabric.topology(|hca| Some(hca.host().to_owned())).map_err(|why| anyhow!(why));
    }
    Ok(topology::from_csv(text)?)
}

/// From the latencies, where there are some that fall into groups.
fn guess<'a>(matrices: impl Iterator<Item = &'a Matrix> + Clone) -> Topology {
    let latencies = matrices.clone().filter(|m| m.direction() == Direction::LowerIsBetter);
    let inferred = latencies.filter_map(|matrix| {
        let rows: Vec<(u32, u32, f64)> = matrix
            .cells()
            .iter()
            .enumerate()
            .filter_map(|(at, cell)| Some((cell.src, cell.dst, f64::from(*matrix.values(at).first()?))))
            .collect();
        topology::infer(matrix.endpoints(), &rows)
    });
    let names: BTreeSet<&String> = matrices.flat_map(Matrix::endpoints).collect();
    inferred.max_by_key(Topology::len).unwrap_or_else(|| Topology::flat(&names.into_iter().collect::<Vec<_>>()))
}

fn gather(found: impl Iterator<Item = (String, Localisation)>, source: Source) -> Report {
    let topology = match source {
        Source::Labels => "labels",
        Source::Csv => "csv",
        Source::Slurm => "slurm",
        Source::Ibnetdiscover => "ibnetdiscover",
        Source::Latency => "guessed from latency",
        Source::Flat => "unknown",
    };
    let (suspects, undecided, next_pairs) = Default::default();
    let mut report = Report { schema: "muster.pairs", version: 1, topology, suspects, undecided, next_pairs };
    for (metric, found) in found {
        report.suspects.extend(found.suspects.into_iter().map(|found| Of { metric: metric.clone(), found }));
        report.undecided.extend(found.undecided.into_iter().map(|found| Of { metric: metric.clone(), found }));
        let new: Vec<_> = found.next_pairs.into_iter().filter(|p| !report.next_pairs.contains(p)).collect();
        report.next_pairs.extend(new);
    }
    report
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Nic => "NIC",
        Kind::NodeRx => "receiving side of node",
        Kind::NodeTx => "sending side of node",
        Kind::Leaf => "leaf",
        Kind::Uplink => "uplink",
        Kind::Pair => "pair",
    }
}

fn table(report: &Report) -> String {
    let mut lines = Vec::new();
    for Of { metric, found } in &report.suspects {
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let [low, high] = found.interval.map(percent);
        lines.push(format!(
            "{} {} at {} % of the usual {metric} ({low} to {high} %; {} of {} visits slow; confidence {:.2})",
            word(found.kind),
            found.element,
            percent(found.effect),
            found.slow,
            found.pairs,
            found.confidence
        ));
    }
    for Of { metric, found } in &report.undecided {
        let name = |c: &Candidate| format!("{} {}", word(c.kind), c.element);
        let names: Vec<String> = found.candidates.iter().map(name).collect();
        lines.push(format!("undecided in {metric}: {}; {}", names.join(" or "), found.reason));
    }
    if !report.next_pairs.is_empty() {
        let pairs: Vec<String> = report.next_pairs.iter().take(8).map(|[a, b]| format!("{a}-{b}")).collect();
        lines.push(format!("to decide, measure {}", pairs.join(", ")));
    }
    if lines.is_empty() {
        lines.push("nothing stands out".to_owned());
    }
    if matches!(report.topology, "unknown" | "guessed from latency") {
        lines.push(format!("topology: {}; give one with --topology", report.topology));
    }
    lines.join("\n")
}
