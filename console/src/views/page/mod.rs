//! From what was found to the page of a report (muster_page): in sentences first, then the evidence, then what is not known.
//!
//! | file | settles |
//! |---|---|
//! | `of_run`, `of_node`, `of_metric` | what stands on the page of a run, of one of its nodes, of one metric |
//! | `of_watch`, `of_case` | the same of a recording and of a triage case |
//! | `verdicts` | what is said of which nodes |
//! | `findings` | the numbers behind the sentences |
//! | `convicted`, `curves` | which metrics get a chart, and what is in it |
//! | `pairs` | the map of pairs |
//! | `coverage` | which node ran what |
//! | `undecided` | what was not decided, and why |
//! | `criteria` | by what was judged |
//! | `hardware` | who the nodes are |

mod convicted;
mod coverage;
mod criteria;
mod curves;
mod findings;
mod hardware;
mod head;
mod of_case;
mod of_metric;
mod of_node;
mod of_run;
mod of_watch;
mod pairs;
mod undecided;
mod verdicts;

pub use convicted::wanted;
pub use coverage::Coverage;
pub use of_case::case_page;
pub use of_metric::{metric_page, metrics};
pub use of_node::node_page;
pub use of_run::{Ran, run_page};
pub use of_watch::{Told, stretches, watch_page};

#[cfg(test)]
mod tests;
