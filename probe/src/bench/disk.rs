//! What the disk under a directory delivers: sequential and random, reading, writing and mixed, and how long one
//! request takes.
//!
//! On a file of its own that has no name; never on a device. Direct I/O where the file system takes it, else
//! buffered with every write synced, and then the engine's name says so. The longer profiles ask as fio's usual jobs do:
//! 128 KiB in sequence with 64 requests in flight, 4 KiB anywhere with 64 in flight in each of four jobs.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use muster_wire::{Level, Profile, Unit};
use rustix::fs::{Advice, fadvise, fdatasync, fsync};
use rustix::io::{Errno, pread, pwrite};

use super::aligned::Aligned;
use super::context::{Context, Metric, share};
use super::kernel::mixed;
use super::latencies::Latencies;
use super::queue::{Kind, Queue};
use super::scratch::Scratch;
use crate::pin::{Place, Worker, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "disk";
const SMOKE: Duration = Duration::from_millis(500);
const KIB: usize = 1 << 10;
/// Bytes written at once when the file is made.
const FILL: usize = 1 << 20;
/// Threads that stand in for a queue where the kernel has none for us.
const MOST_THREADS: usize = 64;
/// Share of writes in a mixed load, percent.
const MIX: u8 = 20;
/// Percentiles of the latency, and their names.
const PERCENTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];
/// The one of them that the quick profile has time for.
const TAIL: &[(f64, &str)] = &[(0.99, "p99")];

/// What the requests of one metric are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Share of writes, percent.
    pub(super) writes: u8,
    pub(super) random: bool,
    /// Bytes of a request.
    pub(super) block: usize,
    /// Requests in flight in each job, where the engine has a queue.
    pub(super) depth: usize,
    /// Threads with a queue each.
    pub(super) jobs: usize,
}

impl Access {
    const fn sequential(writes: u8, block: usize, depth: usize) -> Self {
        Self { writes, random: false, block, depth, jobs: 1 }
    }

    const fn random(writes: u8, depth: usize, jobs: usize) -> Self {
        Self { writes, random: true, block: 4 * KIB, depth, jobs }
    }

    pub(super) const fn verb(self) -> &'static str {
        match self.writes {
            0 => "read",
            100 => "write",
            _ => "read and write",
        }
    }
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position(u64);

impl Position {
    /// Of one job of several: each has its own sequence.
    const fn of_job(job: usize) -> Self {
        Self((job as u64) << 40)
    }

    /// Whether it writes, and its offset.
    pub(super) fn next(&mut self, access: Access, size: u64) -> (bool, u64) {
        let blocks = size / access.block as u64;
        let block = if access.random { mixed(self.0) % blocks } else { self.0 % blocks };
        let write = match access.writes {
            0 => false,
            100 => true,
            writes => mixed(!self.0) % 100 < u64::from(writes),
        };
        self.0 += 1;
        (write, block * access.block as u64)
    }
}

/// A load and the metrics taken of it.
struct Row {
    name: &'static str,
    access: Access,
    percentiles: &'static [(f64, &'static str)],
}

impl Row {
    const fn new(name: &'static str, access: Access, percentiles: &'static [(f64, &'static str)]) -> Self {
        Self { name, access, percentiles }
    }

    fn metrics(&self, engine: &'static str) -> Vec<Metric> {
        let percentile = |(_, name): &(f64, &str)| Metric::of(NAME, format!("{}-{name}", self.name)).by(engine);
        let own = Metric::of(NAME, self.name).by(engine);
        std::iter::once(own).chain(self.percentiles.iter().map(percentile)).collect()
    }

    fn values(&self, requests_per_second: f64, latencies: &Latencies) -> Result<Vec<f64>, Halt> {
        let own = match Metric::of(NAME, self.name).entry()?.unit {
            Unit::Nanos => 1e9 / requests_per_second,
            Unit::BytesPerSec => requests_per_second * self.access.block as f64,
            _ => requests_per_second,
        };
        let mut values = vec![own];
        for (q, _) in self.percentiles {
            values.push(latencies.quantile(*q).ok_or_else(|| Halt::NotRun("no request was done in a step".into()))?);
        }
        Ok(values)
    }
}

const SMOKE_ROWS: &[Row] = &[
    Row::new("seq-write", Access::sequential(100, 256 * KIB, 4), &[]),
    Row::new("seq-read", Access::sequential(0, 256 * KIB, 4), &[]),
    Row::new("rand-write", Access::random(100, 16, 1), &[]),
    Row::new("rand-read", Access::random(0, 16, 1), &[]),
    Row::new("rand-read-latency", Access::random(0, 1, 1), &[]),
];

const QUICK_ROWS: &[Row] = &[
    Row::new("seq-write", Access::sequential(100, 256 * KIB, 4), &[]),
    Row::new("seq-read", Access::sequential(0, 256 * KIB, 4), &[]),
    Row::new("rand-write", Access::random(100, 16, 1), TAIL),
    Row::new("rand-read", Access::random(0, 16, 1), TAIL),
    Row::new("rand-read-latency", Access::random(0, 1, 1), TAIL),
];

const LONG_ROWS: &[Row] = &[
    Row::new("seq-write", Access::sequential(100, 128 * KIB, 64), &PERCENTILES),
    Row::new("seq-read", Access::sequential(0, 128 * KIB, 64), &PERCENTILES),
    Row::new("seq-readwrite", Access::sequential(MIX, 128 * KIB, 64), &PERCENTILES),
    Row::new("rand-write", Access::random(100, 64, 4), &PERCENTILES),
    Row::new("rand-read", Access::random(0, 64, 4), &PERCENTILES),
    Row::new("rand-readwrite", Access::random(MIX, 64, 4), &PERCENTILES),
    Row::new("rand-read-latency", Access::random(0, 1, 1), &PERCENTILES),
    Row::new("rand-write-latency", Access::random(100, 1, 1), &PERCENTILES),
];

/// Names of all metrics of the longest profiles.
#[cfg(test)]
pub(super) fn names() -> Vec<String> {
    LONG_ROWS.iter().flat_map(|row| row.metrics("own")).map(|metric| metric.name.into_owned()).collect()
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let (size, rows) = match context.profile {
        Profile::Smoke => (16 << 20, SMOKE_ROWS),
        Profile::Quick => (256 << 20, QUICK_ROWS),
        Profile::Standard => (1 << 30, LONG_ROWS),
        Profile::Full => (4 << 30, LONG_ROWS),
    };
    let scratch = Scratch::new(context.scratch, size)?;
    fill(context, &scratch)?;
    if !scratch.direct {
        let text = format!("{NAME}: {} takes no direct I/O, so its page cache is measured", scratch.dir.display());
        context.log(Level::Warn, text);
    }
    let kind = best(&scratch)?;
    let plan = context.plan(SMOKE, rows.len());
    for (at, row) in rows.iter().enumerate() {
        // One request at a time needs no queue: the plain call is the shorter way.
        let kind = kind.filter(|_| row.access.depth > 1);
        let engine = match kind {
            _ if !scratch.direct => "buffered",
            Some(kind) => kind.engine(),
            None => "pread",
        };
        let (metrics, share) = (row.metrics(engine), share(at, rows.len()));
        let load = Load { scratch: &scratch, access: row.access, kind };
        load.run(&mut |step| {
            let mut step = || {
                let (rate, latencies) = step(plan.step)?;
                row.values(rate, &latencies)
            };
            context.measure_all(metrics.clone(), &plan, share, &mut step)
        })?;
    }
    Ok(())
}

/// The better of the kernel's queues that work here.
fn best(scratch: &Scratch) -> Result<Option<Kind>, Halt> {
    for kind in Kind::ALL.into_iter().filter(|_| scratch.direct) {
        if Queue::new(kind, scratch, Access::random(0, 1, 1))?.is_some() {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// One row's requests and how they reach the kernel.
struct Load<'a> {
    scratch: &'a Scratch,
    access: Access,
    kind: Option<Kind>,
}

/// A step of some length: requests per second, and how long they took.
type Step<'a> = dyn FnMut(Duration) -> Result<(f64, Latencies), Halt> + 'a;

impl Load<'_> {
    /// Starts the jobs and gives `body` their steps.
    fn run(&self, body: &mut dyn FnMut(&mut Step<'_>) -> Result<(), Halt>) -> Result<(), Halt> {
        let all = Mutex::new(Latencies::default());
        let jobs = match self.kind {
            Some(_) => self.access.jobs,
            None if self.scratch.direct => (self.access.jobs * self.access.depth).min(MOST_THREADS),
            None => 1,
        };
        let places = vec![Place::this_node(); jobs];
        let make = |place: &Place| {
            let number = places.iter().position(|one| std::ptr::eq(one, place)).unwrap_or(0);
            Ok(Job {
                load: self,
                way: self.way()?,
                position: Position::of_job(number),
                own: Latencies::default(),
                all: &all,
            })
        };
        with_team(&places, &make, |team| {
            body(&mut |length| {
                let rate = team.step(0, length)?;
                let mut all = all.lock().map_err(|_| Halt::Failed("a job came to an internal error".into()))?;
                Ok((rate, std::mem::take(&mut *all)))
            })?;
            team.verify(0)
        })
    }

    fn way(&self) -> Result<Way<'_>, Halt> {
        match self.kind {
            None => Ok(Way::Calls(Aligned::new(self.access.block)?)),
            Some(kind) => match Queue::new(kind, self.scratch, self.access)? {
                Some(queue) => Ok(Way::Queue(queue)),
                None => Err(Halt::Failed(format!("{} took a short queue and refuses a long one", kind.engine()))),
            },
        }
    }
}

/// How requests reach the kernel.
enum Way<'a> {
    Queue(Queue<'a>),
    Calls(Aligned),
}

struct Job<'a> {
    load: &'a Load<'a>,
    way: Way<'a>,
    position: Position,
    own: Latencies,
    all: &'a Mutex<Latencies>,
}

impl Worker for Job<'_> {
    fn begin(&mut self, _job: usize) -> Result<(), Halt> {
        if let Way::Queue(queue) = &mut self.way {
            queue.begin();
        }
        Ok(())
    }

    fn chunk(&mut self, _job: usize) -> Result<f64, Halt> {
        match &mut self.way {
            Way::Queue(queue) => queue.turn(&mut self.position, &mut self.own),
            Way::Calls(buffer) => {
                let Load { scratch, access, .. } = *self.load;
                let (write, offset) = self.position.next(access, scratch.size);
                let start = Instant::now();
                request(scratch, write, buffer.bytes(), offset).map_err(|e| scratch.halt(access.verb(), e))?;
                self.own.inside.add(start.elapsed().as_nanos() as u64);
                Ok(1.0)
            }
        }
    }

    fn end(&mut self, _job: usize) -> Result<(), Halt> {
        let mut all = self.all.lock().map_err(|_| Halt::Failed("a job came to an internal error".into()))?;
        all.take(&mut self.own);
        Ok(())
    }

    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        match &mut self.way {
            Way::Queue(queue) => queue.drain(),
            Way::Calls(_) => Ok(()),
        }
    }
}

fn request(scratch: &Scratch, write: bool, block: &mut [u8], offset: u64) -> Result<(), Errno> {
    if !write && !scratch.direct {
        let len = std::num::NonZeroU64::new(block.len() as u64);
        fadvise(scratch, offset, len, Advice::DontNeed)?;
    }
    let moved = loop {
        let moved = if write { pwrite(scratch, block, offset) } else { pread(scratch, &mut *block, offset) };
        if moved != Err(Errno::INTR) {
            break moved?;
        }
    };
    if moved != block.len() {
        return Err(if write { Errno::NOSPC } else { Errno::IO });
    }
    if write && !scratch.direct { fdatasync(scratch) } else { Ok(()) }
}

/// Writes the whole file once, so that later writes find their blocks allocated and reads find data.
fn fill(context: &Context<'_>, scratch: &Scratch) -> Result<(), Halt> {
    let mut buffer = Aligned::new(FILL)?;
    let block = buffer.bytes();
    for offset in (0..scratch.size).step_by(block.len()) {
        if context.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        match pwrite(scratch, block, offset) {
            Ok(written) if written == block.len() => {}
            Ok(_) => return Err(scratch.halt("fill", Errno::NOSPC)),
            Err(e) => return Err(scratch.halt("fill", e)),
        }
    }
    fsync(scratch).map_err(|e| scratch.halt("sync", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn scratch(dir: &Path) -> Scratch {
        let scratch = Scratch::new(Some(dir), 4 << 20).unwrap();
        let mut buffer = Aligned::new(FILL).unwrap();
        for offset in (0..scratch.size).step_by(FILL) {
            assert_eq!(pwrite(&scratch, buffer.bytes(), offset), Ok(FILL));
        }
        scratch
    }

    /// Every queue that works here, and plain calls.
    fn ways(scratch: &Scratch) -> Vec<Option<Kind>> {
        let works = |kind: &Kind| Queue::new(*kind, scratch, Access::random(0, 1, 1)).unwrap().is_some();
        let queues = Kind::ALL.into_iter().filter(|kind| scratch.direct && works(kind)).map(Some);
        queues.chain([None]).collect()
    }

    #[test]
    fn positions_are_whole_blocks_inside_the_file_and_cover_it() {
        for access in LONG_ROWS.iter().chain(QUICK_ROWS).map(|row| row.access) {
            let mut position = Position::of_job(3);
            let blocks = 64;
            let size = blocks * access.block as u64;
            let mut seen = std::collections::HashSet::new();
            let mut writes = 0;
            for _ in 0..blocks * 20 {
                let (write, offset) = position.next(access, size);
                assert!(offset % access.block as u64 == 0 && offset < size);
                seen.insert(offset);
                writes += u64::from(write);
            }
            assert_eq!(seen.len() as u64, blocks);
            let share = writes as f64 / (blocks * 20) as f64;
            assert!((share - f64::from(access.writes) / 100.0).abs() < 0.05, "{share} of {}", access.writes);
        }
    }

    #[test]
    fn every_engine_writes_what_it_is_given_and_counts_what_it_did() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(dir.path());
        for (kind, byte) in ways(&scratch).into_iter().zip(0x11..) {
            let load = Load { scratch: &scratch, access: Access::sequential(100, 256 * KIB, 4), kind };
            let all = Mutex::new(Latencies::default());
            let mut way = load.way().unwrap();
            match &mut way {
                Way::Queue(queue) => queue.fill_buffer(byte),
                Way::Calls(buffer) => buffer.bytes().fill(byte),
            }
            let mut job = Job { load: &load, way, position: Position::default(), own: Latencies::default(), all: &all };
            let (mut done, blocks) = (0.0, (scratch.size / (256 << 10)) as f64);
            while done < blocks {
                done += job.chunk(0).unwrap();
            }
            job.verify(0).unwrap();
            job.end(0).unwrap();
            let mut block = Aligned::new(4096).unwrap();
            for offset in (0..scratch.size).step_by(4096) {
                assert_eq!(pread(&scratch, block.bytes(), offset), Ok(4096));
                assert!(block.bytes().iter().all(|b| *b == byte), "{kind:?} at {offset}");
            }
            assert!(all.lock().unwrap().quantile(0.5).unwrap() > 0.0, "{kind:?}");
        }
    }

    #[test]
    fn four_jobs_of_every_engine_measure_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(dir.path());
        for kind in ways(&scratch) {
            let load = Load { scratch: &scratch, access: Access::random(MIX, 64, 4), kind };
            let mut steps = 0;
            let ended = load.run(&mut |step| {
                for _ in 0..3 {
                    let (rate, latencies) = step(Duration::from_millis(5))?;
                    let [median, tail] = [0.5, 0.999].map(|q| latencies.quantile(q).unwrap());
                    assert!(rate > 0.0 && 0.0 < median && median <= tail, "{kind:?}: {rate} {median} {tail}");
                    steps += 1;
                }
                Ok(())
            });
            assert_eq!((ended, steps), (Ok(()), 3), "{kind:?}");
        }
    }

    #[test]
    fn a_full_disk_is_said_in_words() {
        // Past the largest offset of any file system: the kernel refuses as it does for a full one, at once.
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = scratch(dir.path());
        let kinds = ways(&scratch);
        scratch.size = 1 << 62;
        for kind in kinds {
            let load = Load { scratch: &scratch, access: Access::random(100, 4, 1), kind };
            let ended = load.run(&mut |step| step(Duration::ZERO).map(drop));
            match ended {
                Err(Halt::Failed(why)) => assert!(why.contains("cannot write a file in"), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
