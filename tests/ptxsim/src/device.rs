//! One device: its memory, its multiprocessors, which block runs where, and how long a launch takes.

use crate::alu::Lanes;
use crate::block::{self, Place};
use crate::code::Kernel;
use crate::fault::Faults;
use crate::memory::{Counts, Memory};
use crate::rng::Rng;
use crate::trap::{Trap, Why};

/// Threads and static limits of a multiprocessor, as sm_90 has them.
const THREADS: u32 = 2048;
const SHARED: usize = 228 << 10;
/// Shared memory that each block takes beside its own.
const RESERVED: usize = 1 << 10;

/// A kernel and its launch shape.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// What to run.
    pub kernel: &'a Kernel,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: usize,
    /// Parameter block, laid out as the kernel says.
    pub params: &'a [u8],
}

/// What a launch cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Cycles of the multiprocessor that was done last.
    pub cycles: u64,
    /// What its threads did.
    pub counts: Counts,
}

/// One simulated device.
#[derive(Debug)]
pub struct Device {
    /// Its memory.
    pub memory: Memory,
    /// Multiprocessors.
    pub sms: u32,
    /// What is wrong with it.
    pub faults: Faults,
    rng: Rng,
    /// Registers of finished warps, for the next block to reuse.
    spare: Vec<Vec<Lanes>>,
}

impl Device {
    /// A device with `sms` multiprocessors and `bytes` of memory. `seed` decides every order that hardware leaves open.
    #[must_use]
    pub fn new(sms: u32, bytes: u64, faults: Faults, seed: u64) -> Self {
        Self::numbered(0, (sms, bytes), faults, seed)
    }

    /// The same, of a machine with several: device number `index` has its own addresses.
    #[must_use]
    pub fn numbered(index: usize, (sms, bytes): (u32, u64), faults: Faults, seed: u64) -> Self {
        let memory = Memory::new(index, bytes, faults.stuck.clone());
        Self { memory, sms, faults, rng: Rng(seed), spare: Vec::new() }
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// When it does what a kernel may not do; memory stays as it was then.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<Ran, Trap> {
        let threads = launch.block.iter().product::<u32>();
        let bytes = launch.kernel.shared + launch.shared;
        if let Some(what) = refused(launch, threads, bytes) {
            let kernel = launch.kernel.name.clone();
            return Err(Trap { kernel, line: 0, block: [0; 3], thread: 0, why: Why::Shape(what) });
        }
        let each = (THREADS / threads).min((SHARED / (bytes + RESERVED)) as u32).clamp(1, 32);
        let order = self.order();
        let mut busy = vec![(0_u64, 0_u64); self.sms as usize];
        self.memory.counts = Counts::default();
        for (index, block) in blocks(launch.grid).enumerate() {
            // Round after round over all multiprocessors, in an order that changes from launch to launch.
            let sm = order[index % order.len()];
            let place = Place { block, sm, sms: self.sms, begin: done(busy[sm as usize], each) };
            let (rng, spare) = (&mut self.rng, &mut self.spare);
            let cycles = block::run(launch, place, (&mut self.memory, &self.faults), (rng, spare))?;
            let (longest, all) = busy[sm as usize];
            busy[sm as usize] = (longest.max(cycles), all + cycles);
        }
        let cycles = busy.into_iter().map(|sm| done(sm, each)).max().unwrap_or(0);
        Ok(Ran { cycles, counts: self.memory.counts })
    }

    fn order(&mut self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.sms).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.rng.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// When a multiprocessor is done that runs `each` blocks at a time: the longest of them, or all side by side.
fn done((longest, all): (u64, u64), each: u32) -> u64 {
    longest.max(all / u64::from(each))
}

fn blocks(grid: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..grid[2]).flat_map(move |z| (0..grid[1]).flat_map(move |y| (0..grid[0]).map(move |x| [x, y, z])))
}

fn refused(launch: &Launch<'_>, threads: u32, bytes: usize) -> Option<&'static str> {
    let wanted = launch.kernel.params.last().map_or(0, |(at, size)| at + size);
    match () {
        () if threads == 0 || threads > 1024 => Some("1 to 1024 threads in a block"),
        () if launch.grid.contains(&0) => Some("a grid without blocks"),
        () if bytes + RESERVED > SHARED => Some("too much shared memory"),
        () if launch.params.len() < wanted => Some("too few parameters"),
        () => None,
    }
}
