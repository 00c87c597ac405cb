//! SuperBench's own files.

mod alias;
mod key;
pub mod raw;
mod scan;
pub mod summary;

pub use alias::alias;
pub use key::Key;
