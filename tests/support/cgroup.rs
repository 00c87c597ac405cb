//! Limits of one node: CPU share and disk speed, under cgroup v1 or v2, whichever this machine has.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::slow_core::SlowCore;

const ROOT: &str = "/sys/fs/cgroup";
/// Where processes go that stand in the way of a limit: under version 2 a group that passes controllers on has none itself.
const OUT_OF_THE_WAY: &str = "muster-tests-others";

/// The groups of one node: one per controller on version 1, one and the same on version 2.
#[derive(Debug)]
pub struct Group {
    cpu: PathBuf,
    account: PathBuf,
    blkio: PathBuf,
    freezer: PathBuf,
    memory: PathBuf,
    unified: bool,
}

impl Group {
    /// Makes the groups called `name`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(name: &str) -> Result<Self> {
        let table = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::below(Path::new(ROOT), &table, name)
    }

    /// The same where control groups are mounted at `root`, for a process whose groups `table` names. Where version 1 has the
    /// controllers and version 2 is mounted beside it, version 1 is used.
    fn below(root: &Path, table: &str, name: &str) -> Result<Self> {
        let unified = root.join("cgroup.controllers").exists();
        let place = |controller: &str| if unified { root.join(name) } else { own(root, table, controller).join(name) };
        let [cpu, account, blkio, freezer] = ["cpu", "cpuacct", "blkio", "freezer"].map(place);
        // Made when it is used: what a node has used before is not counted to it.
        let memory = place("memory").with_file_name(format!("{name}-memory"));
        let group = Self { cpu, account, blkio, freezer, memory, unified };
        if unified {
            // A refusal shows when a limit is set.
            ["+cpu", "+io", "+memory"].into_iter().for_each(|controller| pass_on(root, controller));
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

    /// Limits the node to `percent` of one CPU. The 10 ms period slows even short bursts; less than 10 % needs a longer one, as the
    /// kernel hands out no less than a millisecond.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn cpu(&self, percent: u32) -> Result<()> {
        let period = if percent < 10 { 100_000 } else { 10_000 };
        let quota = percent * period / 100;
        if self.unified {
            return set(&self.cpu.join("cpu.max"), &format!("{quota} {period}"));
        }
        // The old quota may be too small for the new period.
        set(&self.cpu.join("cpu.cfs_quota_us"), "-1")?;
        set(&self.cpu.join("cpu.cfs_period_us"), &period.to_string())?;
        set(&self.cpu.join("cpu.cfs_quota_us"), &quota.to_string())
    }

    /// CPU time that the node's programs have used so far, without what the kernel did for them; nothing where it does not count.
    pub fn used(&self) -> Option<Duration> {
        if self.unified {
            let text = fs::read_to_string(self.account.join("cpu.stat")).ok()?;
            let micros = text.lines().find_map(|line| line.strip_prefix("user_usec "))?;
            return Some(Duration::from_micros(micros.trim().parse().ok()?));
        }
        let nanos = fs::read_to_string(self.account.join("cpuacct.usage_user")).ok()?;
        Some(Duration::from_nanos(nanos.trim().parse().ok()?))
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

    /// Lets process `pid` have `bytes` more memory than it has now, and no swap, as a scheduler's limit of a job does.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn memory(&self, pid: &str, bytes: u64) -> Result<()> {
        fs::create_dir_all(&self.memory).with_context(|| format!("cannot make cgroup {}", self.memory.display()))?;
        let limits: &[&str] =
            if self.unified { &["memory.max"] } else { &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] };
        for limit in limits.iter().filter(|limit| self.memory.join(limit).exists()) {
            set(&self.memory.join(limit), &bytes.to_string())?;
        }
        set(&self.memory.join("cgroup.procs"), pid)
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
        SlowCore::new(&self.freezer, core, self.unified)
    }

    fn dirs(&self) -> [&PathBuf; 4] {
        [&self.cpu, &self.account, &self.blkio, &self.freezer]
    }

    /// All that may have to be removed.
    fn made(&self) -> impl Iterator<Item = &PathBuf> {
        self.dirs().into_iter().chain([&self.memory])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last processes of the node may take a moment to go.
        for _ in 0..200 {
            if self.made().all(|dir| fs::remove_dir(dir).is_ok() || !dir.exists()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Our own group of a controller of version 1, below which new ones are made so that limits on us still hold.
fn own(root: &Path, table: &str, controller: &str) -> PathBuf {
    let path = table
        .lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
        .find(|(names, _)| names.split(',').any(|n| n == controller))
        .map_or("/", |(_, path)| path);
    root.join(controller).join(path.trim_start_matches('/'))
}

/// Lets groups below `root` use a controller. In a container `root` holds processes, which have to go to a group of their own
/// first; on the machine itself they need not.
fn pass_on(root: &Path, controller: &str) {
    let file = root.join("cgroup.subtree_control");
    if fs::write(&file, controller).is_err_and(|why| why.kind() == ErrorKind::ResourceBusy) {
        let aside = root.join(OUT_OF_THE_WAY);
        let _ = fs::create_dir(&aside);
        for process in fs::read_to_string(root.join("cgroup.procs")).unwrap_or_default().lines() {
            // A process that has ended is in no group, and threads of the kernel stay.
            let _ = fs::write(aside.join("cgroup.procs"), process);
        }
        let _ = fs::write(&file, controller);
    }
}

fn set(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("cannot write '{value}' to {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "4:memory:/job\n3:cpu,cpuacct:/job\n2:blkio:/\n1:freezer:/\n0::/\n";

    /// What the files of a group hold, by their path below the mount.
    fn holds(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(file)).unwrap()
    }

    #[test]
    fn version_2_has_one_group_with_all_limits() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::write(root.join("cgroup.controllers"), "cpu io").unwrap();
        let group = Group::below(root, TABLE, "n1").unwrap();
        assert_eq!(group.joins(), [root.join("n1/cgroup.procs")]);
        group.cpu(60).unwrap();
        group.disk("7:3", 20_000_000).unwrap();
        group.freeze(true).unwrap();
        assert_eq!(holds(root, "n1/cpu.max"), "6000 10000");
        assert_eq!(holds(root, "n1/io.max"), "7:3 rbps=20000000 wbps=20000000");
        assert_eq!(holds(root, "n1/cgroup.freeze"), "1");
        assert_eq!(group.used(), None);
        fs::write(root.join("n1/cpu.stat"), "usage_usec 70\nuser_usec 50\nsystem_usec 20\n").unwrap();
        assert_eq!(group.used(), Some(Duration::from_micros(50)));
        fs::remove_dir_all(root.join("n1")).unwrap();
    }

    #[test]
    fn version_1_has_a_group_of_each_controller_below_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        // Version 2 beside it, for other purposes.
        fs::create_dir(root.join("unified")).unwrap();
        fs::write(root.join("unified/cgroup.controllers"), "hugetlb").unwrap();
        let group = Group::below(root, TABLE, "n1").unwrap();
        group.cpu(60).unwrap();
        group.disk("7:3", 20_000_000).unwrap();
        group.freeze(false).unwrap();
        assert_eq!(holds(root, "cpu/job/n1/cpu.cfs_quota_us"), "6000");
        assert_eq!(holds(root, "cpu/job/n1/cpu.cfs_period_us"), "10000");
        assert_eq!(holds(root, "blkio/n1/blkio.throttle.write_bps_device"), "7:3 20000000");
        assert_eq!(holds(root, "freezer/n1/freezer.state"), "THAWED");
        fs::write(root.join("cpuacct/job/n1/cpuacct.usage_user"), "5000\n").unwrap();
        assert_eq!(group.used(), Some(Duration::from_micros(5)));
        for controller in ["cpu/job", "cpuacct/job", "blkio", "freezer"] {
            fs::remove_dir_all(root.join(controller).join("n1")).unwrap();
        }
    }
}
