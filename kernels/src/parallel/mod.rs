//! All GPUs of a node as one.
//!
//! | file | settles |
//! |---|---|
//! | here | who waits for whom |
//! | `direct`, `host` | a sum by own kernels, and one through the host |
//! | `way` | how GPUs add up, and what |
//! | `team` | a training over all of them |
//! | `known`, `suspects` | whose fault it is when it does not come to what it must |

mod direct;
mod host;
mod known;
pub mod suspects;
mod team;
mod way;

pub use direct::Direct;
pub use known::{Wrong, fill_summands, wrong_sums};
pub use team::Team;
pub use way::{Way, part};

use crate::driver::{Gpu, Shape, Trouble};

/// Most GPUs over which gradients are summed.
pub const MOST: usize = muster_tape::GAP / 4;

/// Opens everybody's memory for everybody; whether each reaches each other one directly.
///
/// # Errors
/// With the driver's words.
pub fn open_all(gpus: &[Gpu]) -> Result<bool, Trouble> {
    let mut all = true;
    for (at, gpu) in gpus.iter().enumerate() {
        for peer in gpus.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, peer)| peer) {
            all &= gpu.open_peer(peer)?;
        }
    }
    Ok(all)
}

/// A launch that covers the whole device.
#[must_use]
pub fn wide(gpu: &Gpu) -> Shape {
    Shape { grid: (4 * gpu.sms, 1), threads: gpu.threads.min(512), shared: 0 }
}

/// Waits until every GPU has done what was put on its stream.
///
/// # Errors
/// When one of them went wrong, and which.
pub fn wait(gpus: &[Gpu]) -> Result<(), Trouble> {
    gpus.iter().try_for_each(|gpu| gpu.wait().map_err(|trouble| trouble.about(&format!("GPU {}", gpu.index))))
}

/// Puts on all streams that nobody goes on before everybody is here.
///
/// # Errors
/// When the driver does not take it.
pub fn meet(gpus: &[Gpu]) -> Result<(), Trouble> {
    let Some((first, others)) = gpus.split_first() else { return Ok(()) };
    others.iter().try_for_each(|gpu| gpu.mark().and_then(|()| first.follow(gpu)))?;
    first.mark()?;
    others.iter().try_for_each(|gpu| gpu.follow(first))
}
