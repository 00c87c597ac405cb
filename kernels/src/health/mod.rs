//! How a GPU is: what NVIDIA's management library tells of it at rest, and while it is measured.

mod load;
mod rest;
mod source;

pub use load::Watch;
pub use rest::facts;
pub use source::{CLOCK, ECC_CORRECTED, ECC_LOST, MEMORY_TEMPERATURE, POWER, REASONS, Source, TEMPERATURE};
