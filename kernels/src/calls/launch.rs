//! A call as kernels of `function.cu`, before anybody knows where memory lies.

use super::Precision;

/// Rows and columns of a tile.
const SIDE: u32 = 64;
/// As many blocks keep a GPU busy.
const BLOCKS: u32 = 256;
/// Fewest elements along k of a share.
const LEAST: u32 = 256;
/// Most blocks of a kernel whose threads take one element after the other.
const WIDE: u64 = 4096;

/// What a kernel reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The left operand.
    A,
    /// The right one.
    B,
    /// The result.
    C,
    /// Sums of shares.
    Parts,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// A float.
    F32(f32),
    /// An address.
    At(Place),
    /// None.
    Null,
}

/// A kernel to be started with 256 threads a block and no dynamic shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Its name.
    pub kernel: &'static str,
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// In order.
    pub args: Vec<Word>,
}

/// A call as kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// In order.
    pub launches: Vec<Launch>,
    /// Bytes of [`Place::Parts`].
    pub parts: u64,
}

/// How a result is cut up: by its shape alone, so that sums are added in one order everywhere.
pub(super) struct Cut {
    /// Tiles side by side.
    pub(super) across: u32,
    /// Tiles one below the other.
    pub(super) down: u32,
    /// Shares of the sums.
    pub(super) shares: u32,
    /// Elements along k of a share.
    pub(super) per: u32,
}

impl Cut {
    /// Of a row-major result with sums over `deep` products.
    pub(super) fn of(precision: Precision, (rows, columns): (u32, u32), deep: u32, batch: u32) -> Self {
        let (across, down) = (columns.div_ceil(SIDE), rows.div_ceil(SIDE));
        let most = (BLOCKS / (across * down * batch)).clamp(1, (deep / LEAST).max(1));
        // Sums of complex numbers stay together: those of the list are short.
        let most = if precision == Precision::Complex { 1 } else { most };
        let slice = if precision == Precision::Fp16 { 32 } else { 16 };
        let per = deep.div_ceil(most).next_multiple_of(slice);
        Self { across, down, shares: deep.div_ceil(per), per }
    }

    /// Where sums go: nowhere but to the result where there is one share.
    pub(super) const fn parts(&self) -> Word {
        if self.shares == 1 { Word::Null } else { Word::At(Place::Parts) }
    }

    /// `launch`, and where there are shares the kernel that adds them up to `size` numbers.
    pub(super) fn program(&self, precision: Precision, launch: Launch, size: u64, factors: [Word; 2]) -> Program {
        if self.shares == 1 {
            return Program { launches: vec![launch], parts: 0 };
        }
        let kernel = if precision == Precision::Fp16 { "shares_half" } else { "shares_f32" };
        let blocks = size.div_ceil(256).min(WIDE) as u32;
        let all = [Word::At(Place::C), Word::At(Place::Parts), Word::U64(size), Word::U32(self.shares)];
        let sum = Launch { kernel, grid: (blocks, 1), args: all.into_iter().chain(factors).collect() };
        Program { launches: vec![launch, sum], parts: u64::from(self.shares) * size * 4 }
    }
}
