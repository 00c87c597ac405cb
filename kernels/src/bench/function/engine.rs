//! Who does a call.

use crate::driver::{Buffer, Gpu, Trouble};

/// A way to do one call over and over.
pub(super) trait Engine {
    /// In metrics; `None` for the kernels that the GPU has loaded.
    fn version(&self) -> Option<String>;

    /// In sentences.
    fn whose(&self) -> &'static str;

    /// Largest error of a number, as a share of the sum of its products' sizes.
    fn tolerance(&self) -> f64;

    /// Whether it adds in one order, so that the same call gives the same bits.
    fn repeats(&self) -> bool;

    /// Puts `alpha` times A times B on the GPU's stream, plus what is there where the call adds.
    fn start(&self, gpu: &Gpu, buffers: [&Buffer; 3], alpha: f32) -> Result<(), Trouble>;
}
