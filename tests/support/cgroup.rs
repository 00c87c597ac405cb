//! Limits of one node: CPU share and disk speed, under cgroup v1 or v2.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::slow_core::SlowCore;

const ROOT: &str = "/sys/fs/cgroup";

/// The groups of one node, one per controller on v1.
#[derive(Debug)]
pub struct Group {
    cpu: PathBuf,
    blkio: PathBuf,
    freezer: PathBuf,
    unified: bool,
}

impl Group {
    /// Makes the groups called `name`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(name: &str) -> Result<Self> {
        let unified = Path::new(ROOT).join("cgroup.controllers").exists();
        let place = |controller: &str| if unified { Path::new(ROOT).join(name) } else { own(controller).join(name) };
        let group = Self { cpu: place("cpu"), blkio: place("blkio"), freezer: place("freezer"), unified };
        if unified {
            // Controllers may be on already; a refusal shows when a limit is set.
            for controller in ["+cpu", "+io"] {
                let _ = fs::write(Path::new(ROOT).join("cgroup.subtree_control"), controller);
            }
        }
        for dir in group.dirs() {
            fs::create_dir_all(dir).with_context(|| format!("cannot make cgroup {}", dir.display()))?;
        }
        Ok(group)
    }

    /// Files into which a process writes its id to join.
    pub fn joins(&self) -> Vec<PathBuf> {
        let mut joins: Vec<PathBuf> = self.dirs().iter().map(|d| d.join("cgroup.procs")).collect();
        joins.dedup();
        joins
    }

    /// Limits the node to `percent` of one CPU. The 10 ms period slows even short bursts.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn cpu(&self, percent: u32) -> Result<()> {
        let quota = percent * 100;
        if self.unified {
            return set(&self.cpu.join("cpu.max"), &format!("{quota} 10000"));
        }
        set(&self.cpu.join("cpu.cfs_period_us"), "10000")?;
        set(&self.cpu.join("cpu.cfs_quota_us"), &quota.to_string())
    }

    /// Limits reads and writes on the block device `number` (`major:minor`) to `rate` bytes per second each.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disk(&self, number: &str, rate: u64) -> Result<()> {
        if self.unified {
            return set(&self.blkio.join("io.max"), &format!("{number} rbps={rate} wbps={rate}"));
        }
        for file in ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"] {
            set(&self.blkio.join(file), &format!("{number} {rate}"))?;
        }
        Ok(())
    }

    /// Stops every process of the node, or lets them go on: a hang as the network sees it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        if self.unified {
            return set(&self.freezer.join("cgroup.freeze"), if frozen { "1" } else { "0" });
        }
        set(&self.freezer.join("freezer.state"), if frozen { "FROZEN" } else { "THAWED" })
    }

    /// Slows one core of the node.
    ///
    /// # Errors
    /// Where the kernel cannot stop single threads.
    pub fn slow_core(&self, core: usize) -> Result<SlowCore> {
        SlowCore::new(&self.freezer, core)
    }

    fn dirs(&self) -> [&PathBuf; 3] {
        [&self.cpu, &self.blkio, &self.freezer]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last processes of the node may take a moment to go.
        for _ in 0..50 {
            if self.dirs().iter().all(|dir| fs::remove_dir(dir).is_ok() || !dir.exists()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Our own group of a v1 controller, below which new ones are made so that limits on us still hold.
fn own(controller: &str) -> PathBuf {
    let table = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = table
        .lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
        .find(|(names, _)| names.split(',').any(|n| n == controller))
        .map_or("/", |(_, path)| path);
    Path::new(ROOT).join(controller).join(path.trim_start_matches('/'))
}

fn set(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("cannot write '{value}' to {}", file.display()))
}
