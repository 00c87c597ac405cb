//! A tape whose gradients are summed over several replicas: the kernels of a step up to each bucket of gradients, and those that
//! update weights once all sums are there.

use muster_tape::{Bucket, GAP, Kind, Op, Span, Tape};

use super::launch::Launch;
use super::{How, Unfit, fill, lower};

/// A step of one replica, cut where a bucket of gradients is there.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Fill what a step finds: weights, moments, data; gradients, and what lies between them, are zeros.
    pub setup: Vec<Launch>,
    /// One for each bucket: what is done before it may be summed. After the last one stands the loss.
    pub backward: Vec<Vec<Launch>>,
    /// From summed gradients to weights.
    pub update: Vec<Launch>,
    /// Bytes of memory beside the tape's and the clock.
    pub space: usize,
    /// Elements of the tape in which all gradients lie.
    pub gradients: Span,
}

impl Pieces {
    /// The kernels of `tape` with weights from `seed`, whose gradients lie in `buckets`; each replica's are divided by `replicas`, so
    /// that their sum is the mean.
    ///
    /// # Errors
    /// When a shape is more than the kernels can do, and for a tape whose updates do not come last.
    pub fn new(tape: &Tape, (seed, how): (u64, How), (buckets, replicas): (&[Bucket], usize)) -> Result<Self, Unfit> {
        let last = || Unfit("the updates of this training do not come last".to_owned());
        let updates = tape.updates.ok_or_else(last)?;
        let (first, end) = buckets.first().zip(buckets.last()).ok_or_else(last)?;
        let gradients = Span { offset: first.span.offset, len: end.span.end() - first.span.offset };
        let mut setup = fill::launches(tape, seed);
        setup.push(fill::zeros(Span { len: gradients.len + GAP, ..gradients }));
        let mut pieces = Self { setup, backward: Vec::new(), update: Vec::new(), space: 0, gradients };
        let mut done = 0;
        for (number, bucket) in buckets.iter().enumerate() {
            let until = if number + 1 == buckets.len() { updates } else { bucket.after };
            let piece = pieces.lowered(&tape.ops[done..until], how, replicas)?;
            pieces.backward.push(piece);
            done = until;
        }
        pieces.backward.iter_mut().last().ok_or_else(last)?.push(fill::keep_loss(tape.loss));
        if tape.ops.iter().any(|op| matches!(op.kind, Kind::AdamW { .. })) {
            pieces.update.push(fill::advance());
        }
        let update = pieces.lowered(&tape.ops[updates..], how, replicas)?;
        pieces.update.extend(update);
        Ok(pieces)
    }

    /// The data of batch number `batch`, where weights are those of `seed`.
    #[must_use]
    pub fn data(tape: &Tape, seed: u64, batch: u64) -> Vec<Launch> {
        fill::data(tape, seed, batch)
    }

    fn lowered(&mut self, ops: &[Op], how: How, replicas: usize) -> Result<Vec<Launch>, Unfit> {
        let mut all = Vec::new();
        for op in ops {
            let (launches, space) = lower::launches(&shared(op, replicas), how)?;
            all.extend(launches);
            self.space = self.space.max(space);
        }
        Ok(all)
    }
}

/// Where gradients begin, they are divided among the replicas; everything behind is linear in them.
fn shared(op: &Op, replicas: usize) -> Op {
    match op.kind {
        Kind::CrossEntropy { rows, classes, counted } => {
            Op { kind: Kind::CrossEntropy { rows, classes, counted: counted * replicas }, ..op.clone() }
        }
        _ => op.clone(),
    }
}
