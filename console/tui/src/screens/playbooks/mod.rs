//! What can be run, and how far the run is on which nodes.

mod draw;
mod keys;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::act;
pub(crate) use state::{State, settle};
