//! RDMA writes of an adapter to itself, by libibverbs where it is on the node. Needs no GPU.
//!
//! Nothing that was opened is given back: the worker measures one port and ends, and the kernel takes all of it back, also from
//! an adapter that does not answer any more.

mod layout;
mod library;
mod loopback;
mod memory;
mod pair;

pub(crate) use loopback::{Order, run};
