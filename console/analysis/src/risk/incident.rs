//! What is an incident? A time during which a node could not be used, with what broke and who says so.

use muster_wire::Category;
use serde::{Deserialize, Serialize};

/// Why an incident is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadIncident {
    /// No node.
    #[error("an incident needs a node")]
    NoNode,
    /// A time is NaN or infinite.
    #[error("a time is not a finite number")]
    NotFinite,
    /// It ends before it starts.
    #[error("it ends before it starts")]
    Backwards,
}

/// One line of the incident log. Times are hours since an origin the caller chooses, the same for the whole log
/// (since 1970 for imported written times).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Name of the node.
    pub node: String,
    /// When it began, in hours.
    pub start_h: f64,
    /// When the node was usable again, in hours; none while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_h: Option<f64>,
    /// What broke.
    pub category: Category,
    /// In words.
    #[serde(default)]
    pub reason: String,
    /// Where it was learnt: `muster` for a failed verdict, `csv`, `sacctmgr`, `operator`.
    #[serde(default)]
    pub source: String,
    /// Who recorded it.
    #[serde(default)]
    pub who: String,
    /// Benchmarks that show the defect; empty when they ran and none did, none when nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<Vec<String>>,
}

impl Incident {
    /// An incident without words.
    #[must_use]
    pub fn new(node: &str, start_h: f64, end_h: Option<f64>, category: Category) -> Self {
        let (reason, source, who) = <(String, String, String)>::default();
        Self { node: node.to_owned(), start_h, end_h, category, reason, source, who, found_by: None }
    }

    /// Whether it can be part of a history.
    ///
    /// # Errors
    /// Without a node, with a time that is no number, or an end before the start.
    pub fn check(&self) -> Result<(), BadIncident> {
        if self.node.trim().is_empty() {
            return Err(BadIncident::NoNode);
        }
        if !self.start_h.is_finite() || self.end_h.is_some_and(|end| !end.is_finite()) {
            return Err(BadIncident::NotFinite);
        }
        if self.end_h.is_some_and(|end| end < self.start_h) { Err(BadIncident::Backwards) } else { Ok(()) }
    }
}
