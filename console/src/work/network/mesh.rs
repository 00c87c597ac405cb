//! Which probes are there to be asked, what do their clocks say, and who was lost?

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use muster_fleet::{Event, EventKind, Failure, FailureKind, Node, Phase, Talk};
use muster_wire::{Beat, Frame, Request};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::work::Observer;
use crate::work::scan::{Scan, tell};

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

/// How a node's monotonic clock stands to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Its reading at our epoch, nanoseconds.
    at_epoch_ns: i128,
    /// Half of the fastest round trip: it cannot be more wrong than that.
    pub(super) error_ns: u64,
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
    fleet: JoinHandle<()>,
    cancel: CancellationToken,
    epoch: Instant,
    epoch_ms: u64,
    /// Nodes that went away since they were last asked for.
    pub(super) lost: Vec<(String, Failure)>,
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
        let mut members = BTreeMap::new();
        let mut talks = Vec::new();
        for (node, addresses) in nodes {
            let (orders, requests) = mpsc::channel(ORDERS);
            members.insert(
                node.name.clone(),
                Member { orders, clock: None, addresses: addresses.clone(), abilities: Vec::new() },
            );
            talks.push(Talk { node: node.clone(), orders: requests, limit });
        }
        let (sender, events) = mpsc::channel(1024);
        let stop = cancel.child_token();
        let talk = muster_fleet::talk(talks, scan.probe.clone(), scan.settings.clone(), sender, stop);
        let fleet = tokio::spawn(talk);
        let (epoch, epoch_ms) = (Instant::now(), now_ms());
        let mut mesh = Self { members, events, fleet, cancel: cancel.clone(), epoch, epoch_ms, lost: Vec::new() };
        let mut waiting = mesh.members.len();
        while waiting > 0 {
            // Every node answers or fails within the limits of its connection.
            match mesh.hear(None, watchers).await {
                Heard::Frame(node, Frame::Hello(hello)) => {
                    if let Some(member) = mesh.members.get_mut(&node) {
                        member.abilities = hello.capabilities;
                    }
                    waiting -= 1;
                }
                Heard::Lost(_) => waiting -= 1,
                Heard::Frame(..) => {}
                Heard::Nothing => break,
            }
        }
        mesh.set_clocks(watchers).await;
        mesh
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
            tell(&event, watchers);
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

    async fn set_clocks(&mut self, watchers: &mut [&mut dyn Observer]) {
        for question in 0..ASKED {
            let nonce = OURS + question;
            let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
            for (name, member) in &self.members {
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
        let since = (i128::from(monotonic_ns) - clock.at_epoch_ns) as f64 / 1e6;
        Some((self.epoch_ms as f64 + since, clock.error_ns as f64 / 1e6))
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
    pub(super) async fn close(mut self, watchers: &mut [&mut dyn Observer]) {
        self.members.clear();
        while let Some(event) = self.events.recv().await {
            tell(&event, watchers);
        }
        let _ = self.fleet.await;
    }
}

impl Clock {
    /// From a question sent at `sent` since the epoch, answered after `trip` with a reading taken in between.
    fn from_answer(sent: Duration, trip: Duration, reading_ns: u64) -> Self {
        let middle = sent + trip / 2;
        Self { at_epoch_ns: i128::from(reading_ns) - middle.as_nanos() as i128, error_ns: trip.as_nanos() as u64 / 2 }
    }

    fn at(self, since_epoch: Duration) -> u64 {
        (self.at_epoch_ns + since_epoch.as_nanos() as i128).clamp(0, i128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_known_to_half_a_round_trip() {
        let ms = Duration::from_millis;
        // The reading was taken somewhere within the 4 ms of the trip.
        for taken in 10..=14 {
            let clock = Clock::from_answer(ms(10), ms(4), 1_000_000_000 + taken * 1_000_000);
            assert_eq!(clock.error_ns, 2_000_000);
            assert!(clock.at(ms(100)).abs_diff(1_100_000_000) <= clock.error_ns);
        }
    }
}
