//! Who does the products of a training, and a product of cuBLASLt's with addresses.

use super::ready::Memory;
use super::{LibraryProduct, Precision};
use crate::cublaslt::{CublasLt, Ends, Plan};
use crate::driver::{Gpu, Trouble};

/// What products are done with.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    /// What they are computed in.
    pub precision: Precision,
    /// Who does them, attention excepted; muster's own kernels without a library.
    pub library: Option<&'a CublasLt>,
}

impl From<Precision> for With<'_> {
    fn from(precision: Precision) -> Self {
        Self { precision, library: None }
    }
}

/// A product by the library.
#[derive(Debug)]
pub(super) struct Multiplication<'a> {
    library: &'a CublasLt,
    plan: Plan,
    work: u64,
}

impl<'a> Multiplication<'a> {
    /// `of` in `memory`, by the library's first choice; `NotRun` where it has none.
    pub(super) fn new(library: &'a CublasLt, memory: &Memory, of: &LibraryProduct) -> Result<Self, Trouble> {
        let place = |word| memory.address(word).ok_or_else(|| Trouble::Failed(format!("{word:?} is no place")));
        let bias = of.bias.map(place).transpose()?;
        let ends = Ends { left: place(of.left)?, right: place(of.right)?, result: place(of.result)?, bias };
        let work = place(of.work)?;
        if let Some(plan) = library.plan(of.product, ends)? {
            return Ok(Self { library, plan, work });
        }
        // As the tape has them, whose rows are the library's columns.
        let (m, n, k) = (of.product.columns, of.product.rows, of.product.depth);
        let what = format!("a product of {m} x {n} x {k} in {:?}", of.product.number);
        Err(Trouble::NotRun(format!("{} has no algorithm here for {what}", library.engine())))
    }

    /// Puts it on the GPU's stream.
    pub(super) fn start(&self, gpu: &Gpu) -> Result<(), Trouble> {
        self.library.start(gpu, &self.plan, self.work)
    }

    /// Which algorithm it is.
    pub(super) const fn choice(&self) -> [u64; 8] {
        self.plan.choice()
    }
}
