//! A kernel with its arguments, before anybody knows where memory lies.

use muster_tape::Span;

use super::Unfit;

/// Threads of a block of most kernels.
pub(super) const THREADS: u32 = 256;
/// Most blocks of a kernel whose threads take one element after the other.
const BLOCKS: u64 = 4096;

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// A float.
    F32(f32),
    /// A double.
    F64(f64),
    /// No address.
    Null,
    /// Address of an element of the tape.
    Tape(usize),
    /// Address of a byte of the memory beside the tape.
    Space(usize),
    /// Address of a byte of the clock: see [`Clock`].
    Clock(usize),
}

/// What outlives steps beside the tape, as the kernels lay it out: two doubles, two floats, the loss.
#[derive(Debug)]
pub struct Clock;

impl Clock {
    /// Bytes.
    pub const BYTES: usize = 32;
    /// Where the loss of the last step stands.
    pub const LOSS: usize = 24;
    /// Before the first step.
    pub const START: [f64; 4] = [1.0, 1.0, 0.0, 0.0];
}

/// A kernel to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Its name.
    pub kernel: &'static str,
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// In order.
    pub args: Vec<Word>,
}

impl Launch {
    /// A kernel whose threads take `n` elements in turn.
    pub(super) fn over(kernel: &'static str, n: usize, args: Vec<Word>) -> Self {
        let blocks = (n as u64).div_ceil(u64::from(THREADS)).clamp(1, BLOCKS) as u32;
        Self { kernel, grid: (blocks, 1), threads: THREADS, shared: 0, args }
    }

    /// A kernel with `blocks` of the usual size.
    pub(super) fn blocks(kernel: &'static str, blocks: usize, args: Vec<Word>) -> Result<Self, Unfit> {
        Ok(Self { kernel, grid: (number(blocks)?, 1), threads: THREADS, shared: 0, args })
    }
}

/// Address of a span of the tape.
pub(super) const fn at(span: Span) -> Word {
    Word::Tape(span.offset)
}

/// As the kernels count.
pub(super) fn number(of: usize) -> Result<u32, Unfit> {
    // Some kernels add one block's elements before they compare.
    let fits = u32::try_from(of).ok().filter(|n| *n <= u32::MAX / 2);
    fits.ok_or_else(|| Unfit(format!("{of} is more than the kernels can count")))
}

/// A count as an argument.
pub(super) fn count(of: usize) -> Result<Word, Unfit> {
    number(of).map(Word::U32)
}
