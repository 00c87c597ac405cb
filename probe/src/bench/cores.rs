//! How fast each core is by itself, and how far it is from its memory: one slow core hides in a node's total.
//!
//! The cores take turns, again and again, so that whatever disturbs the node disturbs all of them alike: values with
//! one position in the series of a node's cores belong to one moment and may be compared in pairs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use muster_wire::{Datum, Fact, Facts, HELD_CPU, Profile, Reading, Unit};

use super::context::{Context, Metric};
use super::kernel::{Isa, N, Number, Product};
use super::latency::{HOPS, hop, link};
use super::region::Region;
use crate::pin::{Place, Worker, with_team};
use crate::steps::Halt;
use crate::topology::{self, NumaNode};

pub(crate) const NAME: &str = "cpu-core";
const SMOKE: Duration = Duration::from_millis(600);
const SPEED: usize = 0;
const LATENCY: usize = 1;
/// Tile products before a core is timed: half a millisecond, in which it wakes up and raises its clock.
const WAKE: usize = 16;

/// A core's own matrices, and the chase of its NUMA node that all its cores share: reading moves nothing.
struct Core<'a> {
    product: Product<f64>,
    words: &'a [usize],
    at: usize,
    /// What the kernel said before the step: when, and nanoseconds that this thread had waited for its core.
    before: (Instant, u64),
    kept: &'a Kept,
}

/// How long a core's thread was at work, and how long of that somebody else held the core, nanoseconds.
#[derive(Default)]
struct Kept {
    of: AtomicU64,
    waited: AtomicU64,
}

impl Kept {
    /// Share of the time that others held the core, where it is worth a word.
    fn share(&self) -> Option<f64> {
        let share = self.waited.load(Relaxed) as f64 / self.of.load(Relaxed).max(1) as f64;
        (share > 0.01).then_some(share)
    }
}

/// Nanoseconds for which the calling thread was ready and not run; 0 where the kernel does not count.
fn waited() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

impl Worker for Core<'_> {
    fn begin(&mut self, job: usize) -> Result<(), Halt> {
        if job == SPEED {
            for _ in 0..WAKE {
                self.product.advance();
            }
        }
        self.before = (Instant::now(), waited());
        Ok(())
    }

    fn end(&mut self, _job: usize) -> Result<(), Halt> {
        let (start, before) = self.before;
        self.kept.of.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        self.kept.waited.fetch_add(waited().saturating_sub(before), Relaxed);
        Ok(())
    }

    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        if job == SPEED {
            return Ok(self.product.advance());
        }
        self.at = hop(self.words, self.at, HOPS);
        Ok(HOPS as f64)
    }

    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        let error = self.product.finish_and_check();
        if error <= f64::UNIT_ERROR * N as f64 {
            return Ok(());
        }
        let cpu = rustix::thread::sched_getcpu();
        Err(Halt::Failed(format!("core {cpu} computes a wrong matrix product: relative error {error:.1e}")))
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let places = Place::every_core();
    let chases = chases(context.profile)?;
    let pages = chases.first().map_or("own", |(_, region)| region.pages.engine());
    let isa = Isa::best();
    let kept: Vec<Kept> = places.iter().map(|_| Kept::default()).collect();
    let make = |place: &Place| {
        let mine = chases.iter().find(|(node, _)| node.cores.contains(&place.cpu())).or(chases.first());
        let words = mine.map(|(_, region)| region.words()).unwrap_or_default();
        let kept = &kept[places.iter().position(|one| std::ptr::eq(one, place)).unwrap_or(0)];
        Ok(Core { product: Product::new(isa)?, words, at: 0, before: (Instant::now(), 0), kept })
    };
    let metrics: Vec<Metric> = places
        .iter()
        .flat_map(|place| {
            let cpu = place.cpu();
            let speed = Metric::of(NAME, format!("speed:core{cpu}"));
            [speed, Metric::of(NAME, format!("latency:core{cpu}")).by(pages)]
        })
        .collect();
    let plan = context.turns(SMOKE, metrics.len());
    with_team(&places, &make, |team| {
        let alone = |core: usize, job| Ok(team.rates(core..core + 1, job, plan.step)?.into_iter().sum::<f64>());
        let mut turn = || {
            let mut values = Vec::with_capacity(metrics.len());
            for core in 0..places.len() {
                values.push(alone(core, SPEED)?);
                values.push(1e9 / alone(core, LATENCY)?);
            }
            Ok(values)
        };
        context.measure_all(metrics.clone(), &plan, (0.0, 1.0), &mut turn)?;
        team.verify(SPEED)
    })?;
    let fact = |(place, kept): (&Place, &Kept)| {
        let reading = Reading::Value(Datum::Number(kept.share()?));
        Some(Fact { key: format!("{HELD_CPU}{}", place.cpu()), reading, unit: Some(Unit::Ratio) })
    };
    let facts: Vec<Fact> = places.iter().zip(&kept).filter_map(fact).collect();
    if !facts.is_empty() {
        context.facts(Facts { collector: NAME.into(), facts });
    }
    Ok(())
}

/// A chase in the memory of every NUMA node that has cores, larger than the caches where time and memory allow.
fn chases(profile: Profile) -> Result<Vec<(NumaNode, Region)>, Halt> {
    let nodes: Vec<NumaNode> = topology::numa_nodes().into_iter().filter(|node| !node.cores.is_empty()).collect();
    let least = 32 << 20;
    let most = if profile == Profile::Smoke { least } else { 256 << 20 };
    let free = topology::available_memory() / 4 / nodes.len().max(1);
    if free < least {
        return Err(Halt::NotRun(format!(
            "{} MiB of memory are free for each chase, {} needed",
            free >> 20,
            least >> 20
        )));
    }
    let chase = |node: NumaNode| {
        let llc = node.cores.first().map_or(0, |cpu| topology::caches(*cpu).llc);
        let mut region = Region::new((4 * llc).clamp(least, most).min(free), node.id)?;
        link(region.words_mut())?;
        Ok((node, region))
    };
    nodes.into_iter().map(chase).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use muster_wire::Frame;

    use super::*;

    #[test]
    fn a_core_that_somebody_holds_is_named() {
        let core = Place::every_core().remove(0);
        let over = AtomicBool::new(false);
        let mut facts = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                core.bind().unwrap();
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let mut emit = |frame| {
                if let Frame::Facts(more) = frame {
                    facts.extend(more.facts);
                }
            };
            let stop = AtomicBool::new(false);
            let ended =
                run(&mut Context { profile: Profile::Smoke, scratch: None, stop: &stop, steps: None, emit: &mut emit });
            over.store(true, Relaxed);
            ended.unwrap();
        });
        let key = format!("{HELD_CPU}{}", core.cpu());
        let held = facts.iter().find(|fact| fact.key == key).unwrap();
        assert!(matches!(held.reading, Reading::Value(Datum::Number(share)) if share > 0.1), "{facts:?}");
    }
}
