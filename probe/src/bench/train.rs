//! How fast the node trains small and published models, and whether it computes what every other node does.
//!
//! A cycle is a few steps from one and the same start. Its losses are right or wrong to the bit: they must come again
//! in every later cycle, and be those of the other nodes, whom the console compares.

use std::fmt::Write;
use std::time::{Duration, Instant};

use muster_tape::{Cpu, Cycle, Model, Steps, Tape};
use muster_wire::{DIGEST, Datum, Fact, Facts, Profile, Reading, Unit};

use super::context::{Context, Metric, share};
use crate::pin::Place;
use crate::steps::{Halt, Plan};
use crate::topology;

/// A benchmark of two sizes of one family.
pub(super) struct Family {
    pub(super) name: &'static str,
    nano: Model,
    published: Model,
}

pub(super) const GPT2: Family = Family { name: "train-gpt2", nano: Model::Gpt2Nano, published: Model::Gpt2Small };
pub(super) const BERT: Family = Family { name: "train-bert", nano: Model::BertNano, published: Model::BertBase };
pub(super) const LSTM: Family = Family { name: "train-lstm", nano: Model::LstmNano, published: Model::Lstm };
pub(super) const RESNET: Family = Family { name: "train-resnet", nano: Model::ResnetNano, published: Model::Resnet50 };

/// Steps of a cycle. Weights of a nano model are far from underflow, where arithmetic would slow down, so soon.
const CYCLE: usize = 16;
/// Fixed, so that every node and every run does the same.
const SEED: u64 = 0x6d75_7374_6572;
/// Time in the smoke profile.
const SMOKE: Duration = Duration::from_millis(900);

impl Family {
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<(), Halt> {
        let long = matches!(context.profile, Profile::Standard | Profile::Full);
        let parts = if long { 2 } else { 1 };
        let plan = context.plan(SMOKE, 1);
        // A value of a nano model is a whole cycle, tens of milliseconds long, where there is time for it.
        let steps = if context.profile == Profile::Smoke { CYCLE / 4 } else { CYCLE };
        self.train(context, self.nano, (&plan, share(0, parts), steps))?;
        if long {
            let (values, patience) = if context.profile == Profile::Standard { (32, 25) } else { (128, 240) };
            let plan = Plan::of_steps(values, Duration::from_secs(patience));
            self.train(context, self.published, (&plan, share(1, parts), 1))?;
        }
        Ok(())
    }

    fn train(
        &self,
        context: &mut Context<'_>,
        model: Model,
        (plan, part, steps): (&Plan, (f64, f64), usize),
    ) -> Result<(), Halt> {
        let tape = model.tape();
        let (needed, free) = (tape.memory * size_of::<f32>(), topology::available_memory());
        if needed > free / 4 * 3 {
            let (needed, free) = (needed >> 20, free >> 20);
            return Err(Halt::NotRun(format!("{} needs {needed} MB, and {free} MB are available", model.name())));
        }
        // The nano models' operations are too small to share.
        let places = if steps > 1 { vec![Place::this_node()] } else { Place::every_core() };
        let failed = |why: muster_tape::Error| Halt::Failed(format!("{}: {why}", model.name()));
        let mut cpu = Cpu::new(&tape, SEED).map_err(failed)?;
        // A thread that cannot be pinned still computes the same.
        let bind = |number: usize| drop(places[number].bind());
        let metric = Metric::of(self.name, format!("{}_fp32_train_step_time", model.name()));
        let known = cpu
            .train(places.len(), &bind, |train| {
                let mut cycle = Rounds::new(model.name(), train);
                let mut fastest = f64::INFINITY;
                context.measure(metric, plan, part, &mut || {
                    let nanos = cycle.timed(steps)?;
                    fastest = fastest.min(nanos);
                    Ok(nanos)
                })?;
                Ok((cycle.whole()?, fastest))
            })
            .map_err(failed)??;
        self.tell(context, model, (&tape, &known.0, known.1));
        Ok(())
    }

    /// The losses, for the console to compare, and the best rate, for a person to read.
    fn tell(&self, context: &mut Context<'_>, model: Model, (tape, losses, nanos): (&Tape, &[u32], f64)) {
        let mut digest = String::new();
        for loss in losses {
            let _infallible = write!(digest, "{loss:08x} ");
        }
        let name = format!("{}_fp32_train", model.name());
        let value = |datum| Reading::Value(datum);
        let throughput = tape.items as f64 / nanos * 1e9;
        let facts = vec![
            Fact {
                key: format!("{DIGEST}{name}_loss"),
                reading: value(Datum::Text(digest.trim_end().into())),
                unit: None,
            },
            Fact {
                key: format!("{name}_throughput"),
                reading: value(Datum::Number(throughput)),
                unit: Some(Unit::OpsPerSec),
            },
        ];
        context.facts(Facts { collector: self.name.to_owned(), facts });
    }
}

/// Steps that start again after [`CYCLE`] of them, and must then give the same losses.
struct Rounds<'a> {
    model: &'static str,
    train: &'a mut dyn Steps,
    cycle: Cycle,
}

impl<'a> Rounds<'a> {
    fn new(model: &'static str, train: &'a mut dyn Steps) -> Self {
        Self { model, train, cycle: Cycle::new(CYCLE) }
    }

    /// Nanoseconds a step, over `steps` of them. Starting again is not counted.
    fn timed(&mut self, steps: usize) -> Result<f64, Halt> {
        let mut spent = Duration::ZERO;
        for _ in 0..steps {
            if self.cycle.is_over() {
                self.train.restart();
                self.cycle.begin();
            }
            let begun = Instant::now();
            let loss = self.train.step().map_err(|why| Halt::Failed(format!("{}: {why}", self.model)))?;
            spent += begun.elapsed();
            let wrong = |why| Halt::Failed(format!("{}: {why}: this node computes wrongly", self.model));
            self.cycle.take(loss).map_err(wrong)?;
        }
        Ok(spent.as_nanos() as f64 / steps as f64)
    }

    /// Bits of the losses of a whole cycle, which a slow node may not have reached yet.
    fn whole(&mut self) -> Result<Vec<u32>, Halt> {
        while !self.cycle.is_whole() {
            self.timed(1)?;
        }
        Ok(self.cycle.losses().iter().map(|loss| loss.to_bits()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses that fall, but for one step of one cycle.
    struct Flawed {
        step: usize,
        all: usize,
        wrong: usize,
    }

    impl Steps for Flawed {
        fn step(&mut self) -> Result<f32, muster_tape::Error> {
            self.step += 1;
            self.all += 1;
            let loss = 10.0 / self.step as f32;
            Ok(if self.all == self.wrong { f32::from_bits(loss.to_bits() ^ 1) } else { loss })
        }

        fn restart(&mut self) {
            self.step = 0;
        }
    }

    #[test]
    fn one_wrong_bit_in_a_later_cycle_is_a_failure_that_names_the_step() {
        let mut right = Flawed { step: 0, all: 0, wrong: 0 };
        assert!(Rounds::new("m", &mut right).timed(10 * CYCLE).is_ok());
        let mut flawed = Flawed { step: 0, all: 0, wrong: 2 * CYCLE + 3 };
        let mut rounds = Rounds::new("m", &mut flawed);
        let ended = rounds.timed(CYCLE).and_then(|_| rounds.timed(CYCLE)).and_then(|_| rounds.timed(CYCLE));
        let Err(Halt::Failed(why)) = ended else { panic!("{ended:?}") };
        assert!(why.starts_with("m: step 3 gave loss 3.3333333 at first and 3.333333"), "{why}");
        assert!(why.ends_with(", from the same start: this node computes wrongly"), "{why}");
    }

    #[test]
    fn a_slow_node_still_ends_its_first_cycle() {
        let mut right = Flawed { step: 0, all: 0, wrong: 0 };
        assert_eq!(Rounds::new("m", &mut right).whole().unwrap().len(), CYCLE);
    }
}
