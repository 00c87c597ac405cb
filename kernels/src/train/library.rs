//! Matrix products that cuBLASLt does. What it does not do of them stays with muster's own kernels: operands are packed to bf16
//! before, and GELU is taken after.

use muster_tape::{Gemm, Op, Start};

use super::launch::{Launch, Word, at, count};
use super::product::packs;
use super::{Part, Precision, Unfit};
use crate::cublaslt::{Operand, Product, SPACE};
use crate::twin::Number;

/// Rows of packed operands come in so many, and their elements along k begin at a multiple of as many.
const PACKED: usize = 64;
/// Elements along k of a packed operand that are multiplied come in so many, those past its own being zeros: 16 bytes.
const WHOLE: usize = 8;

/// A product of the tape for the library, before anybody knows where memory lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LibraryProduct {
    /// Its shape. The tape's matrices lie row by row, which to the library is the transpose, so its left operand is the tape's
    /// second one.
    pub product: Product,
    /// Left operand.
    pub left: Word,
    /// Right operand.
    pub right: Word,
    /// Result.
    pub result: Word,
    /// Bias of each row of the result, if it has one.
    pub bias: Option<Word>,
    /// The library's workspace.
    pub work: Word,
}

/// The parts of a product, and bytes of memory that they need beside the tape's.
pub(super) fn parts(op: &Op, gemm: Gemm, precision: Precision) -> Result<(Vec<Part>, usize), Unfit> {
    let (packs, space) = match precision {
        Precision::Fp32 => (Vec::new(), 0),
        Precision::Bf16 => {
            let (packs, space) = packs(op, gemm, (PACKED, PACKED), false)?;
            (packs.to_vec(), space)
        }
    };
    let [right, left] = match packs.as_slice() {
        [a, b] => [a.args[0], b.args[0]],
        _ => [at(op.reads[0]), at(op.reads[1])],
    };
    let (product, result) = (product(gemm, precision), at(op.writes[0]));
    let bias = (gemm.start == Start::Bias).then(|| at(op.reads[2]));
    let mut all: Vec<Part> = packs.into_iter().map(Part::Kernel).collect();
    all.push(Part::Library(LibraryProduct { product, left, right, result, bias, work: Word::Space(space) }));
    if gemm.gelu {
        // The sum of one share where it lies, which leaves it as it is.
        let size = [count(gemm.m)?, count(gemm.n)?, Word::U32(1), Word::U32(0)];
        let args = [result, at(op.writes[1]), Word::Null, result].into_iter().chain(size).collect();
        all.push(Part::Kernel(Launch::over("product_sum", gemm.m * gemm.n, args)));
    }
    Ok((all, space + SPACE))
}

fn product(gemm: Gemm, precision: Precision) -> Product {
    let Gemm { m, n, k, a_transposed, b_transposed, .. } = gemm;
    let operand = |transposed, pitch: usize| Operand { transposed, pitch: pitch as u64 };
    let (number, depth, left, right) = match precision {
        Precision::Bf16 => {
            let pitch = k.next_multiple_of(PACKED);
            (Number::Bf16, k.next_multiple_of(WHOLE), operand(true, pitch), operand(false, pitch))
        }
        Precision::Fp32 => {
            let left = operand(b_transposed, if b_transposed { k } else { n });
            (Number::Fp32, k, left, operand(a_transposed, if a_transposed { m } else { k }))
        }
    };
    let add = gemm.start == Start::Add;
    Product { number, rows: n as u64, columns: m as u64, depth: depth as u64, left, right, add }
}
