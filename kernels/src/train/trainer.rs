//! A tape on one GPU, step by step.

use muster_tape::Tape;

use super::launch::Clock;
use super::ready::{Memory, Ready, start};
use super::{How, Precision, Program};
use crate::driver::{Gpu, Graph, Trouble};

/// A training on one GPU. Nothing is allocated between its first step and its last.
#[derive(Debug)]
pub struct Trainer<'a> {
    gpu: &'a Gpu,
    memory: Memory,
    setup: Vec<Ready>,
    kernels: Vec<Ready>,
    step: Graph,
}

impl<'a> Trainer<'a> {
    /// Bytes that a training takes, and how many kernels a step has.
    ///
    /// # Errors
    /// When the tape cannot be run.
    pub fn needs(gpu: &Gpu, tape: &Tape, precision: Precision) -> Result<(usize, usize), Trouble> {
        let program = program(gpu, tape, 0, precision)?;
        Ok((Memory::bytes(tape, program.space), program.step.len()))
    }

    /// Takes memory, and records a step. Weights and data come from `seed` with the first [`Self::restart`].
    ///
    /// # Errors
    /// When the tape cannot be run, or the driver's.
    pub fn new(gpu: &'a Gpu, tape: &Tape, seed: u64, precision: Precision) -> Result<Self, Trouble> {
        let program = program(gpu, tape, seed, precision)?;
        let memory = Memory::new(gpu, tape, program.space)?;
        let (setup, kernels) = (memory.ready(gpu, &program.setup)?, memory.ready(gpu, &program.step)?);
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
        Ok((ms, self.memory.loss(self.gpu)?))
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
    Program::new(tape, seed, How::on(gpu, precision)?).map_err(|unfit| Trouble::NotRun(unfit.0))
}
