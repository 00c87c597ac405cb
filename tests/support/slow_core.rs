//! One slow core of one node: what the node pins to it is let run for part of the time only, as a core that is too hot
//! lets its clock through for part of the time. Nobody else holds the core, so nothing tells the node why.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Shorter than any step of a benchmark, so that each sees whole periods.
const PERIOD: Duration = Duration::from_millis(2);
/// Share of a period in which the core works.
const DUTY: f64 = 0.4;
/// How often threads that were pinned meanwhile are looked for.
const LOOK: Duration = Duration::from_millis(10);

/// The core is slow until this is dropped.
#[derive(Debug)]
pub struct SlowCore {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowCore {
    /// Slows `core` for the threads of the freezer group `whole`. Only a freezer of version 1 stops single threads.
    pub(crate) fn new(whole: &Path, core: usize) -> Result<Self> {
        let part = whole.join(format!("core{core}"));
        fs::create_dir_all(&part).with_context(|| format!("cannot make cgroup {}", part.display()))?;
        let (threads, state) = (part.join("tasks"), part.join("freezer.state"));
        if !threads.exists() || !state.exists() {
            bail!("{}: no freezer of cgroup version 1, which alone stops single threads", part.display());
        }
        let over = Arc::new(AtomicBool::new(false));
        let pinned = Pinned { core: core.to_string(), whole: whole.join("tasks"), part, threads, state };
        let flag = over.clone();
        Ok(Self { over, thread: Some(std::thread::spawn(move || pinned.cycle(&flag))) })
    }
}

impl Drop for SlowCore {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The group of the threads that are pinned to the core.
struct Pinned {
    core: String,
    whole: PathBuf,
    part: PathBuf,
    threads: PathBuf,
    state: PathBuf,
}

impl Pinned {
    fn cycle(&self, over: &AtomicBool) {
        let (mut ran, mut rested) = (Duration::ZERO, Duration::ZERO);
        let mut looked = Instant::now();
        let mut any = false;
        while !over.load(Ordering::Relaxed) {
            let went = Instant::now();
            if looked.elapsed() >= LOOK {
                any = self.look();
                looked = Instant::now();
            }
            std::thread::sleep(PERIOD.mul_f64(DUTY));
            ran += went.elapsed();
            if !any {
                (ran, rested) = (Duration::ZERO, Duration::ZERO);
                continue;
            }
            // Both sleeps overshoot, so the stop makes up for what the go had too much.
            let due = ran.mul_f64((1.0 - DUTY) / DUTY).saturating_sub(rested).min(PERIOD * 4);
            let halted = Instant::now();
            self.set("FROZEN");
            std::thread::sleep(due);
            self.set("THAWED");
            rested += halted.elapsed();
        }
    }

    /// Takes in the threads that are pinned to the core and lets those go that no longer are; whether there are any.
    fn look(&self) -> bool {
        let mut any = false;
        for (from, to, wanted) in [(&self.whole, &self.threads, true), (&self.threads, &self.whole, false)] {
            for thread in fs::read_to_string(from).unwrap_or_default().lines() {
                let pinned = self.is_pinned(thread);
                any |= pinned;
                if pinned == wanted {
                    // A thread that has ended is in no group.
                    let _ = fs::write(to, thread);
                }
            }
        }
        any
    }

    fn is_pinned(&self, thread: &str) -> bool {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        allowed.is_some_and(|list| list.trim() == self.core)
    }

    fn set(&self, state: &str) {
        let _ = fs::write(&self.state, state);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.set("THAWED");
        for thread in fs::read_to_string(&self.threads).unwrap_or_default().lines() {
            let _ = fs::write(&self.whole, thread);
        }
        let _ = fs::remove_dir(&self.part);
    }
}
