//! What a step gave, or why it gave nothing.

use super::comm::Trouble;

/// Why a rank ended before the training did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It never began.
    Start(String),
    Trouble(Trouble),
    /// Ranks have different weights; which of them are wrong, where most agree.
    Wrong(String, Vec<usize>),
    /// Broken on purpose.
    Exception(String),
    /// Ended from outside, between operations.
    Ended,
}

/// A step that all ranks ended with the same weights.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) loss: f32,
    pub(super) digest: u64,
    pub(super) whole_s: f64,
    pub(super) compute_s: f64,
    /// In operations, waiting for other ranks among it.
    pub(super) comm_s: f64,
    /// How long each GPU of this rank computed, where GPUs do.
    pub(super) gpus_s: Vec<f64>,
    /// When it began, on the monotonic clock.
    pub(super) at_ns: u64,
}
