//! The racks of the fleet, a cell a node: is there a pattern in who is not with its peers?

mod cells;
mod draw;
mod groups;
mod keys;
mod layout;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, click};
pub(crate) use state::{State, settle};
