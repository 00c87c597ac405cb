//! How fast all GPUs of a node add up what each has, by muster's own kernels over peer access; every sum is checked.
//!
//! Counted is the bus bandwidth, 2(n-1)/n of the bytes over the time, which does not depend on the number of GPUs n.

use super::links;
use super::node::{Node, fill, meet, wait};
use super::pages::SHIFT;
use crate::driver::{Buffer, Gpu, Trouble};
use crate::parallel::{Direct, fill_summands, wrong_sums};

const SEED: u32 = 0xa11;
/// Bytes that each GPU brings, by profile, and what that is called.
pub(super) const SIZES: [&[(usize, &str)]; 4] = [
    &[(8 << 10, "8KiB")],
    &[(16 << 20, "16MiB"), (256 << 20, "256MiB")],
    &[(1 << 20, "1MiB"), (16 << 20, "16MiB"), (256 << 20, "256MiB"), (1 << 30, "1GiB")],
    &[(1 << 20, "1MiB"), (16 << 20, "16MiB"), (256 << 20, "256MiB"), (1 << 30, "1GiB"), (4 << 30, "4GiB")],
];

/// All GPUs with what they bring, and where the sum goes.
struct Group {
    ends: Vec<(Buffer, Buffer)>,
    sum: Direct,
    /// Elements of 16 bytes that each GPU sums.
    chunk: u64,
    /// Parts of a chunk that are checked by a block each.
    pages: usize,
}

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    let gpus = node.gpus;
    let reach = links::open(node)?;
    let closed = reach.iter().enumerate().find(|(_, open)| open.len() + 1 < gpus.len());
    if let Some((index, _)) = closed {
        return Err(Trouble::Absent(format!("GPU {index} has no direct way to all others")));
    }
    let free = gpus.iter().try_fold(usize::MAX, |least, gpu| gpu.free().map(|free| least.min(free)))?;
    let sizes: Vec<(usize, &str)> =
        SIZES[node.profile as usize].iter().copied().filter(|(bytes, _)| *bytes < free / 3).collect();
    for (part, (bytes, name)) in sizes.iter().enumerate() {
        let group = Group::new(gpus, *bytes)?;
        group.measure(node, name, (part, sizes.len()))?;
    }
    Ok(())
}

impl Group {
    fn new(gpus: &[Gpu], bytes: usize) -> Result<Self, Trouble> {
        let chunk = (bytes / 16).div_ceil(gpus.len()) as u64;
        let pages = chunk.div_ceil(1 << (SHIFT - 4)) as usize;
        let chunk = chunk.next_multiple_of(pages as u64);
        let bytes = chunk as usize * gpus.len() * 16;
        let ends = gpus.iter().map(|gpu| Ok((gpu.buffer(bytes)?, gpu.buffer(bytes)?)));
        let ends = ends.collect::<Result<Vec<(Buffer, Buffer)>, Trouble>>()?;
        let (inputs, outputs): (Vec<u64>, Vec<u64>) = ends.iter().map(|(i, o)| (i.address(), o.address())).unzip();
        let sum = Direct::new(gpus, (&inputs, &outputs), chunk)?;
        for (rank, (gpu, (input, _))) in gpus.iter().zip(&ends).enumerate() {
            fill_summands(gpu, (input.address(), bytes), (SEED, rank))?;
        }
        wait(gpus)?;
        Ok(Self { ends, sum, chunk, pages })
    }

    fn measure(&self, node: &mut Node<'_>, name: &str, part: (usize, usize)) -> Result<(), Trouble> {
        let gpus = node.gpus;
        let mut wrong = None;
        let mut batch = |count: u32| {
            gpus.iter().zip(&self.ends).try_for_each(|(gpu, (_, output))| fill(gpu, output, !SEED))?;
            wait(gpus)?;
            let ms = gpus[0].timed(&mut || {
                meet(gpus)?;
                (0..count).try_for_each(|_| self.sum.start(gpus))
            });
            let ms = ms.and_then(|ms| wait(gpus).map(|()| ms)).map_err(|trouble| trouble.about("all-reduce"))?;
            if wrong.is_none() {
                let ends: Vec<(&Gpu, u64)> =
                    gpus.iter().zip(&self.ends).map(|(gpu, (_, output))| (gpu, output.address())).collect();
                wrong = wrong_sums(&ends, (self.chunk as usize, self.pages), SEED)?;
            }
            Ok(ms)
        };
        let (times, warmup) = node.all().times(&format!("all-reduce of {name}"), part, &mut batch)?;
        if let Some(wrong) = wrong {
            node.blame(format!("all-reduce of {name}: {}", wrong.of_own_kernels()));
        }
        let count = gpus.len() as f64;
        let bytes = self.ends[0].0.bytes as f64 * 2.0 * (count - 1.0) / count;
        let values = times.into_iter().map(|ms| bytes / (ms * 1e-3)).collect();
        node.all().tell((name.to_owned(), gpus[0].engine.to_owned()), values, warmup)
    }
}
