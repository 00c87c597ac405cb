//! What all GPUs add up beside computing: whole numbers, so that every sum has one right value in any order.

use super::super::node::{fill, wait};
use super::super::pages::SHIFT;
use super::super::together::{Joint, Way};
use crate::driver::{Buffer, Gpu, Trouble};
use crate::parallel::{fill_summands, wrong_sums};

/// Seed of what is summed.
const SUM: u32 = 0xc2;

/// What all GPUs add up, again and again.
pub(super) struct Message<'a> {
    ends: Vec<(Buffer, Buffer)>,
    /// Elements of 16 bytes for each GPU, and in how many parts they are checked.
    chunk: usize,
    pages: usize,
    pub(super) joint: Joint<'a>,
}

impl<'a> Message<'a> {
    pub(super) fn new(gpus: &[Gpu], way: &'a Way, bytes: usize) -> Result<Self, Trouble> {
        let chunk = (bytes / 16).div_ceil(gpus.len());
        let pages = chunk.div_ceil(1 << (SHIFT - 4));
        let chunk = chunk.next_multiple_of(pages);
        let bytes = chunk * gpus.len() * 16;
        let ends = gpus.iter().map(|gpu| Ok((gpu.buffer(bytes)?, gpu.buffer(bytes)?)));
        let ends = ends.collect::<Result<Vec<(Buffer, Buffer)>, Trouble>>()?;
        for (rank, (gpu, (input, _))) in gpus.iter().zip(&ends).enumerate() {
            fill_summands(gpu, (input.address(), bytes), (SUM, rank))?;
        }
        wait(gpus)?;
        let places = ends.iter().map(|(input, output)| (input.address(), output.address())).collect();
        Ok(Self { joint: Joint::sum(way, gpus, places, bytes)?, ends, chunk, pages })
    }

    /// Results in which nothing is left of what came before.
    pub(super) fn clear(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        gpus.iter().zip(&self.ends).try_for_each(|(gpu, (_, output))| fill(gpu, output, !SUM))?;
        wait(gpus)
    }

    /// What is wrong with the sums.
    pub(super) fn wrong(&self, gpus: &[Gpu], way: &Way) -> Result<Option<String>, Trouble> {
        let outputs = gpus.iter().zip(&self.ends).map(|(gpu, (_, output))| (gpu, output.address()));
        let found = wrong_sums(&outputs.collect::<Vec<_>>(), (self.chunk, self.pages), SUM)?;
        Ok(found.map(|wrong| match way {
            Way::Own => wrong.of_own_kernels(),
            Way::Nccl(_) => wrong.of_anybody(),
        }))
    }
}
