//! Kernels with addresses: where the memory of a tape lies on a GPU.

use muster_tape::{Span, Tape};

use super::launch::{Clock, Launch, Word};
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};

/// All memory of a training on one GPU.
#[derive(Debug)]
pub(super) struct Memory {
    tape: Buffer,
    space: Buffer,
    pub(super) clock: Buffer,
}

/// A kernel with addresses.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) name: &'static str,
    function: Function,
    shape: Shape,
    args: Vec<Arg<'static>>,
}

impl Memory {
    /// Takes memory for `tape`, and `space` bytes beside it.
    pub(super) fn new(gpu: &Gpu, tape: &Tape, space: usize) -> Result<Self, Trouble> {
        Self::of(gpu, tape.memory, space)
    }

    /// Takes memory for so many elements, and `space` bytes beside them.
    pub(super) fn of(gpu: &Gpu, elements: usize, space: usize) -> Result<Self, Trouble> {
        let tape = gpu.buffer(elements * size_of::<f32>())?;
        Ok(Self { tape, space: gpu.buffer(space)?, clock: gpu.buffer(Clock::BYTES)? })
    }

    /// Bytes that [`Memory::new`] takes.
    pub(super) const fn bytes(tape: &Tape, space: usize) -> usize {
        tape.memory * size_of::<f32>() + space + Clock::BYTES
    }

    /// The kernels of `launches` on `gpu`, whose memory this is.
    pub(super) fn ready(&self, gpu: &Gpu, launches: &[Launch]) -> Result<Vec<Ready>, Trouble> {
        launches.iter().map(|launch| self.one(gpu, launch)).collect()
    }

    /// One kernel.
    pub(super) fn one(&self, gpu: &Gpu, launch: &Launch) -> Result<Ready, Trouble> {
        let Launch { kernel, grid, threads, shared, .. } = *launch;
        let args = launch.args.iter().map(|word| match *word {
            Word::U32(value) => Arg::U32(value),
            Word::U64(value) => Arg::U64(value),
            Word::F32(value) => Arg::U32(value.to_bits()),
            Word::F64(value) => Arg::F64(value),
            place => Arg::U64(self.address(place).unwrap_or(0)),
        });
        let function = gpu.function(kernel, shared)?;
        Ok(Ready { name: kernel, function, shape: Shape { grid, threads, shared }, args: args.collect() })
    }

    /// Address of a span of the tape.
    pub(super) const fn at(&self, span: Span) -> u64 {
        self.tape.address() + (span.offset * size_of::<f32>()) as u64
    }

    /// The address that `word` stands for, if it does for one.
    pub(super) fn address(&self, word: Word) -> Option<u64> {
        match word {
            Word::Tape(element) => Some(self.tape.address() + (element * size_of::<f32>()) as u64),
            Word::Space(byte) => Some(self.space.address() + byte as u64),
            Word::Clock(byte) => Some(self.clock.address() + byte as u64),
            Word::U32(_) | Word::U64(_) | Word::F32(_) | Word::F64(_) | Word::Null => None,
        }
    }

    /// The loss of the last step.
    pub(super) fn loss(&self, gpu: &Gpu) -> Result<f32, Trouble> {
        let mut words = [0_u32; Clock::BYTES / 4];
        gpu.get(&mut words, &self.clock)?;
        Ok(f32::from_bits(words[Clock::LOSS / 4]))
    }
}

/// Puts the kernels on the stream, one after the other.
pub(super) fn start(gpu: &Gpu, kernels: &[Ready]) -> Result<(), Trouble> {
    kernels.iter().try_for_each(|Ready { function, shape, args, .. }| gpu.launch(*function, *shape, args))
}
