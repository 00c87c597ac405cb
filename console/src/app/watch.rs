//! The watch of a job beside everything else: feeds the detector and shows what it knows.
//!
//! One path for all: [`App::sit_on_watch`] takes a [`Source`] of ticks, nodes or a recording, and opens the console on its screen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Probe, Settings};
use muster_tui::snapshot::Origin;
use muster_tui::{Play, Screen};
use muster_watch::{BLOCK_S, QUARTER, Settings as Detection};
use muster_wire::Level;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{App, screen};
use crate::exit::Ended;
use crate::views::{Board, Viewer};
use crate::work::ticks::{Happened, Source, Ticks};

/// How often the place in a recording moves on the screen.
const MOVES: Duration = Duration::from_millis(250);
/// Memory for what a recording showed, bytes: with it, days of a small job can be gone back through.
const KEPT: usize = 256 << 20;
/// Metrics that a recording is taken to have at most when that is computed, and bytes of a cell and block.
const METRICS: usize = 64;
const CELL: usize = 12;
/// How long the end of a watch is waited for when the console is left.
const LEAVING: Duration = Duration::from_secs(3);

/// A watch that goes on.
pub(super) struct Follow {
    cancel: CancellationToken,
    /// What a recording is to do.
    moves: mpsc::UnboundedSender<Move>,
    task: JoinHandle<()>,
}

/// What a recording is to do.
enum Move {
    /// Go on at this moment, epoch seconds.
    To(f64),
    /// What a key asks for.
    Play(Play),
}

impl App {
    /// The same as a replay: where the recording is stands in the header, and keys move it.
    pub async fn sit_on_played_watch(mut self, source: Source, by: Detection) -> Ended {
        self.plays = true;
        self.sit_on_watch(source, by).await
    }

    /// Serves the screen on **Watch** until the user leaves, with the ticks of `source`: [`Source::Nodes`] for a job that runs, a
    /// [`Source::Recording`] for one that ran. Whoever starts a job and wants it seen calls this with its nodes and
    /// `Detection::default()`.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub async fn sit_on_watch(mut self, source: Source, by: Detection) -> Ended {
        self.watch(source, by);
        let options = screen::options(&self.config, self.ascii, Screen::Watch);
        self.serve(None, move |newest, wish| muster_tui::run(options, newest, wish)).await
    }

    /// Begins to watch; what was watched until now is over.
    pub(super) fn watch(&mut self, source: Source, by: Detection) {
        self.stop_watch();
        let (cancel, (moves, asked)) = (CancellationToken::new(), mpsc::unbounded_channel());
        let ways = (self.job.probe.clone(), self.job.settings.clone(), cancel.clone());
        let before = self.follow.take().map(|follow| follow.task);
        let task = tokio::spawn(follow((source, by), ways, (self.board.clone(), self.plays), (asked, before)));
        self.follow = Some(Follow { cancel, moves, task });
    }

    /// Watches the nodes of these names.
    pub(super) fn watch_nodes(&mut self, names: &[String]) {
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids watches");
        }
        let nodes: Vec<_> = self.job.nodes.iter().filter(|node| names.contains(&node.name)).cloned().collect();
        if nodes.is_empty() {
            return self.board.say(Level::Warn, "none of these nodes is in the inventory, so none can be watched");
        }
        let what = crate::out::counted(nodes.len(), "node", "nodes");
        self.board.say(Level::Info, format!("watching {what}; what is usual is known after about 3 minutes"));
        self.watch(Source::Nodes { nodes, metrics: Vec::new(), job: None }, Detection::default());
    }

    /// Ends the watch; what it saw stays on the screen.
    pub(super) fn stop_watch(&self) {
        if let Some(follow) = &self.follow {
            follow.cancel.cancel();
        }
    }

    /// A recording goes on at this moment.
    pub(super) fn watch_from(&self, at_s: f64) {
        if let Some(follow) = &self.follow {
            // A watch that has ended hears nothing more.
            let _ = follow.moves.send(Move::To(at_s));
        }
    }

    /// A recording does what a key asks for.
    pub(super) fn play_watch(&self, play: Play) {
        if let Some(follow) = &self.follow {
            let _ = follow.moves.send(Move::Play(play));
        }
    }

    /// Ends the watch and waits until nodes are left.
    pub(super) async fn leave_watch(&mut self) {
        let Some(follow) = self.follow.take() else { return };
        follow.cancel.cancel();
        // A node that does not answer ends its probe by itself.
        let _ = tokio::time::timeout(LEAVING, follow.task).await;
    }
}

/// Feeds and shows until nothing more comes, or until the console is left where a recording is played: one can go back in it.
async fn follow(
    (source, by): (Source, Detection),
    (probe, settings, cancel): (Arc<Probe>, Arc<Settings>, CancellationToken),
    (board, plays): (Board, bool),
    (mut moves, before): (mpsc::UnboundedReceiver<Move>, Option<JoinHandle<()>>),
) {
    if let Some(before) = before {
        // The screen shows one watch.
        let _ = before.await;
    }
    let (members, kept) = (source.members(), blocks(&source));
    let mut viewer = Viewer::new(members.clone(), by, kept);
    board.watching(viewer.picture(origin_of(&source), false));
    let ticks = source.open(probe, settings, cancel.clone());
    let mut watched = Watched { viewer, ticks, board, plays, shown: Instant::now(), over: false };
    watched.place();
    loop {
        let Watched { viewer, ticks, .. } = &mut watched;
        let mut take = |node: usize, metric: &str, at_s: f64, value: f64| viewer.take(node, metric, at_s, value);
        tokio::select! {
            happened = ticks.next(&mut take) => if !watched.happened(happened) { break },
            Some(to) = moves.recv() => {
                if moved(&mut watched.ticks, to) {
                    (watched.viewer, watched.over) = (Viewer::new(members.clone(), by, kept), false);
                }
                watched.place();
            }
            () = cancel.cancelled() => break,
        }
    }
    watched.end();
    watched.ticks.close().await;
}

/// What is watched, and what of it is shown.
struct Watched {
    viewer: Viewer,
    ticks: Ticks,
    board: Board,
    /// Whether it is a replay.
    plays: bool,
    shown: Instant,
    /// Whether the end of a replay is shown.
    over: bool,
}

impl Watched {
    /// Shows what happened; whether more may come.
    fn happened(&mut self, happened: Happened) -> bool {
        let news = match happened {
            Happened::Told => self.viewer.is_newer(),
            Happened::There(node) => self.viewer.answers(node, None),
            Happened::Lost(node, why) => {
                self.board.say(Level::Warn, why.clone());
                self.viewer.answers(node, Some(why))
            }
            Happened::Over => {
                if self.plays {
                    self.end();
                }
                return self.plays;
            }
        };
        if news {
            self.viewer.clocks(|node| self.ticks.clock_error_s(node));
        }
        let moves = matches!(self.ticks, Ticks::Recorded(_)) && self.shown.elapsed() >= MOVES;
        if news || moves {
            self.show(false);
            self.shown = Instant::now();
        }
        true
    }

    /// Shows the end, once.
    fn end(&mut self) {
        if !self.over {
            self.viewer.finish();
            self.show(true);
        }
        self.over = true;
    }

    fn show(&mut self, over: bool) {
        self.board.watching(self.viewer.picture(origin(&self.ticks), over));
        self.place();
    }

    /// Shows in the header where a replay is.
    fn place(&self) {
        if let Ticks::Recorded(player) = &self.ticks
            && self.plays
        {
            self.board.replays(player.head().shown(Instant::now()));
        }
    }
}

/// Moves the recording; whether it went back, so that all of it up to there comes once more.
fn moved(ticks: &mut Ticks, to: Move) -> bool {
    match (ticks, to) {
        (Ticks::Recorded(player), Move::To(at_s)) => {
            player.go_to(at_s);
            false
        }
        (Ticks::Recorded(player), Move::Play(play)) => player.obey(play),
        _ => false,
    }
}

fn origin_of(source: &Source) -> Origin {
    match source {
        Source::Nodes { .. } => Origin::Live,
        Source::Recording(player) => recorded(player),
    }
}

fn origin(ticks: &Ticks) -> Origin {
    match ticks {
        Ticks::Live { .. } => Origin::Live,
        Ticks::Recorded(player) => recorded(player),
    }
}

fn recorded(player: &crate::work::ticks::Player) -> Origin {
    let (name, speed) = (player.name.clone(), player.head().speed());
    Origin::Recording { name, speed, at_s: player.at_s(), end_s: player.span().1 }
}

/// Blocks to keep: a quarter of an hour of live nodes; of a recording all that memory allows, so that one can go back in it.
fn blocks(source: &Source) -> usize {
    match source {
        Source::Nodes { .. } => QUARTER,
        Source::Recording(player) => {
            let (first, last) = player.span();
            let all = ((last - first) / BLOCK_S).clamp(0.0, 1e6) as usize + 2;
            let most = KEPT / (CELL * METRICS * source.members().len().max(1));
            all.min(most.max(QUARTER))
        }
    }
}
