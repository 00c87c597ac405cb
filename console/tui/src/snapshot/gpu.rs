//! What is known of one GPU of a node.

use std::sync::Arc;

use crate::judgement::State;

/// One GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuRow {
    /// Its number on the node.
    pub index: u32,
    /// Model, empty where nobody told it.
    pub name: String,
    /// What else is known of it, most telling first: identity, sensors at rest, settings.
    pub about: Arc<[String]>,
    /// Worst of what was found of it; a pass where it was measured without a finding.
    pub state: State,
    /// The highest that was seen, °C.
    pub temperature: Option<f64>,
    /// Under the last load, watts; at rest where it had none.
    pub power: Option<f64>,
    /// Of its multiprocessors, hertz, under the last load.
    pub clock: Option<f64>,
    /// Uncorrected memory errors since the driver was loaded.
    pub errors: Option<f64>,
    /// NVLinks that are up, and all.
    pub links: Option<(f64, f64)>,
    /// Generation and lanes.
    pub pcie: Option<(f64, f64)>,
    /// One per multiprocessor, by number.
    pub sms: Arc<[Sm]>,
    /// What was found of it, whole sentences, worst first.
    pub said: Arc<[String]>,
}

/// One multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sm {
    /// As the others.
    Good,
    /// Takes longer for the same work.
    Slow,
    /// Computes other bits.
    Wrong,
}
