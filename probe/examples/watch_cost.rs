//! What a watch costs a node: CPU time, memory and bytes of the probe that is given, over a minute on this machine.
//!
//! `cargo run --release -p muster-probe --example watch_cost -- target/probe-static/x86_64-unknown-linux-gnu/probe/muster-probe`,
//! then seconds and looks a second: `60 1`.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops where it is")]

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use muster_wire::{Decoder, Frame, PREAMBLE, Request, WatchOrder, encode_request};

/// Time for the first looks, which find out what there is.
const START: Duration = Duration::from_secs(12);
/// Time between signs of life of the console.
const PING: Duration = Duration::from_secs(5);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = arguments.first().expect("the probe's file");
    let number = |at: usize, otherwise: u64| arguments.get(at).map_or(otherwise, |text| text.parse().unwrap());
    let (seconds, hz) = (number(1, 60), number(2, 1));
    let mut child = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]);
    let counted = Arc::clone(&counts);
    std::thread::spawn(move || {
        let (mut decoder, mut chunk) = (Decoder::new(), [0; 65_536]);
        while let Ok(count @ 1..) = output.read(&mut chunk) {
            counted[0].fetch_add(count as u64, Ordering::Relaxed);
            decoder.push(&chunk[..count]);
            while let Some(frame) = decoder.frame().unwrap() {
                match frame {
                    Frame::Tick(_) => drop(counted[1].fetch_add(1, Ordering::Relaxed)),
                    Frame::Columns(columns) => counted[2].store(columns.metrics.len() as u64, Ordering::Relaxed),
                    _ => {}
                }
            }
        }
    });
    let fine_ms = if hz > 1 { u32::try_from(1_000 / hz).unwrap() } else { 0 };
    input.write_all(PREAMBLE).unwrap();
    input
        .write_all(&encode_request(&Request::Watch(WatchOrder { period_ms: 1_000, fine_ms, job: None })).unwrap())
        .unwrap();
    let mut wait = |time: Duration| {
        let end = Instant::now() + time;
        while Instant::now() < end {
            input.write_all(&encode_request(&Request::Ping { nonce: 1 }).unwrap()).unwrap();
            std::thread::sleep(PING.min(end.saturating_duration_since(Instant::now())));
        }
    };
    wait(START);
    let pid = child.id();
    let (begun, bytes, ticks) = (Instant::now(), counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed));
    let cpu = cpu_s(pid);
    wait(Duration::from_secs(seconds));
    let elapsed = begun.elapsed().as_secs_f64();
    let bytes = (counts[0].load(Ordering::Relaxed) - bytes) as f64 / elapsed;
    let ticks = (counts[1].load(Ordering::Relaxed) - ticks) as f64 / elapsed;
    println!(
        "{ticks:.1} looks a second of {} metrics over {elapsed:.0} s: {:.2} % of one core, {:.1} MB at most, {bytes:.0} bytes a second",
        counts[2].load(Ordering::Relaxed),
        100.0 * (cpu_s(pid) - cpu) / elapsed,
        field_kb(pid, "VmHWM:") / 1e3,
    );
    drop(input);
    child.wait().unwrap();
}

/// CPU time of all threads, to a nanosecond where the kernel counts so.
fn cpu_s(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let ran = |thread: std::fs::DirEntry| -> Option<f64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    threads.filter_map(ran).sum::<f64>() / 1e9
}

fn field_kb(pid: u32, name: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
