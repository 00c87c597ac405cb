//! What cuBLASLt is asked to multiply. Matrices lie column by column, as the library sees them.

use crate::twin::Number;

/// One operand as it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Whether what lies there is the transpose of what is multiplied.
    pub transposed: bool,
    /// Elements from one column of what lies there to the next.
    pub pitch: u64,
}

/// A product: result = left * right, or with `add` result += left * right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Numbers of the operands; integers give integers, f64 gives f64, everything else f32.
    pub number: Number,
    /// Rows of the result, whose columns follow each other without gaps.
    pub rows: u64,
    /// Columns of the result.
    pub columns: u64,
    /// Products of which an element is the sum.
    pub depth: u64,
    /// `rows` x `depth`.
    pub left: Operand,
    /// `depth` x `columns`.
    pub right: Operand,
    /// Whether what the result holds is added to.
    pub add: bool,
}

/// Where a product finds everything, by addresses on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Left operand.
    pub left: u64,
    /// Right operand.
    pub right: u64,
    /// Result.
    pub result: u64,
    /// One number a row of the result, added to all of its columns.
    pub bias: Option<u64>,
}

impl Product {
    /// A product of square matrices, of every row of the one with every row of the other where these lie row by row.
    #[must_use]
    pub fn square(number: Number, edge: u32) -> Self {
        let edge = u64::from(edge);
        let operand = |transposed| Operand { transposed, pitch: edge };
        let (left, right) = (operand(true), operand(false));
        Self { number, rows: edge, columns: edge, depth: edge, left, right, add: false }
    }

    /// Rows, columns and pitch of left operand, right operand and result as they lie in memory.
    pub(super) const fn layouts(&self) -> [(u64, u64, u64); 3] {
        const fn lies((rows, columns): (u64, u64), operand: Operand) -> (u64, u64, u64) {
            if operand.transposed { (columns, rows, operand.pitch) } else { (rows, columns, operand.pitch) }
        }
        let Self { rows, columns, depth, left, right, .. } = *self;
        [lies((rows, depth), left), lies((depth, columns), right), (rows, columns, rows)]
    }
}

/// To how many bytes an address is aligned, at most 256: for more no library asks.
pub(super) const fn alignment(address: u64) -> u32 {
    let zeros = address.trailing_zeros();
    1 << if zeros < 8 { zeros } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_operand_lies_the_other_way_round() {
        let left = Operand { transposed: true, pitch: 64 };
        let right = Operand { transposed: false, pitch: 72 };
        let product = Product { number: Number::Bf16, rows: 3, columns: 5, depth: 60, left, right, add: false };
        assert_eq!(product.layouts(), [(60, 3, 64), (60, 5, 72), (3, 5, 3)]);
    }

    #[test]
    fn an_address_is_aligned_to_its_last_bit_and_to_no_more_than_256_bytes() {
        assert_eq!([0x1004, 0x1040, 0x1100, 0x8000, 0].map(alignment), [4, 64, 256, 256, 256]);
    }
}
