//! What is kept of a node besides its metrics.

use super::end::Ending;
use super::excursions::Going;

/// A node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) name: String,
    /// Labels of the inventory: `leaf` and `leaf3`.
    pub(super) labels: Vec<(String, String)>,
    /// Blocks without any sample.
    pub(super) quiet: u32,
    /// Blocks of the standstill in which it was unlike the others.
    pub(super) odd: u32,
    /// Those of them in which it wrote what the others may wait for; and whether it was noted that it does.
    pub(super) wrote: u32,
    pub(super) is_noted_writer: bool,
    /// The alert that is open for it, and how it comes to its end.
    pub(super) open: Option<usize>,
    pub(super) ending: Ending,
    /// Seconds that its clock may be off by, where somebody knows.
    pub(super) clock_s: Option<f64>,
    /// How far it is from its peers now.
    pub(super) going: Going,
}

/// Who is named, why and since when.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) node: usize,
    /// The metric that leads; `None` for a node that fell silent.
    pub(super) metric: Option<usize>,
    /// First block of what is said.
    pub(super) since: i64,
    pub(super) score: f64,
}
