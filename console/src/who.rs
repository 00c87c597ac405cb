//! Who is at the console.

use muster_wire::clean;

/// The name of the user, as far as the environment tells it.
pub fn user() -> String {
    clean(&std::env::var("USER").unwrap_or_default(), 64)
}
