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
    /// Slows `core` for the threads of the freezer group `whole`, with the files of version 2 where it is `unified`.
    pub(crate) fn new(whole: &Path, core: usize, unified: bool) -> Result<Self> {
        let part = whole.join(format!("core{core}"));
        fs::create_dir_all(&part).with_context(|| format!("cannot make cgroup {}", part.display()))?;
        let (list, state, words) = if unified {
            let kind = part.join("cgroup.type");
            fs::write(&kind, "threaded").with_context(|| format!("cannot write to {}", kind.display()))?;
            ("cgroup.threads", "cgroup.freeze", ["0", "1"])
        } else {
            ("tasks", "freezer.state", ["THAWED", "FROZEN"])
        };
        let (threads, state) = (part.join(list), part.join(state));
        if !threads.exists() || !state.exists() {
            bail!("{}: no freezer, which alone stops single threads", part.display());
        }
        let over = Arc::new(AtomicBool::new(false));
        let pinned = Pinned { core: core.to_string(), whole: whole.join(list), part, threads, state, words };
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
    /// What lets them run and what stops them.
    words: [&'static str; 2],
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
            self.stop(true);
            std::thread::sleep(due);
            self.stop(false);
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

    fn stop(&self, stopped: bool) {
        let _ = fs::write(&self.state, self.words[usize::from(stopped)]);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.stop(false);
        for thread in fs::read_to_string(&self.threads).unwrap_or_default().lines() {
            let _ = fs::write(&self.whole, thread);
        }
        let _ = fs::remove_dir(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::shell::is_root;

    /// A program that only computes; ends when dropped.
    struct Spin(Child);

    impl Spin {
        fn on(cores: &str) -> Self {
            Self(Command::new("taskset").args(["-c", cores, "sh", "-c", "while :; do :; done"]).spawn().unwrap())
        }

        /// CPU time it has used, in clock ticks.
        fn ticks(&self) -> i64 {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
            stat.rsplit(')').next().unwrap().split(' ').filter_map(|f| f.parse().ok()).nth(10).unwrap()
        }

        fn is_in(&self, list: &Path) -> bool {
            fs::read_to_string(list).unwrap_or_default().lines().any(|id| id == self.0.id().to_string())
        }
    }

    impl Drop for Spin {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A group of a freezer; gone when dropped.
    struct Whole(PathBuf);

    impl Drop for Whole {
        fn drop(&mut self) {
            let _ = fs::remove_dir(self.0.join("core0"));
            let _ = fs::remove_dir(&self.0);
        }
    }

    fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{what}");
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    fn stops_what_is_pinned(whole: &Path, unified: bool) {
        let files = if unified { ["cgroup.threads", "cgroup.events"] } else { ["tasks", "freezer.state"] };
        let [list, state] = files.map(|file| whole.join("core0").join(file));
        let (pinned, free) = (Spin::on("0"), Spin::on("0-1023"));
        for spin in [&pinned, &free] {
            fs::write(whole.join("cgroup.procs"), spin.0.id().to_string()).unwrap();
        }
        let slow = SlowCore::new(whole, 0, unified).unwrap();
        wait_until("the pinned thread is never stopped", || {
            let said = fs::read_to_string(&state).unwrap_or_default();
            pinned.is_in(&list) && (said.contains("frozen 1") || said.starts_with("FROZEN"))
        });
        assert!(!free.is_in(&list));
        drop(slow);
        let before = pinned.ticks();
        wait_until("the pinned thread does not go on", || pinned.ticks() > before + 3);
    }

    #[test]
    fn a_thread_pinned_to_the_slow_core_is_stopped_under_version_1_and_2_and_another_is_not() {
        const TEST: &str = "a_thread_pinned_to_the_slow_core_is_stopped_under_version_1_and_2_and_another_is_not";
        if !is_root() {
            return muster_skip::skip(TEST, muster_skip::Lacks::Root, "for cgroups");
        }
        if !Path::new("/sys/devices/system/cpu/cpu1").exists() {
            return muster_skip::skip(TEST, muster_skip::Lacks::Tool, "a second core");
        }
        let mut tried = 0;
        for (place, unified) in [("freezer", false), ("unified", true), ("", true)] {
            let mount = Path::new("/sys/fs/cgroup").join(place);
            if !mount.join("cgroup.procs").exists() {
                continue;
            }
            let whole = Whole(mount.join(format!("muster-slow-{}", std::process::id())));
            fs::create_dir(&whole.0).unwrap();
            stops_what_is_pinned(&whole.0, unified);
            tried += 1;
        }
        assert!(tried > 0, "no freezer of either version here");
    }
}
