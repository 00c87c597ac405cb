//! What other methods would have said of the same fleet: Algorithm 2 beside interquartile range, k-means and local
//! outlier factor, as figure 9 of SuperBench (ATC'24) compares them, and on fleets whose truth is known.

mod compare;
mod iqr;
mod kmeans;
mod lof;
mod margin;
mod method;
mod scenario;

pub use compare::{Comparison, Disagreement, Row, Score, compare, score};
pub use margin::margin_ratio;
pub use method::{Fleet, Method, NotComparable, Split, split};
pub use scenario::{Fault, Scenario, Synthetic};
