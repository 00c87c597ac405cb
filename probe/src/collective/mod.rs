//! What one rank of a collective does, in which order, and what it says of it.
//!
//! All ranks open a port, then each goes to the ranks it sends to and waits for those it receives from. Sizes are measured in
//! turn; before every operation all ranks agree to go on, and after it every arrival is compared with what it must be.
//! The sample is the bus bandwidth of every operation as this rank saw it.

mod buffers;
mod lane;
mod pattern;
mod plan;
mod sweep;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::limits::TEXT_BYTES;
use muster_wire::{
    COLLECTIVE_BYTES, Collective, CollectiveOrder, Direction, Fact, Frame, ListenOrder, Listening, MetricId, Outcome,
    Paired, RANKS, SIZES, Series, Unit, clean,
};

use crate::pair::counters::{self, Errors};
use crate::pair::meet::{self, Door, Guest, Limit};
use crate::pair::{number, text, wait_until};
use crate::steps::Halt;
use crate::{clock, fault};

pub(crate) use lane::{Broken, Half, Lane};
pub(crate) use plan::{Place, Step, steps};
pub(crate) use sweep::{Kind, Swept, Team, Trouble, sweep};

/// Most connections of one rank: a login allows 1024 open files by default.
const CONNECTIONS: usize = 800;

/// A port that waits for its collective.
pub(crate) struct Waiting {
    visit: u64,
    listener: TcpListener,
    until: Instant,
}

impl Waiting {
    /// Whether its time is over.
    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The port itself.
    pub(crate) fn into_listener(self) -> TcpListener {
        self.listener
    }
}

/// Takes the port that was opened for `visit`.
pub(crate) fn take(ports: &mut Vec<Waiting>, visit: u64) -> Option<Waiting> {
    let at = ports.iter().position(|port| port.visit == visit)?;
    Some(ports.remove(at))
}

/// Opens the port that `order` asks for and says it, or why not.
pub(crate) fn listen(order: &ListenOrder, say: &mut dyn FnMut(Frame)) -> Option<Waiting> {
    let hold = Duration::from_millis(order.hold_ms.into());
    match meet::listen(order.local) {
        Ok((listener, port)) => {
            say(Frame::Listening(Listening { visit: order.visit, port }));
            Some(Waiting { visit: order.visit, listener, until: Instant::now() + hold })
        }
        Err(halt) => {
            let (series, facts) = (Vec::new(), Vec::new());
            let (visit, started_ns, ended_ns) = (order.visit, 0, clock::monotonic_ns());
            say(Frame::Paired(Paired { visit, outcome: halt.into(), started_ns, ended_ns, series, facts }));
            None
        }
    }
}

/// What this rank has to say so far.
#[derive(Default)]
struct Said {
    started_ns: u64,
    series: Vec<Series>,
    facts: Vec<Fact>,
}

/// Takes part as `order` says and tells the outcome as the last thing.
pub(crate) fn run(order: &CollectiveOrder, waiting: Option<Waiting>, stop: &AtomicBool, say: &mut dyn FnMut(Frame)) {
    let mut said = Said::default();
    let ended =
        fault::caught(|| take_part(order, waiting, stop, &mut said)).unwrap_or_else(|why| Err(Halt::Failed(why)));
    let outcome = match ended {
        Ok(()) => Outcome::Done,
        Err(Halt::Failed(why)) => Outcome::Failed(clean(&format!("{}: {why}", order.collective), TEXT_BYTES)),
        Err(halt) => halt.into(),
    };
    let Said { started_ns, series, facts } = said;
    let (visit, ended_ns) = (order.visit, clock::monotonic_ns());
    say(Frame::Paired(Paired { visit, outcome, started_ns, ended_ns, series, facts }));
}

fn take_part(
    order: &CollectiveOrder,
    waiting: Option<Waiting>,
    stop: &AtomicBool,
    said: &mut Said,
) -> Result<(), Halt> {
    check(order)?;
    let listener = waiting.ok_or_else(|| Halt::Failed("the port was closed before all were ready".into()))?.listener;
    let limit = Limit::new(Duration::from_millis(order.meet_ms.into()), stop, "the ranks did not meet");
    let lanes = meet_all(order, &listener, &limit)?;
    drop(listener);
    let own = order.ranks[usize::from(order.rank)].address;
    let interface = counters::interface(own);
    let before = interface.as_deref().map(Errors::of);
    said.started_ns = wait_until(order.start_ns, &limit)?;
    let names: Vec<String> = order.ranks.iter().map(|rank| rank.name.clone()).collect();
    let team = Team { collective: order.collective, me: order.rank.into(), names: &names, lanes: &lanes };
    let done = sizes(order, team, stop, said);
    let (again, segments) =
        lanes.iter().flat_map(|lane| lane.out.values()).fold((0, 0), |(again, segments), stream| {
            let seen = counters::tcp(stream);
            (again + seen.retransmitted, segments + seen.segments)
        });
    said.facts.extend([number("sent.segments", segments as f64), number("sent.retransmitted", again as f64)]);
    if let (Some(name), Some(before)) = (interface, before) {
        let after = Errors::of(&name);
        said.facts.push(text("interface", &name));
        said.facts.extend(after.since(&before).map(|(counter, count)| number(&format!("interface.{counter}"), count)));
    }
    done
}

fn sizes(order: &CollectiveOrder, team: Team<'_>, stop: &AtomicBool, said: &mut Said) -> Result<(), Halt> {
    said.facts.push(number("ranks", team.names.len() as f64));
    let mut right = 0;
    for size in &order.sizes {
        let limit = Limit::new(Duration::from_millis(order.limit_ms.into()), stop, "it was not over");
        match sweep(team, *size, Duration::from_millis(order.duration_ms.into()), &limit) {
            Ok(swept) => {
                right += swept.bytes * (swept.seconds.len() + sweep::WARMUP as usize);
                said.series.push(series(order, *size, team, swept));
            }
            Err(trouble) => return Err(told(*size, trouble, team, said)),
        }
    }
    said.facts.push(number("checked.bytes", right as f64));
    Ok(())
}

/// A trouble as facts that the console can compare with those of other ranks, and in words.
fn told(size: u64, trouble: Trouble, team: Team<'_>, said: &mut Said) -> Halt {
    let Trouble { kind, operation, step, peer, text: why } = trouble;
    said.facts.extend([
        text("trouble", kind.word()),
        text("trouble.peer", &team.names[peer]),
        number("trouble.size", size as f64),
        number("trouble.operation", operation.into()),
        number("trouble.step", step as f64),
    ]);
    let why = format!("{size} bytes, {why}");
    match kind {
        Kind::Stopped => Halt::Stopped,
        Kind::Told => Halt::NotRun(format!("{}: {why}", team.collective)),
        Kind::Late | Kind::Gone | Kind::Wrong | Kind::Own => Halt::Failed(why),
    }
}

fn series(order: &CollectiveOrder, size: u64, team: Team<'_>, swept: Swept) -> Series {
    let carried = team.collective.bus_factor(team.names.len()) * swept.bytes as f64;
    Series {
        metric: MetricId::new(team.collective.benchmark(), format!("busbw-{size}"), format!("tcp-{}", streams(order))),
        unit: Unit::BytesPerSec,
        direction: Direction::HigherIsBetter,
        values: swept.seconds.iter().map(|seconds| carried / seconds).collect(),
        warmup: sweep::WARMUP,
        started_ns: swept.started_ns,
    }
}

/// The console is checked as it checks nodes.
fn check(order: &CollectiveOrder) -> Result<(), Halt> {
    let sound = (2..=RANKS).contains(&order.ranks.len())
        && usize::from(order.rank) < order.ranks.len()
        && (1..=SIZES).contains(&order.sizes.len())
        && order.sizes.iter().all(|size| (1..=COLLECTIVE_BYTES).contains(size))
        && order.streams > 0;
    if sound { Ok(()) } else { Err(Halt::Failed("the order is beyond the limits of a collective".into())) }
}

/// Connections to each neighbour: as many as asked for, as far as they may be opened.
fn streams(order: &CollectiveOrder) -> u16 {
    let neighbours = if order.collective == Collective::AllToAll { order.ranks.len() - 1 } else { 2 };
    order.streams.min((CONNECTIONS / neighbours).clamp(1, 64) as u16)
}

/// Connects to those this rank sends to and waits for those it receives from. In an all-to-all, where both are everybody,
/// the lower rank goes to the higher.
fn meet_all(order: &CollectiveOrder, listener: &TcpListener, limit: &Limit<'_>) -> Result<Vec<Lane>, Halt> {
    let (me, n, count) = (usize::from(order.rank), order.ranks.len(), streams(order));
    let mesh = order.collective == Collective::AllToAll;
    let to: Vec<usize> = if mesh { (me + 1..n).collect() } else { vec![(me + 1) % n] };
    let from: Vec<usize> = if mesh { (0..me).collect() } else { vec![(me + n - 1) % n] };
    let door = Door { secret: &order.secret, visit: order.visit };
    let mut guests: Vec<Guest> =
        from.iter().map(|&rank| Guest::new(rank as u16, order.ranks[rank].address, count)).collect();
    let call = |&rank: &usize| {
        let peer = &order.ranks[rank];
        let way = (order.ranks[me].address, SocketAddr::from((peer.address, peer.port)));
        let called = meet::call(way, &door, (order.rank, count), limit);
        called.map(|streams| (rank, streams)).map_err(|halt| match halt {
            Halt::Failed(why) => Halt::Failed(format!("cannot reach {}: {why}", peer.name)),
            halt => halt,
        })
    };
    let (called, came) = thread::scope(|scope| {
        let calls = scope.spawn(|| to.iter().map(call).collect::<Result<BTreeMap<_, _>, Halt>>());
        let came = meet::welcome(listener, &door, &mut guests, limit);
        (calls.join().unwrap_or_else(|_| Err(Halt::Failed("a connecting thread panicked".into()))), came)
    });
    let called = called?;
    came.map_err(|halt| match halt {
        Halt::Failed(why) => {
            let missing: Vec<&str> = guests.iter().filter(|g| g.missing()).map(|g| name(order, g.who)).collect();
            Halt::Failed(format!("{why}: no connection from {}", missing.join(", ")))
        }
        halt => halt,
    })?;
    let mut lanes = vec![Lane::default(); count.into()];
    let came = guests.into_iter().map(|guest| (usize::from(guest.who), guest.links().collect::<Vec<_>>()));
    for (outward, (rank, streams)) in called.into_iter().map(|c| (true, c)).chain(came.map(|c| (false, c))) {
        for (lane, stream) in lanes.iter_mut().zip(streams) {
            let stream = Arc::new(stream);
            if outward || mesh {
                lane.out.insert(rank, Arc::clone(&stream));
            }
            if !outward || mesh {
                lane.back.insert(rank, stream);
            }
        }
    }
    Ok(lanes)
}

fn name(order: &CollectiveOrder, rank: u16) -> &str {
    order.ranks.get(usize::from(rank)).map_or("?", |rank| rank.name.as_str())
}

#[cfg(test)]
mod tests;
