//! What the past of the fleet says of its future: the incident log, what was measured when, and the model over both.

mod advice;
pub mod incidents;
mod knowledge;
mod validations;

pub use advice::{Advice, Basis, CAP_H, incident_settings, picture, saved};
pub use knowledge::{Log, Measured};
pub use validations::keep_validations;
