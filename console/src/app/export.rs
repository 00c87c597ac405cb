//! What the screen shows, as a file.

mod part;

use std::cmp::Reverse;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use muster_run::Run;
use muster_tui::{Export, Format, Snapshot};
use muster_wire::Level;

use self::part::Part;
use super::App;
use crate::config::Config;
use crate::database;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::judge::Told;
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
            Ok(said) => board.say(Level::Info, said),
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
        let (runs, names, config) = (self.fleet.shown(), self.board.names(), self.config.clone());
        tokio::task::spawn_blocking(move || {
            // Of a fleet the nodes that are shown; all else has a page of its own.
            let made = if format == Format::Html && !matches!(what, Export::Fleet { .. }) {
                page(&runs, &what, &config)
            } else {
                let part = Part::of(&runs, &names, &what);
                let none = || anyhow::anyhow!("nothing has been measured yet").into();
                part.ok_or_else(none).and_then(|part| part.text(format, &config))
            };
            tell(made.and_then(|(name, text)| write(&name, &text)));
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

/// Writes into the directory that the console was started in; says under which name, and where.
fn write(name: &str, text: &str) -> Result<String, Problem> {
    let dir = std::env::current_dir().unwrap_or_default();
    let name = write_into(&dir, name, text).code(IO)?;
    // The line has room for the name at least.
    Ok(format!("{name} written to {}", dir.display()))
}

/// Writes `text` under `name`, or, as nothing is written over, under that name with the first number that is free.
fn write_into(dir: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let mut number = 1;
    loop {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}.{ending}") };
        let file = dir.join(&name);
        let mut to = match File::create_new(&file) {
            Ok(to) => to,
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                number += 1;
                continue;
            }
            Err(why) => return Err(anyhow::anyhow!("{}: {why}", file.display())),
        };
        if let Err(why) = to.write_all(text.as_bytes()) {
            // A torn file under its name would be taken for a whole one.
            let _ = std::fs::remove_file(&file);
            return Err(anyhow::anyhow!("{}: {why}", file.display()));
        }
        return Ok(name);
    }
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
    fn nothing_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| write_into(dir.path(), name, text).unwrap();
        assert_eq!(written("muster-r1-fleet.csv", "all"), "muster-r1-fleet.csv");
        assert_eq!(written("muster-r1-fleet.csv", "some"), "muster-r1-fleet-2.csv");
        assert_eq!(written("muster-r1-fleet.csv", "few"), "muster-r1-fleet-3.csv");
        let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!((text("muster-r1-fleet.csv"), text("muster-r1-fleet-2.csv")), ("all".into(), "some".into()));
        let why = write_into(&dir.path().join("none"), "a.csv", "").unwrap_err().to_string();
        assert!(why.contains("none/a.csv: "), "{why}");
    }

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
