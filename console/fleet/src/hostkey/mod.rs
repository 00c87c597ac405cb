//! Is this the host it was the last time: host keys against `known_hosts`, matched as OpenSSH matches them?
//!
//! The check that comes with russh accepts `@revoked` keys, misses wildcards, tabs and certificates, and calls a host of
//! which another key type is recorded unknown; hence our own.

mod append;
mod certificate;
mod known;
mod line;

pub use append::append;
pub use known::{KnownHosts, Verdict};
pub use line::Skipped;
