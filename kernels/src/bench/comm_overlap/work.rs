//! What is computed beside a sum, in SuperBench's shapes, and the same recorded on one GPU.

use muster_tape::Span;

use super::super::answers;
use super::super::node::wide;
use crate::driver::{Arg, Gpu, Graph, Trouble};
use crate::train::{Factors, Precision, Products};

/// Seeds of the operands.
pub(super) const A: u32 = 0xc0;
pub(super) const B: u32 = 0xc1;

/// What is computed to each sum, and the bytes of that.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) stages: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) message: usize,
}

/// In the smoke profile, and elsewhere.
pub(super) const SMALL: Sizes = Sizes { stages: 2, m: 20, k: 12, n: 28, message: 2 << 10 };
pub(super) const LARGE: Sizes = Sizes { stages: 30, m: 640, k: 1024, n: 1880, message: 5000 * 1400 * 4 };

impl Sizes {
    /// Elements of all left operands, which is also how many squares there are.
    pub(super) const fn left(&self) -> usize {
        self.stages * self.m * self.k
    }

    /// Elements of all results.
    pub(super) const fn result(&self) -> usize {
        self.stages * self.m * self.n
    }

    /// Where the right operand, the results of products and those of squares begin, and elements in all.
    pub(super) const fn places(&self) -> [usize; 4] {
        let (b, products) = (self.left(), self.left() + self.k * self.n);
        [b, products, products + self.result(), products + self.result() + self.left()]
    }

    pub(super) fn factors(&self) -> Vec<Factors> {
        let (Self { m, k, n, .. }, [b, products, ..]) = (*self, self.places());
        let span = |offset, len| Span { offset, len };
        let one = |stage: usize| Factors {
            m,
            n,
            k,
            a: span(stage * m * k, m * k),
            b: span(b, k * n),
            c: span(products + stage * m * n, m * n),
        };
        (0..self.stages).map(one).collect()
    }
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Matmul,
    Mul,
}

impl Kind {
    /// As SuperBench calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Mul => "mul",
        }
    }
}

/// One GPU's work, recorded.
pub(super) struct Rank {
    pub(super) products: Products,
    matmul: Graph,
    mul: Graph,
}

impl Rank {
    pub(super) fn new(gpu: &Gpu, sizes: Sizes) -> Result<Self, Trouble> {
        let ([b, _, squares, all], Sizes { stages, m, k, n, .. }) = (sizes.places(), sizes);
        let products = Products::new(gpu, all, &sizes.factors(), Precision::Fp32)?;
        answers::operand(gpu, (products.at(0), sizes.left()), A)?;
        answers::operand(gpu, (products.at(b), k * n), B)?;
        let (square, vectors) = (gpu.function("square", 0)?, Arg::U64((m * k / 4) as u64));
        let matmul = gpu.record(&mut || products.start(gpu))?;
        let mul = gpu.record(&mut || {
            (0..stages).try_for_each(|stage| {
                let [to, from] = [squares, 0].map(|begin| Arg::U64(products.at(begin + stage * m * k)));
                gpu.launch(square, wide(gpu), &[to, from, vectors])
            })
        })?;
        gpu.wait()?;
        Ok(Self { products, matmul, mul })
    }

    pub(super) const fn graph(&self, kind: Kind) -> &Graph {
        match kind {
            Kind::Matmul => &self.matmul,
            Kind::Mul => &self.mul,
        }
    }
}
