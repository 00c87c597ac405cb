//! How are nodes named, reached, trusted and worked on: inventory, SSH connections, upload, frame streams, and a
//! fleet of real SSH servers on this machine for trying all of it.

mod auth;
mod clean;
mod clock;
mod connect;
mod context;
pub mod demo;
mod event;
mod exec;
pub mod hostkey;
pub mod hostlist;
pub mod inventory;
mod jump;
mod keyscan;
mod link;
mod openssh;
pub mod pattern;
mod probe;
mod proxy;
mod roll;
mod route;
mod run;
mod script;
mod settings;
pub mod sshconfig;
mod stream;
mod target;
mod trust;
mod turn;
mod upload;
mod watched;
mod worker;

pub use clean::{Cleaned, clean};
pub use clock::Clock;
pub use event::{Event, EventKind, Talk, Work};
pub use exec::Output;
pub use inventory::{Inventory, InventoryError, Node, SelectError, Selection};
pub use keyscan::unknown_keys;
pub use link::{Failure, FailureKind, LinkState, Phase};
pub use probe::Probe;
pub use run::{command, push, run, talk};
pub use settings::{HostKeyPolicy, Settings, Tell, Transport};
pub use target::hosts;
pub use trust::NewKey;
