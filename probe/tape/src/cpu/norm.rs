//! Normalisation of rows.

use std::ops::Range;

use crate::number::{Number, sum};

use super::element::columns;
use super::memory::Io;

/// Keeps the deviation of a constant row above zero.
const EPSILON: f64 = 1e-5;
/// Rows of a part.
const ROWS: usize = 8;

pub(super) fn parts(rows: usize) -> usize {
    rows.div_ceil(ROWS)
}

fn rows_of(rows: usize, part: usize) -> Range<usize> {
    part * ROWS..rows.min((part + 1) * ROWS)
}

pub(super) fn forward<T: Number>(io: &Io<'_, T>, (rows, width): (usize, usize), part: usize) {
    let (x, scale, shift) = (io.read(0), io.read(1), io.read(2));
    let n = T::of(width as f64);
    for row in rows_of(rows, part) {
        let x = &x[row * width..(row + 1) * width];
        let mean = sum(width, |i| x[i]) / n;
        let variance = sum(width, |i| (x[i] - mean) * (x[i] - mean)) / n;
        let r = T::ONE / (variance + T::of(EPSILON)).sqrt();
        for (i, y) in io.write(0, row * width..(row + 1) * width).iter_mut().enumerate() {
            *y = (x[i] - mean) * r * scale[i] + shift[i];
        }
        io.write(1, row..row + 1)[0] = mean;
        io.write(2, row..row + 1)[0] = r;
    }
}

pub(super) fn backward<T: Number>(io: &Io<'_, T>, (rows, width): (usize, usize), part: usize) {
    let (x, scale, mean, r, dy) = (io.read(0), io.read(1), io.read(2), io.read(3), io.read(4));
    let n = T::of(width as f64);
    for row in rows_of(rows, part) {
        let range = row * width..(row + 1) * width;
        let (x, dy, mean, r) = (&x[range.clone()], &dy[range.clone()], mean[row], r[row]);
        let a = sum(width, |i| dy[i] * scale[i]) / n;
        let b = sum(width, |i| dy[i] * scale[i] * (x[i] - mean) * r) / n;
        for (i, dx) in io.write(0, range).iter_mut().enumerate() {
            *dx = (dy[i] * scale[i] - a - (x[i] - mean) * r * b) * r;
        }
    }
}

pub(super) fn parameters<T: Number>(io: &Io<'_, T>, width: usize, part: usize) {
    let (x, mean, r, dy) = (io.read(0), io.read(1), io.read(2), io.read(3));
    let columns = columns(width, part);
    let (scale, shift) = (io.write(0, columns.clone()), io.write(1, columns.clone()));
    scale.fill(T::ZERO);
    shift.fill(T::ZERO);
    for (row, (x, dy)) in x.chunks_exact(width).zip(dy.chunks_exact(width)).enumerate() {
        for (at, column) in columns.clone().enumerate() {
            scale[at] += dy[column] * (x[column] - mean[row]) * r[row];
            shift[at] += dy[column];
        }
    }
}
