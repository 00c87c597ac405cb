//! The versions of the criteria: which is in force, on what evidence, and how do two differ?

mod draw;
mod keys;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, ask};
pub(crate) use state::{State, settle};
