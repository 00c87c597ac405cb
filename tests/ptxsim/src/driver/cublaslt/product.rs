//! What a product of cuBLASLt's is: matrices of any shape that lie column by column, either way round, and what faulty devices
//! make of it.

use std::ffi::c_int;

use super::super::errors::{Code, ILLEGAL_ADDRESS};
use super::super::state::{LATENCY, State};
use crate::fault::{Flip, Unit};
use crate::matrix::sized;
use crate::memory::Memory;

/// Operations per second. Slow, so that the smallest product takes as much time as a benchmark asks for.
const RATE: f64 = 50e6;

/// A matrix column by column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) kind: c_int,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) pitch: u64,
}

/// What is done with two matrices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) compute: c_int,
    pub(super) transposed: [bool; 2],
    pub(super) adds_bias: bool,
    pub(super) bias: u64,
}

/// What is multiplied: left operand, right operand, result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) descriptor: Descriptor,
    pub(super) left: Layout,
    pub(super) right: Layout,
    pub(super) result: Layout,
}

impl Shape {
    /// Whether the matrices fit together.
    pub(super) fn fits(&self) -> bool {
        let [rows, columns, depth] = self.sizes();
        let depth_of_left = if self.descriptor.transposed[0] { self.left.rows } else { self.left.columns };
        let fits = (rows, columns, depth) == (self.result.rows, self.result.columns, depth_of_left);
        fits && self.result.pitch == rows && self.left.kind == self.right.kind
    }

    /// Rows and columns of the result, and of how many products its elements are sums.
    const fn sizes(&self) -> [u64; 3] {
        let (left, right) = (self.left, self.right);
        let rows = if self.descriptor.transposed[0] { left.columns } else { left.rows };
        let [columns, depth] =
            if self.descriptor.transposed[1] { [right.rows, right.columns] } else { [right.columns, right.rows] };
        [rows, columns, depth]
    }

    /// The algorithm's number says the shape: whoever hands another one over than was chosen is found out.
    pub(super) fn algorithm(&self) -> u64 {
        let flags = self.descriptor.transposed.map(u64::from);
        self.sizes().into_iter().chain(flags).fold(17, |sum, size| (sum * 31 + size) & 0xffff)
    }
}

/// Does a product between left operand, right operand and result; `keep` times what the result holds is added.
pub(super) fn multiply(
    state: &mut State,
    card: usize,
    [a, b, c]: [u64; 3],
    (shape, keep): (Shape, f64),
) -> Result<(), Code> {
    let Shape { descriptor, left, right, result } = shape;
    let [rows, columns, depth] = shape.sizes().map(|size| size as usize);
    let memory = &mut state.cards[card].device.memory;
    // Along k, whichever way they lie.
    let left = operand(memory, (a, left), (rows, depth), !descriptor.transposed[0])?;
    let right = operand(memory, (b, right), (columns, depth), descriptor.transposed[1])?;
    let before = if keep == 0.0 { Vec::new() } else { operand(memory, (c, result), (columns, rows), false)? };
    let bias = Layout { kind: result.kind, rows: rows as u64, columns: 1, pitch: rows as u64 };
    let bias =
        if descriptor.adds_bias { operand(memory, (descriptor.bias, bias), (1, rows), false)? } else { Vec::new() };
    let mut sums = Vec::with_capacity(rows * columns);
    for (column, right) in right.chunks_exact(depth).enumerate() {
        for (row, left) in left.chunks_exact(depth).enumerate() {
            let sum: f64 = left.iter().zip(right).map(|(x, y)| x * y).sum();
            let more = before.get(column * rows + row).map_or(0.0, |old| keep * old);
            sums.push(sum + more + bias.get(row).copied().unwrap_or(0.0));
        }
    }
    let on_tensor_cores = shape.left.kind != 1 && !(shape.left.kind == 0 && descriptor.compute == 68);
    let bytes = rounded(state, card, on_tensor_cores, (&sums, result.kind));
    let memory = &mut state.cards[card].device.memory;
    memory.write(c, &bytes).map_err(|_| ILLEGAL_ADDRESS)?;
    state.cards[card].now += LATENCY + 2.0 * (rows * columns * depth) as f64 / RATE * 1e9;
    Ok(())
}

/// `lines` of `length` numbers of a matrix; `across`: its rows, else its columns.
fn operand(
    memory: &mut Memory,
    (at, layout): (u64, Layout),
    (lines, length): (usize, usize),
    across: bool,
) -> Result<Vec<f64>, Code> {
    let (size, pitch) = (width(layout.kind), layout.pitch as usize);
    let all = pitch * (layout.columns as usize - 1) + layout.rows as usize;
    let bytes = memory.read(at, all * size).map_err(|_| ILLEGAL_ADDRESS)?;
    let place = |line: usize, along: usize| if across { along * pitch + line } else { line * pitch + along };
    let places = (0..lines).flat_map(|line| (0..length).map(move |along| place(line, along)));
    Ok(places.map(|place| number(layout.kind, &bytes[place * size..(place + 1) * size])).collect())
}

/// Sums as they are written, with what a faulty device makes of them: one whose multiprocessors are all wrong alike always
/// flips the same bits, of one the elements it computes are others each time.
fn rounded(state: &mut State, card: usize, on_tensor_cores: bool, (sums, kind): (&[f64], c_int)) -> Vec<u8> {
    let unit = if on_tensor_cores { Unit::Mma } else { Unit::Fma };
    let flips = state.cards[card].device.faults.flips.clone().into_iter().filter(|flip| flip.unit == unit);
    let flips: Vec<(Flip, u64)> =
        flips.map(|flip| (flip, if flip.sm.is_none() { 0 } else { state.rng.below(flip.every) })).collect();
    let mut bytes = Vec::with_capacity(sums.len() * width(kind));
    for (at, sum) in sums.iter().enumerate() {
        let mut bits = match kind {
            1 => sum.to_bits(),
            10 => u64::from((*sum as i32).cast_unsigned()),
            _ => u64::from((*sum as f32).to_bits()),
        };
        for (flip, phase) in &flips {
            let hit = (at as u64 + phase) % flip.every == flip.every - 1;
            bits ^= u64::from(hit) << flip.bit;
        }
        bytes.extend_from_slice(&bits.to_le_bytes()[..width(kind)]);
    }
    bytes
}

/// Bytes of a number, by `library_types.h`.
const fn width(kind: c_int) -> usize {
    match kind {
        3 | 28 => 1,
        2 | 14 => 2,
        1 => 8,
        _ => 4,
    }
}

fn number(kind: c_int, bytes: &[u8]) -> f64 {
    let bits = crate::memory::number(bytes);
    match kind {
        1 => f64::from_bits(bits),
        2 => sized(bits as u32 & 0x7fff, 10, 15, bits >> 15 == 1),
        3 => f64::from(bits as i8),
        14 => f64::from(f32::from_bits((bits as u32) << 16)),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}
