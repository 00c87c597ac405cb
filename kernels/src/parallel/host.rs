//! A sum over GPUs that do not reach each other: the driver copies through the host, and each GPU sums its chunk.

use super::{meet, wide};
use crate::driver::{Arg, Buffer, Function, Gpu, Trouble};

/// Memory for what the others send.
#[derive(Debug)]
pub struct Host {
    members: Vec<Member>,
    /// Bytes of the largest chunk.
    room: u64,
}

#[derive(Debug)]
struct Member {
    /// A chunk of each GPU.
    arrived: Buffer,
    /// Where each of them begins.
    table: Buffer,
    reduce: Function,
}

/// Bytes that each of `count` GPUs takes for chunks of so many elements of 16 bytes.
pub(super) const fn needs(count: usize, chunk: u64) -> usize {
    count * (chunk as usize * 16 + 8)
}

impl Host {
    /// For chunks of up to `chunk` elements of 16 bytes.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(gpus: &[Gpu], chunk: u64) -> Result<Self, Trouble> {
        let room = chunk * 16;
        let member = |gpu: &Gpu| {
            let arrived = gpu.buffer(gpus.len() * room as usize)?;
            let places: Vec<u64> = (0..gpus.len() as u64).map(|from| arrived.address() + from * room).collect();
            let table = gpu.buffer(places.len() * size_of::<u64>())?;
            gpu.put(&table, &places)?;
            Ok(Member { arrived, table, reduce: gpu.function("reduce_peers", 0)? })
        };
        Ok(Self { members: gpus.iter().map(member).collect::<Result<_, Trouble>>()?, room })
    }

    /// Puts on the streams of `gpus` the sum, in place, of what lies at `places`, `chunk` elements of 16 bytes for each GPU. All
    /// begin and end together.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn start(&self, gpus: &[Gpu], places: &[u64], chunk: u64) -> Result<(), Trouble> {
        let bytes = chunk * 16;
        for (from, (sender, place)) in gpus.iter().zip(places).enumerate() {
            for (to, (receiver, member)) in gpus.iter().zip(&self.members).enumerate() {
                let sink = member.arrived.address() + from as u64 * self.room;
                sender.send_bytes(place + to as u64 * bytes, (sink, receiver), bytes as usize)?;
            }
        }
        meet(gpus)?;
        for (rank, ((gpu, member), place)) in gpus.iter().zip(&self.members).zip(places).enumerate() {
            let own = place + rank as u64 * bytes;
            let arguments =
                [Arg::U64(own), Arg::At(&member.table), Arg::U32(gpus.len() as u32), Arg::U64(0), Arg::U64(chunk)];
            gpu.launch(member.reduce, wide(gpu), &arguments)?;
            for (to, receiver) in gpus.iter().enumerate().filter(|(to, _)| *to != rank) {
                gpu.send_bytes(own, (places[to] + rank as u64 * bytes, receiver), bytes as usize)?;
            }
        }
        meet(gpus)
    }
}
