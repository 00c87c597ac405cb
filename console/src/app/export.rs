//! What the screen shows, as a file.

use std::collections::HashMap;

use muster_playbook::report::{self, RunReport, Summary};
use muster_tui::{Export, Format, Snapshot};
use muster_wire::Level;

use super::App;
use crate::exit::{Code, IO, Problem};
use crate::judge::report_of_all;
use crate::redact::{Redact, Redaction};
use crate::views::{WatchReport, triage_csv, triage_markdown};

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
        let (runs, names) = (self.fleet.shown(), self.board.names());
        tokio::task::spawn_blocking(move || match report_of_all(&runs, &names) {
            Some(report) => tell(part(report, &what, format)),
            None => tell(Err(anyhow::anyhow!("nothing has been measured yet").into())),
        });
    }
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
    let mut redaction = Redaction::new(&[Redact::Addresses, Redact::Serials], &triaged.overview.nodes, []);
    let (text, ending) = match format {
        Format::Json => {
            let document = redaction.document(report).code(IO)?;
            (serde_json::to_string_pretty(&document).code(IO)?, "json")
        }
        Format::Markdown => (triage_markdown(report, &mut |text| redaction.text(text)), "md"),
        Format::Csv => (triage_csv(report, &mut |text| redaction.text(text)).code(IO)?, "csv"),
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
