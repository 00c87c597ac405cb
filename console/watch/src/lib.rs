//! Which machine of a running job is unlike its peers, in which metric, since when.
//!
//! Minder's question (NSDI'25), answered by a streaming detector. Every metric of a node is compared with the same metric of the
//! others, minus how it usually compares (a difference in differences), in blocks of ten seconds; what stays unlike long enough is
//! named. [`Watch`] takes ticks and gives [`Alert`]s; it reads no file and no clock, and the cost of a block grows with the number
//! of cells (metric of a node), never with its square.
//!
//! | file | settles |
//! |---|---|
//! | `intake` | which ticks are taken, in which second of which block |
//! | `cell`, `column` | what is kept of a metric on a node, and of a metric on all nodes |
//! | `block` | one value from the seconds of a block |
//! | `job` | whether the job runs, stands still or began anew |
//! | `deviation` | how far a node is from its peers and how much that usually varies |
//! | `fast`, `slow`, `learn` | evidence that adds up, strong or weak but lasting; what counts as usual |
//! | `name`, `group`, `stop`, `start` | who is named: a machine, a leaf, a culprit of a standstill; who is only noted |
//! | `alike`, `writes`, `end` | who came back to its peers, who writes while the others wait; when an alert is over |
//! | `change`, `first` | in which second a series stepped; which machine moved before the job slowed |
//! | `excursions` | how much evidence keeps a budget of false alarms |
//! | `past` | who is unlike its own earlier recordings since the start |
//! | `score` | how far every node is from its peers now |
//! | `alert`, `report`, `sentence`, `lack` | what is said |
//! | `view` | what was known after each of the last blocks, for a screen |
//! | [`minder`], [`trial`] | the method as printed; both scored over recordings with their truth |
//!
//! ```
//! use muster_watch::{Settings, Watch};
//! let mut watch = Watch::new(Settings::default());
//! let nodes: Vec<_> = (0..6).filter_map(|n| watch.node(&format!("n{n}"))).collect();
//! let metric = watch.metric("gpu_power_w").unwrap();
//! for second in 0..900 {
//!     for (at, &node) in nodes.iter().enumerate() {
//!         let hurt = at == 3 && second > 400;
//!         watch.push(f64::from(second), node, metric, if hurt { 300.0 } else { 500.0 + f64::from(second % 7) });
//!     }
//! }
//! watch.finish();
//! assert_eq!(watch.alerts()[0].node, "n3");
//! ```

mod alert;
mod alike;
mod block;
mod cell;
mod change;
mod column;
mod detector;
mod deviation;
mod end;
mod excursions;
mod fast;
mod first;
mod group;
mod intake;
mod job;
mod lack;
mod learn;
pub mod minder;
mod name;
mod node;
mod order;
mod past;
mod report;
mod ring;
mod score;
mod sentence;
mod settings;
mod slow;
mod start;
mod stop;
pub mod trial;
mod view;
mod writes;

pub use alert::{Alert, AlertKind, Also};
pub use detector::Watch;
pub use excursions::Calibration;
pub use intake::{Dropped, MetricIndex, NodeIndex};
pub use lack::Lack;
pub use past::{Gains, Unlike, unlike_before};
pub use score::Score;
pub use settings::{CELLS, METRICS, NODES, Settings};
pub use view::{BLOCK_S, Frame, Look, Peers, QUARTER, Standing};
