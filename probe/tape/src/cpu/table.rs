//! Rows of tables (embeddings) and classes (the loss).

use crate::number::{Number, sum};

use super::element::columns;
use super::memory::Io;

/// Rows of a part.
const ROWS: usize = 16;

pub(super) fn parts(rows: usize) -> usize {
    rows.div_ceil(ROWS)
}

/// A whole number kept as a float.
fn index<T: Number>(value: T) -> usize {
    value.to_f64() as usize
}

pub(super) fn embedding<T: Number>(io: &Io<'_, T>, width: usize, part: usize) {
    let (rows, table) = (io.read(0), io.read(1));
    for (at, row) in rows.iter().enumerate().skip(part * ROWS).take(ROWS) {
        let row = index(*row) * width;
        io.write(0, at * width..(at + 1) * width).copy_from_slice(&table[row..row + width]);
    }
}

/// Rows side by side.
pub(super) fn concat<T: Number>(io: &Io<'_, T>, (left, right): (usize, usize), part: usize) {
    let (a, b) = (io.read(0), io.read(1));
    for row in part * ROWS..((part + 1) * ROWS).min(a.len() / left) {
        let start = row * (left + right);
        io.write(0, start..start + left).copy_from_slice(&a[row * left..(row + 1) * left]);
        io.write(0, start + left..start + left + right).copy_from_slice(&b[row * right..(row + 1) * right]);
    }
}

/// Some columns of rows.
pub(super) fn columns_of<T: Number>(io: &Io<'_, T>, (all, first, count): (usize, usize, usize), part: usize) {
    let matrix = io.read(0);
    for row in part * ROWS..((part + 1) * ROWS).min(matrix.len() / all) {
        io.write(0, row * count..(row + 1) * count).copy_from_slice(&matrix[row * all + first..][..count]);
    }
}

/// A part has some columns of the whole table, and adds rows in their order.
pub(super) fn embedding_backward<T: Number>(io: &Io<'_, T>, width: usize, part: usize) {
    let (rows, gradient) = (io.read(0), io.read(1));
    let columns = columns(width, part);
    for (row, gradient) in rows.iter().zip(gradient.chunks_exact(width)) {
        let start = index(*row) * width;
        let table = io.write(0, start + columns.start..start + columns.end);
        table.iter_mut().zip(&gradient[columns.clone()]).for_each(|(sum, g)| *sum += *g);
    }
}

/// A part is a row.
pub(super) fn cross_entropy<T: Number>(io: &Io<'_, T>, (classes, counted): (usize, usize), row: usize) {
    let logits = &io.read(0)[row * classes..(row + 1) * classes];
    let class = io.read(1)[row];
    let (loss, gradient) = (io.write(0, row..row + 1), io.write(1, row * classes..(row + 1) * classes));
    if class < T::ZERO {
        loss.fill(T::ZERO);
        gradient.fill(T::ZERO);
        return;
    }
    let class = index(class);
    let most = logits.iter().copied().fold(logits[0], |a, b| if b > a { b } else { a });
    gradient.iter_mut().zip(logits).for_each(|(g, x)| *g = (*x - most).exp());
    let total = sum(classes, |i| gradient[i]);
    let weight = T::ONE / T::of(counted as f64);
    gradient.iter_mut().for_each(|g| *g = *g / total * weight);
    gradient[class] += -weight;
    loss[0] = total.ln() + most - logits[class];
}

pub(super) fn mean<T: Number>(io: &Io<'_, T>, counted: usize) {
    let losses = io.read(0);
    io.write(0, 0..1)[0] = sum(losses.len(), |i| losses[i]) / T::of(counted as f64);
}
