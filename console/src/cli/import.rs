//! `muster import`: other tools' results as a run, so that everything that works on runs works on them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use muster_analysis::rules::Refusal;
use muster_import::Format;
use muster_import::format::Content;
use muster_run::{Record, Run, RunState};
use muster_store::{Db, Store};
use muster_wire::{Datum, Direction, Fact, Outcome, Profile, Reading, clean, limits};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, USAGE};
use crate::input::{self, Fleet, Metric};
use crate::judge::{self, Judging};
use crate::patience::Patience;
use crate::{clock, database, out, session};

/// Work under which every node of an imported run says which files it came from.
const ORIGIN: &str = "collect/import";
/// Fewer steps than this may all have been stalled; from here on their median may not.
const FEW: usize = 6;
/// Nodes whose records are kept with one sync.
const BATCH: usize = 256;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster import results-summary.jsonl && muster results
  muster import outputs/2026-11-20_10-00-00          a SuperBench output folder: the step series of every rank
  muster import nccl_allreduce.log --node node007
  muster import samples.csv --lower-is-better '*latency*' --json
  muster import rules.yaml                           which rules can be applied; `criteria judge` applies them

The format is told by the file's beginning; --format overrides that. A fleet's values keep their order: a node that \
comes twice has one sample of two values. Unit and direction of a CSV metric come from the options, from the metrics that \
muster knows, from the file's columns, or from the name; a note says what was assumed. Import rules alone (exit code 78 where one \
cannot be applied). Nothing in a file is run.")]
pub struct Options {
    /// Files, or SuperBench output folders.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// How they are read.
    #[command(flatten)]
    pub reading: input::Reading,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    /// Run id.
    run: String,
    formats: Vec<&'static str>,
    files: Vec<Source>,
    nodes: usize,
    metrics: usize,
    values: usize,
    /// Benchmarks that failed on a node, and those with results that are no numbers.
    failed: Vec<Failed>,
    /// What values were taken for; what was not taken over and why.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Source {
    file: String,
    sha256: String,
}

#[derive(Serialize)]
struct Failed {
    node: String,
    benchmark: String,
    why: String,
}

/// What is published of rules: the document of `criteria judge`, with no node judged.
#[derive(Serialize)]
struct Diagnosis<'r> {
    schema: &'static str,
    version: u32,
    nodes: [(); 0],
    /// Rules that are not applied.
    refused: &'r [Refusal],
}

/// Reads, stores, tells.
pub fn run(options: &Options, config: &Config) -> Ended {
    let mut formats = BTreeSet::new();
    for file in options.files.iter().filter(|f| !f.is_dir()) {
        let format = input::open(file, options.reading.format).code(CONFIG)?;
        if format == Format::SuperbenchRules {
            return rules(file, options);
        }
        formats.insert(format.name());
    }
    if options.files.iter().any(|f| f.is_dir()) {
        formats.insert(Format::SuperbenchRaw.name());
    }
    let waiting = Patience::new("importing");
    let fleet = input::fleet(&options.files, &options.reading).code(CONFIG)?;
    let sources: Vec<Source> = options.files.iter().map(|f| source(f)).collect::<Result<_, _>>()?;
    let (store, run, against) = keep(&fleet, &formats, &sources, config)?;
    drop(waiting);
    let mut notes = averages(&fleet, &formats, options.reading.aggregated);
    notes.extend(fleet.notes.iter().cloned());
    notes.extend(against);
    let values = fleet.metrics.iter().map(|m| (0..fleet.nodes.len()).map(|n| m.values(n).len()).sum::<usize>()).sum();
    let report = Report {
        schema: "muster.import",
        version: 1,
        run: run.id.clone(),
        formats: formats.into_iter().collect(),
        files: sources,
        nodes: fleet.nodes.len(),
        metrics: fleet.metrics.len(),
        values,
        failed: failed(&fleet),
        notes,
    };
    // A fleet of millions of values makes room for judging them, which whoever looks next does not have to do.
    drop(fleet);
    let waiting = Patience::new(format!("judging {}", run.id));
    judge::stored(&store, &run, &Judging::of(&store, &run, session::params(config)).code(IO)?).code(IO)?;
    drop((waiting, store));
    tell(&report, options.json)
}

/// Benchmarks that failed, and results that fail a node since they are no numbers.
fn failed(fleet: &Fleet) -> Vec<Failed> {
    let ended = fleet.failures().into_iter().map(|(node, work, why)| (node, work, why.to_owned()));
    let all = ended.chain(fleet.broken());
    all.map(|(node, work, why)| Failed { node: node.into(), benchmark: work.into(), why }).collect()
}

/// What the few values of a CSV are taken for, since it decides whether one of them can fail a node.
fn averages(fleet: &Fleet, formats: &BTreeSet<&'static str>, aggregated: bool) -> Vec<String> {
    if !formats.contains(Format::Csv.name()) {
        return Vec::new();
    }
    // What another format says is an average is one, whatever is said of the CSV beside it.
    let few = |m: &&Metric| {
        m.declared.aggregated == aggregated && (0..fleet.nodes.len()).any(|n| (1..FEW).contains(&m.values(n).len()))
    };
    let count = fleet.metrics.iter().filter(few).count();
    if count == 0 {
        return Vec::new();
    }
    let said = if aggregated {
        "as averages of many steps each (--aggregated): a single one can fail a node"
    } else {
        "as single steps, which may have been stalled: a slow node needs more of them, or agreement of several metrics, to fail. \
         If they are averages, import with --aggregated"
    };
    let has = if count == 1 { "has" } else { "have" };
    vec![format!(
        "{count} of {} {has} fewer than {FEW} values on a node; they are taken {said}",
        out::counted(fleet.metrics.len(), "metric", "metrics")
    )]
}

fn tell(report: &Report, json: bool) -> Ended {
    if json {
        out::json(report)?;
        return Ok(PASS);
    }
    for note in &report.notes {
        out::note(note);
    }
    out::line(&format!(
        "{}, {}, {} as run {}",
        out::counted(report.nodes, "node", "nodes"),
        out::counted(report.metrics, "metric", "metrics"),
        out::counted(report.values, "value", "values"),
        report.run
    ))?;
    for failed in &report.failed {
        out::line(&format!("{}: {} failed: {}", failed.node, failed.benchmark, failed.why))?;
    }
    Ok(PASS)
}

/// A rule file is not a result: what of it can be applied is said, and nothing is stored.
fn rules(file: &Path, options: &Options) -> Ended {
    let name = file.display();
    if options.files.len() > 1 {
        let alone = "rules, not results: import them alone, or apply them with `muster criteria judge --rules`";
        return Err(anyhow!("{name}: {alone}")).code(USAGE);
    }
    let content = input::content(file, Format::SuperbenchRules, &options.reading).code(CONFIG)?;
    let Content::Rules(rules) = content else { return Ok(PASS) };
    let ended = if rules.refused.is_empty() { PASS } else { CONFIG };
    if options.json {
        let (schema, version, nodes) = ("muster.diagnosis", 1, []);
        out::json(&Diagnosis { schema, version, nodes, refused: &rules.refused })?;
        return Ok(ended);
    }
    out::line(&format!(
        "{name}: {} rules can be applied, {} cannot; nothing was stored",
        rules.rules.len(),
        rules.refused.len()
    ))?;
    for refused in &rules.refused {
        out::line(&format!("{name}:{}: rule {}: {}", refused.line, refused.rule, refused.why))?;
    }
    Ok(ended)
}

fn source(file: &Path) -> Result<Source, Problem> {
    // A folder is known by its name: its files are many and each rank's own.
    let sha256 = if file.is_dir() { String::new() } else { input::sha256(file).code(CONFIG)? };
    Ok(Source { file: clean(&file.display().to_string(), limits::TEXT_BYTES), sha256 })
}

fn keep(
    fleet: &Fleet,
    formats: &BTreeSet<&'static str>,
    sources: &[Source],
    config: &Config,
) -> Result<(Db, Run, Vec<String>), Problem> {
    let formats = formats.iter().copied().collect::<Vec<_>>().join("+");
    let started_ms = clock::now_ms();
    let run = Run {
        id: session::named(started_ms, &format!("import-{}", formats.replace('+', "-"))),
        playbook: format!("import/{formats}"),
        profile: Profile::Standard,
        started_ms,
        ended_ms: None,
        nodes: fleet.nodes.clone(),
        plan: fleet.works(),
        state: RunState::Running,
    };
    let mut by_work: HashMap<&str, Vec<&Metric>> = HashMap::new();
    fleet.metrics.iter().for_each(|m| by_work.entry(&m.id.benchmark).or_default().push(m));
    let mut store = database::write(config)?;
    store.begin(&run).code(IO)?;
    let groups = session::groups_in_force(config, &run.nodes);
    let judging = Judging::now(&store, session::params(config), groups).code(IO)?;
    judging.keep(&mut store, &run.id).code(IO)?;
    let against = against_frozen(fleet, &run, &judging);
    for nodes in (0..fleet.nodes.len()).collect::<Vec<_>>().chunks(BATCH) {
        let records = nodes.iter().flat_map(|&node| {
            std::iter::once(origin(&run, &fleet.nodes[node], sources)).chain(fleet.records(&run, node, &by_work))
        });
        store.append_many(&records.collect::<Vec<_>>()).code(IO)?;
    }
    store.end(&run.id, RunState::Finished, clock::now_ms()).code(IO)?;
    let run = session::run_of(&store, Some(&run.id))?;
    Ok((store, run, against))
}

/// Frozen criteria that say of a metric that the other way is better: they cannot judge it.
fn against_frozen(fleet: &Fleet, run: &Run, judging: &Judging) -> Vec<String> {
    let groups: BTreeSet<String> = run.nodes.iter().map(|node| judging.context.group(run.profile, node)).collect();
    let mut found = Vec::new();
    for metric in &fleet.metrics {
        let frozen = groups.iter().filter_map(|group| judging.context.criterion(group, &metric.id));
        if let Some(frozen) = frozen.map(|criterion| criterion.direction).find(|way| *way != metric.direction) {
            found.push(format!(
                "{} is {} as frozen and {} here",
                metric.id.path(),
                word(frozen),
                word(metric.direction)
            ));
        }
    }
    let all: Vec<&str> = found.iter().map(String::as_str).collect();
    let told = || format!("frozen criteria that are not applied, since they say the opposite: {}", input::some(&all));
    if found.is_empty() { Vec::new() } else { vec![told()] }
}

const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::HigherIsBetter => "higher-is-better",
        Direction::LowerIsBetter => "lower-is-better",
    }
}

fn origin(run: &Run, node: &str, sources: &[Source]) -> Record {
    let fact =
        |key: String, text: &str| Fact { key, reading: Reading::Value(Datum::Text(text.to_owned())), unit: None };
    let both = |(at, source): (usize, &Source)| {
        [fact(format!("import.{at}.file"), &source.file), fact(format!("import.{at}.sha256"), &source.sha256)]
    };
    Record {
        run: run.id.clone(),
        node: node.to_owned(),
        work: ORIGIN.to_owned(),
        outcome: Outcome::Done,
        at_ms: run.started_ms,
        elapsed_ns: 0,
        series: Vec::new(),
        facts: sources.iter().take(limits::FACTS / 2).enumerate().flat_map(both).collect(),
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Component, Declared, MetricId, MetricRole, Unit};

    use super::*;

    #[test]
    fn a_result_that_is_no_number_is_told_beside_what_failed() {
        let mut fleet = Fleet::default();
        let declared = Declared { component: Component::Application, role: MetricRole::Judged, aggregated: false };
        let series = muster_import::Series {
            node: "a".into(),
            metric: MetricId::new("csv", "bw", "imported"),
            unit: Unit::Count,
            direction: Direction::HigherIsBetter,
            declared,
            values: vec![1.0, f64::NAN],
        };
        fleet.add(&series, Some("bw")).unwrap();
        fleet.fail("b", "disk", "seq: error 5".to_owned());
        let told: Vec<String> =
            failed(&fleet).iter().map(|f| format!("{} {}: {}", f.node, f.benchmark, f.why)).collect();
        assert_eq!(told, ["b disk: seq: error 5", "a csv: bw is NaN or infinite in 1 of 2"]);
    }

    #[test]
    fn every_node_says_which_file_it_came_from() {
        let run = Run {
            id: "r".into(),
            playbook: "import/csv".into(),
            profile: Profile::Standard,
            started_ms: 7,
            ended_ms: None,
            nodes: vec!["a".into()],
            plan: Vec::new(),
            state: RunState::Running,
        };
        let record = origin(&run, "a", &[Source { file: "x.csv".into(), sha256: "ab".into() }]);
        let keys: Vec<&str> = record.facts.iter().map(|f| f.key.as_str()).collect();
        assert_eq!((record.work.as_str(), keys), (ORIGIN, vec!["import.0.file", "import.0.sha256"]));
    }
}
