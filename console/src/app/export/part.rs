//! The part of what is shown that goes into a file, and which runs it is from: a fleet holds the newest answers of several.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use muster_analysis::{Sample, State};
use muster_page::Fact;
use muster_playbook::report::{self, NodeReport, RunInfo, RunReport, Summary, VerdictReport, escape};
use muster_run::{Record, Summary as Seen, joined, visit_of};
use muster_store::Store;
use muster_tui::{Export, Format};
use muster_wire::{MetricId, Series};
use serde_json::Value;

use super::{HIDDEN, plain};
use crate::config::Config;
use crate::database;
use crate::exit::{Code, IO, Problem};
use crate::judge::{Asked, Judged, Told, known_of, report_of_all};
use crate::out::counted;
use crate::pages;
use crate::redact::Redaction;
use crate::views::page::{Coverage, Ran, run_page};

/// Name of the document of several runs: that of a run, but for `runs` in place of `run`, and with the `run` of every verdict.
const FLEET_SCHEMA: &str = "muster.fleet";

/// What is written.
pub(super) struct Part<'r> {
    /// Under the name of the newest of its runs.
    report: RunReport,
    /// Of each of its nodes.
    origins: Vec<Origin>,
    /// The runs that are shown, the newest first.
    runs: &'r [Arc<Told>],
    /// Places of those that something in it is from.
    of: BTreeSet<usize>,
    /// What the name of the file says of it behind the run.
    name: String,
}

/// Which runs what is said of a node is from, by their places.
struct Origin {
    /// The newest that says anything.
    newest: usize,
    /// Of each verdict.
    verdicts: Vec<usize>,
    /// Those that hold the newest answer to anything.
    answers: Vec<usize>,
}

impl Origin {
    fn of(runs: &[Arc<Told>], node: &NodeReport) -> Self {
        let count = node.verdicts.len();
        let known = if runs.len() > 1 { known_of(runs, &node.node) } else { None };
        let Some((places, known)) = known.filter(|(_, known)| known.verdicts.len() == count) else {
            return Self { newest: 0, verdicts: vec![0; count], answers: vec![0] };
        };
        let newest = places.first().copied().unwrap_or_default();
        let verdicts = known.verdicts.iter().map(|place| places[*place]).collect();
        let (mut asked, mut answers): (HashSet<&str>, Vec<usize>) = (HashSet::new(), vec![newest]);
        for at in places {
            let Some(told) = runs[at].of(&node.node) else { continue };
            let before = asked.len();
            asked.extend(told.works.iter().map(String::as_str));
            if asked.len() > before {
                answers.push(at);
            }
        }
        Self { newest, verdicts, answers }
    }

    /// Keeps the verdicts of one metric.
    fn keep(&mut self, node: &mut NodeReport, own: impl Fn(&VerdictReport) -> bool) {
        let all = node.verdicts.drain(..).zip(self.verdicts.drain(..)).filter(|(verdict, _)| own(verdict));
        let (verdicts, places): (Vec<_>, Vec<_>) = all.unzip();
        (node.verdicts, self.verdicts) = (verdicts, places);
        self.answers = if self.verdicts.is_empty() { vec![self.newest] } else { Vec::new() };
    }
}

impl<'r> Part<'r> {
    /// Of what `runs`, the newest first, say of the nodes called `names` that which is asked for; `None` without a run.
    pub(super) fn of(runs: &'r [Arc<Told>], names: &[String], what: &Export) -> Option<Self> {
        // A run is one, whatever else is shown.
        let runs = if matches!(what, Export::Run) { runs.get(..1)? } else { runs };
        let mut report = report_of_all(runs, names)?;
        match what {
            Export::Fleet { nodes } => {
                let place: HashMap<&str, usize> = nodes.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
                report.nodes.retain(|n| place.contains_key(n.node.as_str()));
                report.nodes.sort_by_key(|n| place.get(n.node.as_str()).copied());
            }
            Export::Node { node } => report.nodes.retain(|n| &n.node == node),
            _ => {}
        }
        let mut origins: Vec<Origin> = report.nodes.iter().map(|node| Origin::of(runs, node)).collect();
        if let Export::Metric { metric } = what {
            let path = metric.path();
            report.criteria.retain(|c| c.metric == path && c.engine == metric.engine);
            for (node, origin) in report.nodes.iter_mut().zip(&mut origins) {
                origin.keep(node, |v| v.of.metric == path && v.of.engine == metric.engine);
            }
        }
        let of = origins.iter().flat_map(|origin| origin.verdicts.iter().chain(&origin.answers)).copied();
        let of: BTreeSet<usize> = of.collect();
        report.summary = Summary::of(report.nodes.iter().map(|n| (n.state, n.undecided)));
        report.run = info(&runs[of.first().copied().unwrap_or_default()]);
        let name = match what {
            Export::Fleet { .. } => "-fleet".to_owned(),
            Export::Node { node } => format!("-{}", plain(node)),
            Export::Metric { metric } => format!("-{}", plain(&metric.path())),
            Export::Run | Export::Log | Export::Watch | Export::Triage => String::new(),
        };
        Some(Self { report, origins, runs, of, name })
    }

    /// Name of the file, and what is in it.
    pub(super) fn text(&self, format: Format, config: &Config) -> Result<(String, String), Problem> {
        let (text, ending) = match format {
            Format::Json => (self.json()?, "json"),
            Format::Markdown => (self.markdown(), "md"),
            Format::Csv => (self.csv(), "csv"),
            Format::Html => (self.page(config)?, "html"),
        };
        let of = if self.several() { format!("{}-runs", self.of.len()) } else { self.report.run.id.clone() };
        Ok((format!("muster-{of}{}.{ending}", self.name), text))
    }

    fn several(&self) -> bool {
        self.of.len() > 1
    }

    /// Its runs, the newest first.
    fn infos(&self) -> Vec<RunInfo> {
        self.of.iter().map(|at| info(&self.runs[*at])).collect()
    }

    fn title(&self) -> String {
        let nodes = counted(self.report.nodes.len(), "node", "nodes");
        format!("The newest results of {} runs on {nodes}", self.of.len())
    }

    fn json(&self) -> Result<String, Problem> {
        if !self.several() {
            return serde_json::to_string_pretty(&self.report).code(IO);
        }
        let mut document = serde_json::to_value(&self.report).code(IO)?;
        let nodes = document.get_mut("nodes").and_then(Value::as_array_mut).into_iter().flatten();
        for (node, origin) in nodes.zip(&self.origins) {
            let verdicts = node.get_mut("verdicts").and_then(Value::as_array_mut).into_iter().flatten();
            for (verdict, at) in verdicts.zip(&origin.verdicts) {
                verdict["run"] = self.runs[*at].run.id.as_str().into();
            }
        }
        if let Some(fields) = document.as_object_mut() {
            fields.remove("run");
            fields.insert("schema".to_owned(), FLEET_SCHEMA.into());
            fields.insert("runs".to_owned(), serde_json::to_value(self.infos()).code(IO)?);
        }
        serde_json::to_string_pretty(&document).code(IO)
    }

    fn markdown(&self) -> String {
        let text = report::markdown(&self.report);
        if !self.several() {
            return text;
        }
        // Heading, an empty line, and the line of one run with the counts at its end.
        let mut lines = text.splitn(4, '\n').skip(2);
        let (head, rest) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let counts = head.rsplit_once(" (UTC): ").map_or("", |(_, counts)| counts);
        let mut out = format!("## {}\n\n{counts}\n\n", self.title());
        out += "| run | playbook | profile | started (UTC) | ended (UTC) | results |\n|---|---|---|---|---|---|\n";
        for (at, run) in self.of.iter().zip(self.infos()) {
            let results = self.origins.iter().flat_map(|origin| &origin.verdicts).filter(|of| *of == at).count();
            let ended = run.ended.as_deref().unwrap_or("not ended");
            let (id, playbook) = (escape(&run.id), escape(&run.playbook));
            let _ = writeln!(out, "| {id} | {playbook} | {} | {} | {ended} | {results} |", run.profile, run.started);
        }
        out + rest
    }

    /// Every row under the name of the run that it is from.
    fn csv(&self) -> String {
        let mut text = String::new();
        if !self.several() || self.report.nodes.is_empty() {
            return report::csv(&self.report);
        }
        let mut one = RunReport::new(self.report.run.clone(), &[], &[]);
        for (node, origin) in self.report.nodes.iter().zip(&self.origins) {
            let all: Vec<(&VerdictReport, usize)> = node.verdicts.iter().zip(origin.verdicts.iter().copied()).collect();
            let mut parts: Vec<&[(&VerdictReport, usize)]> = all.chunk_by(|a, b| a.1 == b.1).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            for part in parts {
                let at = part.first().map_or(origin.newest, |(_, at)| *at);
                one.run = info(&self.runs[at]);
                one.nodes = vec![row(node, part.iter().map(|(verdict, _)| (*verdict).clone()).collect())];
                let rows = report::csv(&one);
                // The header stands once.
                let rest = rows.split_once('\n').map_or("", |(_, rows)| rows);
                let new = if text.is_empty() { rows.as_str() } else { rest };
                text.push_str(new);
            }
        }
        text
    }

    /// The page of a run, of these nodes.
    fn page(&self, config: &Config) -> Result<String, Problem> {
        let store = database::read(config)?;
        let nodes: HashSet<&str> = self.report.nodes.iter().map(|node| node.node.as_str()).collect();
        let (mut plan, mut results, mut facts): (Vec<String>, Vec<Seen>, Vec<Record>) = Default::default();
        let mut newer: HashSet<Asked> = HashSet::new();
        for run in self.of.iter().map(|at| &self.runs[*at].run) {
            plan.extend(run.plan.iter().cloned());
            let asked = |one: &Seen| (one.node.clone(), visit_of(&one.work).0.to_owned());
            let mut own = store.summaries(&run.id).code(IO)?;
            own.retain(|one| nodes.contains(one.node.as_str()) && !newer.contains(&asked(one)));
            newer.extend(own.iter().map(asked));
            results.extend(own);
            let told = store.facts(&run.id).code(IO)?.into_iter();
            facts.extend(told.filter(|record| nodes.contains(record.node.as_str())));
        }
        let mut coverage = Coverage::of(&plan, &results);
        for (_, known) in self.report.nodes.iter().filter_map(|node| known_of(self.runs, &node.node)) {
            coverage.add(&known.found);
        }
        let pairs = self.report.network.as_ref().and_then(|_| self.runs.iter().find_map(|told| told.pairs.clone()));
        let judged = self.judged();
        let ran = Ran {
            report: &self.report,
            judged: &judged,
            facts: &facts,
            coverage: &coverage,
            pairs: pairs.as_deref(),
            sample: &|node, metric| self.sample(&*store, node, metric),
        };
        let mut page = run_page(&ran);
        if self.several() {
            (page.kind, page.title) = ("Report of several runs", self.title());
            let said = |run: RunInfo| {
                let ended = run.ended.as_deref().unwrap_or("not ended");
                format!("{} ({}, {}, {} to {ended} UTC)", run.id, run.playbook, run.profile, run.started)
            };
            page.facts = self.infos().into_iter().map(|run| Fact { label: "Run", value: said(run) }).collect();
        }
        let newest = &self.runs[self.of.first().copied().unwrap_or_default()].run;
        pages::written(page, &mut Redaction::of(&HIDDEN, newest, &facts)).code(IO)
    }

    /// What metrics were judged by that put a node outside: only those get a chart.
    fn judged(&self) -> Vec<Judged> {
        let of_node = |(node, origin): (&NodeReport, &Origin)| {
            let all = node.verdicts.iter().zip(&origin.verdicts);
            let outside = all.filter(|(verdict, _)| matches!(verdict.state, State::Warn | State::Fail));
            outside.map(|(verdict, at)| (*at, verdict.of.metric.clone(), verdict.of.engine.clone())).collect::<Vec<_>>()
        };
        let wanted: HashSet<(usize, String, String)> =
            self.report.nodes.iter().zip(&self.origins).flat_map(of_node).collect();
        let all = self.of.iter().flat_map(|at| self.runs[*at].assessment.judged.iter().map(move |one| (*at, one)));
        let is_wanted = |(at, one): &(usize, &Judged)| {
            let metric = &one.criterion.metric;
            wanted.contains(&(*at, metric.path(), metric.engine.clone()))
        };
        all.filter(is_wanted).map(|(_, one)| one.clone()).collect()
    }

    /// The newest sample of `metric` on `node` in the run that its verdict is from; `None` where it cannot be read.
    fn sample(&self, store: &dyn Store, node: &str, metric: &MetricId) -> Option<Sample> {
        let place = self.report.nodes.iter().position(|own| own.node == node)?;
        let (verdicts, path) = (&self.report.nodes[place].verdicts, metric.path());
        let nr = verdicts.iter().position(|v| v.of.metric == path && v.of.engine == metric.engine)?;
        let run = &self.runs[self.origins[place].verdicts[nr]].run;
        let records = store.records_of(&run.id, node).ok()?;
        let own = |record: &&Record| record.series.iter().any(|series| series.metric == *metric);
        let newest = records.iter().filter(own).max_by_key(|record| record.visit())?;
        let series: Vec<&Series> = newest.series.iter().filter(|series| series.metric == *metric).collect();
        Sample::new(&joined(series)).ok()
    }
}

fn info(told: &Told) -> RunInfo {
    let run = &told.run;
    RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, run.ended_ms)
}

/// What a row of the table needs of `node`, with these verdicts.
fn row(node: &NodeReport, verdicts: Vec<VerdictReport>) -> NodeReport {
    NodeReport {
        node: node.node.clone(),
        state: node.state,
        undecided: node.undecided,
        reasons: node.reasons.iter().take(1).cloned().collect(),
        components: Vec::new(),
        findings: Vec::new(),
        verdicts,
        checks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use muster_store::{Db, Options};

    use super::*;
    use crate::app::back::tests::measured;
    use crate::app::fleet::judged;
    use crate::config::{Raw, resolve};

    /// Two runs on six nodes, the newest first: `r1` of two benchmarks, `r2` of one of them again.
    fn two(dir: &Path) -> (Db, Config, [Arc<Told>; 2]) {
        let mut store = Db::open(dir, &Options::default()).unwrap();
        measured(&mut store, "r1", 1_000, &["cpu-gemm", "disk"], 1.0);
        measured(&mut store, "r2", 2_000, &["cpu-gemm"], 0.5);
        let raw = Raw { db: Some(dir.to_owned()), ..Raw::default() };
        let config = resolve(raw, Raw::default(), Path::new("none.toml")).unwrap();
        let runs =
            ["r2", "r1"].map(|id| Arc::new(judged(&store, store.run(id).unwrap().unwrap(), &config, None).unwrap()));
        (store, config, runs)
    }

    /// The published document of several runs, `assets/schemas/muster.fleet.json`.
    const SCHEMA: &str = include_str!("../../../../assets/schemas/muster.fleet.json");

    #[test]
    fn a_document_of_several_runs_has_what_its_schema_names_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let (_, config, runs) = two(place.path());
        let nodes = runs[0].run.nodes.clone();
        let part = Part::of(&runs, &nodes, &Export::Fleet { nodes: nodes.clone() }).unwrap();
        let document: Value = serde_json::from_str(&part.text(Format::Json, &config).unwrap().1).unwrap();
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let check = |value: &Value, schema: &Value| {
            let names = value.as_object().unwrap();
            let required = schema["required"].as_array().unwrap().iter();
            assert!(required.map(|name| name.as_str().unwrap()).all(|name| names.contains_key(name)), "{value}");
            let properties = schema["properties"].as_object().unwrap();
            assert!(names.keys().all(|name| properties.contains_key(name)), "{value}");
        };
        check(&document, &schema);
        assert_eq!(document["schema"], schema["properties"]["schema"]["const"]);
        check(&document["runs"][1], &schema["properties"]["runs"]["items"]);
        check(&document["nodes"][0]["verdicts"][0], &schema["$defs"]["verdict"]);
    }

    /// Run, node and metric of every row.
    fn rows(csv: &str) -> Vec<[String; 3]> {
        let cells = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            [0, 2, 4].map(|at| cells[at].to_owned())
        };
        csv.lines().skip(1).map(cells).collect()
    }

    #[test]
    fn what_is_of_several_runs_says_so_and_every_row_which_run_it_is_from() {
        let dir = tempfile::tempdir().unwrap();
        let (_store, config, runs) = two(dir.path());
        let names: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let shown = Export::Fleet { nodes: vec!["n3".to_owned(), "n1".to_owned()] };
        let part = Part::of(&runs, &names, &shown).unwrap();
        let text = |format| part.text(format, &config).unwrap();
        let (name, csv) = text(Format::Csv);
        assert_eq!(name, "muster-2-runs-fleet.csv");
        let row = |run: &str, node: &str, metric: &str| [run, node, metric].map(str::to_owned);
        let all = [("n3", "cpu-gemm/a"), ("n3", "disk/a"), ("n1", "cpu-gemm/a"), ("n1", "disk/a")];
        let all = all.map(|(node, of)| row(if of == "disk/a" { "r1" } else { "r2" }, node, of));
        assert_eq!(rows(&csv), all);
        assert!(csv.starts_with("run,playbook,node,") && csv.matches("run,playbook").count() == 1, "{csv}");

        let (name, markdown) = text(Format::Markdown);
        assert_eq!(name, "muster-2-runs-fleet.md");
        assert!(markdown.starts_with("## The newest results of 2 runs on 2 nodes\n\n**1 fail, "), "{markdown}");
        assert!(markdown.contains("\n| r2 | cbd-light | smoke | ") && markdown.contains("\n| r1 | "), "{markdown}");
        assert!(markdown.contains("| 2 |\n\n| node | state | why |\n") && !markdown.contains("Run `"), "{markdown}");

        let document: Value = serde_json::from_str(&text(Format::Json).1).unwrap();
        assert_eq!((&document["schema"], &document["run"]), (&FLEET_SCHEMA.into(), &Value::Null));
        let ids: Vec<&Value> = document["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
        assert_eq!(ids, ["r2", "r1"]);
        let of: Vec<&Value> =
            document["nodes"][0]["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["run"]).collect();
        assert_eq!(of, ["r2", "r1"]);

        let (name, page) = text(Format::Html);
        assert_eq!(name, "muster-2-runs-fleet.html");
        for said in
            ["Report of several runs", "The newest results of 2 runs on 2 nodes", "r1 (cbd-light", "r2 (cbd-light"]
        {
            assert!(page.contains(said), "{said}: {page}");
        }
    }

    #[test]
    fn what_one_run_says_is_under_its_name_whichever_runs_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let (_store, config, runs) = two(dir.path());
        let names: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let written = |what: &Export| {
            let (name, csv) = Part::of(&runs, &names, what).unwrap().text(Format::Csv, &config).unwrap();
            let runs: BTreeSet<String> = rows(&csv).into_iter().map(|[run, ..]| run).collect();
            (name, rows(&csv).len(), runs.into_iter().collect::<Vec<_>>().join("+"))
        };
        let metric = |benchmark: &str| Export::Metric { metric: MetricId::new(benchmark, "a", "own") };
        let one = |name: &str, rows, run: &str| (name.to_owned(), rows, run.to_owned());
        assert_eq!(written(&metric("disk")), one("muster-r1-disk-a.csv", 6, "r1"));
        assert_eq!(written(&metric("cpu-gemm")), one("muster-r2-cpu-gemm-a.csv", 6, "r2"));
        assert_eq!(written(&Export::Run), one("muster-r2.csv", 6, "r2"));
        let node = Export::Node { node: "n3".to_owned() };
        assert_eq!(written(&node), one("muster-2-runs-n3.csv", 2, "r1+r2"));
        assert!(Part::of(&[], &names, &node).is_none());
    }
}
