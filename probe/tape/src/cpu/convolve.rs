//! Convolutions without windows in memory, element by element: what GPUs are held to. CPUs train with windows and products, which
//! are faster here.

use crate::number::{Number, axpy};
use crate::op::Convolution;

use super::conv::{pixel, windows_over};
use super::memory::Io;

/// A part is a row of windows of one image.
pub(super) fn forward<T: Number>(io: &Io<'_, T>, of: &Convolution, part: usize) {
    let (window, outputs) = (&of.window, of.outputs);
    let (edge, channels, size, out) = (window.edge, window.channels, window.size, window.out_edge());
    let image = &io.read(0)[part / out * edge * edge * channels..];
    let filter = io.read(1);
    let row = io.write(0, part * out * outputs..(part + 1) * out * outputs);
    for (across, to) in row.chunks_exact_mut(outputs).enumerate() {
        if io.op.reads.len() > 2 {
            to.copy_from_slice(io.read(2))
        } else {
            to.fill(T::ZERO)
        }
        for tap in 0..size * size {
            let y = pixel(window, part % out, tap / size);
            let (Some(y), Some(x)) = (y, pixel(window, across, tap % size)) else { continue };
            let from = &image[(y * edge + x) * channels..][..channels];
            let rows = filter[tap * channels * outputs..].chunks_exact(outputs);
            from.iter().zip(rows).for_each(|(x, row)| axpy(*x, row, to));
        }
    }
}

/// A part is a row of pixels of one image.
pub(super) fn back<T: Number>(io: &Io<'_, T>, of: &Convolution, part: usize) {
    let (window, outputs) = (&of.window, of.outputs);
    let (edge, channels) = (window.edge, window.channels);
    let (gradient, filter) = (io.read(0), io.read(1));
    let row = io.write(0, part * edge * channels..(part + 1) * edge * channels);
    for (x, to) in row.chunks_exact_mut(channels).enumerate() {
        to.fill(T::ZERO);
        for (tap, over) in windows_over(window, part, x) {
            let from = &gradient[over * outputs..][..outputs];
            let rows = filter[tap * channels * outputs..].chunks_exact(outputs);
            for (to, row) in to.iter_mut().zip(rows) {
                from.iter().zip(row).for_each(|(x, y)| *to += *x * *y);
            }
        }
    }
}

/// A part is one element of all windows: a row of the filter.
pub(super) fn filter<T: Number>(io: &Io<'_, T>, of: &Convolution, part: usize) {
    let (window, outputs) = (&of.window, of.outputs);
    let (edge, channels, size, out) = (window.edge, window.channels, window.size, window.out_edge());
    let (images, gradient) = (io.read(0), io.read(1));
    let (tap, channel) = (part / channels, part % channels);
    let row = io.write(0, part * outputs..(part + 1) * outputs);
    row.fill(T::ZERO);
    for (at, from) in gradient.chunks_exact(outputs).enumerate() {
        let (image, down, across) = (at / out / out, at / out % out, at % out);
        let y = pixel(window, down, tap / size);
        let (Some(y), Some(x)) = (y, pixel(window, across, tap % size)) else { continue };
        axpy(images[((image * edge + y) * edge + x) * channels + channel], from, row);
    }
}
