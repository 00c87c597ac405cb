//! Health and consistency checks: small questions about what collectors saw, each with its severity, where it comes
//! from, and what to do when the answer is bad. Pure, and always evaluated anew from stored facts.

pub(crate) mod by_id;
mod catalog;
mod category;
mod check;
mod compare;
mod cpu;
mod disk;
mod evaluate;
mod facts;
mod gpu;
mod gpu_load;
mod gpu_rest;
mod host;
mod infiniband;
mod kernel_log;
mod memory;
mod nic;
mod pcie;
mod policy;
mod process;
#[cfg(test)]
mod testing;
mod time;

pub use catalog::{AREAS, check, checks, named};
pub use check::{Check, CheckResult, Found, Severity};

pub use evaluate::{CLOCK, evaluate};
pub use facts::{Gap, Look, NOT_LOOKED, NodeFacts};
pub use policy::{EXPECTATIONS, LIMITS, Limit, Policy};
