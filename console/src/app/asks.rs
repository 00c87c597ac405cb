//! What the screen asks while it only looks: other terms, versions of criteria, the Selector, the stored runs.

use muster_analysis::Criterion;
use muster_fleet::hostlist;
use muster_run::Run;
use muster_store::Store;
use muster_tui::snapshot::{Load, Part, RunRow, Runs, Terms};
use muster_wire::Level;

use super::fleet::judged;
use super::run::{begin, shown};
use super::{App, back};
use crate::exit::Problem;
use crate::risk::Basis;
use crate::{clock, database, judge, risk, session, views};

impl App {
    /// What other terms would say of the run that is shown.
    pub(super) fn what_if(&self, terms: Option<Terms>) {
        let snapshot = self.board.snapshot();
        let (Some(terms), Some(id)) = (terms, snapshot.run.as_deref().map(|run| run.id.clone())) else {
            return self.board.what_if(None);
        };
        let (board, params) = (self.board.clone(), session::params(&self.config));
        let until_ms = snapshot.replay().map_or(u64::MAX, |replay| replay.at_ms);
        // Against what that run says by itself: a row may hold what other runs say as well.
        let Some(told) = self.fleet.shown().into_iter().find(|told| told.run.id == id) else { return };
        self.look_up(move |store| {
            let asked = judge::Judging::of(store, &told.run, params).and_then(|judging| {
                let mut records = store.records(&told.run.id)?;
                records.retain(|record| record.at_ms <= until_ms);
                let Some(version) = &terms.version else { return Ok((records, judging)) };
                let Terms { alpha, tau, .. } = terms;
                let criterion = judge::find(store, version)?.criterion;
                Ok((records, judging.instead(Criterion { alpha, tau, ..criterion })))
            });
            match asked {
                Ok((records, judging)) => {
                    let answer = views::what_if(&told, records.iter(), &judging, &snapshot.nodes, &terms);
                    board.what_if(Some(answer));
                }
                Err(why) => board.say(Level::Error, format!("{why:#}")),
            }
        });
    }

    pub(super) fn criteria(&self) {
        let board = self.board.clone();
        self.look_up(move |store| {
            board.criteria(match views::shelf(store) {
                Ok(criteria) => Part::ready(criteria),
                Err(why) => failed("reading the criteria", &why, "`muster db check` looks for damage."),
            });
        });
    }

    /// Answers the screen's question to the Selector.
    pub(super) fn advise(&mut self) {
        // While a run goes on nothing new is known; the answer comes after it.
        if self.basis.is_none() {
            let names = self.names.all();
            let basis = match (&self.store, &self.watching) {
                (Some(store), _) => tokio::task::block_in_place(|| basis_of(store, &names)),
                (None, Some(_)) => database::read(&self.config).and_then(|store| basis_of(&*store, &names)),
                (None, None) => return,
            };
            match basis {
                Ok(basis) => self.basis = Some(basis),
                Err(problem) => {
                    let next = "muster incidents list and muster model show say more";
                    return self.board.advise(failed("reading the incident history", &problem.error, next));
                }
            }
        }
        if let Some(basis) = &self.basis {
            self.board.advise(Part::ready(risk::picture(basis, &self.ask)));
        }
    }

    /// The same from what is known by now.
    pub(super) fn advise_anew(&mut self) {
        self.basis = None;
        self.advise();
    }

    pub(super) fn runs(&self) {
        let (board, fleet) = (self.board.clone(), self.fleet.clone());
        self.look_up(move |store| {
            let current = fleet.current();
            board.runs(match store.runs() {
                Ok(runs) => {
                    Part::ready(Runs { rows: runs.iter().map(|run| row(run, current.contains(&run.id))).collect() })
                }
                Err(why) => failed("reading the runs", &why.into(), "`muster db check` looks for damage."),
            });
        });
    }

    /// Shows one stored run by itself, whether of a playbook or an import; `None` shows the fleet again.
    pub(super) fn open(&mut self, run: Option<String>) {
        if self.going.is_some() {
            return self.busy();
        }
        let Some(id) = run else {
            self.board.reset(&self.names.all(), &self.job.nodes, None);
            if let Some(newest) = self.fleet.newest() {
                begin(&self.board, &newest);
            }
            self.fleet.alone(None);
            return back::look_back(&self.fleet, &self.config);
        };
        let reading = format!("reading run {id}");
        self.board.say(Level::Info, reading.clone());
        let (board, fleet, config, nodes) =
            (self.board.clone(), self.fleet.clone(), self.config.clone(), self.job.nodes.clone());
        self.look_up(move |store| {
            let run = session::run_of(store, Some(&id)).map_err(|problem| problem.error);
            let reads = board.reads(&id);
            let told = run.and_then(|run| judged(store, run, &config, Some(&reads)));
            board.unsay(&reading);
            match told {
                Ok(told) => {
                    board.reset(&told.run.nodes, &nodes, Some(&told.run.id));
                    begin(&board, &told);
                    fleet.alone(Some(told));
                    drop(reads);
                    back::look_back(&fleet, &config);
                }
                Err(why) => board.say(Level::Error, format!("run {id} cannot be shown: {why:#}")),
            }
        });
    }

    /// Removes probes from nodes, beside whatever goes on.
    pub(super) fn clean(&self, names: &[String]) {
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids removing probes");
        }
        let nodes: Vec<_> = self.job.nodes.iter().filter(|n| names.contains(&n.name)).cloned().collect();
        let (board, settings) = (self.board.clone(), self.job.settings.clone());
        tokio::spawn(async move {
            let results = muster_fleet::clean(&nodes, settings).await;
            let failed = results.iter().filter(|(_, r)| r.is_err()).count();
            for failure in results.iter().filter_map(|(_, r)| r.as_ref().err()) {
                board.say(Level::Warn, failure.message.clone());
            }
            board
                .say(Level::Info, format!("probes removed from {} of {} nodes", results.len() - failed, results.len()));
        });
    }
}

/// What the Selector's answers on the nodes called `names` rest on.
pub(super) fn basis_of(store: &dyn Store, names: &[String]) -> Result<Basis, Problem> {
    // Closer together where jobs are short: from an hour to the cap in equal ratios.
    let times = (0..=40).map(|k| risk::CAP_H.powf(f64::from(k) / 40.0)).collect();
    session::stored_basis(store, (names, &session::playbook(session::REGULAR)?), None, times)
}

fn failed<T>(what: &str, why: &anyhow::Error, next: &str) -> Part<T> {
    let (what, why, next) = (what.to_owned(), format!("{why:#}"), next.to_owned());
    Part { load: Load::Failed { what, why, since_ms: clock::now_ms(), next }, data: None }
}

fn row(run: &Run, current: bool) -> RunRow {
    RunRow {
        run: views::info(run, shown(run.state)),
        nodes: run.nodes.len(),
        names: hostlist::fold(run.nodes.iter().map(String::as_str)),
        plan: run.plan.clone().into(),
        current,
    }
}
