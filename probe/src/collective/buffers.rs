//! What a lane holds of the data of a collective, and whether it is what it should be.

use std::ops::Range;

use muster_wire::Collective;

use super::pattern::{ELEMENT, Pattern, add};
use super::plan::{Held, Place, Step, computed, own};
use crate::pin::filled;
use crate::steps::Halt;

/// A slice of every block of one rank, and of what arrives apart from it.
pub(super) struct Buffers {
    collective: Collective,
    me: usize,
    n: usize,
    /// First element of the slice in a block, and elements of a whole block.
    place: (usize, usize),
    /// Bytes of the slice of one block.
    bytes: usize,
    data: Vec<u8>,
    apart: Vec<u8>,
}

impl Buffers {
    /// Of blocks of `block` elements the elements `slice`.
    pub(super) fn new(
        collective: Collective,
        (me, n): (usize, usize),
        block: usize,
        slice: Range<usize>,
    ) -> Result<Self, Halt> {
        let bytes = slice.len() * ELEMENT;
        let apart = match collective {
            Collective::AllReduce => n - 1,
            Collective::AllGather => 0,
            Collective::AllToAll => n,
        };
        let (data, apart) = (filled(bytes * n, 0)?, filled(bytes * apart, 0)?);
        Ok(Self { collective, me, n, place: (slice.start, block), bytes, data, apart })
    }

    fn range(&self, block: usize) -> Range<usize> {
        block * self.bytes..(block + 1) * self.bytes
    }

    fn pattern(&self, held: Held, operation: u32) -> Pattern {
        Pattern::new(held, operation, self.place)
    }

    /// The data before the first step.
    pub(super) fn fill(&mut self, operation: u32) {
        for block in 0..self.n {
            if let Some(held) = own(self.collective, self.me, self.n, block) {
                let (pattern, range) = (self.pattern(held, operation), self.range(block));
                pattern.fill(&mut self.data[range]);
            }
        }
    }

    /// What a step sends, and where it receives.
    pub(super) fn both(&mut self, step: &Step) -> (&[u8], &mut [u8]) {
        let send = self.range(step.send);
        match step.receive {
            Place::Apart(block) => {
                let receive = self.range(block);
                (&self.data[send], &mut self.apart[receive])
            }
            Place::Data(block) => {
                let receive = self.range(block);
                if send.start < receive.start {
                    let (low, high) = self.data.split_at_mut(receive.start);
                    (&low[send], &mut high[..self.bytes])
                } else {
                    let (low, high) = self.data.split_at_mut(send.start);
                    (&high[..self.bytes], &mut low[receive])
                }
            }
        }
    }

    /// Adds what arrived, where the step says so.
    pub(super) fn reduce(&mut self, step: &Step) {
        if let (Some(block), Place::Apart(from)) = (step.add_to, step.receive) {
            let (to, from) = (self.range(block), self.range(from));
            add(&mut self.data[to], &self.apart[from]);
        }
    }

    /// The first step whose arrival is wrong, with a word on what is; the number of steps where the sum that this rank
    /// itself computed is.
    pub(super) fn wrong(&self, operation: u32, steps: &[Step]) -> Option<(usize, String)> {
        let arrived = steps.iter().map(|step| match step.receive {
            Place::Apart(block) => (step.holds, &self.apart[self.range(block)]),
            Place::Data(block) => (step.holds, &self.data[self.range(block)]),
        });
        let computed = computed(self.collective, self.me, self.n);
        let computed = computed.map(|held| (held, &self.data[self.range(held.block)]));
        arrived.chain(computed).enumerate().find_map(|(at, (held, seen))| {
            let (count, first) = self.pattern(held, operation).wrong(seen)?;
            let first = (held.block * self.place.1 + self.place.0 + first) * ELEMENT;
            Some((at, format!("{count} wrong elements, the first at byte {first},")))
        })
    }
}
