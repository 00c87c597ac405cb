//! Whether GPUs that do the same work have the same right answer, and who has not.

use super::node::wide;
use crate::driver::{Arg, Gpu, Trouble};
use crate::train::Precision;
use crate::twin::{self, Number};

/// Elements of a result that are computed again.
const CHECKED: u64 = 16;

/// Fills so many floats from an address on with numbers of full mantissa, the same on every GPU.
pub(super) fn operand(gpu: &Gpu, (at, floats): (u64, usize), seed: u32) -> Result<(), Trouble> {
    let ((keep, set), pairs) = (Number::Fp32.mask(), Arg::U64(floats as u64 / 2));
    let arguments = [Arg::U64(at), pairs, Arg::U32(seed), Arg::U64(keep), Arg::U64(set)];
    gpu.launch(gpu.function("operand", 0)?, wide(gpu), &arguments)
}

/// Element number `at` of what [`operand`] writes, as a product of this precision takes it.
pub(super) fn element(precision: Precision, seed: u32, at: u64) -> f64 {
    let exact = Number::Fp32.element(seed, at);
    match precision {
        Precision::Fp32 => exact,
        Precision::Bf16 => {
            // To the nearest, ties to even.
            let bits = (exact as f32).to_bits();
            f64::from(f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000))
        }
    }
}

/// A fold of all bits of so many bytes from an address on, which are a multiple of 16.
pub(super) fn fold(gpu: &Gpu, (at, bytes): (u64, usize)) -> Result<u32, Trouble> {
    let out = gpu.buffer(16)?;
    gpu.put(&out, &[0_u32; 4])?;
    let arguments = [Arg::U64(at), Arg::U64(bytes as u64 / 16), Arg::At(&out)];
    gpu.launch(gpu.function("read", 0)?, wide(gpu), &arguments)?;
    let mut words = [0; 1];
    gpu.get(&mut words, &out)?;
    Ok(words[0])
}

/// Which of several GPUs have another digest of `what` than more than half of them; all where no half agrees.
pub(super) fn odd(what: &str, digests: &[u32]) -> Vec<String> {
    let votes = |digest: u32| digests.iter().filter(|other| **other == digest).count();
    let most = digests.iter().copied().find(|digest| 2 * votes(*digest) > digests.len());
    let Some(right) = most else {
        let all: Vec<String> = digests.iter().map(|digest| format!("{digest:08x}")).collect();
        return vec![format!("{what}: GPUs disagree, and no more than half of them agree: {}", all.join(" "))];
    };
    let others = digests.iter().enumerate().filter(|(_, digest)| **digest != right);
    let sentence = |(gpu, digest): (usize, &u32)| {
        format!("GPU {gpu}: {what}: it computes other bits than the other GPUs: {digest:08x}, not {right:08x}")
    };
    others.map(sentence).collect()
}

/// A result of `rows` x `columns` from an address on, and what its elements are: the sum, and the sum of sizes.
pub(super) struct Expected<'a> {
    pub(super) at: u64,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) element: &'a dyn Fn(u64, u64) -> (f64, f64),
    /// Largest error, as a share of the sum of sizes.
    pub(super) tolerance: f64,
}

/// Computes some elements again; the first that is wrong.
pub(super) fn wrong(gpu: &Gpu, what: &str, expected: &Expected<'_>) -> Result<Option<String>, Trouble> {
    for number in 0..CHECKED {
        let random = |seed, below| u64::from(twin::pattern(seed, number)) % below;
        let (row, column) = (random(7, expected.rows), random(8, expected.columns));
        let mut word = [0; 1];
        gpu.get_at(&mut word, expected.at + (row * expected.columns + column) * 4)?;
        let (got, (right, size)) = (f64::from(f32::from_bits(word[0])), (expected.element)(row, column));
        // Not-a-number is no small error, so the comparison is for what is right.
        let fits = (got - right).abs() <= expected.tolerance * size;
        if !fits {
            let place = format!("element ({row}, {column}) of {what}");
            return Ok(Some(format!("GPU {}: {place} is {got:e}, not {right:e}", gpu.index)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_differs_from_the_majority_is_named_and_nobody_is_without_one() {
        assert_eq!(odd("sums", &[7, 7, 7]), Vec::<String>::new());
        let named = odd("sums", &[7, 7, 9, 7]);
        assert_eq!(named, ["GPU 2: sums: it computes other bits than the other GPUs: 00000009, not 00000007"]);
        let all = odd("sums", &[7, 9]);
        assert_eq!(all, ["sums: GPUs disagree, and no more than half of them agree: 00000007 00000009"]);
    }

    #[test]
    fn an_element_in_bf16_is_the_nearest_that_there_is() {
        for at in 0..1000 {
            let [exact, near] = [Precision::Fp32, Precision::Bf16].map(|precision| element(precision, 3, at));
            assert!((near / exact - 1.0).abs() <= 1.0 / 256.0, "{exact} {near}");
            assert_eq!((near as f32).to_bits() & 0xffff, 0);
        }
    }
}
