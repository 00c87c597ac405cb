//! What is timed of a training by all GPUs: its steps, computing alone, adding up alone; and that every loss comes again.

use muster_tape::Cycle;
use muster_wire::Profile;

use super::super::node::Node;
use super::super::train::{FEW, STEPS};
use crate::driver::Trouble;
use crate::parallel::{Team, Way, suspects};

/// One model and one way to add up.
pub(super) struct Job<'a> {
    pub(super) name: String,
    /// Tokens or samples of one GPU in a step.
    pub(super) items: usize,
    pub(super) team: &'a Team<'a>,
    pub(super) way: &'a Way<'a>,
}

/// Milliseconds.
#[derive(Default)]
struct Times {
    /// Of a step of all GPUs.
    steps: Vec<f64>,
    /// Of each GPU by itself, by step.
    alone: Vec<Vec<f64>>,
    /// Of adding up alone.
    sums: Vec<f64>,
}

/// Something is wrong, in sentences; or the driver does not go on.
enum Ended {
    Wrong(Vec<String>),
    Trouble(Trouble),
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl Job<'_> {
    /// Measures, and says it; what is wrong is blamed, and nothing measured then. The share of the benchmark's work that this is
    /// begins and is as long as `part` says. Computing alone is the same in every way: it is told `whole` only.
    pub(super) fn measure(&self, node: &mut Node<'_>, whole: bool, part: (f64, f64)) -> Result<(), Trouble> {
        let engine = self.way.engine(node.gpus[0].engine);
        match self.times(node, &engine, part) {
            Ok((times, cycles, warmup)) => {
                self.tell(node, &engine, (&times, warmup, whole))?;
                self.note(node, &engine, &times, &cycles);
                Ok(())
            }
            Err(Ended::Wrong(all)) => {
                all.into_iter().for_each(|what| node.blame(format!("{} by {engine}: {what}", self.name)));
                Ok(())
            }
            Err(Ended::Trouble(trouble)) => Err(trouble.about(&engine)),
        }
    }

    fn times(
        &self,
        node: &mut Node<'_>,
        engine: &str,
        (begin, share): (f64, f64),
    ) -> Result<(Times, Vec<Cycle>, usize), Ended> {
        let what = format!("{} by {engine}", self.name);
        let smoke = node.profile == Profile::Smoke;
        let (steps, warmup) = if smoke { (2, 0) } else { (STEPS, FEW) };
        let wanted = match node.profile {
            Profile::Smoke => 4,
            Profile::Quick | Profile::Standard => 32,
            Profile::Full => 128,
        };
        node.all().progress(begin, &what);
        sound(suspects::all(self.team, self.way)?)?;
        let mut cycles = vec![Cycle::new(steps); node.gpus.len()];
        let mut times = Times::default();
        if warmup > 0 {
            // The first steps also wake the GPUs.
            self.round(node, (&mut Times::default(), &mut cycles, warmup), (begin, &what))?;
        }
        let mut rounds = 0;
        // Losses of the second round are held to those of the first.
        while rounds < 2 || times.steps.len() < wanted {
            let done = begin + share * (times.steps.len() as f64 / wanted as f64).min(1.0);
            self.round(node, (&mut times, &mut cycles, steps), (done, &what))?;
            rounds += 1;
        }
        Ok((times, cycles, warmup))
    }

    /// So many steps from the start, then as many of each half of them.
    fn round(
        &self,
        node: &mut Node<'_>,
        (times, cycles, steps): (&mut Times, &mut [Cycle], usize),
        (done, what): (f64, &str),
    ) -> Result<(), Ended> {
        self.team.restart()?;
        cycles.iter_mut().for_each(Cycle::begin);
        for _ in 0..steps {
            node.all().progress(done, what);
            times.steps.push(self.team.step(self.way)?);
            self.check(cycles)?;
        }
        sound(suspects::after(self.team, steps)?)?;
        for _ in 0..steps {
            node.all().progress(done, what);
            times.alone.push(self.team.apart()?);
            times.sums.push(self.team.sums(self.way)?);
        }
        Ok(())
    }

    /// Takes the losses of a step; where one is not what it was, whose fault that is.
    fn check(&self, cycles: &mut [Cycle]) -> Result<(), Ended> {
        let mut changed = Vec::new();
        for (rank, (cycle, replica)) in cycles.iter_mut().zip(&self.team.replicas).enumerate() {
            if let Err(why) = cycle.take(replica.loss()?) {
                changed.push((rank, why));
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        Err(Ended::Wrong(suspects::of_losses(self.team, self.way, &changed)?))
    }

    fn tell(
        &self,
        node: &mut Node<'_>,
        engine: &str,
        (times, warmup, whole): (&Times, usize, bool),
    ) -> Result<(), Trouble> {
        let nanos = |ms: &[f64]| ms.iter().map(|ms| ms * 1e6).collect::<Vec<f64>>();
        let slowest = |ms: &[f64]| ms.iter().copied().fold(0.0, f64::max);
        let hidden = |((step, alone), sum): ((&f64, &Vec<f64>), &f64)| slowest(alone).max(*sum) / step;
        let overlap = times.steps.iter().zip(&times.alone).zip(&times.sums).map(hidden).collect();
        let all: [(&str, Vec<f64>); 3] =
            [("step_time", nanos(&times.steps)), ("reduce_time", nanos(&times.sums)), ("overlap", overlap)];
        for (what, values) in all {
            node.all().tell((format!("{}_{what}", self.name), engine.to_owned()), values, warmup)?;
        }
        for index in (0..node.gpus.len()).filter(|_| whole) {
            let values: Vec<f64> = times.alone.iter().map(|alone| alone[index]).collect();
            node.of(index).series(&format!("{}_compute_time", self.name), nanos(&values), warmup)?;
        }
        Ok(())
    }

    /// For a person: how much is trained on in a second, and the last loss of each GPU.
    fn note(&self, node: &mut Node<'_>, engine: &str, times: &Times, cycles: &[Cycle]) {
        let fastest = times.steps.iter().copied().fold(f64::INFINITY, f64::min);
        let (items, buckets) = (self.items * cycles.len(), self.team.parts().len());
        let rate = items as f64 / fastest * 1e3;
        let losses: Vec<String> =
            cycles.iter().map(|cycle| cycle.losses().last().map_or_else(String::new, ToString::to_string)).collect();
        let text = format!("items={items} throughput={rate:.0} buckets={buckets} losses={}", losses.join(","));
        node.of(0).fact(&format!("{}_ddp.{engine}", self.name), text);
    }
}

fn sound(wrong: Vec<String>) -> Result<(), Ended> {
    if wrong.is_empty() { Ok(()) } else { Err(Ended::Wrong(wrong)) }
}
