//! What runs beside the threads of a block: bulk copies, and the barriers that count them in shared memory.

use std::collections::BTreeMap;

use crate::code::{Arg, Async, Instr, Space};
use crate::rng::Rng;
use crate::step::Env;
use crate::trap::Why;
use crate::warp::{Warp, lanes};

/// Looks at barriers, without anything that happens in between, after which nothing will.
const PATIENCE: u32 = 100_000;
/// Looks at barriers, without anything that happens in between, after which everybody waits.
const STARVED: u32 = 200;

/// A barrier in shared memory.
#[derive(Debug, Default)]
struct Barrier {
    count: u64,
    /// Arrivals that are left of this phase.
    left: u64,
    /// Bytes announced and not yet there.
    bytes: i64,
    /// Phases that are over.
    phase: u64,
}

impl Barrier {
    fn turn(&mut self) {
        if self.left == 0 && self.bytes == 0 {
            self.phase += 1;
            self.left = self.count;
        }
    }
}

/// A copy that has not landed.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    to: u64,
    from: u64,
    size: usize,
    barrier: u64,
    /// Lands only when everybody waits.
    late: bool,
}

/// The asynchronous side of a block.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    barriers: BTreeMap<u64, Barrier>,
    bulks: Vec<Bulk>,
    /// By byte of shared memory, which warp wrote it without a fence since, counted from 1. Empty when nobody cares.
    marks: Vec<u8>,
    /// The warp whose turn it is, counted from 1.
    pub(crate) warp: u8,
    fruitless: u32,
}

impl Pipe {
    /// For so many bytes of shared memory; none where nothing is asynchronous.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { marks: vec![0; bytes], ..Self::default() }
    }

    /// Notes what a thread wrote.
    pub(crate) fn written(&mut self, at: usize, size: usize) {
        let warp = self.warp;
        self.marks.get_mut(at..at + size).into_iter().flatten().for_each(|mark| *mark = warp);
    }

    /// Whether an asynchronous unit sees these bytes as they are.
    pub(crate) fn seen(&self, at: usize, size: usize) -> Result<(), Why> {
        let stale = self.marks.get(at..at + size).is_some_and(|marks| marks.iter().any(|mark| *mark != 0));
        if stale { Err(Why::Unfenced("shared memory")) } else { Ok(()) }
    }

    fn fence(&mut self) {
        let warp = self.warp;
        self.marks.iter_mut().filter(|mark| **mark == warp).for_each(|mark| *mark = 0);
    }

    fn arrive(&mut self, at: u64, bytes: i64) -> Result<(), Why> {
        let barrier = self.barriers.get_mut(&at).ok_or(Why::Operands)?;
        barrier.bytes += bytes;
        barrier.left = barrier.left.checked_sub(1).ok_or(Why::Arrivals)?;
        barrier.turn();
        self.fruitless = 0;
        Ok(())
    }

    /// One of the copies under way, if chance has it that it lands now, or if it is late and everybody waits.
    fn due(&mut self, rng: &mut Rng, one_in: u64) -> Option<Bulk> {
        let starved = self.fruitless > STARVED;
        let able: Vec<usize> = (0..self.bulks.len()).filter(|at| starved || !self.bulks[*at].late).collect();
        let due = !able.is_empty() && rng.below(one_in) == 0;
        due.then(|| self.bulks.swap_remove(able[rng.below(able.len() as u64) as usize]))
    }

    /// Whether nothing is under way any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.bulks.is_empty()
    }
}

impl Warp {
    pub(crate) fn pipe(&mut self, instr: &Instr, what: Async, mask: u32, env: &mut Env<'_>) -> Result<(), Why> {
        let value = |at: usize| instr.args.get(at).and_then(|arg| self.read(arg, env)).ok_or(Why::Operands);
        match what {
            Async::ProxyFence => env.pipe.fence(),
            Async::BarrierInit => {
                let (at, count) = (self.address(instr.args.first(), 8, mask)?, value(1)?);
                for lane in lanes(mask) {
                    env.put(Space::Shared, at[lane], &count[lane].to_le_bytes())?;
                    let barrier = Barrier { count: count[lane], left: count[lane], ..Barrier::default() };
                    env.pipe.barriers.insert(at[lane], barrier);
                }
            }
            Async::BarrierArrive | Async::BarrierExpect => {
                let at = self.address(instr.args.get(1), 8, mask)?;
                let bytes = if what == Async::BarrierExpect { value(2)? } else { [0; 32] };
                lanes(mask).try_for_each(|lane| env.pipe.arrive(at[lane], bytes[lane] as i64))?;
            }
            Async::BarrierTry => {
                let (at, parity) = (self.address(instr.args.get(1), 8, mask)?, value(2)?);
                let Some(Arg::Reg(to)) = instr.args.first() else { return Err(Why::Operands) };
                let mut over = [0; 32];
                for lane in lanes(mask) {
                    let barrier = env.pipe.barriers.get(&at[lane]).ok_or(Why::Operands)?;
                    over[lane] = u64::from(barrier.phase & 1 != parity[lane] & 1);
                }
                self.write(*to, mask, &over);
                if lanes(mask).any(|lane| over[lane] == 0) {
                    env.look_around()?;
                }
            }
            _ => {
                let (to, from) =
                    (self.address(instr.args.first(), 16, mask)?, self.address(instr.args.get(1), 16, mask)?);
                let (size, barrier) = (value(2)?, self.address(instr.args.get(3), 8, mask)?);
                for lane in lanes(mask) {
                    let size = size[lane] as usize;
                    if !size.is_multiple_of(16) {
                        return Err(Why::Misaligned { at: to[lane], size });
                    }
                    env.pipe.seen(barrier[lane] as usize, 8)?;
                    let (to, from, barrier, late) = (to[lane], from[lane], barrier[lane], env.rng.below(2) == 0);
                    env.pipe.bulks.push(Bulk { to, from, size, barrier, late });
                    env.tick(2)?;
                }
            }
        }
        Ok(())
    }
}

impl Env<'_> {
    /// Lets a copy land, one time in so many.
    pub(crate) fn tick(&mut self, one_in: u64) -> Result<(), Why> {
        let Some(bulk) = self.pipe.due(self.rng, one_in) else { return Ok(()) };
        let bytes = self.bytes(Space::Global, bulk.from, bulk.size)?.to_vec();
        // Written by the asynchronous side, so that nobody has to fence it.
        let at = bulk.to as usize;
        let outside = Why::Outside { space: "shared", at: bulk.to, size: bulk.size };
        self.shared.get_mut(at..at + bulk.size).ok_or(outside)?.copy_from_slice(&bytes);
        self.pipe.marks.get_mut(at..at + bulk.size).into_iter().flatten().for_each(|mark| *mark = 0);
        let barrier = self.pipe.barriers.get_mut(&bulk.barrier).ok_or(Why::Operands)?;
        barrier.bytes -= bulk.size as i64;
        barrier.turn();
        self.pipe.fruitless = 0;
        Ok(())
    }

    /// Somebody waits: copies go on; nobody waits for ever.
    fn look_around(&mut self) -> Result<(), Why> {
        self.pipe.fruitless += 1;
        if self.pipe.fruitless > PATIENCE {
            return Err(Why::Deadlock);
        }
        self.tick(4)
    }
}
