//! What does the console do with thousands of nodes, when there are none? SSH servers in one process of their own, each of which says
//! again what a real probe said on this machine.
//!
//! Real are the connections, key exchanges, logins, uploads, requests and frames. Virtual are the machines: nothing runs. Of one
//! recording come the works, the metrics, how many values each has and their medians; about these a node's values are drawn.

mod fleet;
mod node;
mod recording;
mod servers;
mod shell;
mod stream;
mod traffic;
mod upload;
mod vary;

pub use fleet::VirtualFleet;
pub use servers::{VirtualOptions, serve_virtual};
