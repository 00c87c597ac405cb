//! What the screen is drawn from: folds updates into rows and publishes immutable snapshots.

mod extra;
mod hands;
mod replay;
mod row;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use muster_fleet::{Failure, Node};
use muster_playbook::Plan;
use muster_run::{Record, Run, is_work};
use muster_store::Store;
use muster_tui::snapshot::{
    Left, Message, Mode, NodeLog, NodeRow, Part, Past, RunInfo, RunPhase, RunProgress, Selector, ServicePast, Snapshot,
    StepProgress, Work,
};
use muster_wire::{Level, Outcome};
use tokio::sync::watch;

pub use self::extra::Reads;
use self::row::{link, rows};
use super::provisional::{Going, Stage};
use super::{Earlier, Hands, focus, picture, places};
use crate::clock::now_ms;
use crate::judge::Told;
use crate::judge::pairs::kept;
use crate::work::{Course, Observer, Update, failure_line};

/// Messages kept for the line under the body.
const MESSAGES: usize = 50;
/// Log lines kept of all nodes together.
const LINES: usize = 4_000;
/// Bytes kept of each: a node that talks much must not cost much.
const LINE_BYTES: usize = 400;
/// Groups of the running step are folded at most this often.
const GROUP_MS: u64 = 500;

/// A handle to the one board; clones share it.
#[derive(Clone, Debug)]
pub struct Board {
    inner: Arc<Mutex<Inner>>,
    /// What the screen reads; it waits for nobody.
    shown: watch::Sender<Arc<Snapshot>>,
}

#[derive(Debug)]
struct Inner {
    now: Snapshot,
    nodes: Vec<Arc<NodeRow>>,
    places: HashMap<String, usize>,
    steps: Vec<StepProgress>,
    /// Those under way: the first, and the last that some node may be at.
    step: usize,
    last: usize,
    records: Vec<Arc<Record>>,
    /// What the rows are made of, the newest run first.
    told: Vec<Arc<Told>>,
    /// Results of older runs.
    earlier: Arc<Earlier>,
    /// Nodes whose earlier state is kept for now.
    kept: HashSet<String>,
    /// How many readers of earlier runs are at work.
    looking_back: usize,
    /// The stored run that is being read and judged.
    waits: Option<extra::Waits>,
    judged: usize,
    messages: VecDeque<Message>,
    plan: Vec<places::Step>,
    grouped_ms: u64,
    log: VecDeque<(String, NodeLog)>,
    focus: Option<String>,
    /// What the database knows of the focused node.
    past: Option<Arc<Past>>,
    /// In whose hands it was.
    service: Option<Arc<ServicePast>>,
    /// In whose hands every node is.
    hands: Hands,
    /// Its records in the runs that are shown, newest first.
    stored: Vec<Record>,
    /// Readers of the database, who are told which node is focused.
    readers: Vec<Sender<String>>,
    /// Pairs of the run, and the one the user is looking at.
    scan: extra::Scan,
    /// Estimates how long the current run will still take.
    course: Option<Course>,
    /// The last estimate before more results were read.
    said_left: Option<(u64, Left)>,
    /// Which nodes have results in the current phase, and which have left the run.
    going: Going,
    /// Whether what is shown of the focused node has changed.
    refocus: bool,
    dirty: bool,
}

impl Board {
    /// A board with the nodes called `names`, of which the inventory has `known`, and nothing running.
    #[must_use]
    pub fn new(title: &str, names: &[String], known: &[Node]) -> Self {
        let rows = rows(names, known);
        let places = rows.iter().enumerate().map(|(place, row)| (row.name.clone(), place)).collect();
        let now = Snapshot {
            title: title.to_owned(),
            playbooks: extra::playbooks(),
            now_ms: now_ms(),
            ..Snapshot::default()
        };
        let inner = Inner {
            now,
            nodes: rows,
            places,
            steps: Vec::new(),
            step: 0,
            last: 0,
            records: Vec::new(),
            told: Vec::new(),
            earlier: Arc::default(),
            kept: HashSet::new(),
            looking_back: 0,
            waits: None,
            judged: 0,
            messages: VecDeque::new(),
            plan: Vec::new(),
            grouped_ms: 0,
            log: VecDeque::new(),
            focus: None,
            past: None,
            service: None,
            hands: Hands::new(),
            stored: Vec::new(),
            readers: Vec::new(),
            scan: extra::Scan::default(),
            course: None,
            said_left: None,
            going: Going::default(),
            refocus: false,
            dirty: true,
        };
        let shown = watch::Sender::new(Arc::new(inner.now.clone()));
        let board = Self { inner: Arc::new(Mutex::new(inner)), shown };
        board.publish();
        board
    }

    /// The latest snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown.borrow().clone()
    }

    /// Receives every newer snapshot.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.shown.subscribe()
    }

    /// A run begins, or one from the database is shown with `records`; without a plan it is one step.
    pub fn begin(&self, run: &Run, plan: Option<&Plan>, records: Vec<Record>, phase: RunPhase) {
        let mut inner = self.lock();
        let phases = plan.map_or(&[][..], |plan| &plan.phases);
        inner.steps =
            phases.iter().map(|phase| step(&phase.step, phase.work_names().len() * phase.nodes.len())).collect();
        inner.plan = phases.iter().map(places::Step::from).collect();
        if plan.is_none() {
            inner.steps.push(step(&run.playbook, run.plan.len() * run.nodes.len()));
            inner.plan.push(places::Step::from(run));
        }
        (inner.step, inner.last) = (0, 0);
        let same = inner.now.run.as_ref().is_some_and(|shown| shown.id == run.id) && phase.is_going();
        inner.said_left = inner.course.take().filter(|_| same).and_then(|course| course.said());
        inner.going = Going::default();
        inner.judged = usize::MAX;
        inner.forget_pairs();
        // A plan does not tell how many visits of pairs there are to be.
        let visits = records.iter().filter(|r| kept::receiver(r).is_some()).count();
        let total = visits + inner.steps.iter().map(|s| s.total).sum::<usize>();
        let done = records.iter().filter(|r| is_work(&r.work)).count();
        inner.records = records.into_iter().map(Arc::new).collect();
        inner.mode(if phase.is_going() { Mode::Live { since_ms: now_ms() } } else { Mode::Idle });
        inner.now.run = Some(Arc::new(info(run, phase)));
        inner.now.progress = RunProgress { done, total, ..RunProgress::default() };
        inner.dirty = true;
        for row in &mut inner.nodes {
            Arc::make_mut(row).done = 0.0;
        }
        for record in inner.records.clone() {
            inner.show(&record);
        }
    }

    /// Sets how long the run that has just begun will take, and how often a node is visited at most.
    pub fn expect(&self, course: Course, visits: usize) {
        let mut inner = self.lock();
        let said = inner.said_left.take();
        (inner.course, inner.going.visits) = (Some(course.after(said)), visits);
        inner.dirty = true;
    }

    /// The run changes its phase, such as from running to finished.
    pub fn phase(&self, phase: RunPhase) {
        let mut inner = self.lock();
        if let Some(run) = &mut inner.now.run {
            let run = Arc::make_mut(run);
            run.phase = phase;
            if !phase.is_going() {
                run.ended_ms = Some(now_ms());
            }
        }
        if !phase.is_going() {
            inner.rounds_over();
            inner.mode(Mode::Idle);
            (inner.course, inner.now.progress.left) = (None, None);
            for row in inner.nodes.iter_mut().filter(|row| row.work.is_some() || row.provisional) {
                let row = Arc::make_mut(row);
                (row.work, row.provisional) = (None, false);
            }
        }
        inner.dirty = true;
    }

    /// The screen looks at this node.
    pub fn focus(&self, node: &str) {
        let mut inner = self.lock();
        (inner.focus, inner.past, inner.service, inner.stored) = (Some(node.to_owned()), None, None, Vec::new());
        (inner.refocus, inner.dirty) = (true, true);
        inner.ask();
    }

    /// What the Selector says from now on.
    pub fn advise(&self, part: Part<Selector>) {
        let mut inner = self.lock();
        inner.now.selector = part;
        inner.dirty = true;
    }

    /// Tells the user something.
    pub fn say(&self, level: Level, text: impl Into<String>) {
        let mut inner = self.lock();
        inner.say(level, text);
        inner.dirty = true;
    }

    /// Takes back what was told, where it holds no longer.
    pub fn unsay(&self, text: &str) {
        let mut inner = self.lock();
        inner.messages.retain(|message| message.text != text);
        inner.dirty = true;
    }

    /// Says what of the database could not be read since `store` was last asked, each sentence once.
    pub fn tell_damage(&self, store: &dyn Store) {
        for notice in store.notices() {
            let text = format!("database: {notice}");
            if !self.lock().messages.iter().any(|message| message.text == text) {
                self.say(Level::Warn, text);
            }
        }
    }

    /// All records so far, if any are new since the last call, and where the run stands.
    #[must_use]
    pub fn unjudged(&self) -> Option<(Vec<Arc<Record>>, Stage)> {
        let mut inner = self.lock();
        let count = inner.records.len();
        if count == inner.judged {
            return None;
        }
        inner.judged = count;
        Some((inner.records.clone(), Stage::Going(inner.going.clone())))
    }

    /// Names of the nodes, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().nodes.iter().map(|row| row.name.clone()).collect()
    }

    /// Shows the results of `runs`, newest first, beside `earlier` ones; `stage` is where the newest run stood when it was judged.
    /// The rows are built outside the lock, since that takes seconds for a large fleet.
    pub fn show(&self, runs: Vec<Arc<Told>>, earlier: Arc<Earlier>, stage: &Stage) {
        let names = self.names();
        let picture = picture::picture(&runs, &names, &earlier);
        let newest = runs.first().cloned();
        let mut inner = self.lock();
        // Meanwhile other nodes may have been put in their place.
        if inner.nodes.len() != names.len() || inner.nodes.iter().zip(&names).any(|(row, name)| row.name != *name) {
            return;
        }
        inner.now.metrics = Arc::new(picture.metrics);
        let mut kept = HashSet::new();
        for (row, opinion) in inner.nodes.iter_mut().zip(picture.nodes) {
            let Some(opinion) = opinion else { continue };
            if stage.keeps(&row.name, row.state, opinion.state()) {
                kept.insert(row.name.clone());
            } else {
                let row = Arc::make_mut(row);
                opinion.apply(row);
                row.provisional = newest.as_ref().is_some_and(|told| stage.is_provisional(&row.name, row.state, told));
            }
        }
        let same = runs.iter().map(|told| &told.run.id).eq(inner.told.iter().map(|told| &told.run.id));
        (inner.told, inner.earlier, inner.kept) = (runs, earlier, kept);
        (inner.refocus, inner.dirty) = (true, true);
        if !same || inner.now.replay().is_some() {
            inner.ask();
        }
    }

    /// Lists those of `names`, too, that it lacks, behind the others; a run that is shown by itself keeps its own.
    pub fn join(&self, names: &[String]) {
        let mut inner = self.lock();
        if inner.now.alone.is_some() {
            return;
        }
        let new: Vec<String> = names.iter().filter(|name| !inner.places.contains_key(*name)).cloned().collect();
        // What is shown of the others goes by their places.
        for row in rows(&new, &[]) {
            let place = inner.nodes.len();
            inner.places.insert(row.name.clone(), place);
            inner.nodes.push(row);
        }
        inner.hand_over();
        inner.dirty = true;
    }

    /// Clears the board and lists `names`; `alone` names the run that is shown by itself, if there is one.
    pub fn reset(&self, names: &[String], known: &[Node], alone: Option<&str>) {
        let mut inner = self.lock();
        let rows = rows(names, known);
        inner.places = rows.iter().enumerate().map(|(place, row)| (row.name.clone(), place)).collect();
        (inner.nodes, inner.told, inner.records) = (rows, Vec::new(), Vec::new());
        inner.hand_over();
        (inner.earlier, inner.kept) = (Arc::default(), HashSet::new());
        (inner.now.metrics, inner.now.what_if) = (Arc::default(), None);
        (inner.now.run, inner.now.progress) = (None, RunProgress::default());
        inner.now.alone = alone.map(str::to_owned);
        inner.forget_pairs();
        (inner.refocus, inner.dirty) = (true, true);
    }

    /// Publishes a new snapshot if anything has changed.
    pub fn publish(&self) {
        let mut inner = self.lock();
        let now = now_ms();
        inner.wait(now);
        // A clock on the screen needs a new snapshot once a second even when nothing else happened.
        if !inner.dirty && now < inner.now.now_ms + 1_000 {
            return;
        }
        inner.dirty |= inner.course.is_some();
        if inner.dirty {
            inner.now.generation += 1;
            inner.look();
            inner.now.nodes = inner.nodes.iter().cloned().collect();
            inner.now.messages = inner.messages.iter().cloned().collect();
            inner.count(now);
            inner.count_hands();
            inner.group(now);
            inner.run_progress(now);
        }
        inner.now.now_ms = now;
        inner.dirty = false;
        self.shown.send_replace(Arc::new(inner.now.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves rows that are still rows; the screen must go on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn group(&mut self, now: u64) {
        let going = self.now.run.as_ref().is_some_and(|run| run.phase.is_going());
        if going && now < self.grouped_ms + GROUP_MS {
            return;
        }
        self.grouped_ms = now;
        let rows: HashMap<&str, &NodeRow> = self.nodes.iter().map(|row| (row.name.as_str(), row.as_ref())).collect();
        // A step just over changes once more, with its last record; all of them when the run ends.
        let (first, last) = if going { (self.step.saturating_sub(1), self.last) } else { (0, self.plan.len()) };
        for (step, progress) in self.plan.iter().zip(&mut self.steps).take(last + 1).skip(first) {
            progress.groups = places::groups(step, &rows, &self.records);
        }
    }

    fn look(&mut self) {
        let Some(node) = self.focus.clone().filter(|_| self.refocus) else { return };
        let log = self.log.iter().filter(|(of, _)| *of == node).map(|(_, line)| line.clone()).collect();
        let mut focus = focus::focus(&node, &self.now.metrics, (&self.records, &self.stored), log);
        (focus.past, focus.service) = (self.past.clone(), self.service.clone());
        self.now.focus = Some(Arc::new(focus));
        self.refocus = false;
        self.look_closely(&node);
    }

    /// Fills in the verdicts of the node on the screen, and drops those of all others.
    fn look_closely(&mut self, node: &str) {
        for row in self.nodes.iter_mut().filter(|row| row.name != node && !row.verdicts.is_empty()) {
            Arc::make_mut(row).verdicts = Arc::default();
        }
        let Some(row) = self.places.get(node).and_then(|place| self.nodes.get_mut(*place)) else { return };
        if row.verdicts.is_empty() || !self.kept.contains(node) {
            let rows = picture::verdicts_of(&self.told, (&*self.now.metrics, &*self.earlier), node);
            Arc::make_mut(row).verdicts = rows.into();
        }
    }

    fn line(&mut self, node: &str, (at_ms, level): (u64, Level), text: &str) {
        log_line(node, level, text);
        let text = muster_wire::clean(text, LINE_BYTES);
        self.log.push_back((node.to_owned(), NodeLog { at_ms, level, text }));
        if self.log.len() > LINES {
            self.log.pop_front();
        }
        self.refocus |= self.focus.as_deref() == Some(node);
    }

    /// A node leaves the run.
    fn gone(&mut self, node: &str, text: String, now: u64) {
        self.going.gone.insert(node.to_owned());
        self.line(node, (now, Level::Warn), &text);
        self.say(Level::Warn, text);
    }

    /// A node was lost and is waited for.
    fn interrupted(&mut self, node: &str, failure: &Failure, now: u64) {
        self.line(node, (now, Level::Warn), &format!("{}; it is waited for", failure_line(node, failure)));
        if let Some(row) = self.row(node) {
            row.work = None;
        }
    }

    fn say(&mut self, level: Level, text: impl Into<String>) {
        // Whatever is replayed, it is said now.
        self.messages.push_back(Message { at_ms: now_ms(), level, text: text.into() });
        if self.messages.len() > MESSAGES {
            self.messages.pop_front();
        }
    }

    fn run_progress(&mut self, now: u64) {
        let running = self.now.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running);
        let progress = &mut self.now.progress;
        progress.steps = self.steps.iter().cloned().collect();
        progress.left = self.course.as_mut().filter(|_| running).map(|course| course.shown(now));
    }

    fn row(&mut self, node: &str) -> Option<&mut NodeRow> {
        self.dirty = true;
        let place = *self.places.get(node)?;
        Some(Arc::make_mut(&mut self.nodes[place]))
    }

    fn recorded(&mut self, record: &Record) {
        self.records.push(Arc::new(record.clone()));
        self.refocus |= self.focus.as_deref() == Some(record.node.as_str());
        if !is_work(&record.work) {
            return;
        }
        self.now.progress.done += 1;
        self.going.seen.insert(record.node.clone());
        let holds = |at: &usize| self.plan.get(*at).is_some_and(|step| step.holds(&record.work));
        let at = (self.step..=self.last).find(holds).unwrap_or(self.step);
        if let Some(step) = self.steps.get_mut(at) {
            step.done += 1;
            step.failed += usize::from(matches!(record.outcome, Outcome::Failed(_)));
        }
        self.grow(at, 0);
        self.show(record);
    }

    /// Shows a record in the row of its node.
    fn show(&mut self, record: &Record) {
        if !is_work(&record.work) {
            return;
        }
        // A console that follows another one hears of nothing but its records.
        self.now.last_frame_ms = self.now.last_frame_ms.max(Some(record.at_ms));
        let total = self.now.progress.total.max(1);
        let nodes = self.nodes.len().max(1);
        let facts = picture::facts(record);
        if let Some(row) = self.row(&record.node) {
            row.seen_ms = Some(record.at_ms);
            if crate::judge::is_result(record) {
                row.result_ms = row.result_ms.max(Some(record.at_ms));
            }
            row.done = (row.done + nodes as f64 / total as f64).min(1.0);
            row.work = None;
            if let Some(collector) = facts.first().map(|fact| fact.collector.clone()) {
                let others = row.facts.iter().filter(|f| f.collector != collector).cloned();
                row.facts = others.chain(facts).collect();
            }
        }
    }

    /// Something happened, at this time.
    fn hear(&mut self, update: &Update<'_>, now: u64) {
        if let Some(course) = &mut self.course {
            course.see(update, now);
        }
        match update {
            Update::Phase { index, step: name, work, further, .. } => {
                (self.step, self.last) = (*index, index + further.len());
                // What was measured so far is judged once more as what it is now: all of the phase before.
                self.going.seen.clear();
                self.judged = usize::MAX;
                if *index == self.steps.len() {
                    self.steps.push(step(name, *work));
                    self.now.progress.total += work;
                }
                for (at, left) in (*index..).zip(std::iter::once(work).chain(*further)) {
                    self.begins(at, *left);
                }
            }
            Update::More(work) => self.grow(self.step, *work),
            Update::Link { node, state } => {
                if let Some(row) = self.row(node) {
                    row.link = link(state);
                }
            }
            Update::Working { node, progress } => {
                self.now.last_frame_ms = Some(now);
                if let Some(row) = self.row(node) {
                    row.seen_ms = Some(now);
                    let (name, note) = (progress.benchmark.clone(), progress.note.clone());
                    row.work = Some(Work { name, done: progress.done, note });
                }
            }
            Update::Round { number, planned, measured, dropped, .. } => {
                self.round(now, (*number, *planned), *measured, dropped.keys().cloned().collect());
            }
            Update::Said { node, line } => self.line(node, (now, line.level), &line.text),
            Update::Dropped { node, step, reason } => {
                self.gone(node, format!("left out after {step}: {reason}"), now);
            }
            Update::Interrupted { node, failure } => self.interrupted(node, failure, now),
            Update::Outage(said) | Update::Late { said, .. } => self.say(Level::Warn, *said),
            Update::Together(said) => self.say(Level::Info, *said),
            Update::Recorded(record) => {
                self.now.last_frame_ms = Some(now);
                self.recorded(record);
            }
            Update::Ended { node, failure } => {
                if let Some(failure) = failure {
                    self.gone(node, failure_line(node, failure), now);
                }
                if let Some(row) = self.row(node) {
                    row.work = None;
                }
            }
        }
        self.dirty = true;
    }
}

impl Observer for Board {
    fn see(&mut self, update: &Update<'_>) {
        self.lock().hear(update, now_ms());
    }
}

fn log_line(node: &str, level: Level, text: &str) {
    let level = match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    };
    log::log!(target: "node", level, "{node}: {text}");
}

/// A run as the screen has it.
#[must_use]
pub fn info(run: &Run, phase: RunPhase) -> RunInfo {
    RunInfo {
        id: run.id.clone(),
        playbook: run.playbook.clone(),
        profile: run.profile,
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
        phase,
    }
}

fn step(id: &str, total: usize) -> StepProgress {
    StepProgress { id: id.to_owned(), done: 0, failed: 0, total, groups: Arc::from([]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::RunState;
    use muster_wire::{Datum, Fact, Reading};

    /// One that goes on.
    fn run(names: &[String], plan: &Plan, started_ms: u64) -> Run {
        Run {
            id: "r".to_owned(),
            playbook: plan.playbook.clone(),
            profile: plan.profile,
            started_ms,
            ended_ms: None,
            nodes: names.to_vec(),
            plan: plan.work_names(),
            state: RunState::Running,
        }
    }

    #[test]
    fn a_stored_run_shows_what_its_nodes_are_how_far_they_came_and_when_they_were_seen() {
        let text = "[[nodes]]\nname = \"n1\"\nhost = \"127.0.0.1\"\n";
        let inventory = muster_fleet::Inventory::parse(text, "one.toml").unwrap();
        let names = ["n1".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &names);
        let run = Run { ended_ms: Some(9), state: RunState::Finished, ..run(&names, &plan, 1) };
        let serial = Reading::Value(Datum::Text("C02".to_owned()));
        let record = Record {
            run: "r".to_owned(),
            node: "n1".to_owned(),
            work: "collect/identity".to_owned(),
            outcome: Outcome::Done,
            at_ms: 7,
            elapsed_ns: 1,
            series: Vec::new(),
            facts: vec![Fact { key: "identity.serial".to_owned(), reading: serial, unit: None }],
        };
        let board = Board::new("one", &names, inventory.nodes());
        board.begin(&run, Some(&plan), vec![record], RunPhase::Finished);
        board.publish();
        let row = board.snapshot().nodes[0].clone();
        assert_eq!((row.facts.len(), row.seen_ms, row.result_ms), (1, Some(7), Some(7)));
        assert!(row.done > 0.0 && row.done < 1.0, "{}", row.done);
    }

    #[test]
    fn pairs_that_are_visited_again_are_more_of_the_total_and_never_past_it() {
        let names = ["n1".to_owned(), "n2".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("network-full").unwrap(), &names);
        let run = run(&names, &plan, now_ms());
        let visit = |src: &str, dst: &str, visit: usize| {
            muster_run::noted("r", src, &kept::work(dst, visit), Vec::new(), now_ms())
        };
        let mut board = Board::new("two", &names, &[]);
        board.begin(&run, Some(&plan), Vec::new(), RunPhase::Running);
        board.see(&Update::Phase { index: 0, step: "pairs", nodes: 2, work: 4, further: &[] });
        let mut said = |more: usize, number: usize| {
            board.see(&Update::More(more));
            [("n1", "n2"), ("n2", "n1")].iter().for_each(|(a, b)| board.see(&Update::Recorded(&visit(a, b, number))));
            board.publish();
            let progress = board.snapshot().progress.clone();
            ((progress.done, progress.total), (progress.steps[0].done, progress.steps[0].total))
        };
        assert_eq!(said(0, 1), ((2, 4), (2, 4)));
        assert_eq!(said(2, 2), ((4, 6), (4, 6)));
        assert_eq!(said(0, 3), ((6, 6), (6, 6)));
        assert_eq!(said(0, 4), ((8, 8), (8, 8)), "nobody said that there would be more");
        let stored = vec![visit("n1", "n2", 1), visit("n2", "n1", 1)];
        board.begin(&run, Some(&plan), stored, RunPhase::Finished);
        board.publish();
        let progress = board.snapshot().progress.clone();
        assert_eq!((progress.done, progress.total), (2, 4));
    }

    #[test]
    fn nodes_that_come_later_stand_behind_the_others_and_what_no_longer_holds_is_not_said() {
        let names = |all: &[&str]| -> Vec<String> { all.iter().map(|name| (*name).to_owned()).collect() };
        let board = Board::new("some", &names(&["n2", "n3"]), &[]);
        board.lock().row("n3").unwrap().result_ms = Some(7);
        board.join(&names(&["n2", "n3", "n1"]));
        board.publish();
        let rows = |board: &Board| {
            board.snapshot().nodes.iter().map(|row| (row.name.clone(), row.result_ms)).collect::<Vec<_>>()
        };
        let told = |name: &str, at| (name.to_owned(), at);
        assert_eq!(rows(&board), [told("n2", None), told("n3", Some(7)), told("n1", None)]);
        assert!(board.lock().row("n1").is_some());
        board.reset(&names(&["n2"]), &[], Some("r"));
        board.join(&names(&["n2", "n3", "n1"]));
        board.say(Level::Info, "reading run r");
        board.say(Level::Info, "another");
        board.unsay("reading run r");
        board.publish();
        assert_eq!(rows(&board), [told("n2", None)], "the run has no other node");
        let said: Vec<String> = board.snapshot().messages.iter().map(|message| message.text.clone()).collect();
        assert_eq!(said, ["another"]);
    }

    #[test]
    fn nodes_with_old_results_are_counted_by_state_and_those_without_any_are_not_stale() {
        let names = ["n1".to_owned(), "n2".to_owned()];
        let board = Board::new("two", &names, &[]);
        board.lock().row("n1").unwrap().result_ms = Some(now_ms() - 5_000);
        let stale = |after: u64| {
            board.stale_after(after);
            board.publish();
            board.snapshot().stale.get(muster_analysis::State::NotRun)
        };
        assert_eq!((stale(60_000), stale(4_000)), (0, 1));
    }

    #[test]
    fn a_run_that_goes_on_here_says_how_long_it_still_takes_until_it_has_ended() {
        let names = ["n1".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &names);
        let run = run(&names, &plan, now_ms());
        let board = Board::new("one", &names, &[]);
        let left = || {
            board.publish();
            board.snapshot().progress.left
        };
        board.begin(&run, Some(&plan), Vec::new(), RunPhase::Running);
        assert_eq!(left(), None, "a run of another console");
        board.expect(Course::new(&plan, &crate::work::Durations::default(), 8, &Default::default()), 3);
        let planned = left().unwrap();
        assert!(!planned.measured && planned.ms > 1_000, "{planned:?}");
        board.phase(RunPhase::Finished);
        assert_eq!(left(), None);
    }
}
