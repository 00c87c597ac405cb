//! Measured work: which benchmarks there are, and what each of them runs.

mod aio;
mod aligned;
mod burn;
mod context;
mod cores;
mod disk;
mod dispatch;
mod gemm;
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

pub(crate) use context::{Context, run};
