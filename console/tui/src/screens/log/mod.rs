//! What happened, in the console's own words and the nodes'.

mod draw;
mod keys;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, back};
pub(crate) use state::State;
