//! What one visit of two nodes measures, in which order, and what this end says of it.
//!
//! One control connection times round trips and keeps the two ends in step; the others carry data, first from the
//! connecting end, then back. The receiver counts: bytes sent alone would measure socket buffers. Losses are what TCP had to
//! send again, since at microseconds of round trip one percent of loss does not show in throughput.

pub(crate) mod counters;
mod echo;
mod flow;
pub(crate) mod meet;
pub(crate) mod perftest;

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use muster_wire::limits::TEXT_BYTES;
use muster_wire::{
    Collective, Datum, Direction, Engine, Fact, Frame, Listening, Load, MetricId, Outcome, PairOrder, Paired, Reading,
    Role, Series, Unit, clean,
};

use crate::collective::{self, Lane, Team, Trouble};
use crate::steps::Halt;
use crate::{clock, fault};
use counters::Errors;
use flow::Flow;
use meet::{Limit, Links};

/// Benchmark name of everything measured between two nodes.
const NAME: &str = "net-pair";
/// The receiver has everything.
const TAKEN: u8 = b'T';
/// The listener is ready.
const READY: u8 = b'R';

/// Does what `order` says and tells the outcome as the last thing.
pub(crate) fn run(order: &PairOrder, stop: &AtomicBool, say: &mut dyn FnMut(Frame)) {
    let mut said = Said { visit: order.visit, started_ns: 0, series: Vec::new(), facts: Vec::new() };
    let ended = fault::caught(|| measure(order, stop, &mut said, say)).unwrap_or_else(|why| Err(Halt::Failed(why)));
    let outcome = match ended {
        Ok(()) => Outcome::Done,
        Err(Halt::Failed(why)) => Outcome::Failed(clean(&format!("with {}: {why}", order.peer), TEXT_BYTES)),
        Err(halt) => halt.into(),
    };
    let Said { visit, started_ns, series, facts } = said;
    say(Frame::Paired(Paired { visit, outcome, started_ns, ended_ns: clock::monotonic_ns(), series, facts }));
}

/// What this end has to say so far.
struct Said {
    visit: u64,
    started_ns: u64,
    series: Vec<Series>,
    facts: Vec<Fact>,
}

fn measure(order: &PairOrder, stop: &AtomicBool, said: &mut Said, say: &mut dyn FnMut(Frame)) -> Result<(), Halt> {
    let meet = Limit::new(Duration::from_millis(order.meet_ms.into()), stop, "the two ends did not meet");
    let limit = Limit::new(Duration::from_millis(order.limit_ms.into()), stop, "it was not over");
    let mut links = match order.role {
        Role::Listen => {
            let (listener, port) = meet::listen(order.local)?;
            say(Frame::Listening(Listening { visit: order.visit, port }));
            meet::accept(&listener, order, &meet)?
        }
        Role::Connect { port, .. } => meet::connect(order, port, &meet)?,
    };
    let interface = counters::interface(order.local);
    let before = interface.as_deref().map(Errors::of);
    said.started_ns = clock::monotonic_ns();
    let done = match order.role {
        Role::Listen => listening_end(&mut links, order, &limit, said),
        Role::Connect { start_ns, .. } => {
            meet::word(&mut links.control, READY, &meet)?;
            said.started_ns = wait_until(start_ns, &limit)?;
            connecting_end(&mut links, order, &limit, said)
        }
    };
    if let (Some(name), Some(before)) = (interface, before) {
        said.facts.push(text("interface", &name));
        let after = Errors::of(&name);
        said.facts.extend(after.since(&before).map(|(counter, count)| number(&format!("interface.{counter}"), count)));
    }
    done
}

fn listening_end(links: &mut Links, order: &PairOrder, limit: &Limit<'_>, said: &mut Said) -> Result<(), Halt> {
    let load = &order.load;
    meet::say(&mut links.control, READY, limit)?;
    echo::answer(&mut links.control, load, limit)?;
    match load.engine {
        _ if load.duration_ms == 0 => Ok(()),
        Engine::Tcp => receive(links, load, limit, said).and_then(|()| send(links, load, limit, said)),
        Engine::AllReduce { bytes } => reduce(links, (order, bytes, 1), limit, said),
        Engine::Perftest { seconds } => {
            rdma_receive(links, (order, seconds), limit, said)?;
            perftest::send(links, (order.local, order.remote), seconds, limit)
        }
    }
}

fn connecting_end(links: &mut Links, order: &PairOrder, limit: &Limit<'_>, said: &mut Said) -> Result<(), Halt> {
    let load = &order.load;
    for (size, trips) in echo::ask(&mut links.control, load, limit)? {
        let id = MetricId::new(NAME, format!("rtt-{size}"), "tcp");
        said.series.push(series(id, Unit::Nanos, Direction::LowerIsBetter, trips));
    }
    match load.engine {
        _ if load.duration_ms == 0 => Ok(()),
        Engine::Tcp => send(links, load, limit, said).and_then(|()| receive(links, load, limit, said)),
        Engine::AllReduce { bytes } => reduce(links, (order, bytes, 0), limit, said),
        Engine::Perftest { seconds } => {
            perftest::send(links, (order.local, order.remote), seconds, limit)?;
            rdma_receive(links, (order, seconds), limit, said)
        }
    }
}

/// The all-reduce of two, both ways at once over the same connections.
fn reduce(
    links: &mut Links,
    (order, bytes, me): (&PairOrder, u32, usize),
    limit: &Limit<'_>,
    said: &mut Said,
) -> Result<(), Halt> {
    let lane = |stream: TcpStream| {
        let peer = BTreeMap::from([(1 - me, Arc::new(stream))]);
        Lane { out: peer.clone(), back: peer }
    };
    let lanes: Vec<Lane> = links.data.drain(..).map(lane).collect();
    let mut names = [order.peer.clone(), order.peer.clone()];
    names[me] = "this end".to_owned();
    let team = Team { collective: Collective::AllReduce, me, names: &names, lanes: &lanes };
    let duration = Duration::from_millis(order.load.duration_ms.into());
    let done = collective::sweep(team, bytes.into(), duration, limit);
    retransmits(lanes.iter().flat_map(|lane| lane.out.values()).map(AsRef::as_ref), &order.load, said);
    let swept = done.map_err(|Trouble { kind, text, .. }| match kind {
        collective::Kind::Stopped => Halt::Stopped,
        _ => Halt::Failed(format!("all-reduce of {bytes} bytes, {text}")),
    })?;
    let id = MetricId::new(NAME, "allreduce", format!("tcp-{}", order.load.streams));
    // The bus bandwidth: with two ranks the factor is one.
    let values = swept.seconds.iter().map(|seconds| swept.bytes as f64 / seconds).collect();
    let trips = echo::Trips { values, warmup: 0, started_ns: swept.started_ns };
    said.series.push(series(id, Unit::BytesPerSec, Direction::HigherIsBetter, trips));
    Ok(())
}

/// One value: perftest tells a mean only.
fn rdma_receive(
    links: &mut Links,
    (order, seconds): (&PairOrder, u32),
    limit: &Limit<'_>,
    said: &mut Said,
) -> Result<(), Halt> {
    let started_ns = clock::monotonic_ns();
    let rate = perftest::serve(links, order.local, seconds, limit)?;
    let id = MetricId::new(NAME, "throughput", "ib_write_bw");
    let trips = echo::Trips { values: vec![rate], warmup: 0, started_ns };
    said.series.push(series(id, Unit::BytesPerSec, Direction::HigherIsBetter, trips));
    Ok(())
}

fn send(links: &mut Links, load: &Load, limit: &Limit<'_>, said: &mut Said) -> Result<(), Halt> {
    flow::send(&links.data, Duration::from_millis(load.duration_ms.into()), limit)?;
    meet::word(&mut links.control, TAKEN, limit)?;
    retransmits(links.data.iter(), load, said);
    Ok(())
}

/// How much of what was sent had to be sent again.
fn retransmits<'a>(streams: impl Iterator<Item = &'a TcpStream>, load: &Load, said: &mut Said) {
    let (mut again, mut segments) = (0, 0);
    for stream in streams {
        let seen = counters::tcp(stream);
        again += seen.retransmitted;
        segments += seen.segments;
    }
    said.facts.extend([number("sent.segments", segments as f64), number("sent.retransmitted", again as f64)]);
    if segments > 0 {
        let id = MetricId::new(NAME, "retransmits", format!("tcp-{}", load.streams));
        let trips =
            echo::Trips { values: vec![again as f64 / segments as f64], warmup: 0, started_ns: said.started_ns };
        said.series.push(series(id, Unit::Ratio, Direction::LowerIsBetter, trips));
    }
}

fn receive(links: &mut Links, load: &Load, limit: &Limit<'_>, said: &mut Said) -> Result<(), Halt> {
    let Flow { values, warmup, started_ns } =
        flow::receive(&links.data, Duration::from_millis(load.duration_ms.into()), limit)?;
    meet::say(&mut links.control, TAKEN, limit)?;
    let id = MetricId::new(NAME, "throughput", format!("tcp-{}", load.streams));
    let trips = echo::Trips { values, warmup, started_ns };
    said.series.push(series(id, Unit::BytesPerSec, Direction::HigherIsBetter, trips));
    Ok(())
}

/// Waits for an instant of the monotonic clock; returns when it really is.
pub(crate) fn wait_until(start_ns: u64, limit: &Limit<'_>) -> Result<u64, Halt> {
    loop {
        let now = clock::monotonic_ns();
        let left = start_ns.saturating_sub(now);
        if left == 0 {
            return Ok(now);
        }
        limit.check()?;
        std::thread::sleep(Duration::from_nanos(left).min(meet::TICK));
    }
}

fn series(metric: MetricId, unit: Unit, direction: Direction, trips: echo::Trips) -> Series {
    let echo::Trips { values, warmup, started_ns } = trips;
    Series { metric, unit, direction, values, warmup, started_ns }
}

fn fact(key: &str, datum: Datum) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(datum), unit: None }
}

pub(crate) fn text(key: &str, value: &str) -> Fact {
    fact(key, Datum::Text(value.to_owned()))
}

pub(crate) fn number(key: &str, value: f64) -> Fact {
    Fact { unit: Some(Unit::Count), ..fact(key, Datum::Number(value)) }
}

/// No more data leaves on `stream`; the other direction goes on.
fn finish(stream: &TcpStream) {
    // Fails only when the connection is gone, which reading will tell.
    let _ = stream.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests;
