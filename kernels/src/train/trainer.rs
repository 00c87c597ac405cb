//! A tape on one GPU, step by step.

use muster_tape::Tape;

use super::launch::Clock;
use super::ready::{Memory, Ready, start};
use super::with::{Multiplication, With};
use super::{How, Part, Program};
use crate::cublaslt::CublasLt;
use crate::driver::{Gpu, Graph, Trouble};

/// A training on one GPU. Nothing is allocated between its first step and its last.
#[derive(Debug)]
pub struct Trainer<'a> {
    gpu: &'a Gpu,
    memory: Memory,
    setup: Vec<Ready>,
    parts: Vec<Done<'a>>,
    step: Graph,
}

/// Who does a part of a step, with addresses.
#[derive(Debug)]
enum Done<'a> {
    ByKernel(Ready),
    ByLibrary(Multiplication<'a>),
}

impl<'a> Trainer<'a> {
    /// Bytes that a training takes, and how many parts a step has.
    ///
    /// # Errors
    /// When the tape cannot be run.
    pub fn needs<'l>(gpu: &Gpu, tape: &Tape, with: impl Into<With<'l>>) -> Result<(usize, usize), Trouble> {
        let with = with.into();
        let program = program(gpu, tape, 0, with)?;
        Ok((Memory::bytes(tape, program.space), program.step.len()))
    }

    /// Takes memory, and records a step. Weights and data come from `seed` with the first [`Self::restart`].
    ///
    /// # Errors
    /// When the tape cannot be run, `NotRun` where the library has no algorithm for one of its products, the driver's and the
    /// library's.
    pub fn new(gpu: &'a Gpu, tape: &Tape, seed: u64, with: impl Into<With<'a>>) -> Result<Self, Trouble> {
        let with = with.into();
        let program = program(gpu, tape, seed, with)?;
        let memory = Memory::new(gpu, tape, program.space)?;
        let setup = memory.ready(gpu, &program.setup)?;
        let part = |part: &Part| done_by(gpu, part, (&memory, with.library));
        let parts = program.step.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        // A library loads its code with the first product of a kind, which is no part of a step.
        parts.iter().filter(|part| matches!(part, Done::ByLibrary(_))).try_for_each(|part| part.start(gpu))?;
        gpu.wait()?;
        let step = gpu.record(&mut || parts.iter().try_for_each(|part| part.start(gpu)))?;
        Ok(Self { gpu, memory, setup, parts, step })
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

    /// Milliseconds of each part of a step, one waited for after the other.
    ///
    /// # Errors
    /// The driver's and the library's.
    pub fn profile(&mut self) -> Result<Vec<(&'static str, f64)>, Trouble> {
        let one = |part: &Done<'_>| Ok((part.name(), self.gpu.timed(&mut || part.start(self.gpu))?));
        self.parts.iter().map(one).collect()
    }

    /// Which algorithms the library chose for the products of a step, in their order, as one number: losses of two GPUs are to
    /// be the same only where this is.
    #[must_use]
    pub fn algorithms(&self) -> u64 {
        let words = self.parts.iter().filter_map(|part| match part {
            Done::ByLibrary(product) => Some(product.choice()),
            Done::ByKernel(_) => None,
        });
        // FNV-1a: it tells our own choices apart, not forgeries.
        let bytes = words.flatten().flat_map(u64::to_le_bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

impl Done<'_> {
    fn start(&self, gpu: &Gpu) -> Result<(), Trouble> {
        match self {
            Self::ByKernel(kernel) => start(gpu, std::slice::from_ref(kernel)),
            Self::ByLibrary(product) => product.start(gpu),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::ByKernel(kernel) => kernel.name,
            Self::ByLibrary(_) => "cublasLtMatmul",
        }
    }
}

fn done_by<'a>(
    gpu: &Gpu,
    part: &Part,
    (memory, library): (&Memory, Option<&'a CublasLt>),
) -> Result<Done<'a>, Trouble> {
    match (part, library) {
        (Part::Kernel(launch), _) => Ok(Done::ByKernel(memory.one(gpu, launch)?)),
        (Part::Library(product), Some(library)) => Ok(Done::ByLibrary(Multiplication::new(library, memory, product)?)),
        (Part::Library(_), None) => Err(Trouble::Failed("a product for a library that was not loaded".to_owned())),
    }
}

fn program(gpu: &Gpu, tape: &Tape, seed: u64, with: With<'_>) -> Result<Program, Trouble> {
    let With { precision, library } = with;
    let how = How { library: library.is_some(), ..How::on(gpu, precision)? };
    Program::new(tape, seed, how).map_err(|unfit| Trouble::NotRun(unfit.0))
}
