//! Which pages of the GPU's memory keep what is written, and how long each takes to read.

use super::run::Run;
use super::stream::wide;
use crate::driver::{Arg, Buffer, Gpu, Shape, Trouble};

/// A page is 2 MiB, as the GPU maps its memory.
pub(super) const SHIFT: usize = 21;
/// Bad pages that are described; more are counted.
const NAMED: usize = 32;
/// Seed of the first pass.
const SEED: u32 = 0x9a6e;

/// What `pages` wrote about each page: wrong words, wrong bits, first wrong word, cycles. A buffer that is smaller than a
/// page is one.
pub(super) fn look(gpu: &Gpu, buffer: &Buffer, seed: u32) -> Result<Vec<[u32; 4]>, Trouble> {
    compare(gpu, (buffer.address(), buffer.bytes.min(1 << SHIFT)), (buffer.bytes >> SHIFT).max(1), seed)
}

/// The same of `count` pages of so many bytes from an address on.
pub(crate) fn compare(gpu: &Gpu, (at, bytes): (u64, usize), count: usize, seed: u32) -> Result<Vec<[u32; 4]>, Trouble> {
    let out = gpu.buffer(count * 16)?;
    let shape = Shape { grid: ((2 * gpu.sms).min(count as u32), 1), threads: gpu.threads.min(256), shared: 0 };
    let (pages, vectors) = (Arg::U32(count as u32), Arg::U32(bytes as u32 / 16));
    gpu.launch(gpu.function("pages", 0)?, shape, &[Arg::U64(at), pages, vectors, Arg::U32(seed), Arg::At(&out)])?;
    let mut records = vec![0; count * 4];
    gpu.get(&mut records, &out)?;
    Ok(records.as_chunks().0.to_vec())
}

/// Fails when `buffer`, whole pages, is not the pattern `seed`.
pub(super) fn expect(run: &Run<'_>, buffer: &Buffer, seed: u32, what: &str) -> Result<(), Trouble> {
    let found = look(run.gpu, buffer, seed)?;
    match found.iter().enumerate().find(|(_, record)| record[0] > 0) {
        None => Ok(()),
        Some((page, [wrong, bits, first, _])) => Err(Trouble::Failed(format!(
            "GPU {}: {what} has {wrong} wrong words in page {page}, the first is {first}, wrong bits {bits:#010x}",
            run.gpu.index
        ))),
    }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let bytes = run.gpu.free()? / 100 * run.pick([25, 95, 95, 95]);
    let buffer = gpu.buffer((bytes >> SHIFT).max(1) << SHIFT)?;
    let count = buffer.bytes >> SHIFT;
    let fill = gpu.function("fill", 0)?;
    let shape = wide(run);
    let passes = run.pick([6, 16, 32, 64]);
    let mut bad = vec![[0_u32; 4]; count];
    let mut cycles = vec![u32::MAX; count];
    for pass in 0..passes {
        run.progress(f64::from(pass) / f64::from(passes), "pages");
        let seed = SEED + pass;
        gpu.launch(fill, shape, &[Arg::At(&buffer), Arg::U64(buffer.bytes as u64 / 16), Arg::U32(seed)])?;
        for (page, [wrong, bits, first, took]) in look(gpu, &buffer, seed)?.into_iter().enumerate() {
            if wrong > 0 {
                let [times, all, _, _] = bad[page];
                bad[page] = [times + 1, all | bits, first, wrong];
            }
            // The best of all passes: the first touch of a page also finds its translation.
            cycles[page] = cycles[page].min(took);
        }
    }
    let wrong: Vec<(usize, &[u32; 4])> = bad.iter().enumerate().filter(|(_, record)| record[0] > 0).collect();
    run.fact("pages", format!("checked={count} passes={passes} bad={}", wrong.len()));
    for (page, [times, bits, first, words]) in wrong.iter().take(NAMED) {
        run.fact(&format!("page.{page}"), format!("passes={times} bits={bits:08x} first={first} words={words}"));
    }
    let thin = count.div_ceil(16_384);
    let taken = cycles.iter().step_by(thin).map(|c| f64::from((*c).max(1))).collect();
    run.series("page-cycles", taken, 0)
}
