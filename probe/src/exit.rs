//! What the process says with its exit code.

/// A benchmark failed.
pub(crate) const FAILED: u8 = 2;
/// Ended before its work did: the console left, a signal came, the output closed.
pub(crate) const EARLY: u8 = 3;
/// Not understood.
pub(crate) const USAGE: u8 = 64;
