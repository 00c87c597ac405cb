//! Measured work: which benchmarks there are, and how a name becomes a run that always ends in an outcome.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use muster_wire::{Benchmark, Outcome, benchmark};

use crate::gpu;
use crate::steps::Halt;

mod aio;
mod aligned;
mod burn;
mod context;
mod cores;
mod disk;
mod dispatch;
mod gemm;
mod ib;
mod kernel;
mod latencies;
mod latency;
mod net;
mod numa;
mod overlap;
mod queue;
mod region;
mod ring;
mod scratch;
mod sharding;
mod stream;
mod train;

pub(crate) use context::Context;
pub(crate) use ib::rdma_port;

type Body = fn(&mut Context<'_>) -> Result<(), Halt>;

/// Every benchmark of the host, and what runs it.
const ALL: [(&str, Body); 16] = [
    (gemm::NAME, gemm::run),
    (stream::NAME, stream::run),
    (latency::NAME, latency::run),
    (dispatch::NAME, dispatch::run),
    (cores::NAME, cores::run),
    (burn::NAME, burn::run),
    (numa::NAME, numa::run),
    (overlap::NAME, overlap::run),
    (sharding::NAME, sharding::run),
    (disk::NAME, disk::run),
    (net::NAME, net::run),
    (ib::NAME, ib::run),
    (train::GPT2.name, |context| train::GPT2.run(context)),
    (train::BERT.name, |context| train::BERT.run(context)),
    (train::LSTM.name, |context| train::LSTM.run(context)),
    (train::RESNET.name, |context| train::RESNET.run(context)),
];

/// Runs the benchmark called `name` and says how it ended. Never panics.
pub(crate) fn run(name: &str, context: &mut Context<'_>) -> Outcome {
    if context.stop.load(Ordering::Relaxed) {
        return Halt::Stopped.into();
    }
    let ended = catch_unwind(AssertUnwindSafe(|| match ALL.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => run(context),
        None if benchmark(name).is_some_and(Benchmark::is_gpu) => gpu::run(name, context),
        None => Err(Halt::NotRun(format!("this probe has no benchmark called '{name}'"))),
    }));
    match ended {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(halt)) => halt.into(),
        Err(_) => Outcome::Failed(format!("{name} came to an internal error")),
    }
}

#[cfg(test)]
mod tests;
