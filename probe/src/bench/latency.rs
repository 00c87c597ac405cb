//! How long one dependent load takes from each level of the memory hierarchy.
//!
//! A pointer chase along one random cycle through all cache lines of a buffer, one element per line, so that neither
//! prefetchers nor out-of-order execution can help (McVoy and Staelin, "lmbench", 1996).

use std::hint::black_box;
use std::time::Duration;

use muster_wire::{Level, Profile};

use super::context::{Context, Metric, share};
use super::kernel::mixed;
use crate::pin::{Place, Worker, filled, with_team};
use crate::steps::Halt;
use crate::topology::{self, Caches};

pub(crate) const NAME: &str = "cpu-latency";
const SMOKE: Duration = Duration::from_millis(500);
pub(super) const NAMES: [&str; 4] = ["l1", "l2", "llc", "dram"];
const LINE: usize = 64;
/// Machine words in a line.
const WORDS: usize = LINE / size_of::<usize>();
/// Loads per chunk: some 10 us in L1, some 300 us in DRAM.
pub(super) const HOPS: usize = 2_048;

/// A buffer whose lines form one cycle.
struct Chase {
    words: Vec<usize>,
    at: usize,
}

impl Chase {
    fn new(bytes: usize) -> Result<Self, Halt> {
        let mut words = filled(bytes / LINE * WORDS, 0)?;
        link(&mut words)?;
        Ok(Self { words, at: 0 })
    }

    fn hop(&mut self, hops: usize) {
        self.at = hop(&self.words, self.at, hops);
    }
}

/// Makes one random cycle of all lines of `words`: the first word of each becomes the position of the next.
pub(super) fn link(words: &mut [usize]) -> Result<(), Halt> {
    for (line, next) in cycle(words.len() / WORDS)?.into_iter().enumerate() {
        words[line * WORDS] = next as usize * WORDS;
    }
    Ok(())
}

/// Where `hops` dependent loads from `at` on lead.
pub(super) fn hop(words: &[usize], mut at: usize, hops: usize) -> usize {
    for _ in 0..hops {
        at = words[at];
    }
    black_box(at)
}

/// For every line its successor, so that all lines form one cycle (Sattolo 1986).
fn cycle(lines: usize) -> Result<Vec<u32>, Halt> {
    let mut next = filled(lines, 0u32)?;
    next.iter_mut().zip(0..).for_each(|(next, line)| *next = line);
    for line in (1..lines).rev() {
        // The high half of a product maps 32 random bits to 0..line without division.
        let other = ((mixed(line as u64) >> 32) * line as u64) >> 32;
        next.swap(line, other as usize);
    }
    Ok(next)
}

struct Levels([Option<Chase>; 4], [usize; 4]);

impl Worker for Levels {
    fn prepare(&mut self, job: usize) -> Result<(), Halt> {
        // One buffer at a time, to keep the memory of smoke small; the first hops pull it into its cache.
        self.0 = [const { None }; 4];
        let chase = self.0[job].insert(Chase::new(self.1[job])?);
        chase.hop((self.1[job] / LINE).min(1 << 16) * 2);
        Ok(())
    }

    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        let Some(chase) = &mut self.0[job] else { return Err(Halt::Failed("no buffer to chase through".into())) };
        chase.hop(HOPS);
        Ok(HOPS as f64)
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let place = if context.profile == Profile::Smoke { Place::this_node() } else { Place::this_core() };
    let caches = topology::caches(place.cpu());
    let sizes = sizes(context.profile, caches, topology::available_memory())?;
    if sizes[3] < 2 * caches.llc {
        let (buffer, llc) = (sizes[3] >> 20, caches.llc >> 20);
        context.log(
            Level::Info,
            format!("{NAME}: a buffer of {buffer} MiB beside a cache of {llc} MiB: dram is part cache"),
        );
    }
    let plan = context.plan(SMOKE, NAMES.len());
    with_team(&[place], &|_| Ok(Levels([const { None }; 4], sizes)), |team| {
        for (job, name) in NAMES.into_iter().enumerate() {
            team.prepare(job)?;
            let mut step = || team.step(job, plan.step).map(|rate| 1e9 / rate);
            context.measure(Metric::of(NAME, name), &plan, share(job, NAMES.len()), &mut step)?;
        }
        Ok(())
    })
}

/// Buffer sizes per level: half of L1 and of L2, so that a neighbour or the stack does not push the buffer out;
/// four times L2 (within half of the last level); and for DRAM as many caches as time and free memory allow.
fn sizes(profile: Profile, caches: Caches, free: usize) -> Result<[usize; 4], Halt> {
    let least = 64 << 20;
    let most = match profile {
        Profile::Smoke => least,
        Profile::Quick => 512 << 20,
        Profile::Standard | Profile::Full => 2 << 30,
    };
    if free < 2 * least {
        return Err(Halt::NotRun(format!("{} MiB of memory are free, {} needed", free >> 20, (2 * least) >> 20)));
    }
    let llc = (4 * caches.l2).min(caches.llc / 2).max(caches.l2);
    let dram = (4 * caches.llc).clamp(least, most).min(free / 4).max(least);
    Ok([caches.l1 / 2, caches.l2 / 2, llc.min(least), dram])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_permutation_is_one_cycle_through_every_line() {
        for lines in [1, 2, 3, 24, 1000, 32_768] {
            let next = cycle(lines).unwrap();
            let mut seen = HashSet::new();
            let mut at = 0;
            while seen.insert(at) {
                at = next[at as usize];
            }
            assert_eq!((at, seen.len()), (0, lines));
        }
    }

    #[test]
    fn the_cycle_is_not_in_the_order_of_memory() {
        let next = cycle(10_000).unwrap();
        let near = next.iter().zip(0u32..).filter(|(next, line)| next.abs_diff(*line) < 16).count();
        assert!(near < 100, "{near} of 10000 steps stay near");
    }

    #[test]
    fn a_chase_visits_every_line_and_returns() {
        let mut chase = Chase::new(64 * LINE).unwrap();
        chase.hop(63);
        assert_ne!(chase.at, 0);
        chase.hop(1);
        assert_eq!(chase.at, 0);
    }

    #[test]
    fn buffers_fit_their_level_and_smoke_stays_small() {
        let caches = Caches { l1: 48 << 10, l2: 2 << 20, llc: 480 << 20 };
        assert_eq!(sizes(Profile::Smoke, caches, 8 << 30).unwrap(), [24 << 10, 1 << 20, 8 << 20, 64 << 20]);
        assert_eq!(sizes(Profile::Full, caches, 16 << 30).unwrap()[3], 1920 << 20);
        assert_eq!(sizes(Profile::Full, caches, 1 << 30).unwrap()[3], 256 << 20);
        assert!(matches!(sizes(Profile::Smoke, caches, 100 << 20), Err(Halt::NotRun(_))));
        let small = Caches { l1: 32 << 10, l2: 256 << 10, llc: 256 << 10 };
        assert_eq!(sizes(Profile::Smoke, small, 8 << 30).unwrap()[2], 256 << 10);
    }
}
