//! Sums of known numbers: what each GPU brings, and who holds anything but the sum.

use super::wide;
use crate::driver::{Arg, Gpu, Shape, Trouble};

/// Fills so many bytes from an address on with what GPU number `rank` brings.
///
/// # Errors
/// When the driver does not take it.
pub fn fill_summands(gpu: &Gpu, (at, bytes): (u64, usize), (seed, rank): (u32, usize)) -> Result<(), Trouble> {
    let arguments = [Arg::U64(at), Arg::U64(bytes as u64 / 16), Arg::U32(seed), Arg::U32(rank as u32)];
    gpu.launch(gpu.function("fill_summands", 0)?, wide(gpu), &arguments)
}

/// Wrong sums on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Wrong {
    /// Whose chunk it is.
    owner: usize,
    /// Who holds it.
    rank: usize,
    words: u32,
    bits: u32,
}

impl Wrong {
    /// Where they come from, when each GPU sums a chunk and fetches the others'.
    #[must_use]
    pub fn of_own_kernels(&self) -> String {
        let Self { owner, rank, words, bits } = self;
        let whose = if owner == rank {
            format!("GPU {owner} holds wrong sums of its own chunk")
        } else {
            format!("GPU {owner} to GPU {rank}")
        };
        format!("{whose}: {words} wrong words, bits {bits:#010x}")
    }

    /// Who holds them, when nothing is known of the way.
    #[must_use]
    pub fn of_anybody(&self) -> String {
        format!("GPU {} holds {} wrong sums, bits {:#010x}", self.rank, self.words, self.bits)
    }
}

/// The first wrong sums in what each GPU holds; the chunk of each has so many elements of 16 bytes in so many pages.
///
/// # Errors
/// With the driver's words.
pub fn wrong_sums(ends: &[(&Gpu, u64)], (chunk, pages): (usize, usize), seed: u32) -> Result<Option<Wrong>, Trouble> {
    let count = ends.len();
    // By who summed the chunk, then by who holds it: wrong words, all their wrong bits.
    let mut found = vec![vec![[0_u32; 2]; count]; count];
    for (rank, (gpu, output)) in ends.iter().enumerate() {
        for (page, record) in sums(gpu, *output, (count, pages * count, chunk / pages), seed)?.into_iter().enumerate() {
            let [words, bits] = &mut found[page / pages][rank];
            (*words, *bits) = (*words + record[0], *bits | record[1]);
        }
    }
    let owners = found.into_iter().enumerate();
    let first = |(owner, held): (usize, Vec<[u32; 2]>)| {
        // Who summed it wrongly comes before those who took it over.
        let mut ranks = std::iter::once(owner).chain(0..count);
        ranks.find(|rank| held[*rank][0] > 0).map(|rank| (owner, rank, held[rank]))
    };
    Ok(owners.into_iter().find_map(first).map(|(owner, rank, [words, bits])| Wrong { owner, rank, words, bits }))
}

/// The first GPU whose `vectors` elements of 16 bytes are not the sums over `count` GPUs.
///
/// # Errors
/// With the driver's words.
pub(super) fn wrong_alike(
    ends: &[(&Gpu, u64)],
    vectors: usize,
    (count, seed): (usize, u32),
) -> Result<Option<Wrong>, Trouble> {
    for (rank, (gpu, output)) in ends.iter().enumerate() {
        let [words, bits, ..] = sums(gpu, *output, (count, 1, vectors), seed)?.first().copied().unwrap_or_default();
        if words > 0 {
            return Ok(Some(Wrong { owner: rank, rank, words, bits }));
        }
    }
    Ok(None)
}

/// What `check_sums` wrote about each page of so many elements, of sums over `count` GPUs.
fn sums(
    gpu: &Gpu,
    output: u64,
    (count, pages, vectors): (usize, usize, usize),
    seed: u32,
) -> Result<Vec<[u32; 4]>, Trouble> {
    let out = gpu.buffer(pages * 16)?;
    let shape = Shape { grid: ((2 * gpu.sms).min(pages as u32), 1), threads: gpu.threads.min(256), shared: 0 };
    let number = |number: usize| Arg::U32(number as u32);
    let arguments = [Arg::U64(output), number(pages), number(vectors), Arg::U32(seed), number(count), Arg::At(&out)];
    gpu.launch(gpu.function("check_sums", 0)?, shape, &arguments)?;
    let mut records = vec![0; pages * 4];
    gpu.get(&mut records, &out)?;
    Ok(records.as_chunks().0.to_vec())
}
