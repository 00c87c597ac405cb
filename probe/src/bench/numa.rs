//! What every NUMA node's memory costs the cores of every node: bandwidth, latency, and latency under load.
//!
//! Latency is a pointer chase along one random cycle through all lines of a buffer (Sattolo 1986), bandwidth a sum over
//! one buffer per core, each bound to its node; loaded latency is the chase while a part of the other cores of the node
//! streams (as Intel's Memory Latency Checker does). Every matrix has the reading node first, the memory's node second.

use std::hint::black_box;
use std::time::Duration;

use muster_wire::{Level, Profile};

use super::context::{Context, Metric, share};
use super::kernel::Isa;
use super::latency::{HOPS, hop, link};
use super::region::Region;
use crate::pin::{Place, Team, Worker, with_team};
use crate::steps::{Halt, Plan};
use crate::topology::{self, NumaNode};

pub(crate) const NAME: &str = "cpu-memory-bw-latency";
const SMOKE: Duration = Duration::from_millis(700);
const CHASE: usize = 0;
const READ: usize = 1;
/// The first core chases, the others read.
const MIXED: usize = 2;
/// Words of a chunk: 256 KiB.
const CHUNK: usize = 32 << 10;
/// Shares of the other cores that stream while one chases, percent.
const LOADS: [usize; 4] = [0, 25, 50, 100];

/// One core's part: its own buffer to read, and the chase of the node whose memory is looked at.
struct Reader<'a> {
    chases: bool,
    isa: Isa,
    buffer: Region,
    at: usize,
    words: &'a [usize],
    hop: usize,
}

impl Reader<'_> {
    fn read(&mut self) -> f64 {
        let words = &self.buffer.words()[self.at..self.at + CHUNK];
        self.at = (self.at + CHUNK) % self.buffer.words().len();
        black_box(sum(self.isa, words));
        size_of_val(words) as f64
    }
}

impl Worker for Reader<'_> {
    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        if job == READ || job == MIXED && !self.chases {
            return Ok(self.read());
        }
        self.hop = hop(self.words, self.hop, HOPS);
        Ok(HOPS as f64)
    }

    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        let words = self.buffer.words();
        let seen = words.chunks_exact(CHUNK).fold(0, |seen: usize, chunk| seen.wrapping_add(sum(self.isa, chunk)));
        if seen == words.len() {
            Ok(())
        } else {
            Err(Halt::Failed(format!("{} words of one add up to {seen}", words.len())))
        }
    }
}

/// Wrapping sum, with the widest loads of `isa`.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls a function compiled for detected instructions"))]
fn sum(isa: Isa, words: &[usize]) -> usize {
    match isa {
        Isa::Portable => plain_sum(words),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Isa::best` gives these only where AVX2 was detected.
        Isa::Avx2 | Isa::Avx512 => unsafe { wide_sum(words) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide_sum(words: &[usize]) -> usize {
    plain_sum(words)
}

/// Sixteen chains, so that no addition waits for another.
#[inline(always)]
fn plain_sum(words: &[usize]) -> usize {
    let mut lanes = [0usize; 16];
    for group in words.as_chunks::<16>().0 {
        lanes.iter_mut().zip(group).for_each(|(lane, word)| *lane = lane.wrapping_add(*word));
    }
    lanes.into_iter().fold(0, usize::wrapping_add)
}

/// Bytes of the buffers of one pair of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    chase: usize,
    /// Of all cores together.
    read: usize,
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let nodes = topology::numa_nodes();
    let readers: Vec<&NumaNode> = nodes.iter().filter(|node| !node.cores.is_empty()).collect();
    let llc = topology::last_level_total() / readers.len().max(1);
    let sizes = sizes(context.profile, llc, topology::available_memory())?;
    if sizes.chase < 2 * llc {
        let (buffer, llc) = (sizes.chase >> 20, llc >> 20);
        context.log(Level::Info, format!("{NAME}: buffers of {buffer} MiB beside a cache of {llc} MiB: part cache"));
    }
    let loads = readers.first().map_or(Vec::new(), |node| loads(node.cores.len()));
    let plan = context.turns(SMOKE, 2 * nodes.len() * readers.len() + loads.len());
    let pairs = nodes.len() * readers.len();
    let mut done = 0;
    for memory in &nodes {
        let mut chase = Region::new(sizes.chase, memory.id)?;
        link(chase.words_mut())?;
        for reader in &readers {
            let pair = Pair { reader, memory, chase: &chase, bytes: sizes.read };
            let loads: &[_] = if done == 0 { &loads } else { &[] };
            pair.measure(context, &plan, share(done, pairs), loads)?;
            done += 1;
        }
    }
    Ok(())
}

/// Cores of one node and memory of another, or the same.
struct Pair<'a> {
    reader: &'a NumaNode,
    memory: &'a NumaNode,
    chase: &'a Region,
    bytes: usize,
}

impl Pair<'_> {
    fn measure(
        &self,
        context: &mut Context<'_>,
        plan: &Plan,
        share: (f64, f64),
        loads: &[(usize, usize)],
    ) -> Result<(), Halt> {
        let places: Vec<Place> = self.reader.cores.iter().map(|core| Place::core(*core)).collect();
        let isa = Isa::best();
        let each = (self.bytes / places.len()).max(2 << 20);
        let make = |place: &Place| {
            let mut buffer = Region::new(each, self.memory.id)?;
            buffer.words_mut().fill(1);
            let chases = std::ptr::eq(place, &raw const places[0]);
            Ok(Reader { chases, isa, buffer, at: 0, words: self.chase.words(), hop: 0 })
        };
        let ids = [self.reader, self.memory].map(|node| node.id.unwrap_or(0));
        let name = |what: &str| format!("mem_bandwidth_matrix_numa_{}_{}_{what}", ids[0], ids[1]);
        let chased = |metric: Metric| metric.by(self.chase.pages.engine());
        with_team(&places, &make, |team| {
            let bandwidth = Metric::of(NAME, name("bw"));
            context.measure(bandwidth, plan, share, &mut || team.step(READ, plan.step))?;
            team.verify(READ)?;
            let latency = |team: &Team, busy: usize, job| Ok(1e9 / team.rates(0..busy + 1, job, plan.step)?[0]);
            let metric = chased(Metric::of(NAME, name("lat")));
            context.measure(metric, plan, share, &mut || latency(team, 0, CHASE))?;
            for (percent, busy) in loads {
                let metric = chased(Metric::of(NAME, format!("mem_loaded_latency_{percent}_lat")));
                context.measure(metric, plan, share, &mut || latency(team, *busy, MIXED))?;
            }
            Ok(())
        })
    }
}

/// Percent of the other cores, and how many those are, each number once and under its largest name.
fn loads(cores: usize) -> Vec<(usize, usize)> {
    let others = cores.saturating_sub(1);
    let mut loads: Vec<(usize, usize)> = Vec::new();
    for (percent, busy) in LOADS.map(|percent| (percent, (others * percent).div_ceil(100))) {
        loads.retain(|(_, known)| *known != busy || busy == 0);
        if busy > 0 || percent == 0 {
            loads.push((percent, busy));
        }
    }
    loads
}

/// Four caches each where time and free memory allow.
fn sizes(profile: Profile, llc: usize, free: usize) -> Result<Sizes, Halt> {
    let least = 32 << 20;
    let most = match profile {
        Profile::Smoke => least,
        Profile::Quick => 256 << 20,
        Profile::Standard | Profile::Full => 2 << 30,
    };
    if free < 4 * least {
        return Err(Halt::NotRun(format!("{} MiB of memory are free, {} needed", free >> 20, (4 * least) >> 20)));
    }
    let bytes = (4 * llc).clamp(least, most).min(free / 4);
    Ok(Sizes { chase: bytes, read: bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_distinct_numbers_of_cores_under_their_largest_name() {
        assert_eq!(loads(1), [(0, 0)]);
        assert_eq!(loads(2), [(0, 0), (100, 1)]);
        assert_eq!(loads(3), [(0, 0), (50, 1), (100, 2)]);
        assert_eq!(loads(65), [(0, 0), (25, 16), (50, 32), (100, 64)]);
    }

    #[test]
    fn a_sum_counts_every_word_on_every_instruction_set() {
        let words: Vec<usize> = (0..1024).collect();
        assert_eq!(plain_sum(&words), 1023 * 512);
        assert_eq!(sum(Isa::best(), &words), 1023 * 512);
    }

    #[test]
    fn a_reader_that_finds_other_words_than_it_wrote_fails() {
        let mut buffer = Region::new(1, None).unwrap();
        buffer.words_mut().fill(1);
        let mut reader = Reader { chases: false, isa: Isa::best(), buffer, at: 0, words: &[0], hop: 0 };
        assert_eq!(reader.chunk(READ), Ok(8.0 * CHUNK as f64));
        assert_eq!(reader.verify(READ), Ok(()));
        reader.buffer.words_mut()[99] = 3;
        assert!(matches!(reader.verify(READ), Err(Halt::Failed(_))));
    }

    #[test]
    fn buffers_are_four_caches_as_far_as_the_profile_and_memory_go() {
        assert_eq!(sizes(Profile::Smoke, 480 << 20, 8 << 30).unwrap().chase, 32 << 20);
        assert_eq!(sizes(Profile::Standard, 64 << 20, 8 << 30).unwrap().chase, 256 << 20);
        assert_eq!(sizes(Profile::Standard, 480 << 20, 2 << 30).unwrap().chase, 512 << 20);
        assert!(matches!(sizes(Profile::Quick, 1 << 20, 64 << 20), Err(Halt::NotRun(_))));
    }
}
