//! Training steps on a GPU: a tape becomes a list of kernels, and the list is run step by step.
//!
//! Memory is that of the tape, in f32, whatever the products are computed in: what the CPU keeps at an offset, the GPU keeps
//! there too. No kernel adds in an order that hardware chooses, so a step of one start gives one loss, to the bit, on every
//! GPU that runs the same code.

mod attention;
mod convolve;
mod fill;
mod image;
mod launch;
mod library;
mod lower;
mod pieces;
mod product;
mod products;
mod ready;
mod replica;
mod rows;
mod trainer;
mod with;

use muster_tape::{Kind, Tape};

use crate::driver::{Gpu, Trouble};
pub use launch::{Clock, Launch, Word};
pub use library::LibraryProduct;
pub use pieces::Pieces;
pub use products::{Factors, Products};
pub use replica::{Plan, Replica};
pub use trainer::Trainer;
pub use with::With;

/// Of weights and data: fixed, so that every GPU and every run does the same.
pub const SEED: u64 = 0x6d75_7374_6572;
/// Free memory is never taken up to the last byte.
const SHARE: f64 = 0.95;

/// Why `gpu` has no room for so many bytes.
pub(crate) fn lacking(needed: usize, gpu: &Gpu) -> Result<Option<String>, Trouble> {
    let free = gpu.free()?;
    let fits = (needed as f64) < SHARE * free as f64;
    Ok((!fits).then(|| format!("needs {}, and {} are free", room(needed), room(free))))
}

/// Bytes in words.
fn room(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}

/// What products, attention included, are computed in; sums, and everything else, are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Operands rounded to bf16, weights kept in f32.
    Bf16,
    /// Operands as they are, on the ordinary units.
    Fp32,
}

impl Precision {
    /// As in names of metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp32 => "fp32",
        }
    }
}

/// How a tape is run.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Of products.
    pub precision: Precision,
    /// Whether the GPU has products of warpgroups, and the kernel for them was loaded.
    pub wgmma: bool,
    /// Multiprocessors: blocks of kernels that stay until all is done. Changes no result.
    pub sms: u32,
    /// Whether cuBLASLt does the matrix products, attention excepted.
    pub library: bool,
}

/// One thing that is put on the GPU.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A kernel of muster's.
    Kernel(Launch),
    /// A product by cuBLASLt.
    Library(LibraryProduct),
}

impl How {
    /// As `gpu` is able to.
    ///
    /// # Errors
    /// The driver's.
    pub fn on(gpu: &Gpu, precision: Precision) -> Result<Self, Trouble> {
        Ok(Self { precision, wgmma: gpu.has("product_wgmma")?, sms: gpu.sms, library: false })
    }
}

/// A tape as kernels.
#[derive(Clone, Debug)]
pub struct Program {
    /// Fill what a step finds: weights, moments, data.
    pub setup: Vec<Launch>,
    /// One step, in order.
    pub step: Vec<Part>,
    /// Bytes of memory beside the tape's and the clock.
    pub space: usize,
}

/// Why a tape cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

impl Program {
    /// The kernels of `tape`, with weights and data from `seed`.
    ///
    /// # Errors
    /// When a shape is more than the kernels can do.
    pub fn new(tape: &Tape, seed: u64, how: How) -> Result<Self, Unfit> {
        let mut program = Self { setup: fill::launches(tape, seed), step: Vec::new(), space: 0 };
        if tape.ops.iter().any(|op| matches!(op.kind, Kind::AdamW { .. })) {
            program.step.push(Part::Kernel(fill::advance()));
        }
        for op in &tape.ops {
            let (parts, space) = match op.kind {
                Kind::Gemm(gemm) if how.library => library::parts(op, gemm, how.precision)?,
                _ => {
                    let (launches, space) = lower::launches(op, how)?;
                    (launches.into_iter().map(Part::Kernel).collect(), space)
                }
            };
            program.step.extend(parts);
            program.space = program.space.max(space);
        }
        program.step.push(Part::Kernel(fill::keep_loss(tape.loss)));
        Ok(program)
    }
}
