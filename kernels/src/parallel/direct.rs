//! A sum over all GPUs by muster's own kernels, each of which reads the others' memory.
//!
//! Two-shot: each GPU sums its chunk of all inputs, in the order of the GPUs, then fetches the others' chunks.

use super::{meet, wide};
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};

/// A sum that can be started again and again.
#[derive(Debug)]
pub struct Direct {
    members: Vec<Member>,
    /// Elements of 16 bytes that each GPU sums.
    chunk: u64,
}

/// One GPU's part.
#[derive(Debug)]
struct Member {
    output: u64,
    /// Addresses of everybody's inputs and outputs.
    inputs: Buffer,
    outputs: Buffer,
    reduce: Function,
    gather: Function,
}

impl Direct {
    /// Sums what lies at `inputs`, one address a GPU, to `outputs`, which may be the same places: `chunk` elements of 16 bytes for
    /// each GPU. All have opened each other's memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpus: &[Gpu], (inputs, outputs): (&[u64], &[u64]), chunk: u64) -> Result<Self, Trouble> {
        let member = |(gpu, output): (&Gpu, &u64)| {
            let table = |of: &[u64]| gpu.buffer(size_of_val(of)).and_then(|table| gpu.put(&table, of).map(|()| table));
            let (reduce, gather) = (gpu.function("reduce_peers", 0)?, gpu.function("gather_peers", 0)?);
            Ok(Member { output: *output, inputs: table(inputs)?, outputs: table(outputs)?, reduce, gather })
        };
        let members = gpus.iter().zip(outputs).map(member).collect::<Result<Vec<_>, Trouble>>()?;
        Ok(Self { members, chunk })
    }

    /// Puts the sum on the streams of `gpus`, which all begin and end together.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn start(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        let count = Arg::U32(self.members.len() as u32);
        for (rank, (gpu, m)) in gpus.iter().zip(&self.members).enumerate() {
            let (begin, chunk) = (Arg::U64(rank as u64 * self.chunk), Arg::U64(self.chunk));
            gpu.launch(m.reduce, wide(gpu), &[Arg::U64(m.output), Arg::At(&m.inputs), count, begin, chunk])?;
        }
        meet(gpus)?;
        self.gather(gpus)
    }

    /// Puts on the streams of `gpus` that each fetches the chunks that the others have in their outputs. All end together.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn gather(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        let count = Arg::U32(self.members.len() as u32);
        for (rank, (gpu, m)) in gpus.iter().zip(&self.members).enumerate() {
            let arguments =
                [Arg::U64(m.output), Arg::At(&m.outputs), count, Arg::U32(rank as u32), Arg::U64(self.chunk)];
            let wide = wide(gpu);
            // At least one block for each peer.
            let blocks = wide.grid.0.max(self.members.len() as u32);
            gpu.launch(m.gather, Shape { grid: (blocks, 1), ..wide }, &arguments)?;
        }
        // The next one writes what peers may still be reading.
        meet(gpus)
    }
}
