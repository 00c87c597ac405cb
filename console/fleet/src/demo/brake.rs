//! How is a node made slow for real? Its processes are stopped and continued in turn, and do not know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::child::groups;

/// How often new process groups are looked for.
const LOOK: Duration = Duration::from_millis(250);

/// Stops and continues a process and all that came from it, until dropped.
pub(super) struct Brake {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Brake {
    /// Lets the process `leader`, who leads a group, run for the share `duty` of every `period`.
    pub(super) fn on(leader: Pid, word: &str, duty: f64, period: Duration) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let flag = done.clone();
        let word = word.to_owned();
        let body = move || cycle(leader, &word, duty, period, &flag);
        let thread = std::thread::Builder::new().name("demo-brake".to_owned()).spawn(body);
        Self { done, thread: thread.map_err(|e| log::error!("demo fleet: no brake: {e}")).ok() }
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn cycle(leader: Pid, word: &str, duty: f64, period: Duration, done: &AtomicBool) {
    let mut stopped = Stopped { groups: vec![leader] };
    let mut looked = Instant::now();
    let (mut ran, mut rested) = (Duration::ZERO, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        if looked.elapsed() >= LOOK {
            stopped.groups = groups(leader, word);
            looked = Instant::now();
        }
        let went = Instant::now();
        std::thread::sleep(period.mul_f64(duty));
        ran += went.elapsed();
        // Both sleeps overshoot on a busy machine, so the stop makes up for what the go had too much or too little.
        let due = ran.mul_f64((1.0 - duty) / duty).saturating_sub(rested).min(period * 4);
        let halted = Instant::now();
        stopped.signal(Signal::STOP);
        std::thread::sleep(due);
        stopped.signal(Signal::CONT);
        rested += halted.elapsed();
    }
}

/// The braked groups; continued when this goes, also in a panic.
struct Stopped {
    groups: Vec<Pid>,
}

impl Stopped {
    fn signal(&self, signal: Signal) {
        for group in &self.groups {
            // A group that has ended needs no signal.
            let _ = kill_process_group(*group, signal);
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
}
