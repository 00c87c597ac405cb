//! Calls by muster's own kernels.

use super::engine::Engine;
use crate::calls::{Call, Place, Precision, Program, Word};
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};

/// The kernels of one call, and room for sums of shares.
pub(super) struct Own {
    precision: Precision,
    /// For a factor of one, and of minus one.
    programs: [Program; 2],
    functions: Vec<Function>,
    parts: Buffer,
}

impl Own {
    pub(super) fn new(gpu: &Gpu, call: Call) -> Result<Self, Trouble> {
        let programs = [1.0, -1.0].map(|alpha| call.program(alpha));
        let functions = programs[0].launches.iter().map(|launch| gpu.function(launch.kernel, 0));
        let (functions, parts) = (functions.collect::<Result<_, _>>()?, gpu.buffer(programs[0].parts as usize)?);
        Ok(Self { precision: call.precision(), programs, functions, parts })
    }
}

impl Engine for Own {
    fn version(&self) -> Option<String> {
        None
    }

    fn whose(&self) -> &'static str {
        "muster's kernel"
    }

    fn tolerance(&self) -> f64 {
        if self.precision == Precision::Fp16 { 1e-3 } else { 1e-5 }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn start(&self, gpu: &Gpu, [a, b, c]: [&Buffer; 3], alpha: f32) -> Result<(), Trouble> {
        let program = &self.programs[usize::from(alpha < 0.0)];
        program.launches.iter().zip(&self.functions).try_for_each(|(launch, function)| {
            let arg = |word: &Word| match *word {
                Word::U32(value) => Arg::U32(value),
                Word::U64(value) => Arg::U64(value),
                Word::F32(value) => Arg::U32(value.to_bits()),
                Word::Null => Arg::U64(0),
                Word::At(Place::A) => Arg::U64(a.address()),
                Word::At(Place::B) => Arg::U64(b.address()),
                Word::At(Place::C) => Arg::U64(c.address()),
                Word::At(Place::Parts) => Arg::U64(self.parts.address()),
            };
            let args: Vec<Arg<'_>> = launch.args.iter().map(arg).collect();
            gpu.launch(*function, Shape { grid: launch.grid, threads: 256, shared: 0 }, &args)
        })
    }
}
