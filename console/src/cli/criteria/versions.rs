//! `muster criteria list|show|freeze|thaw`.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::Args;
use muster_analysis::Status;
use muster_analysis::decide::{Frozen, Refusal};
use muster_playbook::report::{CriteriaReport, rfc3339};

use super::print;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, USAGE};
use crate::judge::Version;
use crate::options::matches_any;
use crate::{database, judge, out, session};

/// Options of `list`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster criteria list\n  muster criteria list --metric 'cpu-stream/*' --all --json"
)]
pub struct List {
    /// Only metrics whose name matches, with * and ?.
    #[arg(long, value_name = "PATTERN")]
    pub metric: Vec<String>,
    /// Every version, not the newest alone.
    #[arg(long)]
    pub all: bool,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `show`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster criteria show\n  muster criteria show cpu-stream/triad\n  \
                  muster criteria show 'cpu-stream/triad@own#5c1f' --json")]
pub struct Show {
    /// Identity or its beginning, or a metric, of which the newest version is shown.
    pub version: Option<String>,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `freeze`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster criteria freeze cpu-stream/triad\n  \
                  muster criteria freeze --all\n\nRuns that begin from now on are judged by it; runs that were made keep their verdicts. How far healthy nodes differ is \
                  frozen with it,\nand also how far whole runs do where there are several: a metric that is too noisy to tell a node at \
                  half speed is refused.")]
pub struct Freeze {
    /// Identities or their beginnings, or metrics, of which the newest versions are frozen.
    #[arg(required_unless_present = "all")]
    pub versions: Vec<String>,
    /// The newest version of every metric and group that may be trusted.
    #[arg(long)]
    pub all: bool,
    /// Freeze also what should not be used: provisional, bimodal, without consensus, or too noisy to tell a slow node.
    #[arg(long)]
    pub force: bool,
}

/// Options of `thaw`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster criteria thaw cpu-stream/triad\n  muster criteria thaw --all")]
pub struct Thaw {
    /// Metrics, with * and ?.
    #[arg(required_unless_present = "all")]
    pub metrics: Vec<String>,
    /// Everything that is frozen.
    #[arg(long)]
    pub all: bool,
}

/// Newest version of every metric and group.
fn newest(versions: Vec<Version>) -> Vec<Version> {
    let mut found: BTreeMap<(String, String), Version> = BTreeMap::new();
    for version in versions {
        found.insert((version.metric(), version.group.clone()), version);
    }
    found.into_values().collect()
}

fn is_frozen(frozen: &BTreeMap<(String, String), String>, version: &Version) -> bool {
    frozen.get(&(version.group.clone(), version.metric())).is_some_and(|id| *id == version.criterion.id)
}

/// Lists versions.
pub fn list(options: &List, config: &Config) -> Ended {
    let store = database::read(config)?;
    let frozen = judge::frozen(&*store).code(IO)?;
    let named = |v: &Version| {
        options.metric.is_empty()
            || matches_any(&options.metric, &v.metric())
            || matches_any(&options.metric, &v.criterion.metric.path())
    };
    let all: Vec<Version> = judge::versions(&*store).code(IO)?.into_iter().filter(named).collect();
    // What is frozen is shown however old it is.
    let held: Vec<Version> = all.iter().filter(|v| is_frozen(&frozen, v)).cloned().collect();
    let mut shown = if options.all { all } else { newest(all) };
    shown.extend(
        held.into_iter().filter(|h| !shown.iter().any(|v| v.criterion.id == h.criterion.id)).collect::<Vec<_>>(),
    );
    shown.sort_by_cached_key(|v| (v.metric(), v.group.clone(), v.learned_ms));
    if options.json {
        return print(&report(&shown, &frozen), true);
    }
    let row = |v: &Version| {
        let word = if is_frozen(&frozen, v) { "frozen" } else { "" };
        let status = session::word(&v.criterion.status);
        let n = v.criterion.n.to_string();
        let (learned, outside) = (rfc3339(v.learned_ms), v.outside.len().to_string());
        vec![v.criterion.id.clone(), v.group.clone(), learned, n, status, outside, word.to_owned(), v.source.clone()]
    };
    let header = ["version", "group", "learned", "n", "status", "outside", "", "from"];
    out::line(&out::table(&header, &shown.iter().map(row).collect::<Vec<_>>()))?;
    Ok(PASS)
}

fn report(versions: &[Version], frozen: &BTreeMap<(String, String), String>) -> CriteriaReport {
    let mut report = CriteriaReport::default();
    for v in versions {
        let outside = v.outside.iter().map(|o| (o.node.as_str(), o.similarity));
        report.push_version(&v.criterion, outside, (&v.group, v.learned_ms, &v.source), is_frozen(frozen, v));
    }
    report
}

/// Shows one version, or the newest of all.
pub fn show(options: &Show, config: &Config) -> Ended {
    let store = database::read(config)?;
    let frozen = judge::frozen(&*store).code(IO)?;
    let Some(name) = &options.version else {
        return print(&report(&newest(judge::versions(&*store).code(IO)?), &frozen), options.json);
    };
    let version = judge::find(&*store, name).code(USAGE)?;
    if options.json {
        return print(&report(std::slice::from_ref(&version), &frozen), true);
    }
    let c = &version.criterion;
    let word = if is_frozen(&frozen, &version) { "frozen" } else { "not frozen" };
    out::line(&format!("{}, {word}", c.id))?;
    let group = if version.group.is_empty() { "all nodes" } else { &version.group };
    out::line(&format!("for {group}; learned {} from {}", rfc3339(version.learned_ms), version.source))?;
    let repeatability = c.repeatability.map_or("unknown".to_owned(), |r| format!("{r:.4}"));
    out::line(&format!(
        "{} of {} nodes healthy at alpha {} (tau {}, by {}); {}, repeatability {repeatability}",
        c.healthy,
        c.n,
        c.alpha,
        c.tau,
        c.grain.name(),
        session::word(&c.status)
    ))?;
    if let Some(sample) = &c.sample {
        let at = |q: f64| c.unit.show(sample.quantile(q));
        let n = sample.len();
        out::line(&format!("centre: median {}, 1 % {}, 99 % {}, {n} steps", at(0.5), at(0.01), at(0.99)))?;
    }
    for o in &version.outside {
        let similarity = o.similarity.map_or("its benchmark failed".to_owned(), |s| format!("similarity {s:.3}"));
        out::line(&format!("outside: {}, {similarity}", o.node))?;
    }
    if let Some(doubt) = version.doubt() {
        out::line(&format!("judges nobody by itself: {doubt}"))?;
    }
    Ok(PASS)
}

/// Freezes versions.
pub fn freeze(options: &Freeze, config: &Config) -> Ended {
    let mut store = database::write(config)?;
    let mut chosen = if options.all { newest(judge::versions(&store).code(IO)?) } else { Vec::new() };
    for name in &options.versions {
        chosen.push(judge::find(&store, name).code(USAGE)?);
    }
    let spreads = judge::spreads(&store, &chosen).code(IO)?;
    for (mut version, spread) in chosen.into_iter().zip(spreads) {
        let doubt = doubt(&version, &spread);
        match doubt.filter(|_| !options.force) {
            Some(doubt) if options.all => out::note(format_args!("{}: not frozen: {doubt}", version.criterion.id)),
            Some(doubt) => {
                let why = anyhow!("{}: not frozen: {doubt}; --force freezes it all the same", version.criterion.id);
                return Err(Problem { code: USAGE, error: why });
            }
            None => {
                version.spread = spread.ok();
                judge::freeze(&mut store, &version).code(IO)?;
                out::line(&format!(
                    "{} frozen for {}{}",
                    version.criterion.id,
                    group(&version.group),
                    learned(&version)
                ))?;
            }
        }
    }
    Ok(PASS)
}

/// Why nobody should be judged by it, if so. That healthy nodes differ is no reason by itself: how far they do is frozen with it.
fn doubt(version: &Version, spread: &Result<Frozen, Refusal>) -> Option<String> {
    let refused = |why: &Refusal| format!("cannot judge by it: {why}");
    match spread {
        Ok(_) if version.criterion.status == Status::NotRepeatable => None,
        Ok(_) => version.doubt(),
        Err(_) if version.criterion.n == 1 => Some("one value does not say how far healthy nodes differ".to_owned()),
        // Two kinds of nodes are why they differ.
        Err(why @ (Refusal::TooNoisy { .. } | Refusal::NoCentre)) if version.criterion.status != Status::Bimodal => {
            Some(refused(why))
        }
        Err(why) => version.doubt().or_else(|| Some(refused(why))),
    }
}

/// `: nodes differ by 0.8 % (n = 64), runs by 1.1 % (3 runs)`.
fn learned(version: &Version) -> String {
    let Some(spread) = &version.spread else { return String::new() };
    let runs = if spread.assumed {
        format!("runs by an assumed {:.1} %, since there is one run only", spread.run_spread * 100.0)
    } else {
        format!("runs by {:.1} % ({} runs)", spread.run_spread * 100.0, spread.runs)
    };
    format!(": nodes differ by {:.1} % (n = {}), {runs}", spread.spread * 100.0, spread.nodes)
}

fn group(group: &str) -> &str {
    if group.is_empty() { "all nodes" } else { group }
}

/// Thaws what is frozen.
pub fn thaw(options: &Thaw, config: &Config) -> Ended {
    let mut store = database::write(config)?;
    let frozen = judge::frozen(&store).code(IO)?;
    let path = |metric: &str| metric.rsplit_once('@').map_or(metric.to_owned(), |(path, _)| path.to_owned());
    let fits = |metric: &str| {
        options.all || matches_any(&options.metrics, metric) || matches_any(&options.metrics, &path(metric))
    };
    let chosen: Vec<_> = frozen.iter().filter(|((_, metric), _)| fits(metric)).collect();
    if chosen.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("nothing of that is frozen; see `muster criteria list`") });
    }
    for ((of, metric), id) in chosen {
        judge::thaw(&mut store, of, metric).code(IO)?;
        out::line(&format!("{id} is thawed for {}", group(of)))?;
    }
    Ok(PASS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Criterion;
    use muster_wire::{Direction, MetricId, Unit};

    fn version(n: usize, status: Status) -> Version {
        let metric = MetricId::new("net", "bandwidth", "own");
        let criterion = Criterion::reference(metric, Unit::BytesPerSec, Direction::HigherIsBetter, 26e9).unwrap();
        let criterion = Criterion { n, healthy: n, status, ..criterion };
        Version {
            criterion,
            group: String::new(),
            learned_ms: 0,
            source: "r".into(),
            outside: Vec::new(),
            spread: None,
        }
    }

    fn spread() -> Frozen {
        Frozen::of_one_run(26e9, 0.03, 252)
    }

    #[test]
    fn nodes_that_differ_are_frozen_as_far_as_they_do_and_too_far_is_refused_with_the_figure() {
        let noisy = version(252, Status::NotRepeatable);
        assert_eq!(doubt(&noisy, &Ok(spread())), None);
        let why = doubt(&noisy, &Err(Refusal::TooNoisy { spread: 0.3, nodes: 252 })).unwrap();
        assert!(why.contains("its nodes differ by 30 % (n = 252)"), "{why}");
        assert!(doubt(&version(20, Status::Bimodal), &Ok(spread())).unwrap().contains("two groups"));
        assert_eq!(doubt(&version(20, Status::Ok), &Ok(spread())), None);
    }

    #[test]
    fn one_value_alone_is_refused_since_it_says_nothing_of_the_nodes() {
        let why = doubt(&version(1, Status::Ok), &Err(Refusal::TooFewNodes { nodes: 1, needed: 4 }));
        assert_eq!(why.unwrap(), "one value does not say how far healthy nodes differ");
        let why = doubt(&version(3, Status::Provisional), &Err(Refusal::TooFewNodes { nodes: 3, needed: 4 }));
        assert_eq!(why.unwrap(), "only 3 nodes agreed on it");
    }
}
