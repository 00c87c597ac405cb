//! How fast each core is by itself, and how far it is from its memory: one slow core hides in a node's total.
//!
//! The cores take turns, again and again, so that whatever disturbs the node disturbs all of them alike: values with
//! one position in the series of a node's cores belong to one moment and may be compared in pairs.

use std::time::Duration;

use muster_wire::{Profile, Unit};

use super::context::{Context, Metric};
use super::kernel::{Isa, N, Number, Product};
use super::latency::{HOPS, hop, link};
use super::region::Region;
use crate::pin::{Place, Worker, with_team};
use crate::steps::{Halt, Plan};
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
}

impl Worker for Core<'_> {
    fn begin(&mut self, job: usize) -> Result<(), Halt> {
        if job == SPEED {
            for _ in 0..WAKE {
                self.product.advance();
            }
        }
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
    let make = |place: &Place| {
        let mine = chases.iter().find(|(node, _)| node.cores.contains(&place.cpu())).or(chases.first());
        let words = mine.map(|(_, region)| region.words()).unwrap_or_default();
        Ok(Core { product: Product::new(isa)?, words, at: 0 })
    };
    let metrics: Vec<Metric> = places
        .iter()
        .flat_map(|place| {
            let cpu = place.cpu();
            let speed = Metric::rate(NAME, format!("speed:core{cpu}"), Unit::FlopPerSec);
            [speed, Metric::latency(NAME, format!("latency:core{cpu}")).by(pages)]
        })
        .collect();
    let plan = Plan::in_turns(context.profile, SMOKE, metrics.len());
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
    })
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
