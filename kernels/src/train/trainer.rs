//! A tape on one GPU, step by step.

use muster_tape::Tape;

use super::launch::{Clock, Launch, Word};
use super::{How, Precision, Program};
use crate::driver::{Arg, Buffer, Function, Gpu, Graph, Shape, Trouble};

/// A training on one GPU. Nothing is allocated between its first step and its last.
#[derive(Debug)]
pub struct Trainer<'a> {
    gpu: &'a Gpu,
    memory: Memory,
    setup: Vec<Ready>,
    kernels: Vec<Ready>,
    step: Graph,
}

#[derive(Debug)]
struct Memory {
    tape: Buffer,
    space: Buffer,
    clock: Buffer,
}

/// A kernel with addresses.
#[derive(Debug)]
struct Ready {
    name: &'static str,
    function: Function,
    shape: Shape,
    args: Vec<Arg<'static>>,
}

impl Memory {
    fn ready(&self, gpu: &Gpu, launch: &Launch) -> Result<Ready, Trouble> {
        let Launch { kernel, grid, threads, shared, .. } = *launch;
        let args = launch.args.iter().map(|word| match *word {
            Word::U32(value) => Arg::U32(value),
            Word::U64(value) => Arg::U64(value),
            Word::F32(value) => Arg::U32(value.to_bits()),
            Word::F64(value) => Arg::F64(value),
            Word::Null => Arg::U64(0),
            Word::Tape(element) => Arg::U64(self.tape.address() + (element * size_of::<f32>()) as u64),
            Word::Space(byte) => Arg::U64(self.space.address() + byte as u64),
            Word::Clock(byte) => Arg::U64(self.clock.address() + byte as u64),
        });
        let function = gpu.function(kernel, shared)?;
        Ok(Ready { name: kernel, function, shape: Shape { grid, threads, shared }, args: args.collect() })
    }
}

impl<'a> Trainer<'a> {
    /// Bytes that a training takes, and how many kernels a step has.
    ///
    /// # Errors
    /// When the tape cannot be run.
    pub fn needs(gpu: &Gpu, tape: &Tape, precision: Precision) -> Result<(usize, usize), Trouble> {
        let program = program(gpu, tape, 0, precision)?;
        Ok((bytes(tape, &program), program.step.len()))
    }

    /// Takes memory, and records a step. Weights and data come from `seed` with the first [`Self::restart`].
    ///
    /// # Errors
    /// When the tape cannot be run, or the driver's.
    pub fn new(gpu: &'a Gpu, tape: &Tape, seed: u64, precision: Precision) -> Result<Self, Trouble> {
        let program = program(gpu, tape, seed, precision)?;
        let memory = Memory {
            tape: gpu.buffer(tape.memory * size_of::<f32>())?,
            space: gpu.buffer(program.space)?,
            clock: gpu.buffer(Clock::BYTES)?,
        };
        let ready = |launches: &[Launch]| -> Result<Vec<Ready>, Trouble> {
            launches.iter().map(|launch| memory.ready(gpu, launch)).collect()
        };
        let (setup, kernels) = (ready(&program.setup)?, ready(&program.step)?);
        let step = gpu.record(&mut || start(gpu, &kernels))?;
        Ok(Self { gpu, memory, setup, kernels, step })
    }

    /// Back to before the first step: the same losses follow.
    ///
    /// # Errors
    /// The driver's.
    pub fn restart(&mut self) -> Result<(), Trouble> {
        self.gpu.put(&self.memory.clock, &Clock::START)?;
        start(self.gpu, &self.setup)?;
        self.gpu.wait()
    }

    /// Milliseconds of one step on the GPU, and its loss.
    ///
    /// # Errors
    /// The driver's.
    pub fn step(&mut self) -> Result<(f64, f32), Trouble> {
        let ms = self.gpu.timed(&mut || self.gpu.replay(&self.step))?;
        let mut words = [0_u32; Clock::BYTES / 4];
        self.gpu.get(&mut words, &self.memory.clock)?;
        Ok((ms, f32::from_bits(words[Clock::LOSS / 4])))
    }

    /// Milliseconds of each kernel of a step, one waited for after the other.
    ///
    /// # Errors
    /// The driver's.
    pub fn profile(&mut self) -> Result<Vec<(&'static str, f64)>, Trouble> {
        let one =
            |ready: &Ready| Ok((ready.name, self.gpu.timed(&mut || start(self.gpu, std::slice::from_ref(ready)))?));
        self.kernels.iter().map(one).collect()
    }
}

fn program(gpu: &Gpu, tape: &Tape, seed: u64, precision: Precision) -> Result<Program, Trouble> {
    let how = How { precision, wgmma: gpu.has("product_wgmma")?, sms: gpu.sms };
    Program::new(tape, seed, how).map_err(|unfit| Trouble::NotRun(unfit.0))
}

const fn bytes(tape: &Tape, program: &Program) -> usize {
    tape.memory * size_of::<f32>() + program.space + Clock::BYTES
}

fn start(gpu: &Gpu, launches: &[Ready]) -> Result<(), Trouble> {
    launches.iter().try_for_each(|Ready { function, shape, args, .. }| gpu.launch(*function, *shape, args))
}
