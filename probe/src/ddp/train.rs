//! What is a step of the training, and was it right?

use std::time::{Duration, Instant};

use super::board::Board;
use super::bucket::buckets;
use super::comm::Communicator;
use super::engine::{Computed, Engine, Updated, alike, gpus};
use super::group::hash;
use super::log::Log;
use super::options::{Break, Part};
use super::step::{Failure, Step};
use crate::clock;

/// Bytes that a leak takes in a step.
const LEAK: usize = 32 << 20;
/// Numbers summed beside the gradients: the loss, and whether the time is over.
const BESIDE: usize = 2;

struct Trainer<'a, 'b> {
    board: &'a Board,
    part: &'a Part,
    rings: &'a mut [Communicator<'b>],
    engine: Engine<'a>,
    /// Batches of all ranks.
    batches: u64,
    /// Gradients and what is summed beside them.
    sums: Vec<f32>,
    begun: Instant,
    /// Memory that a rank broken so never gives back.
    leaked: Vec<Vec<u8>>,
}

/// Trains until the last step, and logs each.
pub(super) fn train(board: &Board, part: &Part, rings: &mut [Communicator<'_>], log: Log) -> Result<(), Failure> {
    let tape = part.model.parallel_tape();
    let (engine, batches) = match gpus((board, part), &mut rings[0], log)? {
        Some((training, all)) => (Engine::Gpus(training), all),
        None => (Engine::core(&tape, part)?, part.world as u64 * u64::from(part.batches)),
    };
    let sums = vec![0.0; engine.numbers() + BESIDE];
    log.say(&format!(
        "{} with {} parameters, {} ranks, {} of a node",
        part.model.name(),
        tape.parameters,
        part.world,
        part.per_node
    ));
    let mut trainer = Trainer { board, part, rings, engine, batches, sums, begun: Instant::now(), leaked: Vec::new() };
    let last = (part.until.steps < u64::MAX).then_some(part.until.steps);
    for number in 1..=part.until.steps {
        let (step, over) = trainer.step(number)?;
        log.step(&step, last);
        if over {
            break;
        }
    }
    Ok(())
}

impl Trainer<'_, '_> {
    fn step(&mut self, number: u64) -> Result<(Step, bool), Failure> {
        self.board.begin_step(number);
        let (begun, at_ns) = (Instant::now(), clock::monotonic_ns());
        self.rest(self.part.pause)?;
        let Computed { loss, gpus_s } = self.compute(number)?;
        let computed = begun.elapsed().saturating_sub(self.part.pause);
        let count = self.sums.len();
        self.sums[count - BESIDE] = loss;
        let over = self.part.until.time.is_some_and(|time| self.begun.elapsed() >= time);
        self.sums[count - 1] = if self.part.rank == 0 && over { 1.0 } else { 0.0 };
        let asked = Instant::now();
        self.share(number, loss)?;
        let mut comm = asked.elapsed();
        let (loss, over, updated, Updated { weights, same }) = self.update()?;
        let digest = hash(&[&weights.to_be_bytes(), &loss.to_bits().to_be_bytes()]);
        let compared = Instant::now();
        self.compare(number, digest)?;
        same.map_or(Ok(()), |same| alike(&mut self.rings[0], &same, &format!("after step {number}")))?;
        comm += compared.elapsed();
        self.save(number)?;
        let step = Step {
            number,
            loss,
            digest,
            whole_s: begun.elapsed().as_secs_f64(),
            // What GPUs compute, they time themselves: copies to and fro are not theirs.
            compute_s: gpus_s.iter().copied().reduce(f64::max).unwrap_or((computed + updated).as_secs_f64()),
            comm_s: comm.as_secs_f64(),
            gpus_s,
            at_ns,
        };
        Ok((step, over))
    }

    /// The gradients of this rank's own data.
    fn compute(&mut self, number: u64) -> Result<Computed, Failure> {
        if self.part.broken == Some(Break::Exception(number)) {
            return Err(Failure::Exception(format!("RuntimeError: broken on purpose in step {number} (--break)")));
        }
        if matches!(self.part.broken, Some(Break::Leak(at)) if number >= at) {
            // Written to, or the kernel would only promise it.
            self.leaked.push(vec![1; LEAK]);
        }
        let begun = Instant::now();
        self.sums.fill(0.0);
        let count = self.sums.len() - BESIDE;
        let computed = self.engine.backward(&mut self.sums[..count], self.part.rank)?;
        if let Some(Break::Slow(factor)) = self.part.broken {
            let until = begun + begun.elapsed().mul_f64(factor);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        Ok(computed)
    }

    /// Sums over all ranks. The ranks of a node first agree on their own loss.
    fn share(&mut self, number: u64, loss: f32) -> Result<(), Failure> {
        let stuck = matches!(self.part.broken, Some(Break::Deadlock(at)) if number >= at);
        if stuck && self.rings.len() == 1 {
            return self.stand_still();
        }
        if !stuck {
            self.node(loss)?;
        }
        let (world, short) =
            (&mut self.rings[0], matches!(self.part.broken, Some(Break::WrongSize(at)) if number >= at));
        for piece in buckets(self.sums.len(), self.part.bucket) {
            let piece = if short { piece.start..piece.end - 1 } else { piece };
            world.all_reduce(&mut self.sums[piece]).map_err(Failure::Trouble)?;
        }
        if stuck { self.node(loss) } else { Ok(()) }
    }

    fn node(&mut self, loss: f32) -> Result<(), Failure> {
        match self.rings.get_mut(1) {
            Some(node) => node.all_reduce(&mut [loss, 1.0]).map_err(Failure::Trouble),
            None => Ok(()),
        }
    }

    /// Launches nothing any more, until somebody ends it.
    fn stand_still(&self) -> Result<(), Failure> {
        loop {
            self.rest(Duration::from_secs(1))?;
        }
    }

    /// Mean gradients into the weights. Gives the mean loss, whether the first rank's time is over, how long it took, and what it
    /// left behind.
    fn update(&mut self) -> Result<(f32, bool, Duration, Updated), Failure> {
        let begun = Instant::now();
        let count = self.sums.len();
        let share = 1.0 / self.batches as f32;
        let (gradients, beside) = self.sums.split_at_mut(count - BESIDE);
        gradients.iter_mut().for_each(|gradient| *gradient *= share);
        let (loss, over) = (beside[0] * share, beside[1] > 0.0);
        let updated = self.engine.update(gradients, self.part.rank)?;
        Ok((loss, over, begun.elapsed(), updated))
    }

    /// All ranks must have the same weights and loss.
    fn compare(&mut self, number: u64, digest: u64) -> Result<(), Failure> {
        let all = self.rings[0].all_gather(digest).map_err(Failure::Trouble)?;
        match unlike(&all) {
            odd if odd.is_empty() && all.iter().all(|one| *one == digest) => Ok(()),
            odd if odd.is_empty() => {
                let why =
                    format!("step {number}: weights or loss differ between ranks, and no more than half of them agree");
                Err(Failure::Wrong(why, odd))
            }
            odd => {
                let names: Vec<String> = odd.iter().map(|rank| self.board.who(*rank)).collect();
                let why = format!(
                    "step {number}: weights or loss of {} are not those of the other ranks: computed wrongly there, or \
                     summed from wrong bytes",
                    names.join(", ")
                );
                Err(Failure::Wrong(why, odd))
            }
        }
    }

    /// Saves the weights where a checkpoint is due.
    fn save(&mut self, number: u64) -> Result<(), Failure> {
        let Some(checkpoint) = self.part.checkpoint.as_ref().filter(|checkpoint| checkpoint.due(number)) else {
            return Ok(());
        };
        let mut weights = Vec::with_capacity(self.engine.numbers() * size_of::<f32>());
        self.engine.weights(&mut weights);
        checkpoint.save(self.part.rank, &weights).map_err(|why| {
            let folder = checkpoint.folder.display();
            Failure::Exception(format!("OSError: checkpoint of step {number} was not saved in {folder}: {why}"))
        })
    }

    /// Waits; ended from outside, it fails.
    fn rest(&self, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        loop {
            if self.board.ended().is_some() {
                return Err(Failure::Ended);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Places of the words that are not that of more than half of all.
pub(super) fn unlike(words: &[u64]) -> Vec<usize> {
    let count = |word: u64| words.iter().filter(|one| **one == word).count();
    match words.iter().copied().find(|word| 2 * count(*word) > words.len()) {
        Some(most) => (0..words.len()).filter(|at| words[*at] != most).collect(),
        None => Vec::new(),
    }
}
