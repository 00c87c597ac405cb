//! The case that is looked into: read aside, judged, shown; marks and confirmed causes are kept.
//!
//! Whatever a case comes from, it is shown by [`Desk::show`]: of a bundle, [`App::triage`] reads one, and [`App::triage_again`] asks
//! the nodes again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use muster_fleet::Node;
use muster_logs::Rules;
use muster_store::Store;
use muster_triage::case::Case;
use muster_triage::marks::Marks;
use muster_triage::offline::Offline;
use muster_triage::overview::{Overview, overview};
use muster_triage::report::Subject;
use muster_tui::Screen;
use muster_tui::snapshot::{Load, Part, Replay, Triaged};
use muster_wire::{Level, clean};

use super::{App, screen};
use crate::cases::{self, marks_of, name_of};
use crate::clock::now_ms;
use crate::exit::{Code, Ended, IO, Problem};
use crate::risk::incidents::of_triage;
use crate::views::Board;
use crate::who;
use crate::work::bundle;

/// A case that was read.
#[derive(Debug)]
pub(super) struct Open {
    name: String,
    /// The bundle.
    from: PathBuf,
    /// Where its marks are kept.
    marks: PathBuf,
    case: Case,
    rules: Rules,
}

impl Open {
    /// The case that the bundle `from` holds.
    pub(super) fn new(from: &Path, case: Case, rules: Rules) -> Self {
        let mut case = case;
        cases::take_tested(&mut case, from);
        Self { name: name_of(from), from: from.to_owned(), marks: marks_of(from), case, rules }
    }

    /// The same case with what its nodes showed without the job.
    pub(super) fn with_tested(&self, tested: Offline) -> Self {
        let case = Case { tested: Some(tested), ..self.case.clone() };
        Self {
            name: self.name.clone(),
            from: self.from.clone(),
            marks: self.marks.clone(),
            case,
            rules: self.rules.clone(),
        }
    }

    /// The bundle.
    pub(super) fn from(&self) -> &Path {
        &self.from
    }

    /// Whoever was marked in an earlier answer is marked in this one.
    pub(super) fn take_marks(&self, earlier: &Self) -> anyhow::Result<()> {
        let marks = cases::read(&earlier.marks)?;
        if marks == Marks::default() { Ok(()) } else { cases::write(&marks, &self.marks) }
    }

    /// What an earlier answer knew of a test without the job, which asking again does not change.
    pub(super) fn take_tested(self, earlier: &Self, board: &Board) -> Self {
        let Some(tested) = earlier.case.tested.clone() else { return self };
        if let Err(why) = cases::keep_tested(&tested, &self.from) {
            board.say(Level::Warn, format!("the offline diagnosis is not kept with these answers: {why:#}"));
        }
        self.with_tested(tested)
    }
}

/// Where the open case lies; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    open: Arc<Mutex<Option<Arc<Open>>>>,
    /// Counts the cases that were asked for: an answer to an older question is not shown.
    turn: Arc<AtomicU64>,
    /// Names of the nodes that can be reached, and why none may be tested, if so.
    known: Arc<BTreeSet<String>>,
    refused: Option<String>,
}

impl Desk {
    /// A desk of a console that reaches `nodes`, but may not load them where it is read-only or only looks, for the reason given.
    pub(super) fn knowing(nodes: &[Node], read_only: bool, watching: Option<&str>) -> Self {
        let own = || read_only.then(|| "--read-only forbids testing nodes".to_owned());
        // A replay is read-only, too, without anybody having said so.
        let refused = watching.map(|why| format!("read-only, so nodes cannot be tested: {why}")).or_else(own);
        Self { refused, ..Self::default() }.and_knowing(nodes)
    }

    /// The same where also `nodes` can be reached.
    pub(super) fn and_knowing(self, nodes: &[Node]) -> Self {
        let more = nodes.iter().map(|node| node.name.clone());
        Self { known: Arc::new(self.known.iter().cloned().chain(more).collect()), ..self }
    }

    /// Which nodes of a case can be tested without the job, or why none can.
    fn testable(&self, overview: &Overview) -> Result<Vec<String>, String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let command = overview.report.offline.as_deref();
        let command = command.ok_or("offline diagnosis needs the names of two nodes at least")?;
        let known: Vec<String> = overview.nodes.iter().filter(|name| self.known.contains(*name)).cloned().collect();
        match known.len() {
            0 | 1 => Err(format!("nobody here can reach two of this case's nodes; where they are known: {command}")),
            _ => Ok(known),
        }
    }

    /// Another case is asked for; gives what tells whether it still is.
    pub(super) fn ask(&self) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let (turn, mine) = (self.turn.clone(), self.turn.fetch_add(1, Ordering::Relaxed) + 1);
        move || turn.load(Ordering::Relaxed) == mine
    }

    pub(super) fn open(&self) -> Option<Arc<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Judges a case by its marks and shows it, unless another is `wanted` by then. Takes as long as judging.
    pub(super) fn show(&self, open: Arc<Open>, board: &Board, wanted: &dyn Fn() -> bool) {
        let (marks, notes) = match cases::read(&open.marks) {
            Ok(marks) => (marks, Vec::new()),
            Err(why) => (Marks::default(), vec![format!("Marks of this case are not used: {why:#}.")]),
        };
        let overview = Arc::new(overview(&open.case, &open.rules, &marks.wrong));
        if wanted() {
            let testable = self.testable(&overview);
            let triaged = Triaged { name: open.name.clone(), overview, confirmed: marks.confirmed, notes, testable };
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
            board.triage(Part::ready(triaged));
        }
    }
}

impl App {
    /// Serves the screen on **Triage** until the user leaves, with the bundle `from`; `prepare` leaves out what is not to be looked at.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub async fn sit_on_triage(
        self,
        from: &Path,
        prepare: impl FnOnce(&mut Case) -> Result<(), Problem> + Send + 'static,
    ) -> Ended {
        self.triage(from, prepare);
        let options = screen::options(&self.config, self.ascii, Screen::Triage);
        self.serve(None, move |newest, wish| muster_tui::run(options, newest, wish)).await
    }

    /// The same as a replay, which has one moment: all of the case.
    ///
    /// # Errors
    /// As [`App::sit_on_triage`].
    pub async fn sit_on_played_triage(mut self, from: &Path) -> Ended {
        self.play_moment();
        self.sit_on_triage(from, |_| Ok(())).await
    }

    /// From now on this is a replay without a time to go through.
    pub(super) fn play_moment(&mut self) {
        let at_ms = now_ms();
        self.plays = true;
        self.case.refused = Some("this is a replay: nothing is done on nodes".to_owned());
        self.board.replays(Replay { at_ms, from_ms: at_ms, until_ms: at_ms, speed: 1.0, paused: false });
    }

    /// Reads a bundle aside and shows it, or why that cannot be.
    pub(super) fn triage(&self, from: &Path, prepare: impl FnOnce(&mut Case) -> Result<(), Problem> + Send + 'static) {
        let (from, desk, board) = (at_home(from), self.case.clone(), self.board.clone());
        let wanted = desk.ask();
        let (name, since_ms) = (name_of(&from), now_ms());
        let loading = move |what: String| Part { load: Load::Loading { what, since_ms }, data: None };
        board.triage(loading(format!("reading {name}")));
        tokio::task::spawn_blocking(move || {
            let tell = |files: usize, of: Option<usize>| {
                // A bundle of a thousand files is told of a hundred times.
                if files.is_multiple_of(of.map_or(16, |of| (of / 100).max(1))) && wanted() {
                    let of = of.map_or(String::new(), |of| format!(" of {of}"));
                    board.triage(loading(format!("reading {name}: {files}{of} files")));
                }
                wanted()
            };
            let read = || -> Result<Open, Problem> {
                let rules = Rules::built_in().code(IO)?;
                let mut case = bundle::read(&from, &rules, &tell)?;
                prepare(&mut case)?;
                Ok(Open::new(&from, case, rules))
            };
            match read() {
                Ok(open) => {
                    if wanted() {
                        board.triage(loading(format!("judging {name}")));
                    }
                    desk.show(Arc::new(open), &board, &wanted);
                }
                Err(problem) if wanted() => {
                    let why = clean(&format!("{:#}", problem.error), 400);
                    let next = "`:triage PATH` opens another bundle.".to_owned();
                    let load = Load::Failed { what: format!("reading {name}"), why, since_ms: now_ms(), next };
                    board.triage(Part { load, data: None });
                }
                Err(_) => {}
            }
        });
    }

    /// Keeps that a suspect is wrong, or no longer, and judges anew.
    pub(super) fn triage_wrong(&self, subject: Subject, wrong: bool) {
        let Some(open) = self.case.open() else { return };
        if let Err(why) = self.change_marks(&open, |marks| marks.set_wrong(subject, wrong)) {
            return self.board.say(Level::Error, format!("the mark is not kept: {why:#}"));
        }
        let said = if wrong { "marked as wrong" } else { "the mark is taken away" };
        self.board.say(Level::Info, format!("{said}; kept in {}", open.marks.display()));
        let (desk, board) = (self.case.clone(), self.board.clone());
        let wanted = desk.ask();
        tokio::task::spawn_blocking(move || desk.show(open, &board, &wanted));
    }

    /// Writes a confirmed root cause into the incident log.
    pub(super) fn triage_confirm(&mut self, subject: &Subject) {
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids writing into the incident log");
        }
        let snapshot = self.board.snapshot();
        let Some((triaged, open)) = snapshot.triage.data.as_deref().zip(self.case.open()) else { return };
        let report = &triaged.overview.report;
        let Some(suspect) = report.suspects.iter().find(|suspect| suspect.subject() == *subject) else { return };
        let who = who::user();
        let times = (triaged.overview.last_step_s, now_ms());
        let Some(incident) = of_triage(report, suspect, times, &who) else {
            return self.board.say(Level::Warn, "this names no machine, and incidents are of machines");
        };
        let said = format!("incident on {} ({}) is in the log", incident.node, incident.category);
        let Some(store) = &mut self.store else {
            let why = self.watching.clone().unwrap_or_else(|| "a run has the database".to_owned());
            return self.board.say(Level::Warn, format!("not written: {why}"));
        };
        if let Err(why) = tokio::task::block_in_place(|| store.record_incidents(&[incident])) {
            return self.board.say(Level::Error, format!("the incident log cannot be written: {why}"));
        }
        let kept = self.change_marks(&open, |marks| marks.confirm(subject.clone()));
        let said = match kept {
            Ok(()) => said,
            Err(why) => format!("{said}; the mark beside the case is not: {why:#}"),
        };
        self.board.say(Level::Info, said);
        let confirmed = triaged.confirmed.iter().cloned().chain([subject.clone()]).collect();
        self.board.triage(Part::ready(Triaged { confirmed, ..triaged.clone() }));
        // The Selector answers by the log.
        self.advise_anew();
    }

    fn change_marks(&self, open: &Open, change: impl FnOnce(&mut Marks)) -> anyhow::Result<()> {
        // What cannot be read is not written over.
        let mut marks = cases::read(&open.marks)?;
        change(&mut marks);
        cases::write(&marks, &open.marks)
    }
}

/// A path as a person types it: `~/` is their own folder.
fn at_home(path: &Path) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}
