//! One of several equal models that are trained together, on a GPU of its own and on data of its own.

use muster_tape::{Bucket, Model, Size, Span, Tape};

use super::launch::Clock;
use super::pieces::Pieces;
use super::ready::{Memory, Ready, start};
use super::{How, Precision, SEED};
use crate::driver::{Arg, Buffer, Gpu, Graph, Trouble};
use crate::parallel::wide;

/// What all replicas do alike.
#[derive(Debug)]
pub struct Plan {
    /// The step, its updates last.
    pub tape: Tape,
    /// How its gradients are cut.
    pub buckets: Vec<Bucket>,
    /// Of products.
    pub precision: Precision,
    /// Of weights, and of data together with the number of the batch.
    pub seed: u64,
    /// Among how many replicas each gradient is divided before it is summed.
    pub replicas: usize,
}

/// A replica. Nothing is allocated between its first step and its last.
#[derive(Debug)]
pub struct Replica<'a> {
    /// Where it lives.
    pub gpu: &'a Gpu,
    plan: &'a Plan,
    memory: Memory,
    setup: Vec<Ready>,
    backward: Vec<Graph>,
    update: Graph,
    gradients: Span,
    sums: Buffer,
}

/// Elements of a bucket: 25 MiB, as PyTorch's data-parallel training has it.
const BUCKET: usize = 25 << 18;
/// Even small models are summed in about so many buckets.
const BUCKETS: usize = 6;

impl Plan {
    /// For `replicas` of `model`, each of which trains on `size` in a step.
    #[must_use]
    pub fn new(model: Model, size: Size, precision: Precision, replicas: usize) -> Self {
        let tape = model.parallel_implicit(size);
        let buckets = tape.buckets(BUCKET.min(tape.parameters / BUCKETS));
        Self { tape, buckets, precision, seed: SEED, replicas }
    }

    fn pieces(&self, gpu: &Gpu) -> Result<Pieces, Trouble> {
        let how = How::on(gpu, self.precision)?;
        let pieces = Pieces::new(&self.tape, (self.seed, how), (&self.buckets, self.replicas));
        pieces.map_err(|unfit| Trouble::NotRun(unfit.0))
    }

    /// Bytes that a replica takes on `gpu`.
    ///
    /// # Errors
    /// When the tape cannot be run.
    pub fn needs(&self, gpu: &Gpu) -> Result<usize, Trouble> {
        Ok(Memory::bytes(&self.tape, self.pieces(gpu)?.space))
    }
}

impl<'a> Replica<'a> {
    /// Takes memory, and records a step. There are no weights and no data before the first [`Self::restart`].
    ///
    /// # Errors
    /// When the tape cannot be run, or the driver's.
    pub fn new(gpu: &'a Gpu, plan: &'a Plan) -> Result<Self, Trouble> {
        let pieces = plan.pieces(gpu)?;
        let memory = Memory::new(gpu, &plan.tape, pieces.space)?;
        let recorded = |launches| {
            let kernels = memory.ready(gpu, launches)?;
            gpu.record(&mut || start(gpu, &kernels))
        };
        let backward = pieces.backward.iter().map(|piece| recorded(piece)).collect::<Result<_, Trouble>>()?;
        let update = recorded(&pieces.update)?;
        let (setup, sums) = (memory.ready(gpu, &pieces.setup)?, gpu.buffer(16)?);
        Ok(Self { gpu, plan, memory, setup, backward, update, gradients: pieces.gradients, sums })
    }

    /// Back to before the first step, with the data of batch number `batch`.
    ///
    /// # Errors
    /// The driver's.
    pub fn restart(&self, batch: u64) -> Result<(), Trouble> {
        self.gpu.put(&self.memory.clock, &Clock::START)?;
        start(self.gpu, &self.setup)?;
        self.load(batch)
    }

    /// Puts in the data of batch number `batch`.
    ///
    /// # Errors
    /// The driver's.
    pub fn load(&self, batch: u64) -> Result<(), Trouble> {
        let data = Pieces::data(&self.plan.tape, self.plan.seed, batch);
        start(self.gpu, &self.memory.ready(self.gpu, &data)?)
    }

    /// Puts on the stream what comes before bucket number `bucket` may be summed, and after the one before it.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn backward(&self, bucket: usize) -> Result<(), Trouble> {
        self.gpu.replay(&self.backward[bucket])
    }

    /// Puts the updates on the stream.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn update(&self) -> Result<(), Trouble> {
        self.gpu.replay(&self.update)
    }

    /// The loss of the last step, once it is there.
    ///
    /// # Errors
    /// The driver's.
    pub fn loss(&self) -> Result<f32, Trouble> {
        self.memory.loss(self.gpu)
    }

    /// Address of a span of the tape.
    #[must_use]
    pub const fn at(&self, span: Span) -> u64 {
        self.memory.at(span)
    }

    /// A number of all bits of all gradients, once they are there: equal ones give equal numbers.
    ///
    /// # Errors
    /// The driver's.
    pub fn digest(&self) -> Result<u64, Trouble> {
        self.folded(std::iter::once(self.gradients))
    }

    /// The same of all weights.
    ///
    /// # Errors
    /// The driver's.
    pub fn fingerprint(&self) -> Result<u64, Trouble> {
        let states = self.plan.tape.state.iter();
        self.folded(states.filter(|state| state.gradient.is_some()).map(|state| state.span))
    }

    fn folded(&self, spans: impl Iterator<Item = Span>) -> Result<u64, Trouble> {
        let gpu = self.gpu;
        gpu.put(&self.sums, &[0_u32; 4])?;
        let (fold, shape) = (gpu.function("digest_words", 0)?, wide(gpu));
        for (number, span) in spans.enumerate() {
            let (words, seed) = (Arg::U64(span.len as u64), Arg::U32(number as u32));
            gpu.launch(fold, shape, &[Arg::U64(self.at(span)), words, seed, Arg::At(&self.sums)])?;
        }
        let mut words = [0_u32; 4];
        gpu.get(&mut words, &self.sums)?;
        Ok(u64::from(words[0]) << 32 | u64::from(words[1]))
    }

    /// Where all gradients lie, and what between them is nobody's.
    #[must_use]
    pub const fn gradients(&self) -> Span {
        self.gradients
    }
}
