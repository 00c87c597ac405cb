//! A driver library on top of simulated devices: the symbols that muster's worker uses, and no more.
//!
//! Work is done when somebody waits for it, in an order that streams and events leave open, and takes its time on a clock
//! of its own. Built as `libcuda.so.1` by tests.

mod calls;
mod config;
mod cublas;
mod cublaslt;
mod cudnn;
mod dense;
mod errors;
mod graph;
mod nccl;
mod nodes;
mod nvml;
mod peer;
mod queue;
mod sensor;
mod share;
mod state;

pub use config::Config;
