//! SuperBench's own files.

mod key;
pub mod raw;
mod scan;
pub mod summary;

pub use key::Key;
