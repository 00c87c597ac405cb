//! How fast all GPUs of a node add up what each has, by muster's own kernels over peer access; every sum is checked.
//!
//! Two-shot: each GPU sums its chunk of all inputs, then fetches the others' chunks. Counted is the bus bandwidth,
//! 2(n-1)/n of the bytes over the time, which does not depend on the number of GPUs n.

use super::links;
use super::node::{Node, fill, meet, wait, wide};
use super::pages::SHIFT;
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};

const SEED: u32 = 0xa11;
/// Bytes that each GPU brings, by profile, and what that is called.
pub(super) const SIZES: [&[(usize, &str)]; 4] = [
    &[(8 << 10, "8KiB")],
    &[(16 << 20, "16MiB"), (256 << 20, "256MiB")],
    &[(1 << 20, "1MiB"), (16 << 20, "16MiB"), (256 << 20, "256MiB"), (1 << 30, "1GiB")],
    &[(1 << 20, "1MiB"), (16 << 20, "16MiB"), (256 << 20, "256MiB"), (1 << 30, "1GiB"), (4 << 30, "4GiB")],
];

/// One GPU's part.
struct Member<'a> {
    gpu: &'a Gpu,
    input: Buffer,
    output: Buffer,
    /// Addresses of everybody's inputs and outputs.
    inputs: Buffer,
    outputs: Buffer,
    reduce: Function,
    gather: Function,
}

struct Group<'a> {
    members: Vec<Member<'a>>,
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

impl<'a> Group<'a> {
    fn new(gpus: &'a [Gpu], bytes: usize) -> Result<Self, Trouble> {
        let chunk = (bytes / 16).div_ceil(gpus.len()) as u64;
        let pages = chunk.div_ceil(1 << (SHIFT - 4)) as usize;
        let chunk = chunk.next_multiple_of(pages as u64);
        let bytes = chunk as usize * gpus.len() * 16;
        let member = |gpu: &'a Gpu| {
            let table = || gpu.buffer(gpus.len() * 8);
            let (input, output, inputs, outputs) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?, table()?, table()?);
            let (reduce, gather) = (gpu.function("reduce_peers", 0)?, gpu.function("gather_peers", 0)?);
            Ok(Member { gpu, input, output, inputs, outputs, reduce, gather })
        };
        let members = gpus.iter().map(member).collect::<Result<Vec<Member<'_>>, Trouble>>()?;
        let inputs: Vec<u64> = members.iter().map(|m| m.input.address()).collect();
        let outputs: Vec<u64> = members.iter().map(|m| m.output.address()).collect();
        for (rank, member) in members.iter().enumerate() {
            member.gpu.put(&member.inputs, &inputs)?;
            member.gpu.put(&member.outputs, &outputs)?;
            let vectors = Arg::U64(member.input.bytes as u64 / 16);
            let arguments = [Arg::At(&member.input), vectors, Arg::U32(SEED), Arg::U32(rank as u32)];
            member.gpu.launch(member.gpu.function("fill_summands", 0)?, wide(member.gpu), &arguments)?;
        }
        wait(gpus)?;
        Ok(Self { members, chunk, pages })
    }

    fn measure(&self, node: &mut Node<'_>, name: &str, part: (usize, usize)) -> Result<(), Trouble> {
        let gpus = node.gpus;
        let mut wrong = None;
        let mut batch = |count: u32| {
            self.members.iter().try_for_each(|m| fill(m.gpu, &m.output, !SEED))?;
            wait(gpus)?;
            let ms = gpus[0].timed(&mut || {
                meet(gpus)?;
                (0..count).try_for_each(|_| self.once(gpus))
            });
            let ms = ms.and_then(|ms| wait(gpus).map(|()| ms)).map_err(|trouble| trouble.about("all-reduce"))?;
            if wrong.is_none() {
                let ends: Vec<(&Gpu, &Buffer)> = self.members.iter().map(|m| (m.gpu, &m.output)).collect();
                wrong = wrong_sums(&ends, (self.chunk as usize, self.pages), SEED)?;
            }
            Ok(ms)
        };
        let (times, warmup) = node.all().times(&format!("all-reduce of {name}"), part, &mut batch)?;
        if let Some(Wrong { owner, rank, words, bits }) = wrong {
            let whose = if owner == rank {
                format!("GPU {owner} holds wrong sums of its own chunk")
            } else {
                format!("GPU {owner} to GPU {rank}")
            };
            node.blame(format!("all-reduce of {name}: {whose}: {words} wrong words, bits {bits:#010x}"));
        }
        let count = gpus.len() as f64;
        let bytes = self.members[0].input.bytes as f64 * 2.0 * (count - 1.0) / count;
        let values = times.into_iter().map(|ms| bytes / (ms * 1e-3)).collect();
        node.all().tell((name.to_owned(), gpus[0].engine.to_owned()), values, warmup)
    }

    /// Puts one all-reduce on everybody's stream.
    fn once(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        let count = Arg::U32(self.members.len() as u32);
        for (rank, m) in self.members.iter().enumerate() {
            let (begin, chunk) = (Arg::U64(rank as u64 * self.chunk), Arg::U64(self.chunk));
            m.gpu.launch(m.reduce, wide(m.gpu), &[Arg::At(&m.output), Arg::At(&m.inputs), count, begin, chunk])?;
        }
        meet(gpus)?;
        for (rank, m) in self.members.iter().enumerate() {
            let arguments =
                [Arg::At(&m.output), Arg::At(&m.outputs), count, Arg::U32(rank as u32), Arg::U64(self.chunk)];
            let wide = wide(m.gpu);
            // At least one block for each peer.
            let blocks = wide.grid.0.max(self.members.len() as u32);
            m.gpu.launch(m.gather, Shape { grid: (blocks, 1), ..wide }, &arguments)?;
        }
        // The next one writes what peers may still be reading.
        meet(gpus)
    }
}

/// Wrong sums on a GPU.
pub(super) struct Wrong {
    /// Whose chunk it is.
    owner: usize,
    /// Who holds it.
    pub(super) rank: usize,
    pub(super) words: u32,
    pub(super) bits: u32,
}

/// The first wrong sums in what each GPU holds; the chunk of each has so many elements of 16 bytes in so many pages.
pub(super) fn wrong_sums(
    ends: &[(&Gpu, &Buffer)],
    (chunk, pages): (usize, usize),
    seed: u32,
) -> Result<Option<Wrong>, Trouble> {
    let count = ends.len();
    // By who summed the chunk, then by who holds it: wrong words, all their wrong bits.
    let mut found = vec![vec![[0_u32; 2]; count]; count];
    for (rank, (gpu, output)) in ends.iter().enumerate() {
        for (page, record) in sums(gpu, output, (count, pages * count, chunk / pages), seed)?.into_iter().enumerate() {
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

/// What `check_sums` wrote about each page of so many elements, of sums over `count` GPUs.
fn sums(
    gpu: &Gpu,
    output: &Buffer,
    (count, pages, vectors): (usize, usize, usize),
    seed: u32,
) -> Result<Vec<[u32; 4]>, Trouble> {
    let out = gpu.buffer(pages * 16)?;
    let shape = Shape { grid: ((2 * gpu.sms).min(pages as u32), 1), threads: gpu.threads.min(256), shared: 0 };
    let number = |number: usize| Arg::U32(number as u32);
    let arguments = [Arg::At(output), number(pages), number(vectors), Arg::U32(seed), number(count), Arg::At(&out)];
    gpu.launch(gpu.function("check_sums", 0)?, shape, &arguments)?;
    let mut records = vec![0; pages * 4];
    gpu.get(&mut records, &out)?;
    Ok(records.as_chunks().0.to_vec())
}
