//! Measured work: which benchmarks there are, and what each of them runs.

mod aligned;
mod context;
mod disk;
mod dispatch;
mod gemm;
mod kernel;
mod latency;
mod net;
mod ring;
mod scratch;
mod stream;

pub(crate) use context::{Context, run};
