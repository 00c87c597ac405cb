//! Raises real OpenSSH nodes in namespaces of this machine, breaks them, and runs the console against them.
//!
//! A node is a set of network, mount, UTS, IPC and PID namespaces with its own root (an overlay of `/`), its own
//! sshd as PID 1, its own host key, its own block device and its own cgroup. Needs root; tests that cannot have it
//! say so with [`skip`].

mod cgroup;
mod console;
mod disk;
mod fabric;
mod fault;
mod fleet;
mod gpu;
mod node;
mod shell;
mod slow_core;

pub use console::{Console, Ran, binary};
pub use fabric::{Fabric, no_fabric, no_loss};
pub use fleet::{Fleet, Options};
pub use node::Node;
pub use shell::{is_root, run, skip};
pub use slow_core::SlowCore;
