//! Which nodes are watched, what do they tell of themselves, and who was lost?
//!
//! One probe stays on every node and sends ticks; a node that is lost is tried again for as long as the watch lasts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Event, EventKind, Failure, FailureKind, Node, Phase, Probe, Settings, Talk};
use muster_wire::{Beat, Columns, Frame, Level, Request, Tick, WatchOrder, clean, watched};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::work::clock::Clock;
use crate::work::peers::{NEAREST, Peers};

/// Orders that wait for a slow connection.
const ORDERS: usize = 16;
/// Longest watch of one connection: as good as for ever.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Questions asked of a clock at once, and when it is asked again.
const ASKED: u32 = 4;
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Seconds that two clocks may run apart in a second, which what was known of one loses with age.
const DRIFT: f64 = 1e-4;
/// Pings of the connection itself count from 1; ours are far from them.
const OURS: u64 = 1 << 40;
/// How far from now a tick may claim to be: older ones say nothing of the present, and newer ones are a lie.
const OLDEST_S: f64 = 60.0;
const NEWEST_S: f64 = 1.0;
/// Warnings of a node that are told, and bytes of one.
const SAID: u32 = 8;
const SAID_BYTES: usize = 300;
/// Pauses before a lost node is tried again.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What happened.
#[derive(Debug)]
pub enum Seen {
    /// One look at a node: which it is, when by our clock (epoch seconds), and every metric of the catalogue that it told.
    Values(usize, f64, Vec<(&'static str, f64)>),
    /// The same of what changes fast alone, between two looks at everything: moments, where the other are means.
    Fine(usize, f64, Vec<(&'static str, f64)>),
    /// A node says what it cannot look at.
    Said(usize, String),
    /// A node answers; the first time, or again.
    There(usize),
    /// A node was lost or never reached. It is tried again where that may help.
    Lost(usize, Failure),
    /// The time is over, or the watch was cancelled.
    Over,
}

/// A node and what is known of it.
struct Member {
    node: Node,
    /// Gone while the node is.
    orders: Option<mpsc::Sender<Request>>,
    columns: Vec<Option<&'static str>>,
    clock: Option<(Clock, Instant)>,
    /// Our last question, and how many of this connection were answered.
    asked: Option<(u64, Instant)>,
    answered: u32,
    ask_again: Instant,
    /// Warnings it sent.
    said: u32,
    /// It was told that the node is lost.
    told: bool,
    /// When it is tried again, and the pause after that.
    again: Option<Instant>,
    pause: Duration,
}

/// All probes of a watch.
pub struct Lookout {
    members: Vec<Member>,
    places: BTreeMap<String, usize>,
    peers: Peers,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    fleet: JoinSet<()>,
    ways: (Arc<Probe>, Arc<Settings>, CancellationToken),
    order: WatchOrder,
    questions: u64,
    epoch: Instant,
    epoch_s: f64,
    /// Ticks of a time that cannot be.
    strange: u64,
}

impl Lookout {
    /// Begins to reach `nodes`, each of which is to tell of itself as the `order` says. Does not wait for them.
    #[must_use]
    pub fn open(
        nodes: &[Node],
        order: WatchOrder,
        probe: Arc<Probe>,
        settings: Arc<Settings>,
        cancel: CancellationToken,
    ) -> Self {
        let (sender, events) = mpsc::channel(1024);
        let member = |node: &Node| Member {
            node: node.clone(),
            orders: None,
            columns: Vec::new(),
            clock: None,
            asked: None,
            answered: 0,
            ask_again: Instant::now(),
            said: 0,
            told: false,
            again: None,
            pause: PAUSE,
        };
        let mut lookout = Self {
            members: nodes.iter().map(member).collect(),
            peers: Peers::default(),
            places: nodes.iter().enumerate().map(|(place, node)| (node.name.clone(), place)).collect(),
            events,
            sender,
            fleet: JoinSet::new(),
            ways: (probe, settings, cancel),
            order,
            questions: 0,
            epoch: Instant::now(),
            epoch_s: now_ms() as f64 / 1e3,
            strange: 0,
        };
        lookout.reach((0..nodes.len()).collect());
        lookout
    }

    /// Ticks whose time cannot be, by our clock.
    #[must_use]
    pub const fn strange(&self) -> u64 {
        self.strange
    }

    /// By how many seconds the times of a node's looks may be off at the moment; nothing is known before its first answer.
    #[must_use]
    pub fn clock_error_s(&self, node: usize) -> Option<f64> {
        self.members.get(node)?.clock.as_ref().map(|clock| error_ns(clock) / 1e9)
    }

    /// The next thing that happens, until `until`.
    pub async fn next(&mut self, until: Option<Instant>) -> Seen {
        loop {
            let again = self.members.iter().filter_map(|member| member.again).min();
            let cancel = self.ways.2.clone();
            tokio::select! {
                event = self.events.recv() => {
                    if let Some(seen) = event.and_then(|event| self.hear(event)) {
                        return seen;
                    }
                }
                () = at(again) => {
                    let now = Instant::now();
                    let is_due = |member: &Member| member.again.is_some_and(|again| again <= now);
                    let due = (0..self.members.len()).filter(|place| is_due(&self.members[*place])).collect();
                    self.reach(due);
                }
                () = at(until) => return Seen::Over,
                () = cancel.cancelled() => return Seen::Over,
            }
        }
    }

    /// Tells all to leave and waits for them.
    pub async fn close(self) {
        let Self { members, sender, mut events, mut fleet, .. } = self;
        drop((members, sender));
        while events.recv().await.is_some() {}
        while fleet.join_next().await.is_some() {}
    }

    /// Opens a probe on each of these nodes.
    fn reach(&mut self, places: Vec<usize>) {
        let mut talks = Vec::new();
        for place in places {
            let member = &mut self.members[place];
            let (orders, requests) = mpsc::channel(ORDERS);
            // There is room for the first of sixteen.
            let _ = orders.try_send(Request::Watch(self.order.clone()));
            (member.orders, member.again) = (Some(orders), None);
            (member.clock, member.asked, member.answered) = (None, None, 0);
            member.columns.clear();
            talks.push(Talk { node: member.node.clone(), orders: requests, limit: LONGEST });
        }
        let (probe, settings, cancel) = self.ways.clone();
        self.fleet.spawn(muster_fleet::talk(talks, probe, settings, self.sender.clone(), cancel));
    }

    fn hear(&mut self, event: Event) -> Option<Seen> {
        let place = *self.places.get(&event.node)?;
        match event.kind {
            EventKind::Frame(Frame::Hello(_)) => {
                let member = &mut self.members[place];
                (member.told, member.pause) = (false, PAUSE);
                self.ask(place);
                Some(Seen::There(place))
            }
            EventKind::Frame(Frame::Beat(beat)) => {
                self.answered(place, &beat);
                None
            }
            EventKind::Frame(Frame::Columns(Columns { metrics })) => {
                self.members[place].columns =
                    metrics.iter().map(|name| watched(name).map(|known| known.name)).collect();
                None
            }
            EventKind::Frame(Frame::Tick(tick)) => self.tick(place, &tick),
            EventKind::Frame(Frame::Peers(told)) => {
                let at_s = self.epoch_s + self.time(place, told.at_ns)?;
                let millis = self.peers.take(place, at_s, &told.trips)?;
                Some(Seen::Values(place, at_s, vec![(NEAREST, millis)]))
            }
            EventKind::Frame(Frame::Log(line)) if line.level >= Level::Warn => {
                let member = &mut self.members[place];
                member.said += 1;
                (member.said <= SAID).then(|| Seen::Said(place, clean(&line.text, SAID_BYTES)))
            }
            EventKind::Ended(result) => self.lost(place, result.err()),
            _ => None,
        }
    }

    /// The time `at_ns` of a node in seconds after our epoch; nothing where it cannot be, or no clock is known yet.
    fn time(&mut self, place: usize, at_ns: u64) -> Option<f64> {
        let (clock, _) = self.members[place].clock?;
        let (time, now) = (clock.since_epoch_s(at_ns), self.epoch.elapsed().as_secs_f64());
        if (-OLDEST_S..=NEWEST_S).contains(&(time - now)) {
            return Some(time);
        }
        self.strange += 1;
        None
    }

    fn tick(&mut self, place: usize, tick: &Tick) -> Option<Seen> {
        let time = self.time(place, tick.at_ns);
        let name_of = &self.members[place].columns;
        let told =
            |(name, value): (&Option<&'static str>, &f64)| Some(((*name)?, *value)).filter(|of| of.1.is_finite());
        let values = name_of.iter().zip(&tick.values).filter_map(told).collect();
        let whole = tick.values.len() >= name_of.len();
        if Instant::now() >= self.members[place].ask_again {
            self.ask(place);
        }
        let time = time?;
        let seen = if whole { Seen::Values } else { Seen::Fine };
        Some(seen(place, self.epoch_s + time, values))
    }

    fn lost(&mut self, place: usize, failure: Option<Failure>) -> Option<Seen> {
        let member = &mut self.members[place];
        let name = &member.node.name;
        let failure = failure
            .unwrap_or_else(|| Failure::new(name, Phase::Run, FailureKind::Cut, "the probe left before the end"));
        member.orders = None;
        if failure.passing() || failure.kind == FailureKind::Cut {
            member.again = Some(Instant::now() + member.pause);
            member.pause = (member.pause * 2).min(LONGEST_PAUSE);
        }
        // What happens while it is tried again is no news.
        (!std::mem::replace(&mut member.told, true)).then_some(Seen::Lost(place, failure))
    }

    fn ask(&mut self, place: usize) {
        self.questions += 1;
        let nonce = OURS + self.questions;
        let member = &mut self.members[place];
        member.ask_again = Instant::now() + ASK_AGAIN;
        // A connection that takes nothing more is asked the next time.
        if member.orders.as_ref().is_some_and(|orders| orders.try_send(Request::Ping { nonce }).is_ok()) {
            member.asked = Some((nonce, Instant::now()));
        }
    }

    fn answered(&mut self, place: usize, beat: &Beat) {
        let member = &mut self.members[place];
        let Some((_, sent)) = member.asked.take_if(|(nonce, _)| *nonce == beat.nonce) else { return };
        let trip = sent.elapsed();
        let seen = Clock::from_answer(sent.duration_since(self.epoch), trip, beat.monotonic_ns);
        if member.clock.is_none_or(|old| (seen.error_ns as f64) < error_ns(&old)) {
            member.clock = Some((seen, sent));
        }
        member.answered += 1;
        if member.answered < ASKED {
            self.ask(place);
        }
    }
}

/// How wrong a clock that was asked at an instant may be by now, nanoseconds.
fn error_ns((clock, asked): &(Clock, Instant)) -> f64 {
    clock.error_ns as f64 + asked.elapsed().as_nanos() as f64 * DRIFT
}

/// At an instant, or never.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
