//! Raises real OpenSSH nodes in namespaces of this machine, breaks them, and runs the console against them.
//!
//! A node is a set of network, mount, UTS, IPC and PID namespaces with its own root (an overlay of `/`), its own
//! sshd as PID 1, its own host key, its own block device and its own cgroup. Needs root; tests that cannot have it
//! say so with [`skip`].

mod adapter;
mod cgroup;
mod console;
mod disk;
mod draw;
mod fabric;
mod fault;
mod fleet;
mod gpu;
mod job;
mod load;
mod node;
mod place;
mod schema;
mod shell;
mod slow_core;
mod slurm;
mod stall;
mod terminal;
mod tries;

pub use adapter::{Adapter, verbs_library};
pub use console::{Console, Ran, binary};
pub use draw::Draw;
pub use fabric::{Fabric, no_loss};
pub use fleet::{Fleet, Options};
pub use gpu::simulated_driver;
pub use job::{FOLDER, Job, JobOptions, probe};
pub use load::{BUSY, Load};
pub use muster_skip::{Lacks, skip, skip_part, tried};
pub use node::Node;
pub use place::Place;
pub use schema::conforms;
pub use shell::{is_root, run};
pub use slow_core::SlowCore;
pub use slurm::Slurm;
pub use stall::Stalls;
pub use terminal::Terminal;
pub use tries::{Try, decide, decide_where_steady};
