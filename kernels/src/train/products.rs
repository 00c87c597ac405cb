//! Matrix products by muster's own kernels outside of a training, all in one memory on a GPU.

use muster_tape::{Gemm, Kind, Op, Span, Start};

use super::ready::{Memory, Ready, start};
use super::{How, Launch, Precision, product};
use crate::driver::{Gpu, Trouble};

/// A product of matrices of f32 that lie row by row: C (m x n) = A (m x k) * B (k x n).
#[derive(Clone, Copy, Debug)]
pub struct Factors {
    /// Rows of A and of C.
    pub m: usize,
    /// Columns of B and of C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Where A lies, in elements.
    pub a: Span,
    /// Where B lies.
    pub b: Span,
    /// Where C goes.
    pub c: Span,
}

/// Products that are done one after the other.
#[derive(Debug)]
pub struct Products {
    memory: Memory,
    kernels: Vec<Ready>,
}

impl Products {
    /// Takes memory of so many elements on `gpu`, and prepares the products of `list` in it.
    ///
    /// # Errors
    /// When a shape is more than the kernels can do, or the driver's.
    pub fn new(gpu: &Gpu, elements: usize, list: &[Factors], precision: Precision) -> Result<Self, Trouble> {
        let (launches, space) = lowered(gpu, list, precision)?;
        let memory = Memory::of(gpu, elements, space)?;
        let kernels = memory.ready(gpu, &launches)?;
        Ok(Self { memory, kernels })
    }

    /// Bytes that [`Products::new`] takes.
    ///
    /// # Errors
    /// As there.
    pub fn needs(gpu: &Gpu, elements: usize, list: &[Factors], precision: Precision) -> Result<usize, Trouble> {
        lowered(gpu, list, precision).map(|(_, space)| elements * size_of::<f32>() + space)
    }

    /// Puts them on the GPU's stream.
    ///
    /// # Errors
    /// When the driver does not take them.
    pub fn start(&self, gpu: &Gpu) -> Result<(), Trouble> {
        start(gpu, &self.kernels)
    }

    /// Address of an element of the memory.
    #[must_use]
    pub const fn at(&self, element: usize) -> u64 {
        self.memory.at(Span { offset: element, len: 1 })
    }
}

/// The kernels of a list, and bytes of memory that they need beside the operands.
fn lowered(gpu: &Gpu, list: &[Factors], precision: Precision) -> Result<(Vec<Launch>, usize), Trouble> {
    let how = How::on(gpu, precision)?;
    let (mut all, mut most) = (Vec::new(), 0);
    for Factors { m, n, k, a, b, c } in list.iter().copied() {
        let gemm = Gemm { m, n, k, a_transposed: false, b_transposed: false, start: Start::Zero, gelu: false };
        let op = Op { kind: Kind::Gemm(gemm), reads: vec![a, b], writes: vec![c] };
        let (launches, space) = product::launches(&op, gemm, how).map_err(|unfit| Trouble::NotRun(unfit.0))?;
        all.extend(launches);
        most = most.max(space);
    }
    Ok((all, most))
}
