//! What does muster look like on a fleet, when there is no fleet? Real SSH servers on loopback, each its own node.

mod brake;
mod child;
mod fleet;
mod guard;
mod job;
mod relay;
mod replay;
mod server;

pub use fleet::{DemoError, LocalFleet, Options};
pub use job::{Hurt, JobOptions, LocalJob};
pub use replay::{VirtualFleet, VirtualOptions, serve_virtual};
