//! What the disk under a directory delivers: sequential and random, reading and writing.
//!
//! On a file of its own that has no name; never on a device. Direct I/O where the file system takes it, else
//! buffered with every write synced, and then the engine's name says so.

use std::time::{Duration, Instant};

use muster_wire::{Level, Profile, Unit};
use rustix::fs::{Advice, fadvise, fdatasync, fsync};
use rustix::io::{Errno, pread, pwrite};

use super::aligned::Aligned;
use super::context::{Context, Metric, share};
use super::kernel::mixed;
use super::ring::Ring;
use super::scratch::Scratch;
use crate::steps::{Halt, Plan};

pub(crate) const NAME: &str = "disk";
const SMOKE: Duration = Duration::from_millis(500);
const SEQUENTIAL: usize = 256 << 10;
const RANDOM: usize = 4 << 10;
/// Bytes of the largest set of requests in flight.
const BUFFER: usize = 4 * SEQUENTIAL;

/// What the requests of one metric are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) write: bool,
    pub(super) random: bool,
    pub(super) block: usize,
    /// Requests in flight, where the engine has a queue.
    pub(super) depth: usize,
}

impl Access {
    const fn sequential(write: bool) -> Self {
        Self { write, random: false, block: SEQUENTIAL, depth: 4 }
    }

    const fn random(write: bool, depth: usize) -> Self {
        Self { write, random: true, block: RANDOM, depth }
    }

    pub(super) const fn verb(self) -> &'static str {
        if self.write { "write" } else { "read" }
    }
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position(u64);

impl Position {
    pub(super) fn next(&mut self, access: Access, size: u64) -> u64 {
        let blocks = size / access.block as u64;
        let block = if access.random { mixed(self.0) % blocks } else { self.0 % blocks };
        self.0 += 1;
        block * access.block as u64
    }
}

/// A metric: its name, its requests and what is said of them.
struct Row {
    name: &'static str,
    access: Access,
    unit: Unit,
}

impl Row {
    fn metric(&self, engine: &'static str) -> Metric {
        let metric = match self.unit {
            Unit::Nanos => Metric::latency(NAME, self.name),
            unit => Metric::rate(NAME, self.name, unit),
        };
        metric.by(engine)
    }

    fn value(&self, requests_per_second: f64) -> f64 {
        match self.unit {
            Unit::Nanos => 1e9 / requests_per_second,
            Unit::BytesPerSec => requests_per_second * self.access.block as f64,
            _ => requests_per_second,
        }
    }
}

const ROWS: [Row; 5] = [
    Row { name: "seq-write", access: Access::sequential(true), unit: Unit::BytesPerSec },
    Row { name: "seq-read", access: Access::sequential(false), unit: Unit::BytesPerSec },
    Row { name: "rand-write", access: Access::random(true, 16), unit: Unit::OpsPerSec },
    Row { name: "rand-read", access: Access::random(false, 16), unit: Unit::OpsPerSec },
    Row { name: "rand-read-latency", access: Access::random(false, 1), unit: Unit::Nanos },
];

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let size = match context.profile {
        Profile::Smoke => 16 << 20,
        Profile::Quick => 256 << 20,
        Profile::Standard => 1 << 30,
        Profile::Full => 4 << 30,
    };
    let scratch = Scratch::new(context.scratch, size)?;
    let mut buffer = Aligned::new(BUFFER)?;
    fill(context, &scratch, &mut buffer)?;
    let mut ring = if scratch.direct { Ring::new(&scratch, BUFFER)? } else { None };
    if !scratch.direct {
        let text = format!("{NAME}: {} takes no direct I/O, so its page cache is measured", scratch.dir.display());
        context.log(Level::Warn, text);
    }
    let plan = Plan::new(context.profile, SMOKE, ROWS.len());
    for (at, row) in ROWS.iter().enumerate() {
        let mut engine = match &mut ring {
            // One request at a time needs no queue: the plain call is the shorter way.
            Some(ring) if row.access.depth > 1 => Engine::Ring(ring),
            _ => Engine::Calls(&mut buffer),
        };
        let metric = row.metric(engine.name(&scratch));
        let mut position = Position::default();
        let mut step = || Ok(row.value(engine.step(&scratch, row.access, (&mut position, plan.step))?));
        context.measure(metric, &plan, share(at, ROWS.len()), &mut step)?;
    }
    Ok(())
}

/// How requests reach the kernel.
enum Engine<'a> {
    Ring(&'a mut Ring),
    Calls(&'a mut Aligned),
}

impl Engine<'_> {
    fn name(&self, scratch: &Scratch) -> &'static str {
        match self {
            _ if !scratch.direct => "buffered",
            Self::Ring(_) => "io_uring",
            Self::Calls(_) => "pread",
        }
    }

    /// Requests per second in one step.
    fn step(&mut self, scratch: &Scratch, access: Access, at: (&mut Position, Duration)) -> Result<f64, Halt> {
        match self {
            Self::Ring(ring) => ring.step(scratch, access, at),
            Self::Calls(buffer) => one_by_one(scratch, access, buffer, at),
        }
    }
}

fn one_by_one(
    scratch: &Scratch,
    access: Access,
    buffer: &mut Aligned,
    (position, length): (&mut Position, Duration),
) -> Result<f64, Halt> {
    let block = &mut buffer.bytes()[..access.block];
    let start = Instant::now();
    let mut done = 0.0;
    loop {
        let offset = position.next(access, scratch.size);
        request(scratch, access, block, offset).map_err(|e| scratch.halt(access.verb(), e))?;
        done += 1.0;
        let spent = start.elapsed();
        if spent >= length {
            return Ok(done / spent.as_secs_f64());
        }
    }
}

fn request(scratch: &Scratch, access: Access, block: &mut [u8], offset: u64) -> Result<(), Errno> {
    if !access.write && !scratch.direct {
        let len = std::num::NonZeroU64::new(block.len() as u64);
        fadvise(scratch, offset, len, Advice::DontNeed)?;
    }
    let moved = loop {
        let moved = if access.write { pwrite(scratch, block, offset) } else { pread(scratch, &mut *block, offset) };
        if moved != Err(Errno::INTR) {
            break moved?;
        }
    };
    if moved != block.len() {
        return Err(if access.write { Errno::NOSPC } else { Errno::IO });
    }
    if access.write && !scratch.direct { fdatasync(scratch) } else { Ok(()) }
}

/// Writes the whole file once, so that later writes find their blocks allocated and reads find data.
fn fill(context: &Context<'_>, scratch: &Scratch, buffer: &mut Aligned) -> Result<(), Halt> {
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

    fn scratch(dir: &Path) -> (Scratch, Aligned) {
        let scratch = Scratch::new(Some(dir), 4 << 20).unwrap();
        let mut buffer = Aligned::new(BUFFER).unwrap();
        for offset in (0..scratch.size).step_by(BUFFER) {
            assert_eq!(pwrite(&scratch, buffer.bytes(), offset), Ok(BUFFER));
        }
        (scratch, buffer)
    }

    #[test]
    fn positions_are_whole_blocks_inside_the_file_and_cover_it() {
        for access in ROWS.map(|row| row.access) {
            let mut position = Position::default();
            let blocks = 64;
            let size = blocks * access.block as u64;
            let mut seen = std::collections::HashSet::new();
            for _ in 0..blocks * 20 {
                let offset = position.next(access, size);
                assert!(offset % access.block as u64 == 0 && offset < size);
                seen.insert(offset);
            }
            assert_eq!(seen.len() as u64, blocks);
        }
    }

    #[test]
    fn both_engines_write_what_they_are_given() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, mut buffer) = scratch(dir.path());
        let access = Access::sequential(true);
        let whole = |scratch: &Scratch, byte: u8| {
            let mut block = Aligned::new(4096).unwrap();
            (0..scratch.size).step_by(4096).all(|offset| {
                assert_eq!(pread(scratch, block.bytes(), offset), Ok(4096));
                block.bytes().iter().all(|b| *b == byte)
            })
        };
        buffer.bytes().fill(0x11);
        let mut position = Position::default();
        while position.0 < scratch.size / SEQUENTIAL as u64 {
            one_by_one(&scratch, access, &mut buffer, (&mut position, Duration::ZERO)).unwrap();
        }
        assert!(whole(&scratch, 0x11));
        if let Some(mut ring) = scratch.direct.then(|| Ring::new(&scratch, BUFFER).unwrap()).flatten() {
            ring.fill_buffer(0x22);
            let mut position = Position::default();
            while position.0 < scratch.size / SEQUENTIAL as u64 {
                ring.step(&scratch, access, (&mut position, Duration::from_millis(1))).unwrap();
            }
            assert!(whole(&scratch, 0x22));
        }
    }

    #[test]
    fn a_full_disk_is_said_in_words() {
        // Past the largest offset of any file system: the kernel refuses as it does for a full one, at once.
        let dir = tempfile::tempdir().unwrap();
        let (mut scratch, mut buffer) = scratch(dir.path());
        scratch.size = 1 << 62;
        let mut position = Position((1 << 62) / SEQUENTIAL as u64 - 1);
        let ended = one_by_one(&scratch, Access::sequential(true), &mut buffer, (&mut position, Duration::ZERO));
        match ended {
            Err(Halt::Failed(why)) => assert!(why.contains("cannot write a file in"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
