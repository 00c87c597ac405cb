//! How many operations per second the GPU delivers on matrix products, and whether they are right.

use super::run::Run;
use super::stream::wide;
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};
use crate::twin::{self, Number};

/// A product may take this long, milliseconds; past it a smaller one is taken.
const PATIENCE: f64 = 200.0;
/// Elements of a product that are computed again.
const CHECKED: u64 = 16;

/// How operands lie in memory, and so which kernels read them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Both along k, for mma.sync.
    Rows,
    /// Both along k in pieces as the tensor cores of sm_90a read them, for wgmma.
    Packed,
    /// Row-major, for the ordinary units.
    Plain,
}

/// One kind of product.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    kernel: &'static str,
    number: Number,
    layout: Layout,
    /// Largest error of an element, as a share of the sum of its products' sizes.
    tolerance: f64,
}

impl Kind {
    const fn rows(name: &'static str, kernel: &'static str, number: Number, tolerance: f64) -> Self {
        Self { name, kernel, number, layout: Layout::Rows, tolerance }
    }

    const fn packed(name: &'static str, kernel: &'static str, number: Number, tolerance: f64) -> Self {
        Self { name, kernel, number, layout: Layout::Packed, tolerance }
    }

    const fn plain(name: &'static str, kernel: &'static str, number: Number, tolerance: f64) -> Self {
        Self { name, kernel, number, layout: Layout::Plain, tolerance }
    }

    /// Edge of the smallest product.
    const fn least(self) -> u32 {
        match (self.layout, self.number) {
            (Layout::Packed, _) => 256,
            (_, Number::Fp64) => 64,
            _ => 128,
        }
    }

    /// Edge that a GPU multiplies in a few milliseconds.
    const fn edge(self) -> u32 {
        if matches!(self.layout, Layout::Plain) { 4096 } else { 8192 }
    }

    /// Dynamic shared memory: four stages, of 16 KiB or of 48 with their barriers.
    const fn shared(self) -> u32 {
        match self.layout {
            Layout::Rows => 64 << 10,
            Layout::Packed => (192 << 10) + 64,
            Layout::Plain => 0,
        }
    }

    /// Bytes of an element of the result.
    const fn result(self) -> usize {
        if matches!(self.number, Number::Fp64) { 8 } else { 4 }
    }

    /// Which element of its buffer is row `row` of an operand at `k`; for the right one `row` is a column of the result.
    const fn place(self, right: bool, edge: u64, row: u64, k: u64) -> u64 {
        match self.layout {
            Layout::Packed => self.number.packed(edge * self.number.size() as u64 / 128, row, k),
            Layout::Plain if right => k * edge + row,
            _ => row * edge + k,
        }
    }
}

const KINDS: [Kind; 11] = [
    Kind::rows("bf16", "gemm_bf16", Number::Bf16, 1e-3),
    Kind::rows("fp16", "gemm_fp16", Number::Fp16, 1e-3),
    Kind::rows("tf32", "gemm_tf32", Number::Tf32, 1e-3),
    Kind::rows("int8", "gemm_int8", Number::Int8, 0.0),
    Kind::packed("bf16-wgmma", "wgmma_bf16", Number::Bf16, 1e-3),
    Kind::packed("fp16-wgmma", "wgmma_fp16", Number::Fp16, 1e-3),
    Kind::packed("tf32-wgmma", "wgmma_tf32", Number::Tf32, 1e-3),
    // Sums of fp8 products keep fewer bits on their way.
    Kind::packed("fp8-wgmma", "wgmma_fp8", Number::Fp8, 4e-3),
    Kind::packed("int8-wgmma", "wgmma_int8", Number::Int8, 0.0),
    Kind::plain("fp32", "gemm_f32", Number::Fp32, 1e-5),
    Kind::plain("fp64", "gemm_f64", Number::Fp64, 1e-12),
];

/// A product and its operands on the GPU.
pub(super) struct Product {
    kind: Kind,
    pub(super) edge: u32,
    function: Function,
    a: Buffer,
    b: Buffer,
    c: Buffer,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    KINDS.into_iter().enumerate().try_for_each(|(part, kind)| measure(run, part, kind))
}

fn measure(run: &mut Run<'_>, part: usize, kind: Kind) -> Result<(), Trouble> {
    let gpu = run.gpu;
    if !gpu.has(kind.kernel)? {
        run.fact(&format!("gemm.{}", kind.name), "not applicable: needs machine code for sm_90a".to_owned());
        return Ok(());
    }
    let product = Product::new(run, kind)?;
    let before = product.digest(run)?;
    run.fact(&format!("gemm.{}", kind.name), format!("edge={} digest={before:08x}", product.edge));
    let operations = product.operations();
    run.sample(kind.name, (part, KINDS.len()), &|ms| operations / (ms * 1e-3), &mut || product.start(gpu))?;
    product.same(run, before)?;
    product.check(run)
}

/// The edge of the profile, halved until three matrices fit.
fn largest(run: &Run<'_>, kind: Kind) -> Result<u32, Trouble> {
    let (free, mut edge) =
        (run.gpu.free()? / 10 * 9, if run.pick([true, false, false, false]) { 4096 } else { kind.edge() });
    while edge > kind.least() && (2 * kind.number.size() + kind.result()) * (edge as usize).pow(2) > free {
        edge /= 2;
    }
    Ok(edge)
}

impl Product {
    /// The product whose rate everybody asks for first: bf16 by mma.sync.
    pub(super) fn usual(run: &Run<'_>) -> Result<Self, Trouble> {
        Self::new(run, KINDS[0])
    }

    fn new(run: &Run<'_>, kind: Kind) -> Result<Self, Trouble> {
        let gpu = run.gpu;
        let function = gpu.function(kind.kernel, kind.shared())?;
        let edge = largest(run, kind)?;
        let (operand, result) = (kind.number.size() * (edge as usize).pow(2), kind.result() * (edge as usize).pow(2));
        let (a, b, c) = (gpu.buffer(operand)?, gpu.buffer(operand)?, gpu.buffer(result)?);
        let (keep, set) = kind.number.mask();
        for (buffer, seed) in [(&a, 1), (&b, 2)] {
            let pairs = Arg::U64(buffer.bytes as u64 / 8);
            let arguments = [Arg::At(buffer), pairs, Arg::U32(seed), Arg::U64(keep), Arg::U64(set)];
            gpu.launch(gpu.function("operand", 0)?, wide(run), &arguments)?;
        }
        let mut product = Self { kind, edge: kind.least(), function, a, b, c };
        // One tile first, so that a GPU that is far too slow is not asked for a product that takes minutes.
        let tile = gpu.timed(&mut || product.start(gpu))?;
        product.edge = edge;
        while product.edge > kind.least()
            && tile * (f64::from(product.edge / kind.least()).powi(3) / f64::from(gpu.sms)) > PATIENCE
        {
            product.edge /= 2;
        }
        Ok(product)
    }

    /// Operations of one product; a multiply-add counts as two.
    pub(super) fn operations(&self) -> f64 {
        2.0 * f64::from(self.edge).powi(3)
    }

    pub(super) fn start(&self, gpu: &Gpu) -> Result<(), Trouble> {
        let Self { kind, edge, .. } = *self;
        let tiles = edge / kind.least();
        let (number, slices) = (Arg::U32(edge), Arg::U32(edge * kind.number.size() as u32 / 128));
        let (grid, threads, last) = match kind.layout {
            // A row of an operand in bytes: the kernel is one for all types.
            Layout::Rows => ((tiles, tiles), 256, [number, Arg::U32(edge * kind.number.size() as u32), number]),
            Layout::Packed => ((gpu.sms.min(2 * tiles * tiles), 1), 288, [number, number, slices]),
            Layout::Plain => ((tiles, tiles), 256, [number, number, number]),
        };
        let arguments = [Arg::At(&self.c), Arg::At(&self.a), Arg::At(&self.b), last[0], last[1], last[2]];
        let count = if kind.layout == Layout::Packed { 6 } else { 5 };
        gpu.launch(self.function, Shape { grid, threads, shared: kind.shared() }, &arguments[..count])
    }

    /// Fails unless all bits of the result are still those of the digest `before`.
    pub(super) fn same(&self, run: &Run<'_>, before: u32) -> Result<(), Trouble> {
        let after = self.digest(run)?;
        if before == after {
            return Ok(());
        }
        let why = format!("GPU {}: the same {} product gave other bits the second time", run.gpu.index, self.kind.name);
        Err(Trouble::Failed(format!("{why}: {before:08x} and {after:08x}")))
    }

    /// A fold of all bits of the result.
    pub(super) fn digest(&self, run: &Run<'_>) -> Result<u32, Trouble> {
        let gpu = run.gpu;
        self.start(gpu)?;
        let out = gpu.buffer(16)?;
        gpu.put(&out, &[0_u32; 4])?;
        let vectors = (self.edge as u64).pow(2) * self.kind.result() as u64 / 16;
        gpu.launch(gpu.function("read", 0)?, wide(run), &[Arg::At(&self.c), Arg::U64(vectors), Arg::At(&out)])?;
        let mut words = [0; 1];
        gpu.get(&mut words, &out)?;
        Ok(words[0])
    }

    /// Computes some elements again, in f64.
    fn check(&self, run: &Run<'_>) -> Result<(), Trouble> {
        let edge = u64::from(self.edge);
        let words = self.c.bytes / 4;
        let mut result = vec![0_u32; words];
        run.gpu.get(&mut result, &self.c)?;
        for number in 0..CHECKED {
            let (row, column) =
                (u64::from(twin::pattern(7, number)) % edge, u64::from(twin::pattern(8, number)) % edge);
            let (mut expected, mut scale) = (0.0, 0.0);
            for k in 0..edge {
                let at = |right, row| self.kind.place(right, edge, row, k);
                let left = self.kind.number.element(1, at(false, row));
                let product = left * self.kind.number.element(2, at(true, column));
                expected += product;
                scale += product.abs();
            }
            let at = (row * edge + column) as usize;
            let got = match self.kind.number {
                Number::Fp64 => f64::from_bits(u64::from(result[2 * at]) | u64::from(result[2 * at + 1]) << 32),
                Number::Int8 => f64::from(result[at].cast_signed()),
                _ => f64::from(f32::from_bits(result[at])),
            };
            // Not-a-number is no small error, so the comparison is for what is right.
            let right = (got - expected).abs() <= self.kind.tolerance * scale;
            if !right {
                let what = format!("element ({row}, {column}) of a {} product is {got:e}", self.kind.name);
                return Err(Trouble::Failed(format!("GPU {}: {what}, not {expected:e}", run.gpu.index)));
            }
        }
        Ok(())
    }
}
