//! Every node, one row each: who is not with its peers?

mod columns;
mod detail;
mod draw;
mod keys;
pub(crate) mod map;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, click, find, follow, seek};
pub(crate) use state::State;
