//! How fast data comes to the GPU and leaves it, by the copy engines. Bytes are counted once.

use super::pages;
use super::run::Run;
use super::stream::{bytes_each, wide};
use crate::driver::{Arg, Pinned, Trouble};
use crate::twin;

const SEED: u32 = 0xc0b1;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let bytes = bytes_each(run, 2)?.min(256 << 20);
    let mut host = Pinned::new(bytes / 4)?;
    for (index, word) in host.words().iter_mut().enumerate() {
        *word = twin::pattern(SEED, index as u64);
    }
    let (a, b) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?);
    let moved = |ms: f64| bytes as f64 / (ms * 1e-3);
    run.sample("host-to-device", (0, 3), &moved, &mut || gpu.put(&a, host.words()))?;
    pages::expect(run, &a, SEED, "what came from the host")?;
    run.sample("device-to-device", (1, 3), &moved, &mut || gpu.duplicate(&b, &a))?;
    pages::expect(run, &b, SEED, "a copy by the copy engine")?;
    let fill = gpu.function("fill", 0)?;
    gpu.launch(fill, wide(run), &[Arg::At(&b), Arg::U64(bytes as u64 / 16), Arg::U32(!SEED)])?;
    run.sample("device-to-host", (2, 3), &moved, &mut || gpu.get(host.words(), &b))?;
    let wrong = host.words().iter().enumerate().find(|(i, word)| **word != twin::pattern(!SEED, *i as u64));
    match wrong {
        None => Ok(()),
        Some((at, word)) => {
            Err(Trouble::Failed(format!("GPU {}: word {at} of what came to the host is wrong: {word:#x}", gpu.index)))
        }
    }
}
