//! Windows and whole images of which one number is left.

use crate::number::{Number, axpy};
use crate::op::Window;

use super::conv::{pixel, windows_over};
use super::memory::Io;

/// A part is a row of windows of one image.
pub(super) fn max<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels, size, out) = (window.edge, window.channels, window.size, window.out_edge());
    let image = &io.read(0)[part / out * edge * edge * channels..];
    let range = part * out * channels..(part + 1) * out * channels;
    let (most, which) = (io.write(0, range.clone()), io.write(1, range));
    for (at, (most, which)) in most.iter_mut().zip(which).enumerate() {
        let (across, channel) = (at / channels, at % channels);
        let mut best: Option<(T, usize)> = None;
        for tap in 0..size * size {
            let y = pixel(window, part % out, tap / size);
            let (Some(y), Some(x)) = (y, pixel(window, across, tap % size)) else { continue };
            let value = image[(y * edge + x) * channels + channel];
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, tap));
            }
        }
        let (value, tap) = best.unwrap_or((T::ZERO, 0));
        (*most, *which) = (value, T::of(tap as f64));
    }
}

/// A part is a row of pixels of one image.
pub(super) fn max_backward<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels) = (window.edge, window.channels);
    let (gradient, which) = (io.read(0), io.read(1));
    let row = io.write(0, part * edge * channels..(part + 1) * edge * channels);
    for (x, to) in row.chunks_exact_mut(channels).enumerate() {
        to.fill(T::ZERO);
        for (tap, over) in windows_over(window, part, x) {
            let start = over * channels;
            for (channel, to) in to.iter_mut().enumerate() {
                if which[start + channel] == T::of(tap as f64) {
                    *to += gradient[start + channel];
                }
            }
        }
    }
}

/// A part is an image.
pub(super) fn global<T: Number>(io: &Io<'_, T>, (area, channels): (usize, usize), part: usize) {
    let means = io.write(0, part * channels..(part + 1) * channels);
    means.fill(T::ZERO);
    for pixel in io.read(0)[part * area * channels..(part + 1) * area * channels].chunks_exact(channels) {
        axpy(T::ONE, pixel, means);
    }
    means.iter_mut().for_each(|mean| *mean = *mean / T::of(area as f64));
}

/// A part is an image.
pub(super) fn global_backward<T: Number>(io: &Io<'_, T>, (area, channels): (usize, usize), part: usize) {
    let gradient = &io.read(0)[part * channels..(part + 1) * channels];
    let image = io.write(0, part * area * channels..(part + 1) * area * channels);
    for (at, to) in image.iter_mut().enumerate() {
        *to = gradient[at % channels] / T::of(area as f64);
    }
}

/// Pixels of a window, those beyond the edge among them.
fn area<T: Number>(window: &Window) -> T {
    T::of((window.size * window.size) as f64)
}

/// A part is a row of windows of one image.
pub(super) fn mean<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels, size, out) = (window.edge, window.channels, window.size, window.out_edge());
    let image = &io.read(0)[part / out * edge * edge * channels..];
    let means = io.write(0, part * out * channels..(part + 1) * out * channels);
    for (across, means) in means.chunks_exact_mut(channels).enumerate() {
        means.fill(T::ZERO);
        for tap in 0..size * size {
            let y = pixel(window, part % out, tap / size);
            let (Some(y), Some(x)) = (y, pixel(window, across, tap % size)) else { continue };
            axpy(T::ONE, &image[(y * edge + x) * channels..][..channels], means);
        }
        means.iter_mut().for_each(|mean| *mean = *mean / area(window));
    }
}

/// A part is a row of pixels of one image, which gathers from every window over it.
pub(super) fn mean_backward<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels) = (window.edge, window.channels);
    let gradient = io.read(0);
    let row = io.write(0, part * edge * channels..(part + 1) * edge * channels);
    for (x, to) in row.chunks_exact_mut(channels).enumerate() {
        to.fill(T::ZERO);
        for (_, over) in windows_over(window, part, x) {
            axpy(T::ONE, &gradient[over * channels..][..channels], to);
        }
        to.iter_mut().for_each(|x| *x = *x / area(window));
    }
}
