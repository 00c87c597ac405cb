//! What several subcommands let a person say.

mod ask;
mod better;
mod common;
mod pick;
mod say;
mod which;

pub use ask::{Ask, positive, share};
pub use better::{Better, matches_any};
pub use common::Common;
pub use pick::Pick;
pub use say::{Line, Say};
pub use which::Which;
