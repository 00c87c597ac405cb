//! Windows over images.

use muster_tape::{Kind, Op, Window};

use super::Unfit;
use super::launch::{Launch, Word, count};
use super::lower::ends;

/// A block has a window or a pixel, and its threads the elements of it.
fn windows(kernel: &'static str, op: &Op, window: &Window, blocks: usize) -> Result<Launch, Unfit> {
    let sizes = [window.edge, window.channels, window.size, window.stride, window.pad, window.out_edge()];
    let sizes: Vec<Word> = sizes.into_iter().map(count).collect::<Result<_, _>>()?;
    let launch = Launch::blocks(kernel, blocks, ends(op, sizes))?;
    let elements = if kernel == "im2col" { window.size * window.size * window.channels } else { window.channels };
    // Whole warps, no more than there are elements for.
    Ok(Launch { threads: elements.next_multiple_of(32).clamp(32, 256) as u32, ..launch })
}

const fn pixels(window: &Window) -> usize {
    window.batch * window.edge * window.edge
}

pub(super) fn launches(op: &Op) -> Result<Launch, Unfit> {
    match &op.kind {
        Kind::Im2col(window) => windows("im2col", op, window, window.windows()),
        Kind::Col2im(window) => windows("col2im", op, window, pixels(window)),
        Kind::MaxPool(window) => windows("max_pool", op, window, window.windows()),
        Kind::MaxPoolBackward(window) => windows("max_pool_backward", op, window, pixels(window)),
        Kind::MeanPool(window) => windows("mean_pool", op, window, window.windows()),
        Kind::MeanPoolBackward(window) => windows("mean_pool_backward", op, window, pixels(window)),
        Kind::GlobalPool { area, channels } => {
            let images = op.writes[0].len / channels;
            Launch::blocks("global_pool", images, ends(op, [count(*area)?, count(*channels)?]))
        }
        Kind::GlobalPoolBackward { area, channels } => {
            let n = op.writes[0].len;
            let args = ends(op, [count(*area)?, count(*channels)?, Word::U64(n as u64)]);
            Ok(Launch::over("global_pool_backward", n, args))
        }
        other => Err(Unfit(format!("{other:?} is no operation on images"))),
    }
}
