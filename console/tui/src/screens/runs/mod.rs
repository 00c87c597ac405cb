//! The stored runs: what was measured when, on which nodes, and which of it still counts?

mod draw;
mod keys;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, ask};
pub(crate) use state::{State, settle};
