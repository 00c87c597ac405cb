//! Which nodes are there, and which of them did the operator mean?

mod adhoc;
mod error;
mod nearest;
mod node;
mod parse;
mod select;

pub use error::{InventoryError, SelectError};
pub use nearest::nearest;
pub use node::{Inventory, Node};
pub use select::Selection;
