//! How fast the GPU moves its own memory, and how long one access takes. All traffic is counted, reads and writes, as
//! STREAM does.

use super::pages;
use super::run::Run;
use crate::driver::{Arg, Buffer, Shape, Trouble};
use crate::twin;

/// Pattern of what is moved.
const SEED: u32 = 0x5eed;
/// Words between two places of the chain: one line of L2 each.
const STRIDE: usize = 32;
const SCALAR: f64 = 3.0;

/// A launch that covers the whole device.
pub(super) fn wide(run: &Run<'_>) -> Shape {
    Shape { grid: (4 * run.gpu.sms, 1), threads: run.gpu.threads.min(512), shared: 0 }
}

/// Bytes of each of `buffers` buffers: what the profile asks for, as far as memory goes.
pub(super) fn bytes_each(run: &Run<'_>, buffers: usize) -> Result<usize, Trouble> {
    let wanted = run.pick([256 << 20, 1 << 30, 4 << 30, 4 << 30]);
    let bytes = wanted.min(run.gpu.free()? / 4 * 3 / buffers);
    Ok((bytes >> pages::SHIFT).max(1) << pages::SHIFT)
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let (gpu, shape) = (run.gpu, wide(run));
    let bytes = bytes_each(run, 3)?;
    let (a, b, c) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?, gpu.buffer(bytes)?);
    let digest = gpu.buffer(16)?;
    let vectors = Arg::U64(bytes as u64 / 16);
    let kernel = |name| gpu.function(name, 0);
    let (fill, copy, read, triad) = (kernel("fill")?, kernel("copy")?, kernel("read")?, kernel("triad")?);
    let moved = |buffers: f64| move |ms: f64| buffers * bytes as f64 / (ms * 1e-3);
    run.sample("write", (0, 7), &moved(1.0), &mut || gpu.launch(fill, shape, &[Arg::At(&a), vectors, Arg::U32(SEED)]))?;
    run.sample("copy", (1, 7), &moved(2.0), &mut || gpu.launch(copy, shape, &[Arg::At(&b), Arg::At(&a), vectors]))?;
    pages::expect(run, &b, SEED, "the copy of a filled buffer")?;
    run.sample("read", (2, 7), &moved(1.0), &mut || {
        gpu.launch(read, shape, &[Arg::At(&b), vectors, Arg::At(&digest)])
    })?;
    let arguments = [Arg::At(&c), Arg::At(&a), Arg::At(&b), Arg::F64(SCALAR), vectors];
    run.sample("triad", (3, 7), &moved(3.0), &mut || gpu.launch(triad, shape, &arguments))?;
    latency(run, &a, ("latency", 4), 256 << 20)?;
    l2(run, &a)?;
    latency(run, &a, ("l2-latency", 6), 1 << 20)
}

/// Reads half of L2 over and over, and adds it up as the CPU does.
fn l2(run: &mut Run<'_>, room: &Buffer) -> Result<(), Trouble> {
    let (gpu, shape) = (run.gpu, wide(run));
    let vectors = (gpu.l2 / 2).min(room.bytes) as u64 / 16;
    let (fill, reread, digest) = (gpu.function("fill", 0)?, gpu.function("reread", 0)?, gpu.buffer(16)?);
    gpu.launch(fill, shape, &[Arg::At(room), Arg::U64(vectors), Arg::U32(SEED)])?;
    let times = run.pick([4, 64, 64, 64]);
    let bytes = 16.0 * vectors as f64 * f64::from(times);
    let arguments = [Arg::At(room), Arg::U64(vectors), Arg::U32(times), Arg::At(&digest)];
    let start = || gpu.launch(reread, shape, &arguments);
    run.sample("l2-read", (5, 7), &|ms| bytes / (ms * 1e-3), &mut || start())?;
    gpu.put(&digest, &[0_u32; 4])?;
    start()?;
    let mut sum = [0; 1];
    gpu.get(&mut sum, &digest)?;
    let words: Vec<u32> = (0..4 * vectors).map(|word| twin::pattern(SEED, word)).collect();
    let right = twin::sum(&words).wrapping_mul(times);
    if sum[0] == right {
        return Ok(());
    }
    Err(Trouble::Failed(format!("GPU {}: what L2 gives adds up to {:08x}, not {right:08x}", gpu.index, sum[0])))
}

/// Nanoseconds of one dependent load along a chain of at most `bytes`: larger than any L2 where memory allows, or so small
/// that L2 keeps it and one page holds it.
fn latency(run: &mut Run<'_>, room: &Buffer, (name, part): (&'static str, usize), bytes: usize) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let chase = gpu.function("chase", 0)?;
    let chain = twin::chain(room.bytes.min(bytes) / 4 / STRIDE, STRIDE, SEED);
    gpu.put(room, &chain)?;
    let out = gpu.buffer(16)?;
    gpu.put(&out, &[0_u32; 4])?;
    let steps = run.pick([64, 4096, 16_384, 16_384]);
    let shape = Shape { grid: (8 * gpu.sms, 1), threads: 32, shared: 0 };
    // A quarter more for its own warm-up.
    let loads = f64::from(steps) * 1.25;
    let arguments = [Arg::At(room), Arg::U32(steps), Arg::U32(0), Arg::At(&out)];
    run.sample(name, (part, 7), &|ms| ms * 1e6 / loads, &mut || gpu.launch(chase, shape, &arguments))
}
