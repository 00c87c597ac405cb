//! How far each multiprocessor is from L2: a fingerprint of the card, compared with its own past where that is known.

use super::run::Run;
use crate::driver::{Arg, Shape, Trouble};
use crate::twin;

/// Words between two places of the chain: one line of L2 each.
const STRIDE: usize = 32;
/// Shared memory that is left; with the rest taken, one block fills a multiprocessor.
const LEFT: u32 = 4 << 10;
/// Bytes of the chain: L2 keeps all of it, and it lies in all parts of L2.
const BYTES: usize = 1 << 20;
const SEED: u32 = 0xfa2;

/// Sends cycles of one load from each multiprocessor, the least of some tries: `0:271.25 1:280.50`.
pub(super) fn measure(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let bytes = BYTES.min(gpu.free()? / 2);
    let (room, out) = (gpu.buffer(bytes)?, gpu.buffer(16)?);
    gpu.put(&room, &twin::chain(bytes / 4 / STRIDE, STRIDE, SEED))?;
    let shared = gpu.shared.saturating_sub(LEFT);
    let chase = gpu.function("chase", shared)?;
    // One block on each multiprocessor, of which all but the chosen one leave.
    let shape = Shape { grid: (gpu.sms, 1), threads: 32, shared };
    let steps = run.pick([32, 2048, 8192, 8192]);
    let mut least = vec![u64::MAX; gpu.sms as usize];
    for attempt in 0..run.pick([1, 4, 8, 8]) {
        run.progress(0.99, "distance");
        for (sm, least) in least.iter_mut().enumerate() {
            let arguments = [Arg::At(&room), Arg::U32(steps), Arg::U32(sm as u32), Arg::At(&out)];
            // The very first pass fills L2.
            for _ in 0..if attempt == 0 && sm == 0 { 2 } else { 1 } {
                gpu.put(&out, &[0_u32; 4])?;
                gpu.launch(chase, shape, &arguments)?;
            }
            let mut words = [0; 4];
            gpu.get(&mut words, &out)?;
            let cycles = u64::from(words[0]) | u64::from(words[1]) << 32;
            // Without a block there is no answer.
            *least = if cycles == 0 { *least } else { cycles.min(*least) };
        }
    }
    let known = least.iter().enumerate().filter(|(_, cycles)| **cycles < u64::MAX);
    let word = |(sm, cycles): (usize, &u64)| format!("{sm}:{:.2}", *cycles as f64 / f64::from(steps));
    let told = known.map(word).collect::<Vec<_>>().join(" ");
    run.fact("distance", told);
    Ok(())
}
