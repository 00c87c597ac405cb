//! Whether data can be shown, and data that comes apart from the nodes.

use std::sync::Arc;

/// Whether data can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Nothing yet.
    Loading {
        /// What is waited for, such as `opening the database`.
        what: String,
        /// Since when.
        since_ms: u64,
    },
    /// The last refresh failed; rows, if any, are of the time before.
    Failed {
        /// What failed, such as `reading /etc/muster/inventory.toml`.
        what: String,
        /// Why, one sentence.
        why: String,
        /// Since when.
        since_ms: u64,
        /// What is tried next or what the user can do.
        next: String,
    },
    /// Rows are what there is.
    #[default]
    Ready,
}

/// Data of one screen that has its own source.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// Whether it can be shown.
    pub load: Load,
    /// The data; of the time before where the last refresh failed, `None` where there is none.
    pub data: Option<Arc<T>>,
}

impl<T> Part<T> {
    /// Data that can be shown.
    #[must_use]
    pub fn ready(data: T) -> Self {
        Self { load: Load::Ready, data: Some(Arc::new(data)) }
    }
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { load: Load::Ready, data: None }
    }
}
