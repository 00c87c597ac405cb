//! A replay file of a run: its run file, what it was judged by, what is usual for its playbook, and the labels of its nodes; and the
//! database of its own that such a file becomes again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use muster_analysis::history::Outcomes;
use muster_analysis::records::cards::looked_at;
use muster_fleet::{Inventory, Node};
use muster_playbook::report::RunReport;
use muster_run::{Record, Run};
use muster_store::portable::{Kind, take_in};
use muster_store::{Db, Options, Store, Table, portable};
use serde::{Deserialize, Serialize};

use super::{Unpacked, labels, of_bytes, of_file};
use crate::config::{Config, Source};
use crate::exit::{CONFIG, Code, IO, Problem};
use crate::judge::{self, Judging, Terms};
use crate::{database, session};

/// Names of the parts.
const LOG: &str = "run.log";
const ABOUT: &str = "about.json";

/// What is to be known of a run besides its records.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// Its identity.
    run: String,
    /// Thresholds that it was judged by.
    alpha: f64,
    tau: f64,
    /// What the database kept of it.
    entries: Vec<Entry>,
    /// How many nodes usually fail each benchmark and check of its playbook.
    usual: BTreeMap<String, Outcomes>,
}

/// An entry of a table. All of them are JSON, kept letter by letter.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    table: Kept,
    key: String,
    text: String,
}

/// Tables that verdicts depend on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Terms,
    Criteria,
    Cards,
}

impl From<Kept> for Table {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Terms => Self::Terms,
            Kept::Criteria => Self::Criteria,
            Kept::Cards => Self::Cards,
        }
    }
}

/// Writes `run` of the database that `config` names.
///
/// # Errors
/// When it cannot be read.
pub fn write((store, run): (&dyn Store, &Run), config: &Config, to: &mut dyn Write) -> anyhow::Result<()> {
    let about = About::of(store, run, config)?;
    let names: BTreeSet<&str> = run.nodes.iter().map(String::as_str).collect();
    let labels = labels::written(&names, config)?;
    let log = of_file(LOG.to_owned(), &portable::file_of(&config.db.value, &run.id))?;
    let parts = vec![of_bytes(ABOUT, &serde_json::to_vec(&about)?), of_bytes(labels::NAME, &labels), log];
    super::write(to, (Kind::Run, &run.id), parts)
}

impl About {
    fn of(store: &dyn Store, run: &Run, config: &Config) -> anyhow::Result<Self> {
        let asked = session::params(config);
        let mut entries = Vec::new();
        let mut keep = |table: Kept, key: &str| -> anyhow::Result<()> {
            if let Some(bytes) = store.get(table.into(), key)? {
                let text = String::from_utf8(bytes).with_context(|| format!("{key} is no text"))?;
                entries.push(Entry { table, key: key.to_owned(), text });
            }
            Ok(())
        };
        keep(Kept::Terms, &run.id)?;
        let terms: Option<Terms> =
            store.get(Table::Terms, &run.id)?.map(|bytes| serde_json::from_slice(&bytes)).transpose()?;
        for id in terms.iter().flat_map(|terms| &terms.frozen) {
            keep(Kept::Criteria, id)?;
        }
        if looked_at(run) {
            for seen in store.list(Table::Cards)? {
                keep(Kept::Cards, &seen.key)?;
            }
        }
        let (alpha, tau) = terms.map_or((asked.alpha, asked.tau), |terms| (terms.params.alpha, terms.params.tau));
        let params = muster_analysis::Params { alpha, tau, ..asked };
        Ok(Self { run: run.id.clone(), alpha, tau, entries, usual: judge::usual(store, run, &params)? })
    }
}

/// A run out of a replay file, in a database of its own that goes with this.
#[derive(Debug)]
pub struct Recorded {
    /// The run.
    pub run: Run,
    /// The settings in force, but with that database, and judged as then unless the command line says otherwise.
    pub config: Config,
    /// Its nodes, with their labels.
    pub nodes: Vec<Node>,
    usual: BTreeMap<String, Outcomes>,
    /// Where its database lies.
    _home: Unpacked,
}

impl Recorded {
    /// The run that a replay file holds.
    ///
    /// # Errors
    /// When a part of it is missing or is not what its name says.
    pub fn of(file: Unpacked, config: &Config) -> Result<Self, Problem> {
        let about: About = serde_json::from_str(&file.text(ABOUT)?).with_context(|| ABOUT.to_owned()).code(CONFIG)?;
        let db = furnished(&file, &about)?;
        let mut config = config.clone();
        config.db.value = db;
        for (setting, then) in [(&mut config.alpha, about.alpha), (&mut config.tau, about.tau)] {
            if setting.source != Source::Flag {
                setting.value = then;
            }
        }
        let known = file.inventory().map(|path| Inventory::load(&path)).transpose().map_err(|why| anyhow!("{why}"));
        let known = known.with_context(|| labels::NAME.to_owned()).code(CONFIG)?.unwrap_or_default();
        let store = database::read(&config)?;
        let run = store.run(&about.run).code(IO)?;
        let run = run.ok_or_else(|| anyhow!("the replay file holds no run {}", muster_wire::clean(&about.run, 96)));
        let run = run.code(CONFIG)?;
        let of =
            |name: &String| known.node(name).cloned().unwrap_or_else(|| Node { name: name.clone(), ..Node::default() });
        let nodes = run.nodes.iter().map(of).collect();
        Ok(Self { run, config, nodes, usual: about.usual, _home: file })
    }

    /// Its records.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn records(&self) -> Result<Vec<Arc<Record>>, Problem> {
        let store = database::read(&self.config)?;
        Ok(store.records(&self.run.id).code(IO)?.into_iter().map(Arc::new).collect())
    }

    /// By what it is judged.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn judging(&self) -> Result<Judging, Problem> {
        let store = database::read(&self.config)?;
        Judging::of(&*store, &self.run, session::params(&self.config)).code(IO)
    }

    /// What is said of it, as at its end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn report(&self) -> Result<RunReport, Problem> {
        let store = database::read(&self.config)?;
        let said = session::nodes_of(&*store, &self.run, &self.config, |_| true)?;
        let mut report = judge::report_of_nodes(&self.run, &said).code(IO)?;
        if !report.alarms.is_empty() {
            report.weigh(&self.usual);
        }
        Ok(report)
    }
}

/// A new database that holds what the file has of the run.
fn furnished(file: &Unpacked, about: &About) -> Result<PathBuf, Problem> {
    let dir = file.dir().join("db");
    drop(Db::open(&dir, &Options::default()).code(IO)?);
    take_in(&dir, &about.run, &file.part(LOG)?).code(CONFIG)?;
    let mut store = Db::open(&dir, &Options::default()).code(IO)?;
    for Entry { table, key, text } in &about.entries {
        store.put((*table).into(), key, text.as_bytes()).code(CONFIG)?;
    }
    Ok(dir)
}
