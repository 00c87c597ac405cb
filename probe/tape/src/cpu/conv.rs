//! What convolutional networks need beside products: windows, and normalisation of channels.

use std::ops::Range;

use crate::number::{Number, axpy};
use crate::op::Window;

use super::memory::Io;

/// Keeps the deviation of a constant channel above zero.
const EPSILON: f64 = 1e-5;
/// Channels of a part: a cache line.
const CHANNELS: usize = 16;
/// Rows that are summed on their own before they are added to the rest, which keeps long sums exact.
const BLOCK: usize = 128;

/// The pixel along one axis that element `tap` of window `at` falls on.
pub(super) fn pixel(window: &Window, at: usize, tap: usize) -> Option<usize> {
    (at * window.stride + tap).checked_sub(window.pad).filter(|pixel| *pixel < window.edge)
}

/// Windows over pixel `across` of a row of pixels of one image: the element that falls on it, and which window of all.
pub(super) fn windows_over(window: &Window, part: usize, across: usize) -> impl Iterator<Item = (usize, usize)> {
    let (edge, size, out) = (window.edge, window.size, window.out_edge());
    (0..size * size).filter_map(move |tap| {
        let down = window_over(window, part % edge, tap / size)?;
        Some((tap, (part / edge * out + down) * out + window_over(window, across, tap % size)?))
    })
}

/// The window along one axis whose element `tap` falls on `pixel`.
fn window_over(window: &Window, pixel: usize, tap: usize) -> Option<usize> {
    let reach = (pixel + window.pad).checked_sub(tap)?;
    (reach % window.stride == 0 && reach / window.stride < window.out_edge()).then_some(reach / window.stride)
}

/// A part is a row of windows of one image.
pub(super) fn im2col<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels, size, out) = (window.edge, window.channels, window.size, window.out_edge());
    let image = &io.read(0)[part / out * edge * edge * channels..];
    let row = out * size * size * channels;
    let columns = io.write(0, part * row..(part + 1) * row);
    for (at, to) in columns.chunks_exact_mut(channels).enumerate() {
        let (across, tap) = (at / (size * size), at % (size * size));
        match (pixel(window, part % out, tap / size), pixel(window, across, tap % size)) {
            (Some(y), Some(x)) => to.copy_from_slice(&image[(y * edge + x) * channels..][..channels]),
            _ => to.fill(T::ZERO),
        }
    }
}

/// A part is a row of pixels of one image, which gathers from every window over it.
pub(super) fn col2im<T: Number>(io: &Io<'_, T>, window: &Window, part: usize) {
    let (edge, channels) = (window.edge, window.channels);
    let columns = io.read(0);
    let row = io.write(0, part * edge * channels..(part + 1) * edge * channels);
    for (x, to) in row.chunks_exact_mut(channels).enumerate() {
        to.fill(T::ZERO);
        for (tap, over) in windows_over(window, part, x) {
            let at = over * window.size * window.size + tap;
            axpy(T::ONE, &columns[at * channels..][..channels], to);
        }
    }
}

pub(super) fn channel_parts(channels: usize) -> usize {
    channels.div_ceil(CHANNELS)
}

/// Some channels of all rows.
struct Channels {
    rows: usize,
    all: usize,
    mine: Range<usize>,
}

impl Channels {
    fn new((rows, all): (usize, usize), part: usize) -> Self {
        Self { rows, all, mine: part * CHANNELS..all.min((part + 1) * CHANNELS) }
    }

    /// Where my channels of a row lie.
    fn at(&self, row: usize) -> Range<usize> {
        row * self.all + self.mine.start..row * self.all + self.mine.end
    }

    /// Sum over all rows of `f(row, channel)`.
    fn sum<T: Number>(&self, f: impl Fn(usize, usize) -> T) -> [T; CHANNELS] {
        let mut total = [T::ZERO; CHANNELS];
        for start in (0..self.rows).step_by(BLOCK) {
            let mut block = [T::ZERO; CHANNELS];
            for row in start..self.rows.min(start + BLOCK) {
                block.iter_mut().zip(self.mine.clone()).for_each(|(sum, channel)| *sum += f(row, channel));
            }
            total.iter_mut().zip(block).for_each(|(total, sum)| *total += sum);
        }
        total
    }
}

pub(super) fn batch_norm<T: Number>(io: &Io<'_, T>, shape: (usize, usize), part: usize) {
    let my = Channels::new(shape, part);
    let (x, scale, shift) = (io.read(0), io.read(1), io.read(2));
    let n = T::of(my.rows as f64);
    let (mean, r) = (io.write(1, my.mine.clone()), io.write(2, my.mine.clone()));
    let sums = my.sum(|row, channel| x[row * my.all + channel]);
    mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = sum / n);
    let first = my.mine.start;
    let squares = my.sum(|row, channel| {
        let d = x[row * my.all + channel] - mean[channel - first];
        d * d
    });
    r.iter_mut().zip(squares).for_each(|(r, sum)| *r = T::ONE / (sum / n + T::of(EPSILON)).sqrt());
    for row in 0..my.rows {
        let x = &x[my.at(row)];
        for (at, y) in io.write(0, my.at(row)).iter_mut().enumerate() {
            *y = (x[at] - mean[at]) * r[at] * scale[first + at] + shift[first + at];
        }
    }
}

pub(super) fn batch_norm_backward<T: Number>(io: &Io<'_, T>, shape: (usize, usize), part: usize) {
    let my = Channels::new(shape, part);
    let (x, scale, mean, r, dy) = (io.read(0), io.read(1), io.read(2), io.read(3), io.read(4));
    let n = T::of(my.rows as f64);
    let normal = |row: usize, channel: usize| (x[row * my.all + channel] - mean[channel]) * r[channel];
    let d_shift = my.sum(|row, channel| dy[row * my.all + channel]);
    let d_scale = my.sum(|row, channel| dy[row * my.all + channel] * normal(row, channel));
    for row in 0..my.rows {
        for (at, dx) in io.write(0, my.at(row)).iter_mut().enumerate() {
            let channel = my.mine.start + at;
            let centred = dy[row * my.all + channel] - (d_shift[at] + normal(row, channel) * d_scale[at]) / n;
            *dx = scale[channel] * r[channel] * centred;
        }
    }
    let count = my.mine.len();
    io.write(1, my.mine.clone()).copy_from_slice(&d_scale[..count]);
    io.write(2, my.mine.clone()).copy_from_slice(&d_shift[..count]);
}
