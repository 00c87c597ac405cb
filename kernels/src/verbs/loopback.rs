//! How fast one port of an RDMA adapter writes to itself, and whether every word arrives.
//!
//! Two queue pairs of one process, as perftest's `ib_write_bw` has them in two: what is written passes the adapter and its way to
//! memory twice and no cable, so that a slow figure is the node's own. Bytes are counted once.

use std::time::Instant;

use muster_wire::{Datum, Fact, Facts, Frame, Metric, MetricId, Profile, Progress, Reading, Series};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::layout::PortAttributes;
use super::library::Adapter;
use super::memory::{Host, OnGpu, Regions};
use super::pair::{Message, Pair};
use crate::driver::{Gpu, Trouble};
use crate::pace;

/// Name in the metric catalogue.
const NAME: &str = "ib-loopback";
/// Bytes that are read from, and as many that are written to. Messages take turns through them.
const REGION: usize = 16 << 20;
/// The same of a GPU in smoke.
const SMOKE: usize = 256 << 10;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) profile: Profile,
    /// Adapter, as below `/sys/class/infiniband`.
    pub(crate) adapter: String,
    pub(crate) port: u8,
    /// Which of its addresses the port uses, where it is addressed by GID.
    pub(crate) gid: Option<u8>,
    /// CPUs near the adapter; all where there are none.
    pub(crate) cpus: Vec<usize>,
    /// The GPU whose memory is measured as well.
    pub(crate) gpu: Option<usize>,
}

impl Order {
    /// From words of a command line: profile, adapter, port, GID index or `-`, CPUs as the kernel lists them, GPU or `-`.
    pub(crate) fn parse(words: &[String]) -> Option<Self> {
        let [profile, adapter, port, gid, cpus, gpu] = words else { return None };
        let gid = if gid == "-" { None } else { Some(gid.parse().ok()?) };
        let gpu = if gpu == "-" { None } else { Some(gpu.parse().ok()?) };
        let (profile, port) = (profile.parse().ok()?, port.parse().ok()?);
        Some(Self { profile, adapter: adapter.clone(), port, gid, cpus: listed(cpus)?, gpu })
    }

    /// `mlx5_0/1`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.adapter, self.port)
    }
}

/// The numbers of `0-3,8`; most of them that a kernel has.
fn listed(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        all.extend((first..=last).take(CpuSet::MAX_CPU));
    }
    Some(all)
}

/// Sizes of a message.
fn sizes(profile: Profile) -> Vec<usize> {
    let sizes: [&[usize]; 4] =
        [&[8 << 20, 64 << 10], &[8 << 20, 1 << 20, 64 << 10], &[8 << 20, 1 << 20, 64 << 10, 4 << 10], &[]];
    match sizes[profile as usize] {
        [] => (10..=23).rev().map(|power| 1 << power).collect(),
        some => some.to_vec(),
    }
}

/// `8MiB`, `64KiB`.
fn named(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{}MiB", bytes >> 20) } else { format!("{}KiB", bytes >> 10) }
}

/// Measures what `order` says; what there is to say goes to `say`.
///
/// # Errors
/// `Absent` without libibverbs, `NotRun` where the port or this login is not fit for it, else what failed or arrived wrong.
pub(crate) fn run(order: &Order, say: &mut dyn FnMut(Frame)) -> Result<(), Trouble> {
    progress(order, say, 0.0, "open");
    let cpus = pin(&order.cpus);
    let adapter = Adapter::open(&order.adapter)?;
    let port = adapter.port(order.port)?;
    let gid = order.gid.map_or("none".to_owned(), |gid| gid.to_string());
    let mtu = 128 << port.active_mtu.clamp(1, 5);
    fact(order, say, "verbs", format!("gid={gid} mtu={mtu} cpus={cpus} library={}", adapter.path()));
    let mut host = Host::new(&adapter, REGION)?;
    measure(order, say, (&adapter, &port), (&mut host, "write"))?;
    let Some(index) = order.gpu else { return Ok(()) };
    match on_gpu(order, say, (&adapter, &port), index) {
        // That adapters cannot reach a GPU is how a node is set up, and no fault of the adapter.
        Err(Trouble::Absent(why) | Trouble::NotRun(why)) => {
            fact(order, say, "gpu-memory", format!("not measured: {why}"));
            Ok(())
        }
        other => other.map_err(|trouble| trouble.about(&format!("memory of GPU {index}"))),
    }
}

/// The same with memory of GPU number `index`.
fn on_gpu(
    order: &Order,
    say: &mut dyn FnMut(Frame),
    (adapter, port): (&Adapter, &PortAttributes),
    index: usize,
) -> Result<(), Trouble> {
    progress(order, say, 0.0, &format!("open GPU {index}"));
    crate::driver::count()?;
    let gpu = Gpu::open(index)?;
    // Interpreted kernels fill and compare it in tests, which is what smoke is for.
    let mut memory = OnGpu::new(adapter, &gpu, if order.profile == Profile::Smoke { SMOKE } else { REGION })?;
    fact(order, say, "gpu-memory", format!("gpu={index} uuid={} way={}", gpu.uuid, memory.way));
    measure(order, say, (adapter, port), (&mut memory, "write-gpu"))
}

/// All sizes of a profile that fit, over a connection of their own.
fn measure(
    order: &Order,
    say: &mut dyn FnMut(Frame),
    (adapter, port): (&Adapter, &PortAttributes),
    (regions, kind): (&mut dyn Regions, &str),
) -> Result<(), Trouble> {
    progress(order, say, 0.0, "connect");
    let mut pair = Pair::connect(adapter, (order.port, port), order.gid, regions.keys())?;
    let most = regions.bytes().min(port.longest_message as usize);
    let sizes: Vec<usize> = sizes(order.profile).into_iter().filter(|size| *size <= most).collect();
    for (part, size) in sizes.iter().enumerate() {
        let what = format!("{kind}-{}", named(*size));
        let mut batch = |count: u32| batch(&mut pair, regions, *size, count);
        let mut done = |share: f64| progress(order, say, (part as f64 + share) / sizes.len() as f64, &what);
        let times = pace::times(order.profile, &mut done, &mut batch);
        let (times, warmup) = times.map_err(|trouble| trouble.about(&what))?;
        let values = times.into_iter().map(|ms| *size as f64 / (ms * 1e-3)).collect();
        series(order, say, &what, (values, warmup))?;
    }
    Ok(())
}

/// Writes `count` messages and compares what arrived; milliseconds of the writes alone.
fn batch(pair: &mut Pair<'_>, regions: &mut dyn Regions, size: usize, count: u32) -> Result<f64, Trouble> {
    let places = regions.bytes() / size;
    let used = places.min(count as usize) * size;
    regions.clear(used)?;
    let ((source, target), bytes) = (regions.addresses(), size as u32);
    let message = |number: u32| {
        let at = (number as usize % places * size) as u64;
        Message { from: source + at, to: target + at, bytes }
    };
    let begin = Instant::now();
    pair.write(count, &message)?;
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    regions.compare(used)?;
    Ok(ms)
}

/// Keeps this thread, and the memory that it touches first, near the adapter; which CPUs that came to, as the kernel writes them.
fn pin(cpus: &[usize]) -> String {
    let Ok(allowed) = sched_getaffinity(None) else { return "any".to_owned() };
    let mut near = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU && allowed.is_set(**cpu)).for_each(|cpu| near.set(*cpu));
    // A login that may use none of them measures from where it is, and says so.
    if near.count() == 0 || sched_setaffinity(None, &near).is_err() {
        return "any".to_owned();
    }
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| near.is_set(*cpu)).collect();
    let runs = all.chunk_by(|a, b| a + 1 == *b);
    let said = runs.map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    said.collect::<Vec<_>>().join(",")
}

fn progress(order: &Order, say: &mut dyn FnMut(Frame), done: f64, what: &str) {
    let note = format!("{}: {what}", order.name());
    say(Frame::Progress(Progress { benchmark: NAME.to_owned(), done, note }));
}

fn fact(order: &Order, say: &mut dyn FnMut(Frame), name: &str, text: String) {
    let reading = Reading::Value(Datum::Text(text));
    let fact = Fact { key: format!("port.{}.{name}", order.name()), reading, unit: None };
    say(Frame::Facts(Facts { collector: NAME.to_owned(), facts: vec![fact] }));
}

fn series(
    order: &Order,
    say: &mut dyn FnMut(Frame),
    what: &str,
    (values, warmup): (Vec<f64>, usize),
) -> Result<(), Trouble> {
    let name = format!("{what}:{}:{}", order.adapter, order.port);
    let Some(&Metric { unit, direction, .. }) = muster_wire::metric(NAME, &name) else {
        return Err(Trouble::Failed(format!("{NAME}/{name} is not in the metric catalogue")));
    };
    let (metric, warmup) = (MetricId::new(NAME, name, "own"), warmup as u32);
    say(Frame::Series(Series { metric, unit, direction, values, warmup, started_ns: 0 }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_whole_or_not_at_all() {
        let parse = |text: &str| Order::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let order = parse("quick mlx5_0 1 3 0-1,4 7").unwrap();
        assert_eq!((order.gid, order.port, order.name()), (Some(3), 1, "mlx5_0/1".to_owned()));
        assert_eq!((order.cpus, order.gpu), (vec![0, 1, 4], Some(7)));
        assert_eq!(parse("quick mlx5_0 1 -  -").unwrap().gid, None);
        for wrong in [
            "quick mlx5_0 1 3 0",
            "slow mlx5_0 1 3 0 -",
            "quick mlx5_0 x 3 0 -",
            "quick mlx5_0 1 3 0-x -",
            "quick mlx5_0 1 300 0 -",
            "quick mlx5_0 1 3 0 x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_size_of_every_profile_is_in_the_catalogue() {
        for profile in [Profile::Smoke, Profile::Quick, Profile::Standard, Profile::Full] {
            for size in sizes(profile) {
                assert!(
                    REGION.is_multiple_of(size)
                        && muster_wire::metric(NAME, &format!("write-{}:mlx5_0:1", named(size))).is_some()
                );
            }
        }
    }
}
