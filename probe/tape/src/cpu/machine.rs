//! A tape in memory, and the threads that run it step by step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use crate::number::Number;
use crate::op::Span;
use crate::tape::Tape;

use super::gemm::Scratch;
use super::isa::Isa;
use super::memory::{Io, Memory};
use super::run;
use super::team::Barrier;

/// Why a tape cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The memory was refused.
    #[error("no memory for {} MB of weights and activations", bytes >> 20)]
    NoMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// A thread was refused.
    #[error("cannot start a training thread")]
    NoThread,
    /// A defect of ours.
    #[error("a training thread came to an internal error")]
    Internal,
}

/// A tape with its memory, ready for the first step.
#[derive(Debug)]
pub struct Cpu<'a> {
    machine: Machine<'a, f32>,
}

impl<'a> Cpu<'a> {
    /// Takes memory for `tape` and fills weights and data from `seed`.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(tape: &'a Tape, seed: u64) -> Result<Self, Error> {
        Ok(Self { machine: Machine::new(tape, seed, Isa::best())? })
    }

    /// What a span of the tape holds now.
    ///
    /// # Panics
    /// When the span is none of this tape.
    #[must_use]
    pub fn elements(&mut self, span: Span) -> &[f32] {
        &self.machine.memory.all()[span.offset..span.end()]
    }

    /// Gives `body` the steps, run by `threads` threads including the caller's. Each of the others calls `place` with
    /// its number, 1 and up, when it starts. The losses are the same whatever the number.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub fn train<R>(
        &mut self,
        threads: usize,
        place: &(dyn Fn(usize) + Sync),
        body: impl FnOnce(&mut dyn Steps) -> R,
    ) -> Result<R, Error> {
        self.machine.train(threads, place, body)
    }
}

/// Steps of a training, one after the other.
pub trait Steps {
    /// Forward, backward and update. Returns the loss before the update.
    ///
    /// # Errors
    /// [`Error::Internal`].
    fn step(&mut self) -> Result<f32, Error>;

    /// Back to before the first step: the same losses follow.
    fn restart(&mut self);
}

/// A tape in memory, in one arithmetic.
#[derive(Debug)]
pub(crate) struct Machine<'a, T> {
    pub(super) tape: &'a Tape,
    seed: u64,
    isa: Isa,
    pub(super) memory: Memory<T>,
    pub(super) step: u32,
}

/// What threads share during a training.
struct Shared<'a, T> {
    tape: &'a Tape,
    seed: u64,
    isa: Isa,
    memory: &'a Memory<T>,
    threads: usize,
    step: AtomicU32,
    /// The next part of each operation.
    next: Vec<AtomicUsize>,
    barrier: Barrier,
}

impl<'a, T: Number> Machine<'a, T> {
    pub(crate) fn new(tape: &'a Tape, seed: u64, isa: Isa) -> Result<Self, Error> {
        let memory = Memory::new(tape.memory)?;
        fill(tape, seed, &memory);
        Ok(Self { tape, seed, isa, memory, step: 0 })
    }

    #[cfg(test)]
    pub(crate) fn elements(&mut self) -> &mut [T] {
        self.memory.all()
    }

    pub(crate) fn train<R>(
        &mut self,
        threads: usize,
        place: &(dyn Fn(usize) + Sync),
        body: impl FnOnce(&mut dyn Steps) -> R,
    ) -> Result<R, Error> {
        let threads = threads.max(1);
        let shared = Shared {
            tape: self.tape,
            seed: self.seed,
            isa: self.isa,
            memory: &self.memory,
            threads,
            step: AtomicU32::new(self.step),
            next: self.tape.ops.iter().map(|_| AtomicUsize::new(0)).collect(),
            barrier: Barrier::new(threads),
        };
        let result = scope(|scope| {
            // Frees the others when it is dropped, also by a panic or a refused thread.
            let mut lead = Lead { shared: &shared, scratch: Scratch::new(self.isa) };
            for number in 1..threads {
                let shared = &shared;
                let work = move || {
                    let followed = catch_unwind(AssertUnwindSafe(|| {
                        place(number);
                        shared.follow();
                    }));
                    if followed.is_err() {
                        shared.barrier.give_up();
                    }
                };
                Builder::new().name("train".into()).spawn_scoped(scope, work).map_err(|_| Error::NoThread)?;
            }
            Ok(body(&mut lead))
        });
        self.step = shared.step.load(Ordering::Relaxed);
        result
    }
}

/// Weights and data as before the first step. Called while no operation runs.
fn fill<T: Number>(tape: &Tape, seed: u64, memory: &Memory<T>) {
    for (number, buffer) in tape.state.iter().enumerate() {
        memory.set(buffer.span, |at| T::of(buffer.fill.element(seed, number, at)));
    }
}

impl<T: Number> Shared<'_, T> {
    fn follow(&self) {
        let mut scratch = Scratch::new(self.isa);
        while self.barrier.wait() && self.work(&mut scratch) {}
    }

    /// This thread's share of one step. False: another thread failed.
    fn work(&self, scratch: &mut Scratch<T>) -> bool {
        for (op, next) in self.tape.ops.iter().zip(&self.next) {
            let parts = run::parts(&op.kind, op.writes[0].len, self.threads);
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts {
                    break;
                }
                let io = Io {
                    op,
                    memory: self.memory,
                    step: self.step.load(Ordering::Relaxed),
                    threads: self.threads,
                    #[cfg(test)]
                    written: None,
                };
                run::part(&io, part, scratch);
            }
            if !self.barrier.wait() {
                return false;
            }
        }
        true
    }
}

/// The caller's thread.
struct Lead<'a, T: Number> {
    shared: &'a Shared<'a, T>,
    scratch: Scratch<T>,
}

impl<T: Number> Steps for Lead<'_, T> {
    fn step(&mut self) -> Result<f32, Error> {
        self.shared.next.iter().for_each(|next| next.store(0, Ordering::Relaxed));
        if !(self.shared.barrier.wait() && self.shared.work(&mut self.scratch)) {
            return Err(Error::Internal);
        }
        self.shared.step.fetch_add(1, Ordering::Relaxed);
        Ok(self.shared.memory.get(self.shared.tape.loss.offset).to_f64() as f32)
    }

    fn restart(&mut self) {
        self.shared.step.store(0, Ordering::Relaxed);
        fill(self.shared.tape, self.shared.seed, self.shared.memory);
    }
}

impl<T: Number> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        self.shared.barrier.give_up();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::Model;

    #[test]
    fn parts_of_an_operation_write_disjoint_ranges_and_together_all_of_it() {
        for (model, threads) in Model::ALL.into_iter().filter(|m| m.name().ends_with("-nano")).zip([1, 5, 64, 3, 2, 7])
        {
            // Without windows in memory, but for those that an image of three colours still has.
            let tape = model.implicit(model.size());
            let machine = Machine::<f32>::new(&tape, 1, Isa::best()).unwrap();
            let mut scratch = Scratch::new(Isa::best());
            for (number, op) in tape.ops.iter().enumerate() {
                let mut owner = vec![usize::MAX; tape.memory];
                for part in 0..run::parts(&op.kind, op.writes[0].len, threads) {
                    let written = RefCell::new(Vec::new());
                    let io = Io { op, memory: &machine.memory, step: 0, threads, written: Some(&written) };
                    run::part(&io, part, &mut scratch);
                    for at in written.into_inner().into_iter().flatten() {
                        let before = std::mem::replace(&mut owner[at], part);
                        let alone = before == usize::MAX || before == part;
                        assert!(alone, "{} op {number} {:?}: {before} and {part} at {at}", model.name(), op.kind);
                    }
                }
                // A table of gradients is added to only where there are gradients.
                let whole = op.writes.iter().all(|w| owner[w.offset..w.end()].iter().all(|o| *o != usize::MAX));
                assert!(whole || matches!(op.kind, crate::Kind::EmbeddingBackward { .. }), "{:?}", op.kind);
            }
        }
    }

    #[test]
    fn a_panic_in_one_thread_is_an_error_and_no_deadlock() {
        let tape = Model::Gpt2Nano.tape();
        let mut cpu = crate::Cpu::new(&tape, 1).unwrap();
        let ended = cpu.train(3, &|number| assert_ne!(number, 2, "on purpose"), |train| train.step());
        assert_eq!(ended, Ok(Err(Error::Internal)));
    }
}
