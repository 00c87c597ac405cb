//! Measured work: which benchmarks there are, and what each of them runs.

mod aligned;
mod burn;
mod context;
mod cores;
mod disk;
mod dispatch;
mod gemm;
mod kernel;
mod latency;
mod net;
mod region;
mod ring;
mod scratch;
mod stream;
mod train;

pub(crate) use context::{Context, run};
