//! `muster` without a subcommand: the console.

mod looks;
pub mod pairs;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use muster_fleet::hostlist;
use muster_playbook::Playbook;
use muster_playbook::report::Summary;
use muster_store::{Db, Run, RunState, Store};
use muster_tui::snapshot::{Ask, Load, Part, RunPhase};
use muster_tui::{Export, Intent, Screen};
use muster_wire::Level;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Common, Pick, select};
use crate::config::Config;
use crate::database;
use crate::engine::{self, Basis, Board, Observer};
use crate::exit::{Code, Ended, IO, PASS, Problem};
use crate::session::{self, Job};

/// How often the screen may change.
const TICK: Duration = Duration::from_millis(50);
/// How often verdicts are recomputed while results arrive.
const JUDGE: Duration = Duration::from_millis(700);

/// The console on the configured inventory; shows the newest run.
pub async fn run(config: &Config, common: &Common) -> Ended {
    let nodes = session::nodes(config, &Pick::default())?;
    let store = database::write(config)?;
    let title = config.inventory.value.file_stem().map_or("fleet".into(), |s| s.to_string_lossy().into_owned());
    let settings = session::settings(config)?;
    let job = Job::new(session::playbook("cbd-light")?, nodes, settings);
    let mut desk = Desk::new(job, store, config.clone(), common, &title);
    desk.show_newest()?;
    desk.sit(None).await
}

/// The console with a job that begins at once.
pub async fn with_job(job: Job, store: Db, config: Config, common: &Common) -> Ended {
    let first = (job.playbook.name.clone(), job.nodes.iter().map(|n| n.name.clone()).collect());
    let desk = Desk::new(job, store, config, common, "demo");
    desk.sit(Some(first)).await
}

/// What the console holds while it is open.
struct Desk {
    job: Job,
    store: Db,
    config: Config,
    read_only: bool,
    ascii: bool,
    board: Board,
    past: engine::Reader,
    /// What the Selector's answers rest on; read when first asked, and again after a run.
    basis: Option<Basis>,
    ask: Ask,
}

impl Desk {
    fn new(job: Job, store: Db, config: Config, common: &Common, title: &str) -> Self {
        let board = Board::new(title, &job.nodes);
        let past = engine::Reader::new(config.db.value.clone(), board.clone());
        let (read_only, ascii) = (common.read_only, common.ascii);
        let ask = select::Ask::default().question();
        Self { job, store, config, read_only, ascii, board, past, basis: None, ask }
    }

    fn show_newest(&mut self) -> Result<(), Problem> {
        let Some(run) = self.store.runs().code(IO)?.into_iter().next() else { return Ok(()) };
        let Ok(playbook) = session::playbook(&run.playbook) else { return Ok(()) };
        let plan = muster_playbook::plan(&playbook, &run.nodes);
        let records = self.store.records(&run.id).code(IO)?;
        self.board.begin(&run, &plan, records, shown(run.state));
        self.judge(&run);
        Ok(())
    }

    /// Serves the screen until the user leaves.
    async fn sit(mut self, first: Option<(String, Vec<String>)>) -> Ended {
        let (sender, mut intents) = mpsc::unbounded_channel();
        let (board, options) = (self.board.clone(), screen_options(&self.config, self.ascii, Screen::Fleet));
        let screen = std::thread::spawn(move || {
            muster_tui::run(options, &|| board.snapshot(), &|intent| drop(sender.send(intent)))
        });
        let ticking = tokio::spawn(tick(self.board.clone()));
        self.advise();
        if let Some((playbook, nodes)) = first {
            self.work(&playbook, &nodes, &mut intents).await;
        }
        while let Some(intent) = intents.recv().await {
            match intent {
                Intent::Quit => break,
                Intent::RunPlaybook { playbook, nodes } => self.work(&playbook, &nodes, &mut intents).await,
                Intent::RunSelection { benchmarks, nodes } => self.validate(&benchmarks, &nodes, &mut intents).await,
                Intent::Ask(ask) => {
                    self.ask = ask;
                    self.advise();
                }
                Intent::Clean { nodes } => self.clean(&nodes).await,
                Intent::Focus { node } => self.focus(&node),
                Intent::WhatIf(terms) => self.what_if(terms).await,
                Intent::Criteria => self.criteria(),
                Intent::Pair { src, dst } => self.board.pair(&src, &dst),
                Intent::PairMetric(name) => self.board.pair_metric(&name),
                other => self.small(other),
            }
        }
        ticking.abort();
        screen.join().map_err(|_| anyhow::anyhow!("the screen ended in a panic"))?.code(IO)?;
        Ok(PASS)
    }

    /// Answers the screen's question to the Selector.
    fn advise(&mut self) {
        let names: Vec<String> = self.job.nodes.iter().map(|n| n.name.clone()).collect();
        let basis = match self.basis.take() {
            Some(basis) => Ok(basis),
            None => tokio::task::block_in_place(|| self.basis_of(&names)),
        };
        match basis {
            Ok(basis) => {
                self.board.advise(Part::ready(engine::picture(&basis, &self.ask)));
                self.basis = Some(basis);
            }
            Err(problem) => self.board.advise(Part {
                load: Load::Failed {
                    what: "reading the incident history".to_owned(),
                    why: format!("{:#}", problem.error),
                    since_ms: engine::now_ms(),
                    next: "muster incidents list and muster model show say more".to_owned(),
                },
                data: None,
            }),
        }
    }

    fn basis_of(&self, names: &[String]) -> Result<Basis, Problem> {
        // Closer together where jobs are short: from an hour to the cap in equal ratios.
        let times = (0..=40).map(|k| engine::CAP_H.powf(f64::from(k) / 40.0)).collect();
        select::stored_basis(&self.store, (names, &session::playbook(select::REGULAR)?), None, times)
    }

    /// Carries a playbook through; one that leaves its benchmarks to the Selector runs what the Selector picks.
    async fn work(&mut self, playbook: &str, names: &[String], intents: &mut mpsc::UnboundedReceiver<Intent>) {
        let playbook = match session::playbook(playbook) {
            Ok(playbook) => playbook,
            Err(problem) => return self.board.say(Level::Error, format!("{:#}", problem.error)),
        };
        if !playbook.selects() {
            return self.carry(playbook, names, intents).await;
        }
        let basis = match self.basis_of(names) {
            Ok(basis) => basis,
            Err(problem) => return self.board.say(Level::Error, format!("{:#}", problem.error)),
        };
        let answer = basis.answer(&self.ask);
        self.board.say(Level::Info, answer.selection.reason.clone());
        let picks: Vec<String> = answer.selection.picks.iter().map(|p| p.benchmark.clone()).collect();
        self.validate(&picks, &basis.validate(&answer), intents).await;
    }

    /// Runs what the Selector picked.
    async fn validate(
        &mut self,
        benchmarks: &[String],
        names: &[String],
        intents: &mut mpsc::UnboundedReceiver<Intent>,
    ) {
        if benchmarks.is_empty() || names.is_empty() {
            return;
        }
        match session::playbook(select::REGULAR) {
            Ok(playbook) => self.carry(playbook.picked(benchmarks), names, intents).await,
            Err(problem) => self.board.say(Level::Error, format!("{:#}", problem.error)),
        }
    }

    /// Carries a run through while the screen goes on, listening for a cancel.
    async fn carry(&mut self, playbook: Playbook, names: &[String], intents: &mut mpsc::UnboundedReceiver<Intent>) {
        if let Err(problem) = self.try_carry(playbook, names, intents).await {
            self.board.phase(RunPhase::Interrupted);
            self.board.say(Level::Error, format!("{:#}", problem.error));
        }
        self.basis = None;
        self.advise();
    }

    async fn try_carry(
        &mut self,
        playbook: Playbook,
        names: &[String],
        intents: &mut mpsc::UnboundedReceiver<Intent>,
    ) -> Result<(), Problem> {
        let nodes = self.job.nodes.iter().filter(|n| names.contains(&n.name)).cloned().collect();
        let (settings, probe) = (self.job.settings.clone(), self.job.probe.clone());
        let name = playbook.name.clone();
        let fabric = self.job.fabric.clone();
        let job = Job { playbook, nodes, settings, probe, fabric, fresh: self.job.fresh, visits: self.job.visits };
        let (run, scan) = session::begin(&job, &mut self.store, &self.config)?;
        let before = self.store.records(&run.id).code(IO)?;
        self.board.begin(&run, &scan.plan, before, RunPhase::Running);
        let cancel = CancellationToken::new();
        let judging = tokio::spawn(judge_often(self.board.clone(), run.clone(), scan.judging.clone()));
        let mut watcher = self.board.clone();
        let mut watchers: [&mut dyn Observer; 1] = [&mut watcher];
        let mut leave = false;
        let state = {
            let scanning = engine::scan(&scan, &mut self.store, &mut watchers, &cancel);
            tokio::pin!(scanning);
            loop {
                tokio::select! {
                    ended = &mut scanning => break ended,
                    intent = intents.recv(), if !leave => match intent {
                        Some(Intent::Cancel) => { self.board.phase(RunPhase::Cancelling); cancel.cancel(); }
                        Some(Intent::Quit) | None => { leave = true; cancel.cancel(); }
                        Some(Intent::Focus { node }) => { self.board.focus(&node); self.past.ask(&node); }
                        Some(Intent::Pair { src, dst }) => self.board.pair(&src, &dst),
                        Some(Intent::PairMetric(name)) => self.board.pair_metric(&name),
                        Some(_) => self.board.say(Level::Info, "a run is going on; cancel it first (c)"),
                    },
                }
            }
        };
        judging.abort();
        let state = state.code(IO)?;
        session::conclude(&mut self.store, &run.id, state, &self.config)?;
        self.board.phase(shown(state));
        self.judge(&run);
        let folded = hostlist::fold(names.iter().map(String::as_str));
        self.board.say(Level::Info, format!("{name} on {folded}: {}", shown(state).word()));
        if leave {
            intents.close();
        }
        Ok(())
    }

    fn judge(&self, run: &Run) {
        self.tell_damage();
        if let Some(records) = self.board.unjudged() {
            match engine::Judging::of(&self.store, run, session::params(&self.config)) {
                Ok(judging) => {
                    let found = engine::assess(run, records.iter().map(Arc::as_ref), &judging);
                    self.board.judge(run, &found, &records);
                    self.board.pairs(engine::Pairs::of_run(run, &records, &judging.terms.params));
                }
                Err(why) => self.board.say(Level::Error, format!("{why:#}")),
            }
        }
    }

    fn tell_damage(&self) {
        for notice in self.store.notices() {
            self.board.say(Level::Warn, format!("database: {notice}"));
        }
    }

    async fn clean(&self, names: &[String]) {
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids removing probes");
        }
        let nodes: Vec<_> = self.job.nodes.iter().filter(|n| names.contains(&n.name)).cloned().collect();
        let results = muster_fleet::clean(&nodes, self.job.settings.clone()).await;
        let failed = results.iter().filter(|(_, r)| r.is_err()).count();
        for failure in results.iter().filter_map(|(_, r)| r.as_ref().err()) {
            self.board.say(Level::Warn, failure.message.clone());
        }
        self.board
            .say(Level::Info, format!("probes removed from {} of {} nodes", results.len() - failed, results.len()));
    }

    fn small(&self, intent: Intent) {
        match intent {
            Intent::Export(what) => match self.export(&what) {
                Ok(file) => self.board.say(Level::Info, format!("written to {file}")),
                Err(problem) => self.board.say(Level::Error, format!("{:#}", problem.error)),
            },
            Intent::Cancel => self.board.say(Level::Info, "no run is going on"),
            _ => {}
        }
    }

    /// Writes the part of the latest run that is asked for, as a document of the same form.
    fn export(&self, what: &Export) -> Result<String, Problem> {
        if let Export::Log = what {
            return self.export_log();
        }
        let mut report = session::report_of(&self.store, None, &self.config)?;
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
                report
                    .nodes
                    .iter_mut()
                    .for_each(|n| n.verdicts.retain(|v| v.metric == path && v.engine == metric.engine));
                format!("-{}", plain(&path))
            }
        };
        report.summary = Summary::of(report.nodes.iter().map(|n| (n.state, n.undecided)));
        let text = serde_json::to_string_pretty(&report).code(IO)?;
        write(format!("muster-{}{part}.json", report.run.id), &text)
    }

    fn export_log(&self) -> Result<String, Problem> {
        let snapshot = self.board.snapshot();
        let lines: Vec<String> =
            snapshot.messages.iter().map(|m| format!("{} {:?} {}", m.at_ms, m.level, m.text)).collect();
        write(format!("muster-log-{}.txt", snapshot.now_ms), &(lines.join("\n") + "\n"))
    }
}

/// How the screen draws, and where it opens.
fn screen_options(config: &Config, ascii: bool, first: Screen) -> muster_tui::Options {
    let color = match config.color.value.as_str() {
        "always" => true,
        "never" => false,
        _ => std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    };
    muster_tui::Options { ascii: ascii || !draws_unicode(&|name| std::env::var(name).ok()), color, first }
}

/// Whether the locale and the terminal can show more than ASCII, as far as the environment says it.
fn draws_unicode(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let given = |name: &&str| variable(name).filter(|value| !value.is_empty());
    // In this order, as setlocale(3) does.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(given).unwrap_or_default().to_lowercase();
    let plain = ["dumb", "linux", "vt52", "vt100", "vt102", "vt220", "ansi"];
    let terminal = variable("TERM").unwrap_or_default();
    (locale.contains("utf-8") || locale.contains("utf8")) && !plain.contains(&terminal.as_str())
}

fn write(file: String, text: &str) -> Result<String, Problem> {
    std::fs::write(&file, text).map_err(|why| anyhow::anyhow!("{file}: {why}"))?;
    Ok(file)
}

/// `name` as part of a file name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}

async fn tick(board: Board) {
    loop {
        tokio::time::sleep(TICK).await;
        board.publish();
    }
}

async fn judge_often(board: Board, run: Run, judging: engine::Judging) {
    loop {
        tokio::time::sleep(JUDGE).await;
        let Some(records) = board.unjudged() else { continue };
        let (run, judging, board) = (run.clone(), judging.clone(), board.clone());
        // On the blocking pool: a large fleet takes seconds, and the stream of frames must not wait.
        let _ = tokio::task::spawn_blocking(move || {
            let found = engine::assess(&run, records.iter().map(Arc::as_ref), &judging);
            board.judge(&run, &found, &records);
            board.pairs(engine::Pairs::of_run(&run, &records, &judging.terms.params));
        })
        .await;
    }
}

const fn shown(state: RunState) -> RunPhase {
    match state {
        RunState::Running => RunPhase::Running,
        RunState::Finished => RunPhase::Finished,
        RunState::Cancelled => RunPhase::Cancelled,
        RunState::Interrupted => RunPhase::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_or_a_terminal_that_cannot_gets_ascii() {
        let draws = |set: &[(&str, &str)]| {
            draws_unicode(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(draws(&[("LANG", "en_GB.UTF-8"), ("TERM", "xterm-256color")]));
        assert!(draws(&[("LANG", "C"), ("LC_CTYPE", "C.utf8"), ("TERM", "screen")]));
        assert!(!draws(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C"), ("TERM", "xterm")]));
        assert!(!draws(&[("LANG", "en_GB.UTF-8"), ("TERM", "linux")]));
        assert!(!draws(&[("TERM", "xterm")]));
    }
}
