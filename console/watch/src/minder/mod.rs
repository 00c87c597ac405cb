//! Minder as it is printed (NSDI'25): which machine's metric is far from everybody else's, for long enough.
//!
//! It stands beside [`crate::Watch`] to be compared with, by `trial`; what the paper says of the method is kept, and what it leaves
//! open is decided here and in `docs/WATCH.md`, with the reason. Every eight minutes the last fifteen are looked at: samples of a second, aligned,
//! gaps filled with the nearest sample, each metric scaled by its smallest and largest value. Metric by metric, in the order of priority, each
//! window of eight seconds of a machine is replaced by what a small LSTM-VAE makes of it (or taken as it is); a machine's
//! score is its mean Euclidean distance to all machines; the machine with the largest is a candidate where that is more than a threshold; a
//! machine that is the candidate of all windows for four minutes is named, and no later metric is looked at.
//!
//! | file | settles |
//! |---|---|
//! | `grid` | what every node showed in every second |
//! | `scaled` | one metric between 0 and 1, for the span of a call |
//! | `distance` | which point is farthest from all others |
//! | `activation`, `lstm`, `vae`, `train` | the network that forgets noise |
//! | `moments`, `eigen` | the baseline: moments, principal components, Mahalanobis distance |
//! | `calls` | what is looked at when, and the farthest machine of each window |
//! | `continuity` | who is named |
//! | `tree`, `priority` | which metric is looked at first |

mod activation;
mod calls;
mod continuity;
mod distance;
mod eigen;
mod grid;
mod lstm;
mod moments;
mod priority;
mod scaled;
mod train;
mod tree;
mod vae;

pub use calls::{Calls, Embedding, Look};
pub use continuity::{Named, named};
pub use grid::{Grid, NoGrid, Tick, VALUES};
pub use priority::{Labelled, PRINTED, Priority, USED, priority};
pub use train::{Training, train};
pub use vae::{PARAMETERS, Vae, WIDTH};
