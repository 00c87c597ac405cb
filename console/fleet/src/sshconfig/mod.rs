//! What does the operator's `~/.ssh/config` say about a host?
//!
//! The crate ssh2-config was considered and not taken: it has no `Match` blocks, so hosts reached only through one would
//! silently lose their settings, and its errors do not name file and line. Reading all of it ourselves is a few hundred
//! lines, and a test holds them against `ssh -G`.

mod directive;
mod error;
mod glob;
mod jump;
mod local;
mod parse;
mod resolve;
mod token;
mod value;
mod words;

pub use error::{ConfigError, Ignored};
pub use jump::Jump;
pub use local::Local;
pub use parse::Config;
pub use resolve::{Given, Resolved};
pub use value::StrictHostKeyChecking;

#[cfg(test)]
mod tests;
