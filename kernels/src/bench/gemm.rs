//! How many operations per second the GPU delivers on matrix products, and whether they are right.

use muster_wire::Unit;

use super::run::{Metric, Run};
use super::stream::wide;
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};
use crate::twin;

/// A product may take this long, milliseconds; past it a smaller one is taken.
const PATIENCE: f64 = 200.0;
/// Elements of a product that are computed again.
const CHECKED: u64 = 16;

/// One kind of product.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    kernel: &'static str,
    /// Edge of a tile.
    tile: u32,
    shared: u32,
    /// Bytes of an operand's element, of a result's.
    bytes: (usize, usize),
    /// Edge that a GPU multiplies in a few milliseconds.
    edge: u32,
}

const KINDS: [Kind; 3] = [
    Kind { name: "bf16", kernel: "gemm_bf16", tile: 128, shared: 64 << 10, bytes: (2, 4), edge: 8192 },
    Kind { name: "fp32", kernel: "gemm_f32", tile: 128, shared: 0, bytes: (4, 4), edge: 4096 },
    Kind { name: "fp64", kernel: "gemm_f64", tile: 64, shared: 0, bytes: (8, 8), edge: 4096 },
];

struct Product<'a> {
    kind: Kind,
    edge: u32,
    function: Function,
    a: &'a Buffer,
    b: &'a Buffer,
    c: &'a Buffer,
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    for (part, kind) in KINDS.into_iter().enumerate() {
        let function = gpu.function(kind.kernel, kind.shared)?;
        let mut edge = largest(run, kind)?;
        let (operand, result) = (kind.bytes.0 * (edge as usize).pow(2), kind.bytes.1 * (edge as usize).pow(2));
        let (a, b, c) = (gpu.buffer(operand)?, gpu.buffer(operand)?, gpu.buffer(result)?);
        for (buffer, seed) in [(&a, 1), (&b, 2)] {
            let fill = gpu.function("fill_bf16", 0)?;
            gpu.launch(fill, wide(run), &[Arg::At(buffer), Arg::U64(buffer.bytes as u64 / 4), Arg::U32(seed)])?;
        }
        let small = Product { kind, edge: kind.tile, function, a: &a, b: &b, c: &c };
        // One tile first, so that a GPU that is far too slow is not asked for a product that takes minutes.
        let tile = gpu.timed(&mut || small.start(gpu))?;
        while edge > kind.tile && tile * (f64::from(edge / kind.tile).powi(3) / f64::from(gpu.sms)) > PATIENCE {
            edge /= 2;
        }
        let product = Product { edge, ..small };
        let operations = 2.0 * f64::from(edge).powi(3);
        let before = product.digest(run)?;
        run.fact(&format!("gemm.{}", kind.name), format!("edge={edge} digest={before:08x}"));
        let metric = Metric::rate(kind.name, Unit::FlopPerSec);
        run.sample(metric, (part, KINDS.len()), &|ms| operations / (ms * 1e-3), &mut || product.start(gpu))?;
        let after = product.digest(run)?;
        if before != after {
            let why = format!("GPU {}: the same {} product gave other bits the second time", gpu.index, kind.name);
            return Err(Trouble::Failed(format!("{why}: {before:08x} and {after:08x}")));
        }
        product.check(run)?;
    }
    Ok(())
}

/// The edge of the profile, halved until three matrices fit.
fn largest(run: &Run<'_>, kind: Kind) -> Result<u32, Trouble> {
    let (free, mut edge) =
        (run.gpu.free()? / 10 * 9, if run.pick([true, false, false, false]) { 4096 } else { kind.edge });
    while edge > kind.tile && (2 * kind.bytes.0 + kind.bytes.1) * (edge as usize).pow(2) > free {
        edge /= 2;
    }
    Ok(edge)
}

impl Product<'_> {
    fn start(&self, gpu: &Gpu) -> Result<(), Trouble> {
        let tiles = self.edge / self.kind.tile;
        let shape = Shape { grid: (tiles, tiles), threads: 256, shared: self.kind.shared };
        let edge = Arg::U32(self.edge);
        gpu.launch(self.function, shape, &[Arg::At(self.c), Arg::At(self.a), Arg::At(self.b), edge, edge])
    }

    /// A fold of all bits of the result.
    fn digest(&self, run: &Run<'_>) -> Result<u32, Trouble> {
        let gpu = run.gpu;
        self.start(gpu)?;
        let out = gpu.buffer(16)?;
        gpu.put(&out, &[0_u32; 4])?;
        let vectors = (self.edge as u64).pow(2) * self.kind.bytes.1 as u64 / 16;
        gpu.launch(gpu.function("read", 0)?, wide(run), &[Arg::At(self.c), Arg::U64(vectors), Arg::At(&out)])?;
        let mut words = [0; 1];
        gpu.get(&mut words, &out)?;
        Ok(words[0])
    }

    /// Computes some elements again, in f64.
    fn check(&self, run: &Run<'_>) -> Result<(), Trouble> {
        let edge = u64::from(self.edge);
        let words = self.c.bytes / 4;
        let mut result = vec![0_u32; words];
        run.gpu.get(&mut result, self.c)?;
        for number in 0..CHECKED {
            let (row, column) =
                (u64::from(twin::pattern(7, number)) % edge, u64::from(twin::pattern(8, number)) % edge);
            let (mut expected, mut scale) = (0.0, 0.0);
            for k in 0..edge {
                let right = if self.kind.bytes.0 == 2 { column * edge + k } else { k * edge + column };
                let product = self.element(1, row * edge + k) * self.element(2, right);
                expected += product;
                scale += product.abs();
            }
            let at = (row * edge + column) as usize;
            let got = if self.kind.bytes.1 == 8 {
                f64::from_bits(u64::from(result[2 * at]) | u64::from(result[2 * at + 1]) << 32)
            } else {
                f64::from(f32::from_bits(result[at]))
            };
            // Not-a-number is no small error, so the comparison is for what is right.
            let right = (got - expected).abs() <= 1e-3 * scale;
            if !right {
                let what = format!("element ({row}, {column}) of a {} product is {got:e}", self.kind.name);
                return Err(Trouble::Failed(format!("GPU {}: {what}, not {expected:e}", run.gpu.index)));
            }
        }
        Ok(())
    }

    /// Element number `at` of the operand `seed`, as `fill_bf16` wrote it.
    fn element(&self, seed: u32, at: u64) -> f64 {
        match self.kind.bytes.0 {
            2 => {
                let word = twin::bf16_word(seed, at / 2);
                f64::from(f32::from_bits((word >> (16 * (at % 2))) << 16))
            }
            4 => f64::from(f32::from_bits(twin::bf16_word(seed, at))),
            _ => {
                let (low, high) = (twin::bf16_word(seed, 2 * at), twin::bf16_word(seed, 2 * at + 1));
                f64::from_bits(u64::from(low) | u64::from(high) << 32)
            }
        }
    }
}
