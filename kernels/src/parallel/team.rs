//! One model trained by all GPUs of a node, each on data of its own: while a GPU still goes backward, gradients that are there are
//! summed over all of them on a second stream.

use std::thread;
use std::time::Duration;

use muster_tape::Bucket;

use super::way::{Part, Way, part};
use super::{meet, wait};
use crate::driver::{Gpu, Trouble};
use crate::train::{Plan, Replica, lacking};

/// How often it is looked whether sums over many nodes are there.
const LOOK: Duration = Duration::from_micros(50);

/// Replicas of one model, on one GPU each.
#[derive(Debug)]
pub struct Team<'a> {
    gpus: &'a [Gpu],
    /// The same GPUs, for what is done beside.
    sides: Vec<Gpu>,
    /// One a GPU, in order.
    pub replicas: Vec<Replica<'a>>,
    parts: Vec<Part>,
}

impl<'a> Team<'a> {
    /// Takes memory on all GPUs, and records the steps.
    ///
    /// # Errors
    /// When the tape cannot be run, or the driver's, with the GPU.
    pub fn new(gpus: &'a [Gpu], plan: &'a Plan) -> Result<Self, Trouble> {
        let one = |gpu| Replica::new(gpu, plan).map_err(|trouble| trouble.about(&format!("GPU {}", gpu.index)));
        let replicas = gpus.iter().map(one).collect::<Result<Vec<_>, Trouble>>()?;
        let sides = gpus.iter().map(Gpu::beside).collect::<Result<_, Trouble>>()?;
        let places = |bucket: &Bucket| replicas.iter().map(|replica| replica.at(bucket.span)).collect();
        let parts = plan.buckets.iter().map(|bucket| part(places(bucket), bucket.span.len)).collect();
        Ok(Self { gpus, sides, replicas, parts })
    }

    /// Why `plan` cannot be trained: a GPU has no room for it.
    ///
    /// # Errors
    /// When the tape cannot be run, or the driver's.
    pub fn lacks(gpus: &[Gpu], plan: &Plan, through_host: bool) -> Result<Option<String>, Trouble> {
        let beside = if through_host { Way::host_needs(gpus.len(), &plan.buckets) } else { 0 };
        for gpu in gpus {
            if let Some(why) = lacking(plan.needs(gpu)? + beside, gpu)? {
                return Ok(Some(format!("{why} on GPU {}", gpu.index)));
            }
        }
        Ok(None)
    }

    /// The GPUs with the streams on which sums are put.
    #[must_use]
    pub fn sides(&self) -> &[Gpu] {
        &self.sides
    }

    /// What is summed.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Back to before the first step, each with its own data.
    ///
    /// # Errors
    /// The driver's.
    pub fn restart(&self) -> Result<(), Trouble> {
        self.replicas.iter().enumerate().try_for_each(|(batch, replica)| replica.restart(batch as u64))?;
        wait(self.gpus)
    }

    /// Milliseconds of a step of all GPUs, whose gradients are summed by `way` as they come.
    ///
    /// # Errors
    /// The driver's or the library's, with the GPU where that is known.
    pub fn step(&self, way: &Way<'_>) -> Result<f64, Trouble> {
        self.together(way, &mut || {
            self.go_back(way)?;
            self.take_over()?;
            self.replicas.iter().try_for_each(Replica::update)
        })
    }

    /// A step without its updates: milliseconds that each GPU computes. All of them hold the sums of all gradients then.
    ///
    /// # Errors
    /// As of [`Team::step`].
    pub fn backward(&self, way: &Way<'_>) -> Result<Vec<f64>, Trouble> {
        self.gpus.iter().try_for_each(Gpu::start_clock)?;
        self.go_back(way)?;
        self.gpus.iter().try_for_each(Gpu::stop_clock)?;
        self.take_over()?;
        wait(self.gpus).and(wait(&self.sides))?;
        way.settled()?;
        self.gpus.iter().map(Gpu::clocked).collect()
    }

    /// As [`Team::backward`] where `way` goes over many nodes: `computed` is called once no GPU of this node computes any more, and
    /// only the sums are waited for.
    ///
    /// # Errors
    /// As of [`Team::step`]; of NCCL also while it is waited for.
    pub fn backward_over_nodes(&self, way: &Way<'_>, computed: &mut dyn FnMut()) -> Result<Vec<f64>, Trouble> {
        self.gpus.iter().try_for_each(Gpu::start_clock)?;
        let put = self.go_back(way);
        if matches!(put, Err(Trouble::NotRun(_))) {
            // Another node is gone already.
            computed();
        }
        put?;
        self.gpus.iter().try_for_each(Gpu::stop_clock)?;
        self.take_over()?;
        come(self.gpus, &|| Ok(()))?;
        computed();
        self.settle(way)?;
        wait(self.gpus)?;
        self.gpus.iter().map(Gpu::clocked).collect()
    }

    /// Waits for sums that may never end as another node may not come, unless NCCL sees that.
    ///
    /// # Errors
    /// The driver's or the library's, with the GPU where that is known.
    pub fn settle(&self, way: &Way<'_>) -> Result<(), Trouble> {
        self.sides.iter().try_for_each(Gpu::stop_clock)?;
        come(&self.sides, &|| way.settled())?;
        wait(&self.sides)?;
        way.settled()
    }

    /// Milliseconds of the sums alone, of whatever the gradients are.
    ///
    /// # Errors
    /// As of [`Team::step`].
    pub fn sums(&self, way: &Way<'_>) -> Result<f64, Trouble> {
        self.together(way, &mut || {
            self.hand_over()?;
            (0..self.parts.len()).try_for_each(|number| way.start(&self.sides, &self.parts, number))?;
            self.take_over()
        })
    }

    /// Milliseconds that each GPU takes for a step by itself, all at the same time. Their weights part from each other.
    ///
    /// # Errors
    /// The driver's, with the GPU.
    pub fn apart(&self) -> Result<Vec<f64>, Trouble> {
        meet(self.gpus)?;
        for replica in &self.replicas {
            replica.gpu.start_clock()?;
            (0..self.parts.len()).try_for_each(|number| replica.backward(number))?;
            replica.update()?;
            replica.gpu.stop_clock()?;
        }
        wait(self.gpus)?;
        self.gpus.iter().map(Gpu::clocked).collect()
    }

    /// Forward and backward on the data of batch 0 everywhere, from weights as they are: the loss and a number of all gradients of
    /// each GPU.
    ///
    /// # Errors
    /// The driver's, with the GPU.
    pub fn same_batch(&self) -> Result<Vec<(f32, u64)>, Trouble> {
        for replica in &self.replicas {
            replica.load(0)?;
            (0..self.parts.len()).try_for_each(|number| replica.backward(number))?;
        }
        wait(self.gpus)?;
        self.replicas.iter().map(|replica| Ok((replica.loss()?, replica.digest()?))).collect()
    }

    /// Milliseconds from when all GPUs begin until all have done what `work` puts on their streams.
    fn together(&self, way: &Way<'_>, work: &mut dyn FnMut() -> Result<(), Trouble>) -> Result<f64, Trouble> {
        meet(self.gpus)?;
        let ms = self.gpus[0].timed(&mut || work().and_then(|()| meet(self.gpus)));
        // What the first GPU waited for in vain is another one's trouble, which is told with its number.
        wait(self.gpus).and(wait(&self.sides))?;
        way.settled()?;
        ms
    }

    /// Puts all that comes before the updates on the streams; the second ones have the sums.
    fn go_back(&self, way: &Way<'_>) -> Result<(), Trouble> {
        for number in 0..self.parts.len() {
            self.replicas.iter().try_for_each(|replica| replica.backward(number))?;
            self.hand_over()?;
            way.start(&self.sides, &self.parts, number)?;
        }
        Ok(())
    }

    /// The second streams begin when all first ones have come here: a GPU reads everybody's gradients.
    fn hand_over(&self) -> Result<(), Trouble> {
        let Some(first) = self.sides.first() else { return Ok(()) };
        self.gpus.iter().try_for_each(|gpu| gpu.mark().and_then(|()| first.follow(gpu)))?;
        first.mark()?;
        self.sides[1..].iter().try_for_each(|side| side.follow(first))
    }

    /// The first streams go on when the second ones have come here.
    fn take_over(&self) -> Result<(), Trouble> {
        meet(&self.sides)?;
        self.gpus.iter().zip(&self.sides).try_for_each(|(gpu, side)| side.mark().and_then(|()| gpu.follow(side)))
    }
}

/// Waits until all have come to where their clocks stop, or `look` knows that they never will.
fn come(gpus: &[Gpu], look: &dyn Fn() -> Result<(), Trouble>) -> Result<(), Trouble> {
    for gpu in gpus {
        while !gpu.clock_stopped().map_err(|trouble| trouble.about(&format!("GPU {}", gpu.index)))? {
            look()?;
            thread::sleep(LOOK);
        }
    }
    Ok(())
}
