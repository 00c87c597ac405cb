//! Whether data can be shown, and data that comes apart from the nodes.

use std::sync::Arc;

use crate::text::thousands;

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

/// A stored run that is being read and judged; the states of its nodes are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which run.
    pub run: String,
    /// Since when.
    pub since_ms: u64,
    /// Metrics judged so far, and in all; `None` while results are being read.
    pub judged: Option<(usize, usize)>,
}

impl Reading {
    /// The word shown instead of the state of a node.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        if self.judged.is_some() { "judging" } else { "reading" }
    }

    /// `judging 1,340 of 2,323 metrics`, and after the last one what is still to be done.
    #[must_use]
    pub fn words(&self) -> String {
        match self.judged {
            None => format!("reading run {}", self.run),
            Some((done, all)) if done < all => {
                format!("judging {} of {} metrics", thousands(done), thousands(all))
            }
            Some((_, 0)) => format!("judging run {}", self.run),
            Some((_, all)) => format!("{} metrics judged, deciding on the nodes", thousands(all)),
        }
    }
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
