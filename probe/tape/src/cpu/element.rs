//! Operations that treat every element alone, or a column as a whole.

use std::ops::Range;

use crate::number::Number;

use super::memory::Io;

/// Elements of a part.
const CHUNK: usize = 16_384;
/// Columns of a part, where columns are summed.
const COLUMNS: usize = 64;

/// `sqrt(2 / pi)`.
const SLOPE: f64 = 0.797_884_560_802_865_4;
const CUBIC: f64 = 0.044_715;

#[inline(always)]
pub(super) fn gelu<T: Number>(x: T) -> T {
    T::of(0.5) * x * (T::ONE + (T::of(SLOPE) * (x + T::of(CUBIC) * x * x * x)).tanh())
}

#[inline(always)]
fn gelu_slope<T: Number>(x: T) -> T {
    let t = (T::of(SLOPE) * (x + T::of(CUBIC) * x * x * x)).tanh();
    let inner = T::of(SLOPE) * (T::ONE + T::of(3.0 * CUBIC) * x * x);
    T::of(0.5) * (T::ONE + t) + T::of(0.5) * x * (T::ONE - t * t) * inner
}

pub(super) fn parts(len: usize) -> usize {
    len.div_ceil(CHUNK)
}

pub(super) fn column_parts(columns: usize) -> usize {
    columns.div_ceil(COLUMNS)
}

/// Elements of a part.
pub(super) fn chunk(len: usize, part: usize) -> Range<usize> {
    part * CHUNK..len.min((part + 1) * CHUNK)
}

/// Columns of a part.
pub(super) fn columns(all: usize, part: usize) -> Range<usize> {
    part * COLUMNS..all.min((part + 1) * COLUMNS)
}

/// `y[i] = f(a[i])`
pub(super) fn map<T: Number>(io: &Io<'_, T>, part: usize, f: impl Fn(T) -> T) {
    let range = chunk(io.op.writes[0].len, part);
    let a = &io.read(0)[range.clone()];
    io.write(0, range).iter_mut().zip(a).for_each(|(y, a)| *y = f(*a));
}

/// `y[i] = f(a[i], b[i])`
pub(super) fn zip<T: Number>(io: &Io<'_, T>, part: usize, f: impl Fn(T, T) -> T) {
    let range = chunk(io.op.writes[0].len, part);
    let (a, b) = (&io.read(0)[range.clone()], &io.read(1)[range.clone()]);
    io.write(0, range).iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = f(*a, *b));
}

pub(super) fn relu<T: Number>(x: T) -> T {
    if x > T::ZERO { x } else { T::ZERO }
}

pub(super) fn relu_backward<T: Number>(y: T, dy: T) -> T {
    if y > T::ZERO { dy } else { T::ZERO }
}

pub(super) fn gelu_backward<T: Number>(x: T, dy: T) -> T {
    dy * gelu_slope(x)
}

pub(super) fn column_sum<T: Number>(io: &Io<'_, T>, all: usize, part: usize) {
    let columns = columns(all, part);
    let sums = io.write(0, columns.clone());
    sums.fill(T::ZERO);
    for row in io.read(0).chunks_exact(all) {
        sums.iter_mut().zip(&row[columns.clone()]).for_each(|(sum, x)| *sum += *x);
    }
}
