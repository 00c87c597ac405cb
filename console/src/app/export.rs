//! What the screen shows, as a file.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use muster_playbook::report::{self, RunReport, Summary};
use muster_run::Run;
use muster_tui::{Export, Format, Snapshot};
use muster_wire::Level;

use super::App;
use crate::config::Config;
use crate::database;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::judge::{Told, report_of_all};
use crate::pages::{self, About};
use crate::redact::{Redact, Redaction};
use crate::views::page::case_page;
use crate::views::{WatchReport, triage_csv, triage_markdown};

/// What is replaced in pages and cases written from the screen. Names of nodes stay.
const HIDDEN: [Redact; 2] = [Redact::Addresses, Redact::Serials];

impl App {
    /// Writes what is asked for and says where.
    pub(super) fn export(&self, what: Export, format: Format) {
        let (board, snapshot) = (self.board.clone(), self.board.snapshot());
        let tell = move |written: Result<String, Problem>| match written {
            Ok(file) => board.say(Level::Info, format!("written to {file}")),
            Err(problem) => board.say(Level::Error, format!("{:#}", problem.error)),
        };
        if let Export::Watch = what {
            return tell(watch(&snapshot, format));
        }
        if let Export::Triage = what {
            return tell(triage(&snapshot, format));
        }
        if let Export::Log = what {
            return tell(log(&snapshot));
        }
        if format == Format::Html {
            let (runs, config) = (self.fleet.shown(), self.config.clone());
            // The question was about the rows shown.
            let more = if matches!(what, Export::Fleet { .. }) { " (all nodes of the run)" } else { "" };
            tokio::task::spawn_blocking(move || {
                let written = page(&runs, &what, &config).and_then(|(name, text)| write(&name, &text));
                tell(written.map(|file| file + more));
            });
            return;
        }
        let (runs, names) = (self.fleet.shown(), self.board.names());
        tokio::task::spawn_blocking(move || match report_of_all(&runs, &names) {
            Some(report) => tell(part(report, &what, format)),
            None => tell(Err(anyhow::anyhow!("nothing has been measured yet").into())),
        });
    }
}

/// File name and text of the report, from the newest of these runs that measured what is asked for.
fn page(runs: &[Arc<Told>], what: &Export, config: &Config) -> Result<(String, String), Problem> {
    let metric = if let Export::Metric { metric } = what { metric.path() } else { String::new() };
    let (about, part) = match what {
        Export::Node { node } => (About::Node(node), format!("-{}", plain(node))),
        Export::Metric { .. } => (About::Metric(&metric), format!("-{}", plain(&metric))),
        _ => (About::Run, String::new()),
    };
    let store = database::read(config)?;
    let mut newest: Vec<&Run> = runs.iter().map(|told| &told.run).collect();
    newest.sort_by_key(|run| Reverse(run.started_ms));
    let mut missing = anyhow::anyhow!("nothing has been measured yet").into();
    for run in newest {
        match pages::of_run((&*store, run), config, about, &HIDDEN) {
            Ok(text) => return Ok((format!("muster-{}{part}.html", run.id), text)),
            // An earlier run may have that node or metric.
            Err(problem) if problem.code == USAGE => missing = problem,
            Err(problem) => return Err(problem),
        }
    }
    Err(missing)
}

/// Writes the part of a report that is asked for, as a document of the same form.
fn part(mut report: RunReport, what: &Export, format: Format) -> Result<String, Problem> {
    let part = match what {
        Export::Run | Export::Log | Export::Watch | Export::Triage => String::new(),
        Export::Fleet { nodes } => {
            let place: HashMap<&str, usize> = nodes.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
            report.nodes.retain(|n| place.contains_key(n.node.as_str()));
            report.nodes.sort_by_key(|n| place.get(n.node.as_str()).copied());
            "-fleet".to_owned()
        }
        Export::Node { node } => {
            report.nodes.retain(|n| &n.node == node);
            format!("-{}", plain(node))
        }
        Export::Metric { metric } => {
            let path = metric.path();
            report.criteria.retain(|c| c.metric == path && c.engine == metric.engine);
            let nodes = report.nodes.iter_mut();
            nodes.for_each(|n| n.verdicts.retain(|v| v.of.metric == path && v.of.engine == metric.engine));
            format!("-{}", plain(&path))
        }
    };
    report.summary = Summary::of(report.nodes.iter().map(|n| (n.state, n.undecided)));
    let (text, ending) = match format {
        Format::Json => (serde_json::to_string_pretty(&report).code(IO)?, "json"),
        Format::Markdown => (report::markdown(&report), "md"),
        Format::Csv => (report::csv(&report), "csv"),
        Format::Html => return Err(anyhow::anyhow!("a page is made of a stored run").into()),
    };
    write(&format!("muster-{}{part}.{ending}", report.run.id), &text)
}

/// What the watch found: the document, a ticket's text, or a row an alert.
fn watch(snapshot: &Snapshot, format: Format) -> Result<String, Problem> {
    let Some(watch) = snapshot.watch.data.as_deref() else {
        return Err(anyhow::anyhow!("nothing has been watched yet").into());
    };
    let report = WatchReport::of(watch);
    let (text, ending) = match format {
        Format::Json => (serde_json::to_string_pretty(&report).code(IO)?, "json"),
        Format::Markdown => (report.markdown(), "md"),
        Format::Csv => (report.csv().code(IO)?, "csv"),
        Format::Html => {
            let how = "a page of a watch needs its recording: muster export --recording ID --format html -o job.html";
            return Err(anyhow::anyhow!(how).into());
        }
    };
    write(&format!("muster-watch-{}.{ending}", snapshot.now_ms), &text)
}

/// What triage says, without addresses and serial numbers as everything that is exported: the document, a ticket's text, or a row a
/// suspect.
fn triage(snapshot: &Snapshot, format: Format) -> Result<String, Problem> {
    let Some(triaged) = snapshot.triage.data.as_deref() else {
        return Err(anyhow::anyhow!("no case is open").into());
    };
    let report = &triaged.overview.report;
    let mut redaction = Redaction::new(&HIDDEN, &triaged.overview.nodes, []);
    let (text, ending) = match format {
        Format::Json => {
            let document = redaction.document(report).code(IO)?;
            (serde_json::to_string_pretty(&document).code(IO)?, "json")
        }
        Format::Markdown => (triage_markdown(report, &mut |text| redaction.text(text)), "md"),
        Format::Csv => (triage_csv(report, &mut |text| redaction.text(text)).code(IO)?, "csv"),
        Format::Html => (pages::written(case_page(&triaged.name, &triaged.overview), &mut redaction).code(IO)?, "html"),
    };
    write(&format!("muster-triage-{}-{}.{ending}", plain(&triaged.name), snapshot.now_ms), &text)
}

fn log(snapshot: &Snapshot) -> Result<String, Problem> {
    let line = |m: &muster_tui::snapshot::Message| format!("{} {:?} {}\n", m.at_ms, m.level, m.text);
    let lines: String = snapshot.messages.iter().map(line).collect();
    write(&format!("muster-log-{}.txt", snapshot.now_ms), &lines)
}

/// Writes into the directory that the console was started in; gives the whole path.
fn write(name: &str, text: &str) -> Result<String, Problem> {
    let file = std::env::current_dir().unwrap_or_default().join(name);
    std::fs::write(&file, text).map_err(|why| anyhow::anyhow!("{}: {why}", file.display())).code(IO)?;
    Ok(file.display().to_string())
}

/// `name` as part of a file name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::back::tests::measured;
    use crate::app::fleet::judged;
    use crate::config::{Raw, resolve};
    use muster_store::{Db, Options, Store};
    use muster_wire::MetricId;

    #[test]
    fn a_page_is_of_the_newest_run_that_has_the_metric_and_says_when_none_has() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        measured(&mut store, "r1", 1_000, &["cpu-gemm", "disk"], 1.0);
        measured(&mut store, "r2", 2_000, &["cpu-gemm"], 0.5);
        let raw = Raw { db: Some(dir.path().to_owned()), ..Raw::default() };
        let config = resolve(raw, Raw::default(), std::path::Path::new("none.toml")).unwrap();
        let told = |id: &str| Arc::new(judged(&store, store.run(id).unwrap().unwrap(), &config, None).unwrap());
        let runs = [told("r1"), told("r2")];
        let of = |benchmark: &str| {
            let metric = MetricId::new(benchmark, "a", "own");
            page(&runs, &Export::Metric { metric }, &config).map_err(|problem| problem.error.to_string())
        };
        let (name, text) = of("cpu-gemm").unwrap();
        assert_eq!(name, "muster-r2-cpu-gemm-a.html");
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains("n3"), "{text}");
        assert_eq!(of("disk").unwrap().0, "muster-r1-disk-a.html");
        assert!(of("nic").unwrap_err().contains("has no metric 'nic/a'"));
        let node = page(&runs, &Export::Node { node: "n3".into() }, &config).unwrap();
        assert_eq!(node.0, "muster-r2-n3.html");
    }
}
