//! GPU kernels as they are shipped, what each must compute, and the worker that runs them. The worker also measures what else
//! needs a library of the node: RDMA adapters.

mod bench;
pub mod calls;
pub mod code;
mod cublas;
pub mod cublaslt;
mod cudnn;
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
mod verbs;
pub mod worker;
