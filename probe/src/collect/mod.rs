//! Read-only looks at a node, one file per source. Every look takes the root of the tree it reads.

mod cpu;
mod disk;
mod events;
mod facts;
mod gpu;
mod identity;
mod infiniband;
mod kernel;
mod kernel_log;
mod load;
mod memory;
mod nic;
mod pcie;
mod process;
mod reading;
mod root;
mod source;
#[cfg(test)]
pub(crate) mod testing;
mod time;

pub(crate) use facts::Facts;
pub(crate) use infiniband::{CLASS as RDMA, counted, word};
pub(crate) use reading::Then;
pub(crate) use root::{Root, reading};
pub(crate) use source::{LOAD, collect};
