//! From layers to a tape.

mod builder;
mod image;
mod layers;
mod recurrent;

pub(crate) use builder::{Builder, Optimiser, Rule, Tensor};
pub(crate) use layers::spread;
pub(crate) use recurrent::Recurrent;
