//! Single calls of linear algebra and convolution: what each computes, on the CPU and as kernels of ours.
//!
//! Shapes and layouts are those of SuperBench's `cublas-function` and `cudnn-function`, so that NVIDIA's libraries and muster's
//! kernels do the same work on the same numbers in the same places.

mod convolution;
mod launch;
mod list;
mod product;

use crate::twin::Number;
pub use convolution::{Convolution, Way};
pub use launch::{Launch, Place, Program, Word};
pub use list::{Entry, convolutions, products};
pub use product::{Function, Product};

/// Type of operands and results; all are summed in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// IEEE 754 binary32.
    Fp32,
    /// IEEE 754 binary16.
    Fp16,
    /// Pairs of binary32, real part first.
    Complex,
}

impl Precision {
    /// Type of the numbers that lie in memory.
    #[must_use]
    pub const fn number(self) -> Number {
        match self {
            Self::Fp32 | Self::Complex => Number::Fp32,
            Self::Fp16 => Number::Fp16,
        }
    }

    /// Numbers of an element.
    #[must_use]
    pub const fn parts(self) -> u64 {
        if matches!(self, Self::Complex) { 2 } else { 1 }
    }
}

/// A number of the result as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exact {
    /// The sum of its products.
    pub value: f64,
    /// The sum of their sizes, of which an error is a share.
    pub scale: f64,
}

impl Exact {
    fn add(&mut self, product: f64) {
        self.value += product;
        self.scale += product.abs();
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Of linear algebra.
    Product(Product),
    /// Of convolution.
    Convolution(Convolution),
}

impl Call {
    /// Type of its operands.
    #[must_use]
    pub const fn precision(self) -> Precision {
        match self {
            Self::Product(product) => product.precision,
            Self::Convolution(convolution) => convolution.precision,
        }
    }

    /// How many numbers, of [`Precision::number`], its operands A and B and its result have.
    #[must_use]
    pub const fn lengths(self) -> [u64; 3] {
        match self {
            Self::Product(product) => product.lengths(),
            Self::Convolution(convolution) => convolution.lengths(),
        }
    }

    /// Whether it adds to what is there.
    #[must_use]
    pub const fn adds(self) -> bool {
        matches!(self, Self::Product(product) if product.function.adds())
    }

    /// Number `at` of A times B, computed in f64; `a` and `b` give the operands' numbers.
    #[must_use]
    pub fn exact(self, at: u64, [a, b]: [&dyn Fn(u64) -> f64; 2]) -> Exact {
        match self {
            Self::Product(product) => product.exact(at, a, b),
            Self::Convolution(convolution) => convolution.exact(at, a, b),
        }
    }

    /// The kernels that compute alpha times A times B, plus what is there where [`Self::adds`].
    #[must_use]
    pub fn program(self, alpha: f32) -> Program {
        match self {
            Self::Product(product) => product.program(alpha),
            Self::Convolution(convolution) => convolution.program(),
        }
    }
}
