//! What every kernel must compute, on the CPU. Plain loops: these are read to be believed, not to be fast.

mod burn;
mod gemm;
mod memory;
mod peer;

pub use burn::{Burn, digest};
pub use gemm::{Number, error, product, transposed_product};
pub use memory::{Page, chain, fold, mix, page, pattern, sum, triad};
pub use peer::{summand, total};
