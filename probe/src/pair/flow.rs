//! How many bytes arrive per second, counted in short windows by the end that receives them?

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::finish;
use super::meet::{Limit, tick};
use crate::clock;
use crate::pin::filled;
use crate::steps::Halt;

/// Windows that count, and those before them in which TCP finds its speed.
const WINDOWS: u32 = 32;
const WARMUP: u32 = 4;
/// Bytes handed to the system at a time.
const PIECE: usize = 256 << 10;
/// What is still on its way after the last window is waited for this long.
const DRAIN: Duration = Duration::from_millis(500);
/// Looks at the first byte this often.
const LOOK: Duration = Duration::from_micros(200);

/// Bytes per second of every window.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) values: Vec<f64>,
    pub(super) warmup: u32,
    pub(super) started_ns: u64,
}

/// Sends on all streams for a little longer than the other end counts, and says on each that nothing more follows.
pub(super) fn send(streams: &[TcpStream], duration: Duration, limit: &Limit<'_>) -> Result<(), Halt> {
    let until = Instant::now() + duration + duration / WINDOWS;
    let piece = filled(PIECE, 0x5au8)?;
    thread::scope(|scope| {
        let senders: Vec<_> = streams.iter().map(|stream| scope.spawn(|| send_one(stream, &piece, until))).collect();
        senders.into_iter().try_for_each(|sender| {
            let sent = sender.join().map_err(|_| Halt::Failed("a sending thread panicked".into()))?;
            sent.map_err(|e| Halt::Failed(format!("cannot send: {e}")))
        })
    })?;
    limit.check()
}

fn send_one(mut stream: &TcpStream, piece: &[u8], until: Instant) -> io::Result<()> {
    while Instant::now() < until {
        match stream.write(piece) {
            Ok(_) => {}
            Err(e) if tick(&e) => {}
            Err(e) => return Err(e),
        }
    }
    finish(stream);
    Ok(())
}

/// What the receiving threads share.
#[derive(Default)]
struct Tally {
    bytes: AtomicU64,
    ended: AtomicUsize,
    enough: AtomicBool,
}

/// Counts what arrives from the first byte on.
pub(super) fn receive(streams: &[TcpStream], duration: Duration, limit: &Limit<'_>) -> Result<Flow, Halt> {
    let tally = Tally::default();
    thread::scope(|scope| {
        let receivers: Vec<_> = streams.iter().map(|stream| scope.spawn(|| receive_one(stream, &tally))).collect();
        let flow = windows(&tally, streams.len(), duration, limit);
        let over = Instant::now() + DRAIN;
        while flow.is_ok() && tally.ended.load(Ordering::Acquire) < streams.len() && Instant::now() < over {
            thread::sleep(Duration::from_millis(1));
        }
        tally.enough.store(true, Ordering::Release);
        for receiver in receivers {
            let ended = receiver.join().map_err(|_| Halt::Failed("a receiving thread panicked".into()))?;
            ended.map_err(|e| Halt::Failed(format!("cannot receive: {e}")))?;
        }
        flow
    })
}

fn windows(tally: &Tally, streams: usize, duration: Duration, limit: &Limit<'_>) -> Result<Flow, Halt> {
    while tally.bytes.load(Ordering::Acquire) == 0 {
        limit.check()?;
        if tally.ended.load(Ordering::Acquire) == streams {
            return Err(Halt::Failed("nothing arrived".into()));
        }
        thread::sleep(LOOK);
    }
    let mut flow = Flow { values: Vec::new(), warmup: WARMUP, started_ns: clock::monotonic_ns() };
    let length = duration / (WINDOWS + WARMUP);
    let begun = Instant::now();
    let (mut before, mut at) = (tally.bytes.load(Ordering::Acquire), begun);
    for window in 1..=WINDOWS + WARMUP {
        thread::sleep((begun + length * window).saturating_duration_since(Instant::now()));
        limit.check()?;
        let (bytes, now) = (tally.bytes.load(Ordering::Acquire), Instant::now());
        // A window that the scheduler cut short would hold little but its error.
        if now.duration_since(at) < length / 2 {
            continue;
        }
        if window > WARMUP {
            flow.values.push((bytes - before) as f64 / now.duration_since(at).as_secs_f64());
        }
        (before, at) = (bytes, now);
    }
    Ok(flow)
}

fn receive_one(mut stream: &TcpStream, tally: &Tally) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let ended = loop {
        match stream.read(&mut piece) {
            Ok(0) => break Ok(()),
            Ok(count) => {
                tally.bytes.fetch_add(count as u64, Ordering::AcqRel);
            }
            Err(e) if tick(&e) => {}
            Err(e) => break Err(e),
        }
        if tally.enough.load(Ordering::Acquire) {
            break Ok(());
        }
    };
    tally.ended.fetch_add(1, Ordering::AcqRel);
    ended
}
