//! How fast all GPUs of a node add up what each has, by muster's own kernels over peer access; every sum is checked.
//!
//! Two-shot: each GPU sums its chunk of all inputs, then fetches the others' chunks. Counted is the bus bandwidth,
//! 2(n-1)/n of the bytes over the time, which does not depend on the number of GPUs n.

use muster_wire::Unit;

use super::links;
use super::node::{Node, fill, wait, wide};
use super::pages::SHIFT;
use super::run::Metric;
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};

const SEED: u32 = 0xa11;
/// Bytes that each GPU brings, by profile, and what that is called.
const SIZES: [&[(usize, &str)]; 4] = [
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
    pages: u64,
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
        let pages = chunk.div_ceil(1 << (SHIFT - 4));
        let chunk = chunk.next_multiple_of(pages);
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
                self.meet()?;
                (0..count).try_for_each(|_| self.once())
            });
            let ms = ms.and_then(|ms| wait(gpus).map(|()| ms)).map_err(|trouble| trouble.about("all-reduce"))?;
            if wrong.is_none() {
                wrong = self.wrong()?;
            }
            Ok(ms)
        };
        let (times, warmup) = node.of(0).times(&format!("and all others: all-reduce of {name}"), part, &mut batch)?;
        if let Some(wrong) = wrong {
            node.blame(format!("all-reduce of {name}: {wrong}"));
        }
        let count = gpus.len() as f64;
        let bytes = self.members[0].input.bytes as f64 * 2.0 * (count - 1.0) / count;
        let values = times.into_iter().map(|ms| bytes / (ms * 1e-3)).collect();
        let metric = Metric::rate("", Unit::BytesPerSec);
        node.of(0).tell((name.to_owned(), gpus[0].engine.to_owned()), metric, values, warmup);
        Ok(())
    }

    /// Puts one all-reduce on everybody's stream.
    fn once(&self) -> Result<(), Trouble> {
        let count = Arg::U32(self.members.len() as u32);
        for (rank, m) in self.members.iter().enumerate() {
            let (begin, chunk) = (Arg::U64(rank as u64 * self.chunk), Arg::U64(self.chunk));
            m.gpu.launch(m.reduce, wide(m.gpu), &[Arg::At(&m.output), Arg::At(&m.inputs), count, begin, chunk])?;
        }
        self.meet()?;
        for (rank, m) in self.members.iter().enumerate() {
            let arguments =
                [Arg::At(&m.output), Arg::At(&m.outputs), count, Arg::U32(rank as u32), Arg::U64(self.chunk)];
            let wide = wide(m.gpu);
            // At least one block for each peer.
            let blocks = wide.grid.0.max(self.members.len() as u32);
            m.gpu.launch(m.gather, Shape { grid: (blocks, 1), ..wide }, &arguments)?;
        }
        // The next one writes what peers may still be reading.
        self.meet()
    }

    /// Nobody goes on before everybody is here.
    fn meet(&self) -> Result<(), Trouble> {
        let (first, others) = (self.members[0].gpu, &self.members[1..]);
        others.iter().try_for_each(|m| m.gpu.mark().and_then(|()| first.follow(m.gpu)))?;
        first.mark()?;
        others.iter().try_for_each(|m| m.gpu.follow(first))
    }

    /// The first sum that is wrong, and whose it is.
    fn wrong(&self) -> Result<Option<String>, Trouble> {
        let count = self.members.len();
        // By who summed the chunk, then by who holds it: wrong words, all their wrong bits.
        let mut found = vec![vec![[0_u32; 2]; count]; count];
        for (rank, m) in self.members.iter().enumerate() {
            for (owner, record) in self.sums(m)? {
                found[owner][rank][0] += record[0];
                found[owner][rank][1] |= record[1];
            }
        }
        let told = |what: String, [words, bits]: [u32; 2]| format!("{what}: {words} wrong words, bits {bits:#010x}");
        for (owner, held) in found.iter().enumerate() {
            if held[owner][0] > 0 {
                return Ok(Some(told(format!("GPU {owner} sums wrongly what it reads from its peers"), held[owner])));
            }
            if let Some(rank) = held.iter().position(|record| record[0] > 0) {
                return Ok(Some(told(format!("GPU {owner} to GPU {rank}, read by kernels of GPU {rank}"), held[rank])));
            }
        }
        Ok(None)
    }

    /// What `check_sums` wrote about each page of a GPU's result, with the GPU that summed it.
    fn sums(&self, m: &Member<'_>) -> Result<Vec<(usize, [u32; 4])>, Trouble> {
        let each = self.pages as usize;
        let count = each * self.members.len();
        let out = m.gpu.buffer(count * 16)?;
        let shape = Shape { grid: ((2 * m.gpu.sms).min(count as u32), 1), threads: m.gpu.threads.min(256), shared: 0 };
        let (pages, vectors) = (Arg::U32(count as u32), Arg::U32((self.chunk / self.pages) as u32));
        let (seed, ranks) = (Arg::U32(SEED), Arg::U32(self.members.len() as u32));
        let check = m.gpu.function("check_sums", 0)?;
        m.gpu.launch(check, shape, &[Arg::At(&m.output), pages, vectors, seed, ranks, Arg::At(&out)])?;
        let mut records = vec![0; count * 4];
        m.gpu.get(&mut records, &out)?;
        let records: Vec<[u32; 4]> = records.as_chunks().0.to_vec();
        Ok(records.into_iter().enumerate().map(|(page, record)| (page / each, record)).collect())
    }
}
