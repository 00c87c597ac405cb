//! How fast data goes from each GPU of a node to each other one, and whether it arrives as it was. Bytes are counted once.
//!
//! The copy engine gives a metric for each ordered pair, so that the same pair of another node is its peer and a bad link
//! is named with both ends. Kernels take all peers of a GPU in turn: one metric a GPU and direction.

use super::node::{Node, fill, wait, wide};
use crate::driver::{Arg, Buffer, Gpu, Trouble};

/// Pattern of GPU 0; the others' follow.
const SEED: u32 = 0x11e4;

/// What each GPU has: what it sends, and where things arrive.
struct Ends {
    source: Buffer,
    sink: Buffer,
}

/// How kernels move data.
#[derive(Clone, Copy)]
enum How {
    /// The GPU that gets it reads.
    Read,
    /// The GPU that has it writes.
    Write,
}

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    let gpus = node.gpus;
    let reach = open(node)?;
    let ends = gpus.iter().map(|gpu| prepared(node, gpu)).collect::<Result<Vec<Ends>, Trouble>>()?;
    wait(gpus)?;
    let pairs: Vec<(usize, usize)> = pairs(gpus.len()).collect();
    let parts = pairs.len() + 2 * gpus.len();
    for (part, (from, to)) in pairs.into_iter().enumerate() {
        by_engine(node, &ends, (from, to), (part, parts))
            .map_err(|trouble| trouble.about(&format!("GPU {from} to GPU {to} by the copy engine")))?;
    }
    for index in 0..gpus.len() {
        let part = parts - 2 * gpus.len() + 2 * index;
        by_kernels(node, (&ends, &reach), (index, How::Read), (part, parts))?;
        by_kernels(node, (&ends, &reach), (index, How::Write), (part + 1, parts))?;
    }
    Ok(())
}

/// Every ordered pair.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |from| (0..count).map(move |to| (from, to))).filter(|(from, to)| from != to)
}

/// Opens every GPU's memory for every other; who reaches whom.
pub(super) fn open(node: &mut Node<'_>) -> Result<Vec<Vec<usize>>, Trouble> {
    let gpus = node.gpus;
    let mut reach = vec![Vec::new(); gpus.len()];
    for (from, to) in pairs(gpus.len()) {
        let open = gpus[from].open_peer(&gpus[to]);
        if open.map_err(|trouble| trouble.about(&format!("GPU {from} to GPU {to}")))? {
            reach[from].push(to);
        }
    }
    for (index, open) in reach.iter().enumerate() {
        let list = |of: &mut dyn Iterator<Item = usize>| of.map(|gpu| gpu.to_string()).collect::<Vec<_>>().join(",");
        let closed = list(&mut (0..gpus.len()).filter(|other| *other != index && !open.contains(other)));
        let text = format!("direct={} host={closed}", list(&mut open.iter().copied()));
        node.of(index).fact("peers", text);
    }
    Ok(reach)
}

fn prepared(node: &Node<'_>, gpu: &Gpu) -> Result<Ends, Trouble> {
    let wanted: usize = [16 << 10, 64 << 20, 256 << 20, 256 << 20][node.profile as usize];
    let room = gpu.free()? / 4;
    // Whole pages, or one that is smaller.
    let bytes = if room < wanted { 1 << room.max(1 << 10).ilog2() } else { wanted };
    let ends = Ends { source: gpu.buffer(bytes)?, sink: gpu.buffer(bytes)? };
    fill(gpu, &ends.source, seed(gpu.index))?;
    Ok(ends)
}

fn seed(gpu: usize) -> u32 {
    SEED + gpu as u32
}

/// A sink in which nothing is left of what came before.
fn clear(gpu: &Gpu, sink: &Buffer) -> Result<(), Trouble> {
    fill(gpu, sink, !SEED)?;
    gpu.wait()
}

fn by_engine(
    node: &mut Node<'_>,
    ends: &[Ends],
    (from, to): (usize, usize),
    part: (usize, usize),
) -> Result<(), Trouble> {
    let (sender, receiver) = (&node.gpus[from], &node.gpus[to]);
    let (source, sink) = (&ends[from].source, &ends[to].sink);
    clear(receiver, sink)?;
    let bytes = source.bytes.min(sink.bytes) as f64;
    let mut run = node.of(from);
    let mut batch =
        |count: u32| sender.timed(&mut || (0..count).try_for_each(|_| sender.send(source, (sink, receiver))));
    let (times, warmup) = run.times(&format!("to GPU {to} by the copy engine"), part, &mut batch)?;
    let values = times.into_iter().map(|ms| bytes / (ms * 1e-3)).collect();
    run.tell((format!("gpu{from}-to-gpu{to}"), sender.engine.to_owned()), values, warmup)?;
    node.expect(to, (sink, seed(from)), &format!("GPU {from} to GPU {to} by the copy engine"))
}

/// One GPU reads from all its peers in turn, or writes to them.
fn by_kernels(
    node: &mut Node<'_>,
    (ends, reach): (&[Ends], &[Vec<usize>]),
    (index, how): (usize, How),
    part: (usize, usize),
) -> Result<(), Trouble> {
    let gpu = &node.gpus[index];
    let (own, peers) = (&ends[index], &reach[index]);
    if peers.is_empty() {
        return Ok(());
    }
    let (kernel, bytes) = (gpu.function("copy", 0)?, own.source.bytes.min(own.sink.bytes));
    let vectors = Arg::U64(bytes as u64 / 16);
    let start = |peer: usize| {
        let (to, from) = match how {
            How::Read => (&own.sink, &ends[peer].source),
            How::Write => (&ends[peer].sink, &own.source),
        };
        gpu.launch(kernel, wide(gpu), &[Arg::At(to), Arg::At(from), vectors])
    };
    for &peer in peers {
        let (from, to) = if matches!(how, How::Read) { (peer, index) } else { (index, peer) };
        let what = format!("GPU {from} to GPU {to}, {} by kernels of GPU {index}", how.done());
        node.of(index).progress(part.0 as f64 / part.1 as f64, &format!("{} by kernels, GPU {peer}", how.done()));
        let moved = clear(&node.gpus[to], &ends[to].sink).and_then(|()| start(peer)).and_then(|()| gpu.wait());
        moved.map_err(|trouble| trouble.about(&what))?;
        node.expect(to, (&ends[to].sink, seed(from)), &what)?;
    }
    let all = (bytes * peers.len()) as f64;
    let mut run = node.of(index);
    let mut batch =
        |count: u32| gpu.timed(&mut || (0..count).try_for_each(|_| peers.iter().try_for_each(|peer| start(*peer))));
    let (times, warmup) = run.times(&format!("{} by kernels", how.done()), part, &mut batch)?;
    let values = times.into_iter().map(|ms| all / (ms * 1e-3)).collect();
    run.series(how.name(), values, warmup)
}

impl How {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "written",
        }
    }
}
