//! How many operations per second cuBLASLt delivers where it is installed: always its first choice with the same
//! workspace, no search, so that a GPU is compared with others and not algorithms with each other.

use super::node::wide;
use super::run::Run;
use crate::cublaslt::{self, CublasLt, Ends, Plan, SPACE};
use crate::driver::{Arg, Buffer, Gpu, Trouble};
use crate::twin::{self, Number};

/// A product may take this long, milliseconds.
const PATIENCE: f64 = 200.0;
const SMALLEST: u32 = 128;
/// Elements of a product that are computed again.
const CHECKED: u64 = 16;

/// Name and numbers as `gemm-flops` has them, its edge, and the largest error as a share of the sum of products' sizes.
const KINDS: [(&str, Number, u32, f64); 7] = [
    ("bf16", Number::Bf16, 8192, 1e-3),
    ("fp16", Number::Fp16, 8192, 1e-3),
    ("tf32", Number::Tf32, 8192, 1e-3),
    ("int8", Number::Int8, 8192, 0.0),
    // Sums of this type are kept with few bits.
    ("fp8", Number::Fp8, 8192, 1e-2),
    ("fp32", Number::Fp32, 4096, 1e-5),
    ("fp64", Number::Fp64, 4096, 1e-12),
];

struct Product<'a> {
    lt: &'a CublasLt,
    name: &'static str,
    number: Number,
    tolerance: f64,
    a: Buffer,
    b: Buffer,
    c: Buffer,
    space: &'a Buffer,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let lt = CublasLt::load()?;
    let space = run.gpu.buffer(SPACE)?;
    run.fact("cublaslt", format!("version={} path={}", lt.version, lt.path()));
    KINDS.into_iter().enumerate().try_for_each(|(part, kind)| measure(run, (&lt, &space), part, kind))
}

/// Bytes of an element of the result.
const fn result(number: Number) -> usize {
    if matches!(number, Number::Fp64) { 8 } else { 4 }
}

fn measure(
    run: &mut Run<'_>,
    (lt, space): (&CublasLt, &Buffer),
    part: usize,
    (name, number, edge, tolerance): (&'static str, Number, u32, f64),
) -> Result<(), Trouble> {
    let gpu = run.gpu;
    run.progress(part as f64 / KINDS.len() as f64, name);
    let (mut edge, free) = (run.pick([4096, edge, edge, edge]), gpu.free()? / 10 * 9);
    while edge > SMALLEST && (2 * number.size() + result(number)) * (edge as usize).pow(2) > free {
        edge /= 2;
    }
    let bytes = |each: usize| gpu.buffer(each * (edge as usize).pow(2));
    let (a, b, c) = (bytes(number.size())?, bytes(number.size())?, bytes(result(number))?);
    let product = Product { lt, name, number, tolerance, a, b, c, space };
    product.prepare(run)?;
    let Some((edge, plan)) = product.largest(run, edge)? else {
        run.fact(&format!("cublaslt.{name}"), "not supported".to_owned());
        return Ok(());
    };
    let operations = 2.0 * f64::from(edge).powi(3);
    let before = product.digest(run, edge, &plan)?;
    let algorithm = plan.algorithm;
    run.fact(&format!("cublaslt.{name}"), format!("edge={edge} algorithm={algorithm} digest={before:08x}"));
    let mut batch = |count: u32| gpu.timed(&mut || (0..count).try_for_each(|_| product.start(gpu, &plan)));
    let (times, warmup) = run.times(name, (part, KINDS.len()), &mut batch)?;
    let values = times.into_iter().map(|ms| operations / (ms * 1e-3)).collect();
    run.tell((format!("{name}:{}", gpu.index), lt.engine()), values, warmup)?;
    let after = product.digest(run, edge, &plan)?;
    if before != after {
        let why = format!("GPU {}: the same {name} product of cuBLASLt gave other bits the second time", gpu.index);
        return Err(Trouble::Failed(format!("{why}: {before:08x} and {after:08x}")));
    }
    product.check(run, edge)
}

impl Product<'_> {
    fn prepare(&self, run: &Run<'_>) -> Result<(), Trouble> {
        let (keep, set) = self.number.mask();
        [(&self.a, 1), (&self.b, 2)].into_iter().try_for_each(|(buffer, seed)| {
            let pairs = Arg::U64(buffer.bytes as u64 / 8);
            let arguments = [Arg::At(buffer), pairs, Arg::U32(seed), Arg::U64(keep), Arg::U64(set)];
            run.gpu.launch(run.gpu.function("operand", 0)?, wide(run.gpu), &arguments)
        })
    }

    fn start(&self, gpu: &Gpu, plan: &Plan) -> Result<(), Trouble> {
        self.lt.start(gpu, plan, self.space.address())
    }

    /// Edge and plan of a product of `edge`, or of a smaller one where that would take too long; nothing where there is none.
    fn largest(&self, run: &Run<'_>, edge: u32) -> Result<Option<(u32, Plan)>, Trouble> {
        let [left, right, result] = [&self.a, &self.b, &self.c].map(Buffer::address);
        let mut at = SMALLEST;
        loop {
            let product = cublaslt::Product::square(self.number, at);
            let plan = self.lt.plan(product, Ends { left, right, result, bias: None })?;
            let Some(plan) = plan else { return Ok(None) };
            // The first time also loads the code.
            self.start(run.gpu, &plan)?;
            let took = run.gpu.timed(&mut || self.start(run.gpu, &plan))?;
            if at >= edge || 8.0 * took > PATIENCE {
                return Ok(Some((at, plan)));
            }
            at *= 2;
        }
    }

    /// A fold of all bits of the result.
    fn digest(&self, run: &Run<'_>, edge: u32, plan: &Plan) -> Result<u32, Trouble> {
        let gpu = run.gpu;
        self.start(gpu, plan)?;
        let out = gpu.buffer(16)?;
        gpu.put(&out, &[0_u32; 4])?;
        let vectors = u64::from(edge).pow(2) * result(self.number) as u64 / 16;
        gpu.launch(gpu.function("read", 0)?, wide(gpu), &[Arg::At(&self.c), Arg::U64(vectors), Arg::At(&out)])?;
        let mut words = [0; 1];
        gpu.get(&mut words, &out)?;
        Ok(words[0])
    }

    /// Computes some elements again, in f64.
    fn check(&self, run: &Run<'_>, edge: u32) -> Result<(), Trouble> {
        let edge = u64::from(edge);
        let mut words = vec![0_u32; self.c.bytes / 4];
        run.gpu.get(&mut words, &self.c)?;
        for number in 0..CHECKED {
            let random = |seed| u64::from(twin::pattern(seed, number)) % edge;
            let (row, column) = (random(7), random(8));
            let (mut expected, mut scale) = (0.0, 0.0);
            for k in 0..edge {
                let product = self.number.element(1, row * edge + k) * self.number.element(2, column * edge + k);
                expected += product;
                scale += product.abs();
            }
            let at = (column * edge + row) as usize;
            let got = match self.number {
                Number::Fp64 => f64::from_bits(u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32),
                Number::Int8 => f64::from(words[at].cast_signed()),
                _ => f64::from(f32::from_bits(words[at])),
            };
            // Not-a-number is no small error, so the comparison is for what is right.
            let right = (got - expected).abs() <= self.tolerance * scale;
            if !right {
                let what = format!("element ({row}, {column}) of a {} product of cuBLASLt is {got:e}", self.name);
                return Err(Trouble::Failed(format!("GPU {}: {what}, not {expected:e}", run.gpu.index)));
            }
        }
        Ok(())
    }
}
