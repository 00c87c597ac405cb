//! One call on its operands: how long it takes, and whether it is right.

use std::cell::Cell;

use super::super::node::wide;
use super::super::run::Run;
use super::engine::Engine;
use crate::calls::{Entry, Exact};
use crate::driver::{Arg, Buffer, Gpu, Trouble};
use crate::twin::{self, Number};

/// Numbers of a result that are computed again, chosen at random.
const CHECKED: u64 = 64;
/// What operands and result are made of.
const SEEDS: [u32; 3] = [1, 2, 3];
/// What a result in half precision is off by its rounding, of itself.
const ROUNDED: f64 = 1.0 / 1024.0;

/// A call and its operands on the GPU.
pub(super) struct Trial<'a> {
    entry: &'a Entry,
    /// A, B and C.
    buffers: [Buffer; 3],
}

impl<'a> Trial<'a> {
    pub(super) fn new(gpu: &Gpu, entry: &'a Entry) -> Result<Self, Trouble> {
        let size = entry.call.precision().number().size();
        let [a, b, c] = entry.call.lengths().map(|length| gpu.buffer((length as usize * size).next_multiple_of(16)));
        let trial = Self { entry, buffers: [a?, b?, c?] };
        trial.fill(gpu, 0)?;
        trial.fill(gpu, 1)?;
        Ok(trial)
    }

    fn number(&self) -> Number {
        self.entry.call.precision().number()
    }

    /// Makes operand number `which`.
    fn fill(&self, gpu: &Gpu, which: usize) -> Result<(), Trouble> {
        let (buffer, (keep, set)) = (&self.buffers[which], self.number().mask());
        let pairs = Arg::U64(buffer.bytes as u64 / 8);
        let arguments = [Arg::At(buffer), pairs, Arg::U32(SEEDS[which]), Arg::U64(keep), Arg::U64(set)];
        gpu.launch(gpu.function("operand", 0)?, wide(gpu), &arguments)
    }

    /// Takes the series of one engine, checks its result before and after, and gives it. `other`: what another engine makes
    /// of the same numbers.
    pub(super) fn measure(
        &self,
        run: &mut Run<'_>,
        part: (usize, usize),
        engine: &dyn Engine,
        other: Option<&[u32]>,
    ) -> Result<Vec<u32>, Trouble> {
        let (gpu, name) = (run.gpu, self.entry.name);
        let first = self.once(gpu, engine)?;
        self.check(gpu, engine, &first, other)?;
        // What adds to its result adds and takes away in turn, so that numbers stay as large as they are.
        let (adds, factor) = (self.entry.call.adds(), Cell::new(1.0));
        let mut batch = |count: u32| {
            gpu.timed(&mut || {
                (0..count).try_for_each(|_| {
                    let alpha = factor.get();
                    factor.set(if adds { -alpha } else { alpha });
                    self.start(gpu, engine, alpha)
                })
            })
        };
        let (times, warmup) = run.times(name, part, &mut batch)?;
        let values: Vec<f64> = times.into_iter().map(|ms| ms * 1e6).collect();
        match engine.version() {
            None => run.series(name, values, warmup)?,
            Some(version) => run.tell((format!("{name}:{}", gpu.index), version), values, warmup)?,
        }
        let again = self.once(gpu, engine)?;
        self.check(gpu, engine, &again, other)?;
        if engine.repeats() {
            self.same(gpu, engine, &first, &again)?;
        }
        Ok(again)
    }

    fn start(&self, gpu: &Gpu, engine: &dyn Engine, alpha: f32) -> Result<(), Trouble> {
        engine.start(gpu, self.buffers.each_ref(), alpha).map_err(|trouble| trouble.about(self.entry.name))
    }

    /// The words of the result of one call on a fresh one.
    fn once(&self, gpu: &Gpu, engine: &dyn Engine) -> Result<Vec<u32>, Trouble> {
        self.fill(gpu, 2)?;
        self.start(gpu, engine, 1.0)?;
        let result = &self.buffers[2];
        let mut words = vec![0; result.bytes / 4];
        gpu.get(&mut words, result)?;
        Ok(words)
    }

    fn same(&self, gpu: &Gpu, engine: &dyn Engine, first: &[u32], again: &[u32]) -> Result<(), Trouble> {
        let Some(at) = first.iter().zip(again).position(|(a, b)| a != b) else { return Ok(()) };
        let what = format!("the same {} by {} gave other bits the second time", self.entry.name, engine.whose());
        let bits = format!("word {at} was {:08x} and is {:08x}", first[at], again[at]);
        Err(Trouble::Failed(format!("GPU {}: {what}: {bits}", gpu.index)))
    }

    /// Computes numbers again, in f64: some at random, and the one that is furthest from what another engine gave.
    fn check(&self, gpu: &Gpu, engine: &dyn Engine, words: &[u32], other: Option<&[u32]>) -> Result<(), Trouble> {
        let (number, length) = (self.number(), self.entry.call.lengths()[2]);
        let random = (0..CHECKED).map(|at| u64::from(twin::pattern(7, at)) % length);
        let apart = other.and_then(|other| furthest(number, length, words, other));
        random.chain(apart).try_for_each(|at| {
            let (got, exact, before) = (number.read(words, at), self.exact(at), self.before(at));
            let (right, scale) = (exact.value + before, exact.scale + before.abs());
            let rounded = if number == Number::Fp16 { ROUNDED * right.abs() } else { 0.0 };
            // Not-a-number is no small error, so the comparison is for what is right.
            if (got - right).abs() <= engine.tolerance() * scale + rounded {
                return Ok(());
            }
            let what = format!("number {at} of {} by {} is {got:e}", self.entry.name, engine.whose());
            Err(Trouble::Failed(format!("GPU {}: {what}, not {right:e}", gpu.index)))
        })
    }

    fn exact(&self, at: u64) -> Exact {
        let (number, [a, b, _]) = (self.number(), SEEDS);
        self.entry.call.exact(at, [&|at| number.element(a, at), &|at| number.element(b, at)])
    }

    /// What is added to.
    fn before(&self, at: u64) -> f64 {
        if self.entry.call.adds() { self.number().element(SEEDS[2], at) } else { 0.0 }
    }
}

/// The number in which two results differ most; none where they are one and the same.
fn furthest(number: Number, length: u64, one: &[u32], other: &[u32]) -> Option<u64> {
    let differ = |at: u64| {
        let apart = (number.read(one, at) - number.read(other, at)).abs();
        if apart.is_nan() { f64::INFINITY } else { apart }
    };
    let further = |(found, most): (Option<u64>, f64), at| {
        let apart = differ(at);
        if apart > most { (Some(at), apart) } else { (found, most) }
    };
    (0..length).fold((None, 0.0), further).0
}
