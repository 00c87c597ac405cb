//! Findings: whatever is wrong with a component of a node, from whichever source, as one type; and the one function that
//! decides a node's state from them.

mod checks;
mod finding;
mod metric;
mod missing;
mod names;
mod next;
mod node;
mod of_node;

pub use checks::{check_findings, checked_components};
pub use finding::{Compared, Effect, Finding, Source, change};
pub use metric::{Decided, cell_sentence, metric_components, metric_findings};
pub use missing::without_value;
pub use node::{ComponentState, NodeState, decide_node};
pub use of_node::NodeFindings;
