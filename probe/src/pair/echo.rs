//! How long does a message take to the other end and back?

use std::net::TcpStream;
use std::time::{Duration, Instant};

use muster_wire::Load;

use super::meet::{Limit, give, take};
use crate::clock;
use crate::pin::filled;
use crate::steps::Halt;

/// Round trips before the first that counts.
const WARMUP: u32 = 4;
/// One size takes no longer, so that a slow path costs values and not the whole visit.
const PATIENCE: Duration = Duration::from_millis(250);
/// Values of a size that are taken however long they take.
const ENOUGH: usize = 5;
/// First byte of a message after which another of its size follows, and of the last.
const MORE: u8 = b'm';
const LAST: u8 = b'l';

/// Times in nanoseconds, in the order measured.
#[derive(Debug)]
pub(super) struct Trips {
    pub(super) values: Vec<f64>,
    pub(super) warmup: u32,
    pub(super) started_ns: u64,
}

fn sizes(load: &Load) -> impl Iterator<Item = usize> {
    load.sizes.iter().map(|size| (*size).max(1) as usize)
}

/// Sends messages and times their return, size by size.
pub(super) fn ask(control: &mut TcpStream, load: &Load, limit: &Limit<'_>) -> Result<Vec<(usize, Trips)>, Halt> {
    let mut all = Vec::new();
    for size in sizes(load) {
        let mut message = filled(size, 0x5au8)?;
        let mut trips = Trips { values: Vec::new(), warmup: WARMUP, started_ns: clock::monotonic_ns() };
        let begun = Instant::now();
        let wanted = load.round_trips.max(1) as usize;
        for number in 0.. {
            let counts = number >= WARMUP;
            let have = trips.values.len() + usize::from(counts);
            let last = have >= wanted || have >= ENOUGH && begun.elapsed() > PATIENCE;
            message[0] = if last { LAST } else { MORE };
            let sent = Instant::now();
            give(control, &message, limit)?;
            take(control, &mut message, limit)?;
            if counts {
                trips.values.push(sent.elapsed().as_nanos() as f64);
            }
            if last {
                break;
            }
        }
        all.push((size, trips));
    }
    Ok(all)
}

/// Returns every message.
pub(super) fn answer(control: &mut TcpStream, load: &Load, limit: &Limit<'_>) -> Result<(), Halt> {
    for size in sizes(load) {
        let mut message = filled(size, 0u8)?;
        loop {
            take(control, &mut message, limit)?;
            give(control, &message, limit)?;
            if message[0] == LAST {
                break;
            }
        }
    }
    Ok(())
}
