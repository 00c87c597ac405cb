//! What does muster look like on a fleet, when there is no fleet? Real SSH servers on loopback, each its own node.

mod brake;
mod child;
mod fleet;
mod guard;
mod server;

pub use fleet::{DemoError, LocalFleet, Options};
