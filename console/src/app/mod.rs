//! The application: one object, one dispatcher for whatever the screen asks. Carries values between fleet, store, analysis and
//! screen, and decides nothing.

mod asks;
mod back;
mod export;
mod fleet;
mod names;
#[cfg(test)]
mod rehearsed;
mod replay;
#[cfg(test)]
mod replayed;
mod run;
pub mod screen;
mod swap;
#[cfg(test)]
mod swap_played;
mod triage;
mod triage_again;
mod triage_offline;
#[cfg(test)]
mod triage_played;
#[cfg(test)]
mod under_load;
mod watch;
#[cfg(test)]
mod watch_played;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use muster_fleet::Tell;
use muster_store::{Db, Store};
use muster_tui::snapshot::Ask;
use muster_tui::{Intent, Screen, Source};
use muster_wire::Level;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use self::fleet::Fleet;
use self::names::Names;
pub use self::replay::Played;
use self::run::{Going, Returned};
pub use self::triage_again::Asking;
use crate::config::Config;
use crate::database;
use crate::exit::{Code, Ended, IO, PASS};
use crate::options::{self, Common};
use crate::risk::Basis;
use crate::session::{self, Job};
use crate::signals::Signals;
use crate::views::{Board, read_past, read_service};

/// How long the screen may take to leave the terminal once a signal came.
const LEAVING: Duration = Duration::from_secs(2);
/// How often the screen may change.
const TICK: Duration = Duration::from_millis(50);

/// What the console holds while it is open.
pub struct App {
    /// How work is done; its playbook is the one that nobody has to name.
    job: Job,
    /// The fleet.
    names: Names,
    config: Config,
    read_only: bool,
    ascii: bool,
    board: Board,
    fleet: Fleet,
    /// In whose hands its nodes are.
    hands: swap::Hands,
    /// What the Selector's answers rest on; read when first asked, and again after a run.
    basis: Option<Basis>,
    ask: Ask,
    /// The database; `None` while a run or the reading of stored runs holds it.
    store: Option<Db>,
    /// Why this console may not write into the database, where it may not.
    watching: Option<String>,
    /// Told when another console has written what the Selector's answers rest on.
    news: Arc<Notify>,
    going: Option<Going>,
    /// The run that is played, in a replay.
    replay: Option<replay::Keys>,
    /// Whether the recording of a watch, or a case, is shown as a replay.
    plays: bool,
    /// The job that is watched beside it.
    follow: Option<watch::Follow>,
    /// The job whose failure is looked into.
    case: triage::Desk,
    /// How its nodes are asked, where they were.
    asking: Option<Arc<triage_again::Asking>>,
}

impl App {
    /// The console on the nodes of `job`, with what `store` knows of them; without a database to write into it only looks, for the
    /// reason given.
    #[must_use]
    pub fn new(job: Job, store: Result<Db, String>, (config, common): (Config, &Common), title: &str) -> Self {
        // Without an inventory the fleet is whoever was ever measured.
        let stored = || match &store {
            Ok(store) => store.nodes().unwrap_or_default(),
            Err(_) => database::read(&config).ok().and_then(|store| store.nodes().ok()).unwrap_or_default(),
        };
        let names: Vec<String> = match job.nodes.is_empty() {
            true => stored().into_iter().map(|node| node.name).collect(),
            false => job.nodes.iter().map(|node| node.name.clone()).collect(),
        };
        let open = job.nodes.is_empty();
        let app = Self::on(names, job, store, (config, common), title);
        if open { Self { names: app.names.clone().and_later(), ..app } } else { app }
    }

    /// The same with nodes called `names`, of which those of `job` can be reached.
    #[must_use]
    pub fn on(
        names: Vec<String>,
        job: Job,
        store: Result<Db, String>,
        (config, common): (Config, &Common),
        title: &str,
    ) -> Self {
        let title = if store.is_ok() { title.to_owned() } else { format!("{title} (read-only)") };
        let board = Board::new(&title, &names, &job.nodes);
        let mut job = job;
        let told = board.clone();
        Arc::make_mut(&mut job.settings).tell = Tell::new(move |what| told.say(Level::Info, what));
        let (store, watching) = store.map_or_else(|why| (None, Some(why)), |store| (Some(store), None));
        watching.iter().for_each(|why| board.only_looks(why));
        board.stale_after(config.stale_after_ms());
        read_past(config.db.value.clone(), &board);
        read_service(config.db.value.clone(), session::params(&config), &board);
        let fleet = Fleet::new(board.clone());
        let hands = swap::Hands::new(&board, &config, &names, &job.nodes);
        let case = triage::Desk::knowing(&job.nodes, common.read_only, watching.as_deref());
        let (read_only, ascii, ask) = (common.read_only, common.ascii, options::Ask::default().question());
        Self {
            job,
            names: Names::only(names),
            config,
            read_only,
            ascii,
            board,
            fleet,
            hands,
            basis: None,
            ask,
            store,
            watching,
            news: Arc::default(),
            going: None,
            replay: None,
            plays: false,
            follow: None,
            case,
            asking: None,
        }
    }

    /// Serves the screen until the user leaves; does `first` as soon as what is stored has been read, but opens a run before.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub async fn sit(self, first: Option<Intent>) -> Ended {
        let options = screen::options(&self.config, self.ascii, Screen::Fleet);
        self.serve(first, move |newest, wish| muster_tui::run(options, newest, wish)).await
    }

    /// The same with any screen: it is given the newest snapshot whenever it asks, and says what it wants done.
    async fn serve(
        mut self,
        mut first: Option<Intent>,
        screen: impl FnOnce(Source<'_>, &dyn Fn(Intent)) -> std::io::Result<()> + Send + 'static,
    ) -> Ended {
        let (sender, mut intents) = mpsc::unbounded_channel();
        let shown = self.board.watch();
        let (signals, ended) = (Signals::default(), CancellationToken::new());
        let listening = signals.end(ended.clone());
        let end = ended.clone();
        let screen = std::thread::spawn(move || {
            let newest = || (!end.is_cancelled()).then(|| shown.borrow().clone());
            screen(&newest, &|intent| drop(sender.send(intent)))
        });
        let ticking = tokio::spawn(tick(self.board.clone()));
        if let Some(open) = first.take_if(|intent| matches!(intent, Intent::Open { .. })) {
            self.obey(open);
        }
        match self.watching.clone() {
            None => self.read_stored(),
            // There is nothing that another console could write.
            Some(_) if self.replay.is_some() || self.plays => self.advise(),
            Some(why) => {
                self.follow(&why);
                self.advise();
            }
        }
        let mut leaving = false;
        loop {
            if self.store.is_some()
                && let Some(intent) = first.take()
            {
                self.obey(intent);
            }
            tokio::select! {
                () = ended.cancelled(), if !leaving => leaving = true,
                returned = run::end(&mut self.going) => self.take_back(returned),
                () = self.news.notified() => self.advise_anew(),
                intent = intents.recv(), if !leaving => match intent {
                    None | Some(Intent::Quit) => leaving = true,
                    Some(intent) => self.obey(intent),
                },
            }
            match &self.going {
                Some(going) if leaving && going.is_run() => going.cancel(),
                // Reading loses nothing when it is given up.
                _ if leaving => break,
                _ => {}
            }
        }
        self.leave_watch().await;
        ticking.abort();
        listening.abort();
        if let Some(code) = signals.code() {
            // A terminal that hung up cannot be left in order, and may hold the screen's thread for ever.
            let begin = std::time::Instant::now();
            while !screen.is_finished() && begin.elapsed() < LEAVING {
                tokio::time::sleep(TICK / 10).await;
            }
            return Ok(code);
        }
        screen.join().map_err(|_| anyhow::anyhow!("the screen ended in a panic"))?.code(IO).map(|()| PASS)
    }

    /// Does what the screen asks, or begins it.
    fn obey(&mut self, intent: Intent) {
        if self.disturbs(&intent) {
            let why = "this is a replay: nothing else is opened, nothing is written to the database or done on nodes";
            return self.board.say(Level::Info, why);
        }
        match intent {
            Intent::RunPlaybook { playbook, nodes } => self.run_playbook(&playbook, &nodes),
            Intent::RunSelection { benchmarks, nodes } => self.validate(&benchmarks, &nodes),
            Intent::Cancel => self.cancel(),
            Intent::Clean { nodes } => self.clean(&nodes),
            Intent::Ask(ask) => {
                self.ask = ask;
                self.advise();
            }
            Intent::Focus { node } => self.board.focus(&node),
            Intent::WhatIf(terms) => self.what_if(terms),
            Intent::Criteria => self.criteria(),
            Intent::Runs => self.runs(),
            Intent::Open { run } => self.open(run),
            Intent::Pair { src, dst } => self.board.pair(&src, &dst),
            Intent::PairMetric(name) => self.board.pair_metric(&name),
            // Whatever else forbids it: that is why this console cannot.
            Intent::Swap { .. } if self.watching.is_some() => self.busy(),
            Intent::Swap { hand, nodes, reason } => self.swap(hand, &nodes, &reason),
            Intent::Watch { nodes } => self.watch_nodes(&nodes),
            Intent::StopWatch => self.stop_watch(),
            Intent::WatchFrom { at_s } => self.watch_from(at_s),
            Intent::Play(play) => self.play(play),
            Intent::Triage { path } => self.triage(Path::new(&path), |_| Ok(())),
            Intent::TriageWrong { subject, wrong } => self.triage_wrong(subject, wrong),
            Intent::TriageConfirm { subject } => self.triage_confirm(&subject),
            Intent::TriageOffline { nodes } => self.triage_offline(&nodes),
            Intent::TriageAgain { dumps } => self.triage_again(dumps),
            Intent::Export(what, format) => self.export(what, format),
            // The screen does these itself.
            Intent::Copy(_) | Intent::Redraw | Intent::Suspend | Intent::Quit => {}
        }
    }

    /// A run, or the reading of stored runs, has ended and returns the database.
    fn take_back(&mut self, returned: Returned) {
        self.going = None;
        self.store = returned.store;
        if let Some((level, text)) = returned.said {
            self.board.say(level, text);
        }
        if self.store.is_none() {
            self.board.say(Level::Error, "the database is lost to this console; start it again");
        }
        self.tell_damage();
        self.advise_anew();
        self.hands.begin();
        // The palette finds stored runs, also those that have just ended.
        self.runs();
    }

    /// Asks the database, or, while somebody writes into it, a copy that only reads; then aside, so that frames go on.
    fn look_up(&self, look: impl FnOnce(&dyn Store) + Send + 'static) {
        match &self.store {
            Some(store) => tokio::task::block_in_place(|| look(store)),
            None => {
                let (dir, board) = (self.config.db.value.clone(), self.board.clone());
                tokio::task::spawn_blocking(move || match Db::open_read_only(dir) {
                    Ok(store) => {
                        look(&store);
                        board.tell_damage(&store);
                    }
                    Err(why) => board.say(Level::Error, format!("the database cannot be read: {why}")),
                });
            }
        }
    }

    fn tell_damage(&self) {
        self.store.iter().for_each(|store| self.board.tell_damage(store));
    }

    fn problem(&self, why: &anyhow::Error) {
        self.board.say(Level::Error, format!("{why:#}"));
    }
}

async fn tick(board: Board) {
    loop {
        tokio::time::sleep(TICK).await;
        board.publish();
    }
}
