//! A machine that stands still now and then, as virtual ones do whose host gives their processors to others.

use std::process::{Child, Command};

use anyhow::{Context, Result};

/// Holds one processor for so many milliseconds, leaves it for as many, and so on.
const HOLD: &str = "
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
seconds = float(sys.argv[2]) / 1e3
while True:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    time.sleep(seconds)
";

/// Programs of real-time priority, one on each processor; they end with it.
#[derive(Debug)]
pub struct Stalls(Vec<Child>);

impl Stalls {
    /// Holds all processors for `ms` milliseconds of every twice as many. Needs root.
    ///
    /// # Errors
    /// When there is no Python 3.
    pub fn start(ms: u32) -> Result<Self> {
        let mut stalls = Self(Vec::new());
        for core in 0..std::thread::available_parallelism()?.get() {
            let child = Command::new("python3").args(["-c", HOLD, &core.to_string(), &ms.to_string()]).spawn();
            stalls.0.push(child.context("python3, which holds the processors")?);
        }
        Ok(stalls)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}
