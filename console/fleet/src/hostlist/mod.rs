//! How are many host names written in few characters, and read back?

mod error;
mod expand;
mod fold;
mod natural;

pub use error::HostListError;
pub use expand::{MAX_NAMES, expand, terms};
pub use fold::fold;
pub use natural::natural_cmp;
