//! What NCCL makes of the ways between all GPUs of a node, where it is installed; every result is checked.
//!
//! `ib-allreduce` is the same with every way inside the node closed, so that all data goes out by the adapters and comes back.
//!
//! Bus bandwidth as nccl-tests defines it: what the operation says it moves, times 2(n-1)/n for all-reduce and (n-1)/n for
//! the others.

use super::allreduce::SIZES;
use super::node::{Node, fill, meet, wait, wide};
use super::pages;
use crate::driver::{Arg, Buffer, Gpu, Trouble};
use crate::nccl::{Nccl, Operation};
use crate::parallel::{fill_summands, wrong_sums};

const SEED: u32 = 0xcc1;
const OPERATIONS: [(Operation, &str); 3] =
    [(Operation::Sum, "all-reduce"), (Operation::Gather, "all-gather"), (Operation::Deal, "all-to-all")];

/// One operation of one size.
struct Exchange<'a> {
    nccl: &'a Nccl,
    what: Operation,
    /// Input and output of each GPU, both of the same length.
    ends: Vec<(Buffer, Buffer)>,
    /// Bytes of the part of one GPU in it, in pages that are checked by a block each.
    part: usize,
    pages: usize,
}

/// What closes NCCL's ways inside a node, and holds it to RDMA adapters: without the last it would take sockets where there is none.
/// The others are what SuperBench gives its all-reduce through adapters (`nccl-bw:gdr-only`).
pub(super) const ADAPTERS_ALONE: [(&str, &str); 7] = [
    ("NCCL_P2P_DISABLE", "1"),
    ("NCCL_SHM_DISABLE", "1"),
    ("NCCL_NVLS_ENABLE", "0"),
    ("NCCL_NET_GDR_LEVEL", "5"),
    ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
    ("NCCL_MIN_NCHANNELS", "16"),
    ("NCCL_NET", "IB"),
];

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    measure(node, &OPERATIONS)
}

/// The all-reduce of [`ADAPTERS_ALONE`], which must be the environment by now.
pub(super) fn run_adapters(node: &mut Node<'_>) -> Result<(), Trouble> {
    let missing = |(name, value): &&(&str, &str)| std::env::var(name).ok().as_deref() != Some(value);
    if let Some((name, value)) = ADAPTERS_ALONE.iter().find(missing) {
        return Err(Trouble::NotRun(format!("the environment lacks {name}={value}")));
    }
    measure(node, &OPERATIONS[..1])
}

fn measure(node: &mut Node<'_>, operations: &[(Operation, &str)]) -> Result<(), Trouble> {
    let gpus = node.gpus;
    let mut nccl = Nccl::load()?;
    node.of(0).fact("nccl", format!("version={} path={}", nccl.version, nccl.path()));
    node.all().progress(0.0, "NCCL brings them together");
    nccl.meet(gpus.len())?;
    let free = gpus.iter().try_fold(usize::MAX, |least, gpu| gpu.free().map(|free| least.min(free)))?;
    let sizes: Vec<(usize, &str)> =
        SIZES[node.profile as usize].iter().copied().filter(|(bytes, _)| *bytes < free / 3).collect();
    let parts = sizes.len() * operations.len();
    let work = sizes.iter().flat_map(|size| operations.iter().map(move |operation| (size, operation)));
    for (part, ((bytes, size), (what, name))) in work.enumerate() {
        let exchange = Exchange::new(&nccl, *what, gpus, *bytes)?;
        exchange.measure(node, &format!("{name}-{size}"), (part, parts))?;
    }
    Ok(())
}

impl<'a> Exchange<'a> {
    fn new(nccl: &'a Nccl, what: Operation, gpus: &[Gpu], bytes: usize) -> Result<Self, Trouble> {
        let vectors = (bytes / 16).div_ceil(gpus.len());
        let pages = (vectors * 16).div_ceil(1 << pages::SHIFT);
        let part = vectors.next_multiple_of(pages) * 16;
        let ends = |gpu: &Gpu| Ok((gpu.buffer(part * gpus.len())?, gpu.buffer(part * gpus.len())?));
        let ends = gpus.iter().map(ends).collect::<Result<Vec<_>, Trouble>>()?;
        let exchange = Self { nccl, what, ends, part, pages };
        for (rank, gpu) in gpus.iter().enumerate() {
            exchange.prepare(gpu, rank)?;
        }
        wait(gpus)?;
        Ok(exchange)
    }

    /// Fills what GPU number `rank` brings.
    fn prepare(&self, gpu: &Gpu, rank: usize) -> Result<(), Trouble> {
        let input = &self.ends[rank].0;
        if self.what == Operation::Sum {
            return fill_summands(gpu, (input.address(), input.bytes), (SEED, rank));
        }
        let (fill, vectors) = (gpu.function("fill", 0)?, Arg::U64(self.part as u64 / 16));
        (0..self.ends.len()).try_for_each(|peer| {
            let at = Arg::U64(input.address() + (peer * self.part) as u64);
            gpu.launch(fill, wide(gpu), &[at, vectors, Arg::U32(self.seed(rank, peer))])
        })
    }

    /// Pattern of what goes from one GPU to another.
    fn seed(&self, from: usize, to: usize) -> u32 {
        let to = if self.what == Operation::Gather { 0 } else { to };
        SEED + (from * 64 + to) as u32
    }

    fn start(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        let words = self.part / 4 * if self.what == Operation::Sum { gpus.len() } else { 1 };
        self.nccl.start(self.what, gpus, &self.ends, words)
    }

    fn measure(&self, node: &mut Node<'_>, name: &str, part: (usize, usize)) -> Result<(), Trouble> {
        let gpus = node.gpus;
        let mut wrong = None;
        let mut batch = |count: u32| {
            gpus.iter().zip(&self.ends).try_for_each(|(gpu, (_, output))| fill(gpu, output, !SEED))?;
            wait(gpus)?;
            let ms = gpus[0].timed(&mut || {
                meet(gpus)?;
                (0..count).try_for_each(|_| self.start(gpus))?;
                meet(gpus)
            });
            let ms = ms.and_then(|ms| wait(gpus).map(|()| ms)).and_then(|ms| self.nccl.settled().map(|()| ms))?;
            if wrong.is_none() {
                wrong = self.wrong(gpus)?;
            }
            Ok(ms)
        };
        let what = format!("NCCL {name}");
        let times = node.all().times(&what, part, &mut batch).map_err(|trouble| trouble.about(name));
        let (times, warmup) = times?;
        if let Some(wrong) = wrong {
            node.blame(format!("{name} by NCCL: {wrong}"));
        }
        let count = gpus.len() as f64;
        let share = (count - 1.0) / count * if self.what == Operation::Sum { 2.0 } else { 1.0 };
        let bytes = self.ends[0].0.bytes as f64 * share;
        let values = times.into_iter().map(|ms| bytes / (ms * 1e-3)).collect();
        node.all().tell((name.to_owned(), self.nccl.engine()), values, warmup)
    }

    /// The first result that is wrong, and whose it is.
    fn wrong(&self, gpus: &[Gpu]) -> Result<Option<String>, Trouble> {
        let outputs = gpus.iter().zip(self.ends.iter().map(|(_, output)| output));
        if self.what == Operation::Sum {
            let ends: Vec<(&Gpu, u64)> = outputs.map(|(gpu, output)| (gpu, output.address())).collect();
            let found = wrong_sums(&ends, (self.part / 16, self.pages), SEED)?;
            return Ok(found.map(|wrong| wrong.of_anybody()));
        }
        for (to, (gpu, output)) in outputs.enumerate() {
            for from in 0..gpus.len() {
                let at = output.address() + (from * self.part) as u64;
                let found = pages::compare(gpu, (at, self.part / self.pages), self.pages, self.seed(from, to))?;
                let words: u32 = found.iter().map(|page| page[0]).sum();
                if words > 0 {
                    let bits = found.iter().fold(0, |bits, page| bits | page[1]);
                    let what = format!("GPU {from} to GPU {to}: {words} wrong words, bits {bits:#010x}");
                    return Ok(Some(what));
                }
            }
        }
        Ok(None)
    }
}
