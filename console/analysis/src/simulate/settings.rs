//! What is simulated?

use serde::{Deserialize, Serialize};

/// What a repair after a validation or an incident does to a node under a validation policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// The node is replaced by another one of the fleet's law.
    Resample,
    /// The same node comes back, no worse.
    Same,
}

/// Size of the cluster and costs of its incidents. Times in hours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Nodes.
    pub nodes: usize,
    /// Length of the simulation.
    pub hours: f64,
    /// How long all nodes of a failed job are away without validation: trouble-shooting and repair.
    pub outage_h: f64,
    /// How long a node is away that a validation found, or that validation names after an incident: a swap.
    pub swap_h: f64,
    /// What a swap brings.
    pub repair: Repair,
    /// Risk that the Selector lets pass.
    pub p0: f64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { nodes: 1000, hours: 720.0, outage_h: 36.0, swap_h: 1.0, repair: Repair::Resample, p0: 0.235, seed: 0 }
    }
}
