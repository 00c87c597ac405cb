//! GPU kernels as they are shipped, what each must compute, and the worker that runs them.

mod bench;
pub mod code;
mod cublaslt;
pub mod driver;
mod health;
mod library;
mod nccl;
mod nvml;
mod telemetry;
pub mod train;
pub mod twin;
pub mod worker;
