//! `ib-loopback`: each RDMA port writes to itself, one after the other, by the worker that may load libibverbs.
//!
//! Adapters of a node share ways to memory, so they take turns: a slow one is slow by itself. A port that hangs, breaks or brings
//! wrong words is named, and the others are measured all the same.

mod errors;
mod ports;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use muster_wire::{Frame, Level, Outcome, Profile, Progress, Reading};

use super::context::{Context, Metric};
use crate::clock;
use crate::collect::{Facts, Root};
use crate::gpu::{self, Workers};
use crate::pair::meet::Limit;
use crate::pair::perftest;
use crate::steps::{Halt, Taken};
use errors::Errors;
use ports::Port;

pub(super) const NAME: &str = "ib-loopback";
/// What perftest is asked for: message size, as bytes and by name, and seconds; two of them are not counted.
const MESSAGE: (u32, &str) = (8 << 20, "8MiB");
const SECONDS: u32 = 3;
const PERFTEST_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let root = Root::system();
    let found = ports::find(&root);
    if found.is_empty() {
        return Err(Halt::NotApplicable("no InfiniBand or RoCE adapter on this node".to_owned()));
    }
    let (fit, left_out): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, port)| port.is_ok());
    let left_out: Vec<(String, String)> =
        left_out.into_iter().filter_map(|(name, port)| Some((name, port.err()?))).collect();
    let fit: Vec<(String, Port)> = fit.into_iter().filter_map(|(name, port)| Some((name, port.ok()?))).collect();
    tell(&left_out, context);
    if fit.is_empty() {
        let all: Vec<String> = left_out.iter().map(|(name, why)| format!("{name} {why}")).collect();
        return Err(Halt::NotRun(format!("no port can be measured: {}", all.join("; "))));
    }
    let workers = Workers::new()?;
    let mut troubles = Vec::new();
    for (index, (name, port)) in fit.iter().enumerate() {
        let before = Errors::read(&root, port);
        let outcome = measure(&workers, (index, fit.len()), port, context)?;
        if outcome.is_none() && context.profile >= Profile::Standard {
            cross_check(name, port, context)?;
        }
        let mut facts = Facts::default();
        facts.text(&format!("port.{name}.address"), Reading::Value(port.address()));
        facts.text(&format!("port.{name}.errors"), Reading::Value(Errors::read(&root, port).since(&before)));
        context.facts(muster_wire::Facts { collector: NAME.to_owned(), facts: facts.done() });
        troubles.extend(outcome.map(|outcome| (index, outcome)));
    }
    gpu::judge(&|index| fit[index].0.clone(), (fit.len(), "ports"), troubles)
}

/// Whether a port of this node is fit for RDMA.
pub(crate) fn rdma_port() -> bool {
    ports::find(&Root::system()).iter().any(|(_, port)| port.is_ok())
}

/// Says which ports are not measured, and why.
fn tell(left_out: &[(String, String)], context: &mut Context<'_>) {
    let mut facts = Facts::default();
    for (name, why) in left_out {
        facts.text(&format!("port.{name}.left-out"), Reading::Value(why.as_str()));
        context.log(Level::Warn, format!("{NAME}: {name} {why} and was not measured"));
    }
    let facts = facts.done();
    if !facts.is_empty() {
        context.facts(muster_wire::Facts { collector: NAME.to_owned(), facts });
    }
}

/// Lets the worker measure one port; how that ended if not well.
fn measure(
    workers: &Workers,
    (index, count): (usize, usize),
    port: &Port,
    context: &mut Context<'_>,
) -> Result<Option<Outcome>, Halt> {
    let start = ["loopback", context.profile.name()].map(str::to_owned);
    let arguments = start.into_iter().chain(port.words()).collect();
    let emit = &mut *context.emit;
    let mut within = |frame: Frame| {
        emit(match frame {
            Frame::Progress(at) => Frame::Progress(Progress { done: (index as f64 + at.done) / count as f64, ..at }),
            other => other,
        });
    };
    let mut part = Context { emit: &mut within, ..*context };
    workers.run((index, arguments), &mut part)
}

/// The same by perftest, where it is installed. What it cannot do is said and no fault of the port: nobody knows its version.
fn cross_check(name: &str, port: &Port, context: &mut Context<'_>) -> Result<(), Halt> {
    if !perftest::installed() {
        return Ok(());
    }
    let started_ns = clock::monotonic_ns();
    let limit = Limit::new(PERFTEST_LIMIT, context.stop, "perftest was not over");
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match perftest::alone(local, &port.of_perftest(), (MESSAGE.0, SECONDS), &limit) {
        Ok(rate) => {
            let metric = Metric::of(NAME, format!("perftest-{}:{}", MESSAGE.1, port.suffix()));
            context.series(metric.by("ib_write_bw"), Taken { values: vec![rate], warmup: 0, started_ns })
        }
        Err(Halt::Stopped) => Err(Halt::Stopped),
        Err(halt) => {
            let why = Outcome::from(halt).why().unwrap_or("it said nothing").to_owned();
            context.log(Level::Warn, format!("{NAME}: {name}: perftest gave no second figure: {why}"));
            Ok(())
        }
    }
}
