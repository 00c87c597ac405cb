//! Which models there are.

mod bert;
mod catalog;
mod densenet;
mod gpt2;
mod images;
mod lstm;
mod resnet;
#[cfg(test)]
mod tests;
mod vgg;

pub use catalog::{Model, Size};
