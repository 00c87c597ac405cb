//! How do all pairs of one round measure at the same time, and how does each of them end?

use std::collections::HashMap;
use std::time::{Duration, Instant};

use muster_wire::{Engine, Frame, Listening, Load, Outcome, PairOrder, Paired, Request, Role, Secret};

use super::mesh::{Heard, Mesh};
use crate::work::Observer;

/// A listener says its port within this.
pub(super) const LISTEN: Duration = Duration::from_secs(5);
/// The two ends find each other within this.
const MEET: Duration = Duration::from_secs(3);
/// Beyond the time that a visit takes when nothing is wrong.
const SLACK: Duration = Duration::from_secs(5);
/// The fewest operations of a collective may take this long over a slow network.
const OPERATIONS: Duration = Duration::from_secs(10);
/// Perftest may take this long to set itself up.
const PERFTEST: Duration = Duration::from_secs(6);
/// An answer may be this much later than the visit's own limit.
pub(super) const LATE: Duration = Duration::from_secs(3);
/// From the order to the start, beside the error of the clocks: the connections are made meanwhile.
const LEAD: Duration = Duration::from_millis(40);

/// What one visit gave.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    /// The node that connected and sent first.
    pub(super) src: String,
    /// The node that listened.
    pub(super) dst: String,
    /// The rail of both, where nodes have several.
    pub(super) rail: Option<usize>,
    /// What each of them said.
    pub(super) ends: [Option<Paired>; 2],
    /// One of them went away or was never asked: nothing is known of the network between them.
    pub(super) lost: bool,
    secret: Secret,
    port: Option<u16>,
}

impl Visited {
    /// The ends that said nothing.
    pub(super) fn silent(&self) -> Vec<String> {
        let ends = [&self.src, &self.dst].into_iter().zip(&self.ends);
        ends.filter(|(_, said)| said.is_none()).map(|(node, _)| node.clone()).collect()
    }

    /// Whether both ends say that it went well, or why not. `None` where nothing can be said.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let [Some(src), Some(dst)] = &self.ends else {
            let silent = if self.ends[0].is_none() { &self.src } else { &self.dst };
            return (!self.lost).then(|| Outcome::Failed(format!("{silent} did not answer")));
        };
        match (&src.outcome, &dst.outcome) {
            (Outcome::Done, Outcome::Done) => Some(Outcome::Done),
            (Outcome::Failed(why), _) => Some(Outcome::Failed(format!("{}: {why}", self.src))),
            (_, Outcome::Failed(why)) => Some(Outcome::Failed(format!("{}: {why}", self.dst))),
            _ => None,
        }
    }
}

/// Longest that one visit may take.
pub(super) fn limit(load: &Load) -> Duration {
    let more = match load.engine {
        Engine::Tcp => Duration::ZERO,
        // Some operations are measured however long they take.
        Engine::AllReduce { .. } => OPERATIONS,
        Engine::Perftest { seconds } => 2 * (Duration::from_secs(seconds.into()) + PERFTEST),
    };
    let trips = Duration::from_secs(1) * load.sizes.len() as u32;
    2 * Duration::from_millis(load.duration_ms.into()) + trips + more + SLACK
}

/// Measures all `pairs` (connecting node first) at once, on one `rail`; `first` is the number of the first visit.
pub(super) async fn round(
    mesh: &mut Mesh,
    pairs: &[(String, String)],
    load: &Load,
    (first, rail): (u64, Option<usize>),
    watchers: &mut [&mut dyn Observer],
) -> Vec<Visited> {
    let mut round = Round { first, visits: Vec::new(), places: HashMap::new() };
    for (src, dst) in pairs {
        let lost = !(mesh.has(src) && mesh.has(dst));
        let secret = Secret(rand::random());
        let (src, dst, ends) = (src.clone(), dst.clone(), [None, None]);
        for name in [&src, &dst] {
            round.places.insert(name.clone(), round.visits.len());
        }
        round.visits.push(Visited { src, dst, rail, ends, lost, secret, port: None });
    }
    for at in 0..round.visits.len() {
        round.order(mesh, at, load, Role::Listen).await;
    }
    round.until(mesh, Instant::now() + LISTEN, watchers, |visit| visit.port.is_some() || visit.ends[1].is_some()).await;
    let start = Instant::now() + LEAD + mesh.clock_error();
    for at in 0..round.visits.len() {
        let visit = &round.visits[at];
        match visit.port {
            Some(port) => {
                let start_ns = mesh.on_clock_of(&visit.src, start);
                round.order(mesh, at, load, Role::Connect { port, start_ns }).await;
            }
            None if !visit.lost => log::warn!("{}: does not listen for {}", visit.dst, visit.src),
            None => {}
        }
    }
    let until = start + MEET + limit(load) + LATE;
    round.until(mesh, until, watchers, |visit| visit.port.is_none() || visit.ends.iter().all(Option::is_some)).await;
    round.visits
}

struct Round {
    first: u64,
    visits: Vec<Visited>,
    /// The visit that a node takes part in: no node is in two.
    places: HashMap<String, usize>,
}

impl Round {
    async fn order(&self, mesh: &Mesh, at: usize, load: &Load, role: Role) {
        let visit = &self.visits[at];
        let (own, peer) = match role {
            Role::Listen => (&visit.dst, &visit.src),
            Role::Connect { .. } => (&visit.src, &visit.dst),
        };
        let (Some(local), Some(remote)) = (mesh.address(own, visit.rail), mesh.address(peer, visit.rail)) else {
            return;
        };
        let order = PairOrder {
            visit: self.first + at as u64,
            peer: peer.clone(),
            local,
            remote,
            secret: visit.secret,
            role,
            load: load.clone(),
            meet_ms: millis(MEET),
            limit_ms: millis(MEET + limit(load)),
        };
        mesh.ask(own, Request::Pair(order)).await;
    }

    /// Hears what the nodes say until every visit is settled, or the time is over. Where one end is lost, the other
    /// is still waited for: it takes no other order before.
    async fn until(
        &mut self,
        mesh: &mut Mesh,
        until: Instant,
        watchers: &mut [&mut dyn Observer],
        settled: impl Fn(&Visited) -> bool,
    ) {
        let open = |mesh: &Mesh, visit: &Visited| {
            let waits = |end: usize, node: &str| visit.ends[end].is_none() && mesh.has(node);
            let begun = visit.port.is_some() || !visit.lost;
            begun && !settled(visit) && (waits(1, &visit.dst) || visit.port.is_some() && waits(0, &visit.src))
        };
        while self.visits.iter().any(|visit| open(mesh, visit)) {
            match mesh.hear(Some(until), watchers).await {
                Heard::Frame(node, frame) => self.take(&node, frame),
                Heard::Lost(node) => {
                    if let Some(&at) = self.places.get(&node) {
                        self.visits[at].lost = true;
                    }
                }
                Heard::Nothing => return,
            }
        }
    }

    fn take(&mut self, node: &str, frame: Frame) {
        let Some(&at) = self.places.get(node) else { return };
        let number = self.first + at as u64;
        let visit = &mut self.visits[at];
        match frame {
            Frame::Listening(Listening { visit: of, port }) if of == number && node == visit.dst => {
                visit.port = Some(port);
            }
            Frame::Paired(paired) if paired.visit == number => {
                visit.ends[usize::from(node == visit.dst)] = Some(paired);
            }
            _ => {}
        }
    }
}

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(src: Option<Outcome>, dst: Option<Outcome>, lost: bool) -> Option<Outcome> {
        let end = |outcome: Outcome| Paired {
            visit: 1,
            outcome,
            started_ns: 0,
            ended_ns: 0,
            series: Vec::new(),
            facts: Vec::new(),
        };
        let ends = [src.map(end), dst.map(end)];
        Visited { src: "a".into(), dst: "b".into(), rail: None, ends, lost, secret: Secret([0; 32]), port: None }
            .outcome()
    }

    #[test]
    fn a_node_that_went_away_is_no_word_on_the_network() {
        let failed = |why: &str| Some(Outcome::Failed(why.into()));
        assert_eq!(visited(Some(Outcome::Done), Some(Outcome::Done), false), Some(Outcome::Done));
        assert_eq!(visited(failed("cannot connect"), failed("nobody came"), false), failed("a: cannot connect"));
        assert_eq!(visited(Some(Outcome::Done), failed("cut"), false), failed("b: cut"));
        assert_eq!(visited(None, failed("nobody came"), true), None);
        assert_eq!(visited(None, failed("nobody came"), false), failed("a did not answer"));
        assert_eq!(visited(Some(Outcome::NotRun("stopped".into())), Some(Outcome::Done), false), None);
    }
}
