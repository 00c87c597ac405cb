//! Executes the PTX that muster ships on the CPU, strictly, so that its kernels can be proved without a GPU.
//!
//! Memory is bounds-checked and starts poisoned, warps run in a seeded random order, asynchronous copies land as
//! late or as early as they may, collectives need all their lanes. A device can be given faults: a multiprocessor
//! that computes wrong bits or is slow, a memory cell that is stuck. For tests only: nothing in the product uses it.

mod alu;
mod block;
mod code;
mod collective;
mod device;
mod driver;
mod fault;
mod link;
mod matrix;
mod memory;
mod opcode;
mod parse;
mod pipe;
mod rng;
mod step;
mod trap;
mod warp;
mod wgmma;

pub use code::Kernel;
pub use device::{Device, Launch, Ran};
pub use driver::Config;
pub use fault::{Faults, Flip, Unit};
pub use link::Link;
pub use memory::{BASE, Counts, Memory, Stuck};
pub use parse::{ParseError, parse};
pub use trap::{Trap, Why};
