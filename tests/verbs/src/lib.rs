//! A libibverbs on top of adapters that exist only in tests: the symbols that muster's worker uses, and no more.
//!
//! Bytes are really moved, from the memory that one queue pair may read to the memory that the other may write, and only after
//! both have been connected as the real library wants it. They take their time on the wall clock. Faults come from a file beside
//! the library.

mod calls;
mod config;
mod memory;
mod queue;
mod state;

pub use config::{Adapter, Config, Fault};
