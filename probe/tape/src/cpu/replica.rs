//! One of many equal models that are trained together, each on data of its own: gradients come out, are summed elsewhere, and go
//! back in before weights are updated.

use std::ops::Range;

use crate::op::{Op, Span};
use crate::random::batch_seed;
use crate::tape::Tape;

use super::gemm::Scratch;
use super::isa::Isa;
use super::machine::{Error, Machine};
use super::memory::Io;
use super::run;

/// A model of [`crate::Model::parallel_tape`] in memory, computed by the caller's thread.
#[derive(Debug)]
pub struct Replica<'a> {
    machine: Machine<'a, f32>,
    scratch: Scratch<f32>,
    updates: usize,
    /// Gradients, in the order of [`Replica::gradients`].
    spans: Vec<Span>,
    seed: u64,
}

impl<'a> Replica<'a> {
    /// Takes memory for `tape` and fills weights from `seed`: replicas of one seed start equal.
    ///
    /// # Errors
    /// [`Error::NoMemory`], and [`Error::Internal`] for a tape whose updates do not come last.
    pub fn new(tape: &'a Tape, seed: u64) -> Result<Self, Error> {
        let updates = tape.updates.ok_or(Error::Internal)?;
        let isa = Isa::best();
        let machine = Machine::new(tape, seed, isa)?;
        let spans = tape.state.iter().filter_map(|state| state.gradient).collect();
        Ok(Self { machine, scratch: Scratch::new(isa), updates, spans, seed })
    }

    /// Numbers that [`Replica::gradients`] gives.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.spans.iter().map(|span| span.len).sum()
    }

    /// Puts in the data of batch number `batch`; different numbers give different data.
    pub fn load(&mut self, batch: u64) {
        let tape = self.machine.tape;
        let seed = batch_seed(self.seed, batch);
        for (number, state) in tape.state.iter().enumerate() {
            if state.is_data() {
                self.machine.memory.set(state.span, |at| state.fill.element(seed, number, at) as f32);
            }
        }
    }

    /// Forward and backward. Returns the loss; gradients can be read then.
    pub fn backward(&mut self) -> f32 {
        self.operate(0..self.updates);
        self.machine.memory.get(self.machine.tape.loss.offset)
    }

    /// Adds the gradients to `sums`, which holds [`Replica::parameters`] numbers.
    pub fn gradients(&mut self, sums: &mut [f32]) {
        let mut rest = sums;
        for span in &self.spans {
            let (now, later) = rest.split_at_mut(span.len);
            now.iter_mut().zip(self.machine.memory.own(*span)).for_each(|(sum, gradient)| *sum += *gradient);
            rest = later;
        }
    }

    /// Updates the weights by `gradients`, which holds [`Replica::parameters`] numbers, in place of those that were computed here.
    pub fn update(&mut self, gradients: &[f32]) {
        let mut rest = gradients;
        for span in &self.spans {
            let (now, later) = rest.split_at(span.len);
            self.machine.memory.own(*span).copy_from_slice(now);
            rest = later;
        }
        self.operate(self.updates..self.machine.tape.ops.len());
        self.machine.step += 1;
    }

    /// A number of all bits of all weights (FNV-1a over words): equal weights give equal numbers.
    pub fn fingerprint(&mut self) -> u64 {
        let tape = self.machine.tape;
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for state in tape.state.iter().filter(|state| state.gradient.is_some()) {
            for weight in self.machine.memory.own(state.span) {
                hash = (hash ^ u64::from(weight.to_bits())).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }

    /// Appends every weight, in the order of the parameters, as four bytes each (little endian).
    pub fn weights(&mut self, bytes: &mut Vec<u8>) {
        let tape = self.machine.tape;
        for state in tape.state.iter().filter(|state| state.gradient.is_some()) {
            bytes.extend(self.machine.memory.own(state.span).iter().flat_map(|weight| weight.to_le_bytes()));
        }
    }

    fn operate(&mut self, ops: Range<usize>) {
        let Self { machine, scratch, .. } = self;
        let tape = machine.tape;
        for op in &tape.ops[ops] {
            parts(machine, op, scratch);
        }
    }
}

fn parts(machine: &Machine<'_, f32>, op: &Op, scratch: &mut Scratch<f32>) {
    for part in 0..run::parts(&op.kind, op.writes[0].len, 1) {
        let io = Io {
            op,
            memory: &machine.memory,
            step: machine.step,
            threads: 1,
            #[cfg(test)]
            written: None,
        };
        run::part(&io, part, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Model};

    fn nanos() -> impl Iterator<Item = Model> {
        Model::ALL.into_iter().filter(|model| model.name().ends_with("-nano"))
    }

    #[test]
    fn updates_at_the_end_give_the_same_losses_as_updates_on_the_way() {
        for model in nanos() {
            let (whole, parallel) = (model.tape(), model.parallel_tape());
            let mut cpu = Cpu::new(&whole, 5).unwrap();
            let right: Vec<u32> =
                cpu.train(1, &|_| {}, |train| (0..4).map(|_| train.step().unwrap().to_bits()).collect()).unwrap();
            let mut replica = Replica::new(&parallel, 5).unwrap();
            let seen: Vec<u32> = (0..4)
                .map(|_| {
                    let loss = replica.backward();
                    let mut gradients = vec![0.0; replica.parameters()];
                    replica.gradients(&mut gradients);
                    replica.update(&gradients);
                    loss.to_bits()
                })
                .collect();
            assert_eq!(seen, right, "{}", model.name());
        }
    }

    #[test]
    fn gradients_are_buffers_of_their_own_that_nobody_else_writes_before_the_update() {
        for model in nanos() {
            let tape = model.parallel_tape();
            let spans: Vec<Span> = tape.state.iter().filter_map(|state| state.gradient).collect();
            assert_eq!(spans.iter().map(|span| span.len).sum::<usize>(), tape.parameters);
            let apart = |a: &Span, b: &Span| a.end() <= b.offset || b.end() <= a.offset;
            for (at, span) in spans.iter().enumerate() {
                assert!(spans[at + 1..].iter().all(|other| apart(span, other)), "{}", model.name());
                let mut updates = tape.ops[tape.updates.unwrap()..].iter();
                assert!(updates.all(|op| op.writes.iter().all(|write| apart(span, write))), "{}", model.name());
            }
        }
    }

    #[test]
    fn replicas_on_different_data_stay_equal_when_they_share_their_gradients_and_only_then() {
        for model in nanos() {
            let tape = model.parallel_tape();
            let mut pair = [Replica::new(&tape, 5).unwrap(), Replica::new(&tape, 5).unwrap()];
            let mut lone = Replica::new(&tape, 5).unwrap();
            for _ in 0..3 {
                let mut sums = vec![0.0; pair[0].parameters()];
                let mut losses = Vec::new();
                for (rank, replica) in pair.iter_mut().enumerate() {
                    replica.load(rank as u64);
                    losses.push(replica.backward());
                    replica.gradients(&mut sums);
                }
                assert_ne!(losses[0], losses[1], "{}", model.name());
                pair.iter_mut().for_each(|replica| replica.update(&sums));
                lone.load(0);
                lone.backward();
                let mut own = vec![0.0; lone.parameters()];
                lone.gradients(&mut own);
                lone.update(&own);
            }
            let [a, b] = pair.each_mut().map(Replica::fingerprint);
            assert_eq!(a, b, "{}", model.name());
            assert_ne!(a, lone.fingerprint(), "{}", model.name());
        }
    }
}
