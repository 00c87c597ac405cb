//! What libraries of dense arithmetic share: numbers in the devices' memory, and settings that make a function go wrong.

use super::errors::{Code, ILLEGAL_ADDRESS};
use super::nccl::fault;
use super::state::{LATENCY, State};
use crate::alu::half;
use crate::matrix::sized;

/// In the settings: one number of the result is wrong; it takes ten times as long.
const WRONG: Code = 1001;
const SLOW: Code = 1002;
/// Operations per second. Slow, so that the smallest work takes as much time as a benchmark asks for.
const RATE: f64 = 50e6;

/// Types of numbers, as all of NVIDIA's headers number them.
pub(super) const FLOAT: i32 = 0;
pub(super) const HALF: i32 = 2;

/// How a function does its work, or the code that it answers instead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    wrong: bool,
    slow: bool,
}

impl Manner {
    /// As the settings have it for a function.
    pub(super) fn of(name: &str) -> Result<Self, Code> {
        match fault(name) {
            None => Ok(Self::default()),
            Some(WRONG) => Ok(Self { wrong: true, slow: false }),
            Some(SLOW) => Ok(Self { wrong: false, slow: true }),
            Some(code) => Err(code),
        }
    }

    /// Writes a result that took so many operations.
    pub(super) fn finish(
        self,
        state: &mut State,
        card: usize,
        (at, kind): (u64, i32),
        (mut numbers, operations): (Vec<f64>, f64),
    ) -> Result<(), Code> {
        if let (true, Some(last)) = (self.wrong, numbers.last_mut()) {
            *last += 1.0 + last.abs() / 4.0;
        }
        let took = operations / RATE * 1e9 * if self.slow { 10.0 } else { 1.0 };
        state.cards[card].now += LATENCY + took;
        write(state, card, (at, kind), &numbers)
    }
}

/// Bytes of a number.
const fn width(kind: i32) -> usize {
    if kind == HALF { 2 } else { 4 }
}

/// So many numbers from there.
pub(super) fn read(state: &mut State, card: usize, (at, kind): (u64, i32), count: usize) -> Result<Vec<f64>, Code> {
    let bytes = state.cards[card].device.memory.read(at, count * width(kind)).map_err(|_| ILLEGAL_ADDRESS)?;
    let number = |bytes: &[u8]| {
        let bits = crate::memory::number(bytes) as u32;
        if kind == HALF { sized(bits & 0x7fff, 10, 15, bits >> 15 == 1) } else { f64::from(f32::from_bits(bits)) }
    };
    Ok(bytes.chunks_exact(width(kind)).map(number).collect())
}

fn write(state: &mut State, card: usize, (at, kind): (u64, i32), numbers: &[f64]) -> Result<(), Code> {
    let bytes: Vec<u8> = if kind == HALF {
        numbers.iter().flat_map(|number| half(*number as f32).to_le_bytes()).collect()
    } else {
        numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect()
    };
    state.cards[card].device.memory.write(at, &bytes).map_err(|_| ILLEGAL_ADDRESS)
}
