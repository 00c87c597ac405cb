//! The CPU back end: runs a tape, with any number of threads, always with the same result.

mod attention;
mod conv;
mod convolve;
mod element;
mod gemm;
pub(crate) mod isa;
mod lstm;
pub(crate) mod machine;
mod memory;
mod norm;
mod pool;
mod replica;
mod run;
mod table;
mod team;
mod update;

pub use machine::{Cpu, Error, Steps};
pub use replica::Replica;
