//! A driver library on top of simulated devices: the symbols that muster's worker uses, and no more.
//!
//! Work is done when it is put on a stream, and takes its time on a clock of its own. Built as `libcuda.so.1` by tests.

mod calls;
mod config;
mod errors;
mod nvml;
mod sensor;
mod state;

pub use config::Config;
