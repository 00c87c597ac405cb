//! What has the database while it goes on: reading the stored runs, or a run.

use std::pin::Pin;
use std::time::{Duration, Instant};

use muster_analysis::State;
use muster_fleet::hostlist;
use muster_playbook::Playbook;
use muster_run::{Run, RunState};
use muster_store::{Db, EntrySeen, Store, Table};
use muster_tui::snapshot::RunPhase;
use muster_wire::Level;
use tokio_util::sync::CancellationToken;

use super::fleet::{Fleet, judged};
use super::names::Names;
use super::swap::Hands;
use super::{App, back};
use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::judge::{Judging, Told};
use crate::session::{self, Job};
use crate::views::Board;
use crate::work::{Course, Durations, Observer, Scan};
use crate::{judge, views, work};

/// How often a console that only looks asks for what is new, and of how many runs.
const FOLLOW: Duration = Duration::from_secs(3);
const FOLLOWED: usize = 8;
/// Shortest pause between two looks, as a multiple of the time that the last one took.
const RESTS: u32 = 4;
/// Said while they are read.
const READING: &str = "reading the stored runs";
/// How often verdicts are recomputed while results arrive.
const JUDGE: Duration = Duration::from_millis(700);

/// Something that goes on with the database.
pub(super) struct Going {
    ends: Pin<Box<dyn Future<Output = Returned>>>,
    cancel: CancellationToken,
    /// The playbook, or what else nodes are at work for; `None` while stored runs are read.
    run: Option<String>,
    /// It is an offline diagnosis, which the board knows apart from runs.
    tests: bool,
}

impl Going {
    /// An offline diagnosis.
    pub(super) fn test(ends: Pin<Box<dyn Future<Output = Returned>>>, cancel: CancellationToken) -> Self {
        Self { ends, cancel, run: Some("the offline diagnosis".to_owned()), tests: true }
    }

    /// Something that only reads for a while.
    pub(super) fn reading(ends: Pin<Box<dyn Future<Output = Returned>>>) -> Self {
        Self { ends, cancel: CancellationToken::new(), run: None, tests: false }
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether nodes are at work.
    pub(super) const fn is_run(&self) -> bool {
        self.run.is_some()
    }
}

/// What is left when it ends.
pub(super) struct Returned {
    pub(super) store: Option<Db>,
    pub(super) said: Option<(Level, String)>,
}

/// Waits for the end of what goes on; for ever if nothing does.
pub(super) async fn end(going: &mut Option<Going>) -> Returned {
    match going {
        Some(going) => going.ends.as_mut().await,
        None => std::future::pending().await,
    }
}

impl App {
    /// Reads what is known of the nodes, newest first, beside the screen.
    pub(super) fn read_stored(&mut self) {
        let Some(store) = self.store.take() else { return };
        if store.runs().is_ok_and(|runs| !runs.is_empty()) {
            self.board.say(Level::Info, READING);
        }
        let (fleet, board, config, names) =
            (self.fleet.clone(), self.board.clone(), self.config.clone(), self.names.all());
        board.looking_back(true);
        let ends = tokio::task::spawn_blocking(move || {
            let first = |told: &Told| begin_all(&fleet, &board, told);
            let read = fleet.read(&store, (&names, &config), first);
            back::look_back(&fleet, &config);
            board.looking_back(false);
            board.unsay(READING);
            let said = match (read, fleet.current().len()) {
                (Err(why), _) => Some((Level::Error, format!("the stored runs cannot be read: {why:#}"))),
                (Ok(()), _) if fleet.is_alone() => None,
                (Ok(()), 0) => None,
                (Ok(()), 1) => Some((Level::Info, "1 stored run is shown".to_owned())),
                (Ok(()), runs) => Some((Level::Info, format!("the newest results of {runs} stored runs are shown"))),
            };
            Returned { store: Some(store), said }
        });
        let ends = Box::pin(async move { ends.await.unwrap_or(Returned { store: None, said: None }) });
        self.going = Some(Going::reading(ends));
    }

    /// Shows what another console writes, as it comes.
    pub(super) fn follow(&self, why: &str) {
        self.board.say(Level::Info, format!("read-only: {why}"));
        let (fleet, board, config, names) =
            (self.fleet.clone(), self.board.clone(), self.config.clone(), self.names.clone());
        let (mut hands, news) = (self.hands.clone(), self.news.clone());
        std::thread::spawn(move || {
            let mut seen = Seen::default();
            let (mut listed, mut first) = (names.all().len(), true);
            loop {
                let begun = Instant::now();
                match followed(&mut seen, (&fleet, &board), (&config, &names)) {
                    Ok(true) => {
                        let all = names.all();
                        let joined = all.len() > listed;
                        if joined {
                            // Those that join are in no inventory.
                            (hands, listed) = (Hands::new(&board, &config, &all, &[]), all.len());
                        }
                        hands.read();
                        // The Selector has answered by what was there at first.
                        if joined || !first {
                            news.notify_one();
                        }
                    }
                    Ok(false) => {}
                    Err(why) => board.say(Level::Error, format!("the database cannot be read: {why:#}")),
                }
                first = false;
                // With thousands of nodes a look takes seconds of CPU time, which the writing console needs.
                std::thread::sleep(FOLLOW.max(RESTS * begun.elapsed()));
            }
        });
    }

    /// Carries a playbook through; one that leaves its benchmarks to the Selector runs what the Selector picks.
    pub(super) fn run_playbook(&mut self, playbook: &str, names: &[String]) {
        match session::playbook(playbook) {
            Ok(playbook) if playbook.selects() => self.run_selected(names),
            Ok(playbook) => self.carry(playbook, names),
            Err(problem) => self.problem(&problem.error),
        }
    }

    fn run_selected(&mut self, names: &[String]) {
        let Some(store) = &self.store else { return self.busy() };
        match tokio::task::block_in_place(|| super::asks::basis_of(store, names)) {
            Ok(basis) => {
                let answer = basis.answer(&self.ask);
                self.board.say(Level::Info, answer.selection.reason.clone());
                let picks: Vec<String> = answer.selection.picks.iter().map(|p| p.benchmark.clone()).collect();
                self.validate(&picks, &basis.validate(&answer));
            }
            Err(problem) => self.problem(&problem.error),
        }
    }

    /// Runs what the Selector picked.
    pub(super) fn validate(&mut self, benchmarks: &[String], names: &[String]) {
        if benchmarks.is_empty() || names.is_empty() {
            return;
        }
        match session::playbook(session::REGULAR) {
            Ok(playbook) => self.carry(playbook.picked(benchmarks), names),
            Err(problem) => self.problem(&problem.error),
        }
    }

    /// Begins a run; the screen and everything that only reads go on beside it.
    fn carry(&mut self, playbook: Playbook, names: &[String]) {
        self.carry_by(playbook, names, work::scan);
    }

    /// The same with any `work` that does what [`work::scan`] does.
    pub(super) fn carry_by(&mut self, playbook: Playbook, names: &[String], work: impl Carrier + 'static) {
        if self.store.is_none() {
            return self.busy();
        }
        let nodes: Vec<_> = self.job.nodes.iter().filter(|node| names.contains(&node.name)).cloned().collect();
        if nodes.is_empty() {
            return self.board.say(Level::Warn, "none of these nodes is in the inventory, so none can be measured");
        }
        let Some(mut store) = self.store.take() else { return self.busy() };
        let job = Job {
            playbook,
            nodes,
            settings: self.job.settings.clone(),
            probe: self.job.probe.clone(),
            fabric: self.job.fabric.clone(),
            fresh: self.job.fresh,
            visits: self.job.visits,
            patience: self.job.patience,
        };
        let begun = session::begin(&job, &mut store, &self.config)
            .and_then(|(run, scan)| Ok((store.records(&run.id).code(IO)?, run, scan)));
        let (before, run, scan) = match begun {
            Ok(begun) => begun,
            Err(problem) => {
                self.store = Some(store);
                return self.problem(&problem.error);
            }
        };
        if self.board.snapshot().alone.is_some() {
            self.board.reset(&self.names.all(), &self.job.nodes, None);
        }
        self.board.begin(&run, Some(&scan.plan), before, RunPhase::Running);
        let durations = tokio::task::block_in_place(|| Durations::known(&store, &run));
        let course = Course::new(&scan.plan, &durations, scan.settings.at_once, &scan.done);
        self.board.expect(course, views::visits_at_most(run.profile, scan.visits));
        let (cancel, name) = (CancellationToken::new(), run.playbook.clone());
        let desk = Desk {
            epoch: self.fleet.began(),
            board: self.board.clone(),
            fleet: self.fleet.clone(),
            config: self.config.clone(),
        };
        // Where one run was shown by itself until now, nobody has looked behind the others.
        back::look_back(&self.fleet, &self.config);
        let ends = Box::pin(desk.carry(store, run, scan, (work, cancel.clone())));
        self.going = Some(Going { ends, cancel, run: Some(name), tests: false });
    }

    /// Says why nothing new can begin.
    pub(super) fn busy(&self) {
        if let Some(why) = &self.watching {
            return self.board.say(Level::Warn, format!("read-only: {why}"));
        }
        let run = self.going.as_ref().and_then(|going| going.run.as_deref());
        let text = run.map_or_else(
            || "the stored runs are still being read; try again in a moment".to_owned(),
            |run| format!("{run} is still running; c cancels it"),
        );
        self.board.say(Level::Info, text);
    }

    pub(super) fn cancel(&self) {
        match &self.going {
            Some(going) if going.is_run() => {
                if going.tests {
                    self.board.testing_cancelled();
                } else {
                    self.board.phase(RunPhase::Cancelling);
                }
                going.cancel();
            }
            _ => self.board.say(Level::Info, "nothing is running"),
        }
    }
}

/// What a console that only looks has read.
#[derive(Default)]
struct Seen {
    /// The newest runs, and how many results each had.
    runs: Vec<(Run, usize)>,
    /// Which nodes somebody put into other hands, and when.
    marks: Vec<EntrySeen>,
    /// What the works of this run took in earlier ones.
    durations: Option<(String, Durations)>,
}

impl Seen {
    /// How long the run that another console carries will still take, as far as that can be known here.
    fn course(&mut self, store: &dyn Store, told: &Told, fan_out: usize) -> Option<Course> {
        let run = Some(&told.run).filter(|run| run.state == RunState::Running)?;
        let plan = work::plan_of(run).or_else(|| work::as_one_step(run))?;
        let durations = self.durations.take().filter(|(id, _)| *id == told.run.id);
        let durations = durations.unwrap_or_else(|| (told.run.id.clone(), Durations::known(store, &told.run)));
        Course::elsewhere(&plan, &self.durations.insert(durations).1, fan_out, told)
    }
}

/// Reads what is new since the last time; whether that may have put nodes into other hands.
fn followed(
    seen: &mut Seen,
    (fleet, board): (&Fleet, &Board),
    (config, names): (&Config, &Names),
) -> anyhow::Result<bool> {
    let store = Db::open_read_only(&config.db.value)?;
    let runs = store.runs()?.into_iter().take(FOLLOWED);
    let now = runs.map(|run| Ok((store.summaries(&run.id)?.len(), run))).collect::<anyhow::Result<Vec<_>>>()?;
    let now: Vec<(Run, usize)> = now.into_iter().map(|(done, run)| (run, done)).collect();
    let marks = store.list(Table::Service)?;
    if now == seen.runs && marks == seen.marks {
        return Ok(false);
    }
    let joined = names.join(&store)?;
    let ended = |runs: &[(Run, usize)]| {
        let ended = runs.iter().filter(|(run, _)| run.state != RunState::Running);
        ended.map(|(run, _)| (run.id.clone(), run.ended_ms)).collect::<Vec<_>>()
    };
    // A run that goes on puts nobody into other hands.
    let hands = joined || marks != seen.marks || ended(&now) != ended(&seen.runs);
    (seen.runs, seen.marks) = (now, marks);
    let names = names.all();
    if joined {
        board.join(&names);
    }
    fleet.read(&store, (&names, config), |told| {
        begin_all(fleet, board, told);
        let course =
            seen.course(&store, told, config.at_once.value.unwrap_or(usize::MAX)).filter(|_| !fleet.is_alone());
        if let Some(course) = course {
            // What is provisional is told by the records, not by what this console sees of the run.
            board.expect(course, 1);
        }
    })?;
    back::read(fleet, &store, config);
    board.tell_damage(&store);
    Ok(hands)
}

/// The board begins with the newest run of the fleet, unless it shows another one by itself.
fn begin_all(fleet: &Fleet, board: &Board, told: &Told) {
    if !fleet.is_alone() {
        begin(board, told);
    }
}

/// The board begins with what a stored run did.
pub(super) fn begin(board: &Board, told: &Told) {
    let run = &told.run;
    let plan = work::plan_of(run);
    let records = run.nodes.iter().flat_map(|node| told.records(node)).map(|record| record.as_ref().clone());
    board.begin(run, plan.as_ref(), records.collect(), shown(run.state));
}

/// What does the work of a run: tells its watchers, and keeps what comes of it.
pub(super) trait Carrier:
    AsyncFnOnce(&Scan, &mut dyn Store, &mut [&mut dyn Observer], &CancellationToken) -> anyhow::Result<RunState>
{
}

impl<W> Carrier for W where
    W: AsyncFnOnce(&Scan, &mut dyn Store, &mut [&mut dyn Observer], &CancellationToken) -> anyhow::Result<RunState>
{
}

/// What a run needs of the application.
struct Desk {
    epoch: u64,
    board: Board,
    fleet: Fleet,
    config: Config,
}

impl Desk {
    async fn carry(
        self,
        mut store: Db,
        run: Run,
        scan: Scan,
        (work, cancel): (impl Carrier, CancellationToken),
    ) -> Returned {
        let ended = CancellationToken::new();
        let (of, judging, token) = (run.clone(), scan.judging.clone(), ended.clone());
        let (board, fleet, epoch) = (self.board.clone(), self.fleet.clone(), self.epoch);
        std::thread::spawn(move || judge_often((&board, &fleet, epoch), &of, &judging, &token));
        let judging = ended.drop_guard();
        let state = {
            let mut watcher = self.board.clone();
            let mut watchers: [&mut dyn Observer; 1] = [&mut watcher];
            work(&scan, &mut store, &mut watchers, &cancel).await
        };
        drop(judging);
        let board = self.board.clone();
        let concluded = tokio::task::spawn_blocking(move || {
            let ended =
                state.code(IO).and_then(|state| self.conclude(&mut store, &run, state).map(|said| (state, said)));
            (store, ended)
        });
        match concluded.await {
            Ok((store, Ok((state, said)))) => {
                board.phase(shown(state));
                Returned { store: Some(store), said: Some((Level::Info, said)) }
            }
            Ok((store, Err(problem))) => {
                board.phase(RunPhase::Interrupted);
                Returned { store: Some(store), said: Some((Level::Error, format!("{:#}", problem.error))) }
            }
            Err(_) => {
                board.phase(RunPhase::Interrupted);
                Returned { store: None, said: None }
            }
        }
    }

    /// Ends the run in the database and in the picture; says what came of it.
    fn conclude(&self, store: &mut Db, run: &Run, state: RunState) -> Result<String, Problem> {
        let told = judged(store, session::ended(store, &run.id, state)?, &self.config, None).code(IO)?;
        let report = judge::report(&told.run, &told.assessment);
        let report = session::weighed(store, &told.run, report, &self.config)?;
        session::keep_end(store, &told.run, &report)?;
        let judging = Judging::of(store, &told.run, session::params(&self.config)).code(IO)?;
        judge::keep_assessment(store, &told.run, &judging, &told.assessment);
        let said = summary(&told, state);
        self.fleet.ended(told);
        Ok(said)
    }
}

/// `cbd-light on n[1-8] finished: 1 fail, 6 pass, 1 unknown (n5: …); r measures 2 nodes again`.
fn summary(told: &Told, state: RunState) -> String {
    let run = &told.run;
    let states: Vec<State> = told.assessment.nodes.iter().map(|node| node.state().state).collect();
    let count = |state: State| states.iter().filter(|of| **of == state).count();
    let words = [State::Fail, State::Warn, State::Unknown, State::NotRun, State::Pass, State::NotApplicable];
    let counts = words.into_iter().filter(|state| count(*state) > 0);
    let counts: Vec<String> =
        counts.map(|state| format!("{} {}", count(state), muster_tui::judgement::word(state))).collect();
    let nodes = hostlist::fold(run.nodes.iter().map(String::as_str));
    let mut said = format!("{} on {nodes} {}: {}", run.playbook, shown(state).word(), counts.join(", "));
    let open = told.assessment.nodes.iter().zip(&states).find(|(_, state)| **state == State::Unknown);
    let why = open.and_then(|(node, _)| node.all().into_iter().find(|finding| finding.state == State::Unknown));
    if let Some(why) = why {
        said += &format!(" ({})", muster_wire::clean(&why.sentence, 200));
    }
    if count(State::Fail) + count(State::Unknown) > 0 {
        said += "; r measures again";
    }
    said
}

/// Judges what has arrived so far, over and over until the run has `ended`. A large fleet takes seconds: the thread and those that it
/// starts give way to the screen and to the stream of frames.
fn judge_often((board, fleet, epoch): (&Board, &Fleet, u64), run: &Run, judging: &Judging, ended: &CancellationToken) {
    // Where that is not allowed it judges as fast as everything else.
    let _ = rustix::process::nice(10);
    while !ended.is_cancelled() {
        std::thread::sleep(JUDGE);
        if let Some((records, stage)) = board.unjudged() {
            fleet.live(epoch, Told::judge(run.clone(), &records, judging), stage);
        }
    }
}

pub(super) const fn shown(state: RunState) -> RunPhase {
    match state {
        RunState::Running => RunPhase::Running,
        RunState::Finished => RunPhase::Finished,
        RunState::Incomplete => RunPhase::Incomplete,
        RunState::Cancelled => RunPhase::Cancelled,
        RunState::Interrupted => RunPhase::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rehearsed::{Wanted, rehearsed};
    use super::*;
    use crate::config::{Raw, resolve};
    use muster_run::Record;
    use muster_store::Options;
    use muster_tui::Screen;
    use muster_wire::Outcome;

    const NODES: usize = 4;

    /// Every work of the first `phases` of cbd-light takes four seconds on every node, one after another.
    fn record(store: &mut Db, run: &Run, phases: usize, began_ms: u64) {
        let plan = work::plan_of(run).unwrap();
        let works: Vec<String> = plan.phases.iter().take(phases).flat_map(muster_playbook::Phase::work_names).collect();
        let of = |(nr, work): (u64, &String), node: &String| Record {
            run: run.id.clone(),
            node: node.clone(),
            work: work.clone(),
            outcome: Outcome::Done,
            at_ms: began_ms + 4_000 * (nr + 1),
            elapsed_ns: 4_000_000_000,
            series: Vec::new(),
            facts: Vec::new(),
        };
        let all = (0..).zip(&works).flat_map(|work| run.nodes.iter().map(move |node| of(work, node)));
        store.append_many(&all.collect::<Vec<_>>()).unwrap();
    }

    fn begun(store: &mut Db, id: &str, playbook: &str, started_ms: u64) -> Run {
        let nodes: Vec<String> = (0..NODES).map(|nr| format!("n{nr}")).collect();
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &nodes);
        let (id, playbook) = (id.to_owned(), playbook.to_owned());
        let state = RunState::Running;
        let run = Run {
            id,
            playbook,
            profile: plan.profile,
            started_ms,
            ended_ms: None,
            nodes,
            plan: plan.work_names(),
            state,
        };
        store.begin(&run).unwrap();
        run
    }

    /// What a console that only looks says of the time left.
    fn left(store: &Db, dir: &std::path::Path) -> Option<muster_tui::snapshot::Left> {
        let names: Vec<String> = (0..NODES).map(|nr| format!("n{nr}")).collect();
        let raw = Raw { db: Some(dir.to_owned()), ..Raw::default() };
        let config = resolve(raw, Raw::default(), std::path::Path::new("none.toml")).unwrap();
        let board = Board::new("four", &names, &[]);
        let names = Names::only(names);
        followed(&mut Seen::default(), (&Fleet::new(board.clone()), &board), (&config, &names)).unwrap();
        board.publish();
        assert!(store.runs().is_ok(), "the other console has the database");
        board.snapshot().progress.left
    }

    #[test]
    fn a_console_that_only_looks_says_how_long_the_run_of_another_one_will_take() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let now = crate::clock::now_ms();
        let before = begun(&mut store, "r1", "cbd-light", now - 1_000_000);
        record(&mut store, &before, 3, before.started_ms);
        store.end(&before.id, RunState::Finished, now - 900_000).unwrap();
        let run = begun(&mut store, "r2", "cbd-light", now - 40_000);
        let took = 4_000 * work::plan_of(&run).unwrap().phases[0].work_names().len() as u64;
        record(&mut store, &run, 1, now - took);
        let six_works = left(&store, dir.path()).unwrap();
        assert!(six_works.measured && (20_000..32_000).contains(&six_works.ms), "{six_works:?}");
        store.end(&run.id, RunState::Finished, now).unwrap();
        assert_eq!(left(&store, dir.path()), None, "it has ended");
    }

    #[test]
    fn whoever_another_console_measures_for_the_first_time_joins_the_list_where_there_is_no_inventory() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let old = begun(&mut store, "r1", "cbd-light", 1_000);
        record(&mut store, &old, 1, 1_000);
        store.end(&old.id, RunState::Finished, 2_000).unwrap();
        let raw = Raw { db: Some(dir.path().to_owned()), ..Raw::default() };
        let config = resolve(raw, Raw::default(), std::path::Path::new("none.toml")).unwrap();
        let known = old.nodes.clone();
        let mut both = [Names::only(known.clone()).and_later(), Names::only(known.clone())].map(|names| {
            let board = Board::new("four", &known, &[]);
            (names, Fleet::new(board.clone()), board, Seen::default())
        });
        let mut look = || {
            let mut listed = Vec::new();
            for (names, fleet, board, seen) in &mut both {
                followed(seen, (&*fleet, &*board), (&config, &*names)).unwrap();
                listed.push((board.names(), fleet.current().len()));
            }
            listed
        };
        assert_eq!(look(), vec![(known.clone(), 1); 2]);
        let nodes = vec!["n9".to_owned(), "m1".to_owned()];
        let new = Run { id: "r2".to_owned(), started_ms: 3_000, nodes, ..old };
        store.begin(&new).unwrap();
        record(&mut store, &new, 1, 3_000);
        store.end(&new.id, RunState::Finished, 4_000).unwrap();
        let all: Vec<String> = known.iter().map(String::as_str).chain(["m1", "n9"]).map(str::to_owned).collect();
        assert_eq!(look(), [(all, 2), (known, 1)]);
    }

    #[test]
    fn the_selector_of_a_console_that_only_looks_answers_for_whoever_joins() {
        let dir = tempfile::tempdir().unwrap();
        let began_ms = crate::clock::now_ms() - 30 * 86_400_000;
        let old = {
            let mut store = Db::open(dir.path(), &Options::default()).unwrap();
            let old = begun(&mut store, "r1", "cbd-light", began_ms);
            record(&mut store, &old, 1, began_ms);
            store.end(&old.id, RunState::Finished, began_ms + 1_000).unwrap();
            old
        };
        let path = dir.path().to_owned();
        let begin = |app: &mut App| {
            (app.store, app.watching) = (None, Some("another muster has the database".to_owned()));
            app.names = app.names.clone().and_later();
            let board = app.board.clone();
            std::thread::spawn(move || {
                while board.snapshot().selector.data.is_none() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                let mut store = Db::open(&path, &Options::default()).unwrap();
                let (started_ms, nodes) = (began_ms + 2_000, vec!["n9".to_owned()]);
                let new = Run { id: "r2".to_owned(), started_ms, nodes, ..old };
                store.begin(&new).unwrap();
                record(&mut store, &new, 1, started_ms);
                store.end(&new.id, RunState::Finished, began_ms + 3_000).unwrap();
            });
        };
        let joined: Wanted = |shown| shown.selector.data.as_ref().is_some_and(|told| told.nodes.len() == NODES + 1);
        let known = ["n0", "n1", "n2", "n3"];
        let screen = (Screen::Selector, std::io::sink());
        let last = rehearsed((&known, dir.path(), &[]), begin, screen, vec![('q', joined)]);
        assert!(last.selector.data.as_ref().unwrap().nodes.iter().any(|row| row.name == "n9"));
    }

    #[test]
    fn of_a_playbook_from_a_file_the_time_left_is_that_of_the_work_left() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let now = crate::clock::now_ms();
        let before = begun(&mut store, "r1", "cbd-light", now - 1_000_000);
        record(&mut store, &before, 3, before.started_ms);
        store.end(&before.id, RunState::Finished, now - 900_000).unwrap();
        let works = work::plan_of(&before).unwrap();
        let of_file = begun(&mut store, "r2", "our-own.toml", now - 40_000);
        assert_eq!(work::plan_of(&of_file), None, "nobody here knows its steps");
        let took = 4_000 * works.phases[0].work_names().len() as u64;
        record(&mut store, &Run { playbook: "cbd-light".to_owned(), ..of_file.clone() }, 1, now - took);
        let six_works = left(&store, dir.path()).unwrap();
        assert!(six_works.measured && (20_000..32_000).contains(&six_works.ms), "{six_works:?}");
        let unknown = Run { id: "r3".to_owned(), plan: vec!["net-pair".to_owned()], ..of_file };
        assert_eq!(work::as_one_step(&unknown), None, "how long pairs take depends on the playbook");
    }
}
