//! A stored run that is played: its records come to the board as those of a run that goes on, and are judged in the same way.
//!
//! One path for all: [`App::sit_on_replay`] differs from a live run only in where the records come from. Nothing is written anywhere.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use muster_fleet::Node;
use muster_run::{Record, Run, RunState, is_work};
use muster_tui::snapshot::RunPhase;
use muster_tui::{Intent, Play, Screen};

use super::fleet::Fleet;
use super::run::shown;
use super::{App, screen};
use crate::exit::Ended;
use crate::judge::{Judging, Told};
use crate::session::VISITS;
use crate::views::{Board, Stage, visits_at_most};
use crate::work::Update;
use crate::work::playhead::Playhead;
use crate::work::tape::Tape;

/// How often the replay moves on.
const TURN: Duration = Duration::from_millis(50);
/// How often its place is shown anew.
const MOVES: Duration = Duration::from_millis(200);
/// How often verdicts are recomputed while it goes on.
const JUDGE: Duration = Duration::from_millis(700);

/// A run to be played, and by what it was judged.
#[derive(Debug)]
pub struct Played {
    /// Its records.
    pub tape: Tape,
    /// Thresholds, groups and criteria.
    pub judging: Judging,
    /// Seconds of it that pass in a second.
    pub speed: f64,
}

impl App {
    /// Serves the screen on a stored run that is played, until the user leaves.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub async fn sit_on_replay(mut self, played: Played) -> Ended {
        self.replay(played);
        let options = screen::options(&self.config, self.ascii, Screen::Fleet);
        self.serve(None, move |newest, wish| muster_tui::run(options, newest, wish)).await
    }

    /// Begins to play.
    pub(super) fn replay(&mut self, played: Played) {
        let (keys, pressed) = channel();
        let deck = Deck::new(played, (self.board.clone(), self.fleet.clone()), self.job.nodes.clone());
        let (board, fleet, epoch) = (self.board.clone(), self.fleet.clone(), deck.epoch.clone());
        let (run, judging) = (deck.going.clone(), deck.judging.clone());
        let (alive, ended) = channel::<()>();
        std::thread::spawn(move || judge_often((&board, &fleet, &epoch), &run, &judging, &ended));
        std::thread::spawn(move || {
            // The judge ends with the replay.
            let _alive = alive;
            play(deck, &pressed);
        });
        self.replay = Some(keys);
    }

    /// Does with the replay, or the recording of a watch, what a key asks for.
    pub(super) fn play(&self, play: Play) {
        match &self.replay {
            // It ends with the console.
            Some(keys) => drop(keys.send(play)),
            None => self.play_watch(play),
        }
    }

    /// Whether this would change what is played, write into the database or do something on nodes; then it is not done.
    pub(super) fn disturbs(&self, intent: &Intent) -> bool {
        let other = matches!(intent, Intent::Open { .. });
        (self.replay.is_some() || self.plays) && (intent.acts() || intent.writes() || other)
    }
}

/// What takes keys.
pub(super) type Keys = Sender<Play>;

/// Plays until the console is left.
fn play(mut deck: Deck, pressed: &Receiver<Play>) {
    loop {
        match pressed.recv_timeout(TURN) {
            Ok(play) => deck.obey(play, Instant::now()),
            Err(RecvTimeoutError::Timeout) => deck.turn(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The run, its place, and what it is shown on.
pub(super) struct Deck {
    tape: Tape,
    /// The run as it was while it went on.
    going: Run,
    head: Playhead,
    board: Board,
    fleet: Fleet,
    known: Vec<Node>,
    judging: Judging,
    /// Counts how often it was begun; held while results and what they were judged as change together.
    epoch: Arc<Mutex<u64>>,
    shown: Option<Instant>,
    /// Whether its end is shown.
    over: bool,
}

impl Deck {
    pub(super) fn new(played: Played, (board, fleet): (Board, Fleet), known: Vec<Node>) -> Self {
        let Played { tape, judging, speed } = played;
        let head = Playhead::new(tape.span(), speed);
        let going = Run { ended_ms: None, state: RunState::Running, ..tape.run().clone() };
        let epoch = Arc::new(Mutex::new(0));
        let mut new = Self { tape, going, head, board, fleet, known, judging, epoch, shown: None, over: false };
        new.begin(Instant::now());
        new.head.start(Instant::now());
        new
    }

    /// Shows the run before its first result.
    fn begin(&mut self, now: Instant) {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        *epoch = self.fleet.rewound();
        self.board.replays(self.head.shown(now));
        self.board.reset(&self.going.nodes, &self.known, None);
        self.board.begin(&self.going, self.tape.plan(), Vec::new(), RunPhase::Running);
        // How often that console visited a node is not kept; the usual number is the best guess.
        self.board.rewound(visits_at_most(self.going.profile, usize::from(VISITS)));
        self.tape.rewind();
        self.over = false;
    }

    /// Does what a key asks for.
    pub(super) fn obey(&mut self, play: Play, now: Instant) {
        self.moved(now, |head| head.obey(play, now));
    }

    /// Moves the head; where that goes back, all up to there is told again.
    fn moved(&mut self, now: Instant, moves: impl FnOnce(&mut Playhead)) {
        let before = self.head.at_s(now);
        moves(&mut self.head);
        if self.head.at_s(now) < before {
            self.begin(now);
        }
        self.shown = None;
        self.turn(now);
    }

    /// Tells what happened up to now, and shows the end once it is there.
    fn turn(&mut self, now: Instant) {
        let at = self.head.shown(now);
        if self.shown.is_none_or(|shown| now.saturating_duration_since(shown) >= MOVES) {
            self.board.replays(at);
            self.shown = Some(now);
        }
        {
            let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
            let Self { tape, board, fleet, going, judging, .. } = self;
            let told = board.clone();
            let mut hear = |at_ms: u64, update: &Update<'_>| told.hear(at_ms, update);
            tape.play(at.at_ms, &mut hear, &mut || judge((board, fleet, epoch), going, judging));
        }
        if at.at_ms >= at.until_ms && !self.over {
            self.end();
        }
    }

    /// Shows what the whole run says, as it ended.
    fn end(&mut self) {
        self.over = true;
        let run = self.tape.run().clone();
        let told = Told::judge(run.clone(), self.tape.records(), &self.judging);
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        // What is judged meanwhile of the run as it went on comes too late.
        *epoch = self.fleet.began();
        // Everything is judged.
        let _ = self.board.unjudged();
        self.board.replayed(&run, shown(run.state));
        self.fleet.live(*epoch, told, Stage::Over);
    }
}

#[cfg(test)]
impl Deck {
    pub(super) fn go_to(&mut self, at_s: f64, now: Instant) {
        self.moved(now, |head| head.go_to(at_s, now));
    }

    pub(super) fn epoch(&self) -> u64 {
        *self.epoch.lock().unwrap()
    }

    pub(super) const fn going(&self) -> &Run {
        &self.going
    }

    pub(super) const fn judging(&self) -> &Judging {
        &self.judging
    }
}

/// Judges what has come so far, if anything has.
pub(super) fn judge((board, fleet, epoch): (&Board, &Fleet, u64), run: &Run, judging: &Judging) {
    tell((fleet, epoch), board.unjudged(), (run, judging));
}

/// Judges over and over until the replay has `ended`, giving way to the screen.
fn judge_often(
    (board, fleet, epoch): (&Board, &Fleet, &Mutex<u64>),
    run: &Run,
    judging: &Judging,
    ended: &Receiver<()>,
) {
    // Where that is not allowed it judges as fast as everything else.
    let _ = rustix::process::nice(10);
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(JUDGE) {
        let (epoch, unjudged) = {
            let epoch = epoch.lock().unwrap_or_else(PoisonError::into_inner);
            (*epoch, board.unjudged())
        };
        tell((fleet, epoch), unjudged, (run, judging));
    }
}

/// Tells what the records say. Before the first result nothing is said: what a run without any says would stay with nodes that
/// have none yet, and a replay that begins later never says it.
fn tell((fleet, epoch): (&Fleet, u64), unjudged: Option<(Vec<Arc<Record>>, Stage)>, (run, judging): (&Run, &Judging)) {
    if let Some((records, stage)) = unjudged
        && records.iter().any(|record| is_work(&record.work))
    {
        fleet.live(epoch, Told::judge(run.clone(), &records, judging), stage);
    }
}
