//! GPU kernels as they are shipped, what each must compute, and the worker that runs them.

mod bench;
pub mod code;
mod cublaslt;
pub mod driver;
mod health;
mod library;
mod member;
mod nccl;
mod nvml;
mod pace;
pub mod parallel;
mod telemetry;
pub mod train;
pub mod twin;
pub mod worker;
