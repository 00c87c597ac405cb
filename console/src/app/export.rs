//! What the screen shows, as a file.

use std::collections::HashMap;

use muster_playbook::report::Summary;
use muster_store::Store;
use muster_tui::{Export, Snapshot};
use muster_wire::Level;

use super::App;
use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::session;

impl App {
    /// Writes what is asked for and says where.
    pub(super) fn export(&self, what: Export) {
        let (board, snapshot, config) = (self.board.clone(), self.board.snapshot(), self.config.clone());
        let tell = move |written: Result<String, Problem>| match written {
            Ok(file) => board.say(Level::Info, format!("written to {file}")),
            Err(problem) => board.say(Level::Error, format!("{:#}", problem.error)),
        };
        if let Export::Log = what {
            return tell(log(&snapshot));
        }
        let id = snapshot.run.as_deref().map(|run| run.id.clone());
        self.look_up(move |store| tell(part(store, id.as_deref(), &what, &config)));
    }
}

/// Writes the part of the run that is asked for, as a document of the same form.
fn part(store: &dyn Store, run: Option<&str>, what: &Export, config: &Config) -> Result<String, Problem> {
    let mut report = session::report_of(store, run, config)?;
    let part = match what {
        Export::Run | Export::Log => String::new(),
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
            nodes.for_each(|n| n.verdicts.retain(|v| v.metric == path && v.engine == metric.engine));
            format!("-{}", plain(&path))
        }
    };
    report.summary = Summary::of(report.nodes.iter().map(|n| (n.state, n.undecided)));
    let text = serde_json::to_string_pretty(&report).code(IO)?;
    write(format!("muster-{}{part}.json", report.run.id), &text)
}

fn log(snapshot: &Snapshot) -> Result<String, Problem> {
    let line = |m: &muster_tui::snapshot::Message| format!("{} {:?} {}\n", m.at_ms, m.level, m.text);
    let lines: String = snapshot.messages.iter().map(line).collect();
    write(format!("muster-log-{}.txt", snapshot.now_ms), &lines)
}

fn write(file: String, text: &str) -> Result<String, Problem> {
    std::fs::write(&file, text).map_err(|why| anyhow::anyhow!("{file}: {why}"))?;
    Ok(file)
}

/// `name` as part of a file name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}
