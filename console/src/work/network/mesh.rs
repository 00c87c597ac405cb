//! Which probes are there to be asked, what do their clocks say, and who was lost?

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Event, EventKind, Failure, FailureKind, Node, Phase, Probe, Settings, Talk};
use muster_wire::{Beat, Frame, Request};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::work::Observer;
use crate::work::clock::Clock;
use crate::work::observe::tell;
use crate::work::order::Scan;

/// Orders that wait for a slow connection.
const ORDERS: usize = 16;
/// Questions asked of every clock; the answer that came back fastest counts.
const ASKED: u64 = 7;
/// Longest wait for the answers to one question.
const ANSWER: Duration = Duration::from_secs(1);
/// Pings of the connection itself count from 1; ours are far from them.
const OURS: u64 = 1 << 40;

/// A node whose probe waits for orders.
struct Member {
    orders: mpsc::Sender<Request>,
    clock: Option<Clock>,
    /// One per rail.
    addresses: Vec<IpAddr>,
    /// As its probe told them.
    abilities: Vec<String>,
}

/// What came from the nodes.
pub(super) enum Heard {
    Frame(String, Frame),
    Lost(String),
    /// The time is over, or the scan was cancelled.
    Nothing,
}

/// All probes of a scan.
pub(super) struct Mesh {
    members: BTreeMap<String, Member>,
    events: mpsc::Receiver<Event>,
    /// For the events of nodes that join later.
    sender: mpsc::Sender<Event>,
    fleet: JoinSet<()>,
    ways: Ways,
    /// Questions asked so far.
    asked: u64,
    /// Nodes that are tried again: what fails meanwhile is told once, at the end.
    tried: BTreeSet<String>,
    /// Nodes that have taken part.
    reached: BTreeSet<String>,
    cancel: CancellationToken,
    epoch: Instant,
    epoch_ms: u64,
    /// Nodes that went away since they were last asked for.
    pub(super) lost: Vec<(String, Failure)>,
}

/// How the nodes are reached.
struct Ways {
    nodes: BTreeMap<String, (Node, Vec<IpAddr>)>,
    probe: Arc<Probe>,
    settings: Arc<Settings>,
    limit: Duration,
}

impl Mesh {
    /// Opens a probe on every node that has an address and waits until each works or failed.
    pub(super) async fn open(
        scan: &Scan,
        nodes: &[(Node, Vec<IpAddr>)],
        limit: Duration,
        watchers: &mut [&mut dyn Observer],
        cancel: &CancellationToken,
    ) -> Self {
        let ways = Ways {
            nodes: nodes.iter().map(|of| (of.0.name.clone(), of.clone())).collect(),
            probe: scan.probe.clone(),
            settings: scan.settings.clone(),
            limit,
        };
        let (sender, events) = mpsc::channel(1024);
        let mut mesh = Self {
            members: BTreeMap::new(),
            events,
            sender,
            fleet: JoinSet::new(),
            ways,
            asked: 0,
            tried: BTreeSet::new(),
            reached: BTreeSet::new(),
            cancel: cancel.clone(),
            epoch: Instant::now(),
            epoch_ms: now_ms(),
            lost: Vec::new(),
        };
        mesh.join(&nodes.iter().map(|(node, _)| node.name.clone()).collect(), watchers).await;
        mesh
    }

    /// Opens a probe on each of these nodes and waits until it works or failed.
    async fn join(&mut self, names: &BTreeSet<String>, watchers: &mut [&mut dyn Observer]) {
        let mut talks = Vec::new();
        for (node, addresses) in names.iter().filter_map(|name| self.ways.nodes.get(name)) {
            let (orders, requests) = mpsc::channel(ORDERS);
            let member = Member { orders, clock: None, addresses: addresses.clone(), abilities: Vec::new() };
            self.members.insert(node.name.clone(), member);
            talks.push(Talk { node: node.clone(), orders: requests, limit: self.ways.limit });
        }
        let mut waiting = talks.len();
        let Ways { probe, settings, .. } = &self.ways;
        let stop = self.cancel.child_token();
        self.fleet.spawn(muster_fleet::talk(talks, probe.clone(), settings.clone(), self.sender.clone(), stop));
        while waiting > 0 {
            // Every node answers or fails within the limits of its connection.
            match self.hear(None, watchers).await {
                Heard::Frame(node, Frame::Hello(hello)) => {
                    if let Some(member) = self.members.get_mut(&node) {
                        member.abilities = hello.capabilities;
                    }
                    self.reached.insert(node);
                    waiting -= 1;
                }
                Heard::Lost(node) if names.contains(&node) => waiting -= 1,
                Heard::Frame(..) | Heard::Lost(_) => {}
                Heard::Nothing => break,
            }
        }
        self.set_clocks(names, watchers).await;
    }

    /// Nodes that took part, were lost since the last call and may come back, each with how it was lost.
    pub(super) fn away(&mut self) -> BTreeMap<String, Failure> {
        let all = std::mem::take(&mut self.lost);
        let (away, lost) = all.into_iter().partition(|(node, failure)| self.may_return(node, failure));
        self.lost = lost;
        Vec::into_iter(away).collect()
    }

    /// Whether this node took part, and was not lost for what it did itself.
    fn may_return(&self, node: &str, failure: &Failure) -> bool {
        self.reached.contains(node) && failure.passing()
    }

    /// Whether another run is to ask this node again.
    pub(super) fn is_missed(&self, node: &str, failure: &Failure) -> bool {
        self.may_return(node, failure) || failure.lost()
    }

    /// Tries once more to reach those that were lost; gives those that are there now.
    pub(super) async fn retry(
        &mut self,
        lost: &BTreeSet<String>,
        watchers: &mut [&mut dyn Observer],
    ) -> BTreeSet<String> {
        if lost.is_empty() {
            return BTreeSet::new();
        }
        self.tried.clone_from(lost);
        self.join(lost, watchers).await;
        self.tried.clear();
        self.lost.retain(|(node, _)| !lost.contains(node));
        lost.iter().filter(|node| self.has(node)).cloned().collect()
    }

    /// Whether the scan was cancelled.
    pub(super) fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Those of `names` that answer within `patience`.
    pub(super) async fn answering(
        &mut self,
        names: &BTreeSet<String>,
        patience: Duration,
        watchers: &mut [&mut dyn Observer],
    ) -> BTreeSet<String> {
        self.asked += 1;
        let nonce = OURS + self.asked;
        for member in names.iter().filter_map(|name| self.members.get(name)) {
            // A connection that takes nothing more does not answer either.
            let _ = member.orders.try_send(Request::Ping { nonce });
        }
        let (until, mut answered) = (Instant::now() + patience, BTreeSet::new());
        while names.iter().any(|name| self.has(name) && !answered.contains(name)) {
            match self.hear(Some(until), watchers).await {
                Heard::Frame(node, Frame::Beat(beat)) if beat.nonce == nonce => drop(answered.insert(node)),
                Heard::Frame(..) | Heard::Lost(_) => {}
                Heard::Nothing => break,
            }
        }
        answered
    }

    /// The next thing that a node says, until `until`.
    pub(super) async fn hear(&mut self, until: Option<Instant>, watchers: &mut [&mut dyn Observer]) -> Heard {
        loop {
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = over => None,
                () = self.cancel.cancelled() => None,
            };
            let Some(event) = event else { return Heard::Nothing };
            if !(self.tried.contains(&event.node) && matches!(event.kind, EventKind::Ended(_))) {
                tell(&event, watchers);
            }
            match event.kind {
                EventKind::Frame(frame) => return Heard::Frame(event.node, frame),
                EventKind::Ended(result) => {
                    let left = || Failure::new(&event.node, Phase::Run, FailureKind::Cut, "the probe left early");
                    self.members.remove(&event.node);
                    self.lost.push((event.node.clone(), result.map_or_else(|failure| failure, |_| left())));
                    return Heard::Lost(event.node);
                }
                EventKind::Link(_) | EventKind::Clock(_) | EventKind::Interrupted(..) => {}
            }
        }
    }

    async fn set_clocks(&mut self, names: &BTreeSet<String>, watchers: &mut [&mut dyn Observer]) {
        for _ in 0..ASKED {
            self.asked += 1;
            let nonce = OURS + self.asked;
            let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
            for (name, member) in self.members.iter().filter(|(name, _)| names.contains(*name)) {
                asked.insert(name.clone(), Instant::now());
                let _ = member.orders.send(Request::Ping { nonce }).await;
            }
            let until = Instant::now() + ANSWER;
            while !asked.is_empty() {
                match self.hear(Some(until), watchers).await {
                    Heard::Frame(node, Frame::Beat(beat)) if beat.nonce == nonce => {
                        if let Some(sent) = asked.remove(&node) {
                            self.answered(&node, sent, &beat);
                        }
                    }
                    Heard::Frame(..) => {}
                    Heard::Lost(node) => drop(asked.remove(&node)),
                    Heard::Nothing => break,
                }
            }
        }
    }

    fn answered(&mut self, node: &str, sent: Instant, beat: &Beat) {
        let trip = sent.elapsed();
        let seen = Clock::from_answer(sent.duration_since(self.epoch), trip, beat.monotonic_ns);
        if let Some(member) = self.members.get_mut(node)
            && member.clock.is_none_or(|clock| seen.error_ns < clock.error_ns)
        {
            member.clock = Some(seen);
        }
    }

    /// Whether `node` can be asked.
    pub(super) fn has(&self, node: &str) -> bool {
        self.members.contains_key(node)
    }

    /// Nodes that lack one of `needed`, with what they lack.
    pub(super) fn lacking(&self, needed: &[&'static str]) -> Vec<(String, &'static str)> {
        let lacks = |(name, member): (&String, &Member)| {
            let missing = needed.iter().find(|ability| !member.abilities.iter().any(|own| own == *ability))?;
            Some((name.clone(), *missing))
        };
        self.members.iter().filter_map(lacks).collect()
    }

    /// Its address for measuring, on its first or on one of several rails.
    pub(super) fn address(&self, node: &str, rail: Option<usize>) -> Option<IpAddr> {
        self.members.get(node)?.addresses.get(rail.unwrap_or(0)).copied()
    }

    /// Sends a request; a node that is gone will be heard of.
    pub(super) async fn ask(&self, node: &str, request: Request) {
        if let Some(member) = self.members.get(node) {
            let _ = member.orders.send(request).await;
        }
    }

    /// What the clock of `node` will say at `instant`; 0, a time gone by, where its clock is not known.
    pub(super) fn on_clock_of(&self, node: &str, instant: Instant) -> u64 {
        let clock = self.members.get(node).and_then(|member| member.clock);
        clock.map_or(0, |clock| clock.at(instant.duration_since(self.epoch)))
    }

    /// Milliseconds since 1970 at a reading of the clock of `node`, and how wrong that may be.
    pub(super) fn wall_ms(&self, node: &str, monotonic_ns: u64) -> Option<(f64, f64)> {
        let clock = self.members.get(node).and_then(|member| member.clock)?;
        Some((self.epoch_ms as f64 + clock.since_epoch_s(monotonic_ns) * 1e3, clock.error_ns as f64 / 1e6))
    }

    /// Largest error of any clock.
    pub(super) fn clock_error(&self) -> Duration {
        let errors = self.members.values().filter_map(|member| member.clock).map(|clock| clock.error_ns);
        Duration::from_nanos(errors.max().unwrap_or(0))
    }

    /// Tells a node to leave.
    pub(super) fn dismiss(&mut self, node: &str) {
        self.members.remove(node);
    }

    /// Tells all to leave and waits for them.
    pub(super) async fn close(self, watchers: &mut [&mut dyn Observer]) {
        let Self { members, sender, mut events, mut fleet, .. } = self;
        drop((members, sender));
        while let Some(event) = events.recv().await {
            tell(&event, watchers);
        }
        while fleet.join_next().await.is_some() {}
    }
}
