//! Which nodes are there, how are they reached, and who are they: inventory, host lists, SSH configuration, host keys.

pub mod hostlist;
pub mod inventory;

pub use inventory::{Inventory, InventoryError, Node, SelectError, Selection};
