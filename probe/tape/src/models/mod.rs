//! Which models there are.

mod bert;
mod catalog;
mod gpt2;
mod lstm;
mod resnet;
#[cfg(test)]
mod tests;

pub use catalog::Model;
