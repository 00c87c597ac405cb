//! The pairs of the fleet: which cells of the matrix are bad, and which element do they point to?

mod draw;
mod keys;
mod layout;
mod map;
mod pair;
mod state;
mod suspects;
mod tiers;
mod view;

pub(crate) use draw::draw;
pub(crate) use keys::{act, ask};
pub(crate) use state::{State, settle};
