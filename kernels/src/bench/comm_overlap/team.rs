//! All GPUs of a node with both streams of each: computing on the one, sums on the other.

use super::super::answers;
use super::super::node::{meet, wait};
use super::super::together::Way;
use super::message::Message;
use super::values::Took;
use super::work::{Kind, Rank, Sizes};
use crate::driver::{Gpu, Trouble};

pub(super) struct Team<'a> {
    pub(super) gpus: &'a [Gpu],
    /// The same GPUs, with the streams of the sums.
    pub(super) sides: Vec<Gpu>,
    pub(super) sizes: Sizes,
    pub(super) ranks: Vec<Rank>,
    pub(super) message: Message<'a>,
    pub(super) way: &'a Way,
}

impl<'a> Team<'a> {
    pub(super) fn new(gpus: &'a [Gpu], way: &'a Way, sizes: Sizes) -> Result<Self, Trouble> {
        let about = |gpu: &Gpu, trouble: Trouble| trouble.about(&format!("GPU {}", gpu.index));
        let rank = |gpu: &Gpu| Rank::new(gpu, sizes).map_err(|trouble| about(gpu, trouble));
        let ranks = gpus.iter().map(rank).collect::<Result<Vec<Rank>, Trouble>>()?;
        let sides = gpus.iter().map(Gpu::beside).collect::<Result<Vec<Gpu>, Trouble>>()?;
        let message = Message::new(&sides, way, sizes.message)?;
        Ok(Self { gpus, sides, sizes, ranks, message, way })
    }

    /// Puts so many pieces of work on the streams, `compute` and `sum` as asked for, and how long each GPU was at it, counted from
    /// when all were ready.
    pub(super) fn batch(&self, kind: Kind, (compute, sum): (bool, bool), count: u32) -> Result<Took, Trouble> {
        meet(self.gpus)?;
        for (gpu, side) in self.gpus.iter().zip(&self.sides) {
            gpu.start_clock()?;
            gpu.mark()?;
            side.follow(gpu)?;
            side.start_clock()?;
        }
        for _ in 0..count {
            if sum {
                self.message.joint.start(&self.sides)?;
            }
            if compute {
                self.gpus.iter().zip(&self.ranks).try_for_each(|(gpu, rank)| gpu.replay(rank.graph(kind)))?;
            }
        }
        self.gpus.iter().chain(&self.sides).try_for_each(Gpu::stop_clock)?;
        wait(self.gpus)?;
        wait(&self.sides)?;
        self.way.settled()?;
        let clocks = |of: &[Gpu]| of.iter().map(Gpu::clocked).collect::<Result<Vec<f64>, Trouble>>();
        Ok(Took { compute: clocks(self.gpus)?, sum: clocks(&self.sides)? })
    }

    /// A fold of all results on each GPU.
    pub(super) fn digests(&self, kind: Kind) -> Result<Vec<u32>, Trouble> {
        let [_, products, squares, _] = self.sizes.places();
        let (begin, floats) = match kind {
            Kind::Matmul => (products, self.sizes.result()),
            Kind::Mul => (squares, self.sizes.left()),
        };
        let one = |(gpu, rank): (&Gpu, &Rank)| answers::fold(gpu, (rank.products.at(begin), floats * 4));
        self.gpus.iter().zip(&self.ranks).map(one).collect()
    }
}
