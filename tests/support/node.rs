//! One node: its namespaces, its sshd, its disk, its limits.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cgroup::Group;
use crate::disk::Disk;
use crate::shell::run;
use crate::slow_core::SlowCore;

const INIT: &str = include_str!("node-init.sh");

/// A running node; ends when dropped.
#[derive(Debug)]
pub struct Node {
    /// Its name, also its host name.
    pub name: String,
    /// Its address on the fleet's bridge.
    pub address: String,
    /// Its network namespace.
    pub netns: String,
    dir: PathBuf,
    child: Option<Child>,
    disk: Disk,
    group: Group,
}

impl Node {
    /// Starts sshd in new namespaces; the network namespace exists already.
    ///
    /// # Errors
    /// When the system refuses a namespace, a mount or a device.
    pub fn start(base: &Path, name: &str, address: &str, netns: &str) -> Result<Self> {
        let dir = base.join(name);
        fs::create_dir_all(dir.join("top"))?;
        fs::copy(base.join("id.pub"), dir.join("authorized_keys"))?;
        let key = dir.join("host_key").display().to_string();
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key])?;
        let disk = Disk::new(base, name, 256)?;
        let group = Group::new(&format!("{netns}-group"))?;
        let mut node = Self {
            name: name.to_owned(),
            address: address.to_owned(),
            netns: netns.to_owned(),
            dir,
            child: None,
            disk,
            group,
        };
        node.boot()?;
        Ok(node)
    }

    /// Starts the node's processes.
    ///
    /// # Errors
    /// When they cannot start.
    pub fn boot(&mut self) -> Result<()> {
        let script = self.dir.join("init.sh");
        fs::write(&script, INIT)?;
        let log = fs::File::create(self.dir.join("log"))?;
        let joins = self.joins();
        let start = format!(
            "{joins} exec nsenter --net=/run/netns/{} -- unshare --mount --uts --ipc --pid --fork --kill-child=KILL \
             --propagation private -- sh {} {} {} {}",
            self.netns,
            script.display(),
            self.dir.display(),
            self.name,
            self.disk.device()
        );
        let child = Command::new("sh")
            .args(["-c", &start])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .context("cannot start a node")?;
        self.child = Some(child);
        Ok(())
    }

    /// Commands by which a shell joins its groups.
    pub(crate) fn joins(&self) -> String {
        self.group.joins().iter().map(|join| format!("echo $$ > {};", join.display())).collect()
    }

    /// Public half of its host key, as a known_hosts entry has it.
    ///
    /// # Errors
    /// When the file is gone.
    pub fn host_key(&self) -> Result<String> {
        let text = fs::read_to_string(self.dir.join("host_key.pub"))?;
        Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    /// Its root, as its mount namespace has it.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("top/root")
    }

    /// What its processes printed.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Kills the whole node at once, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Limits it to `percent` of one CPU.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit_cpu(&self, percent: u32) -> Result<()> {
        self.group.cpu(percent)
    }

    /// Limits its disk to `rate` bytes per second.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit_disk(&self, rate: u64) -> Result<()> {
        self.group.disk(&self.disk.number()?, rate)
    }

    /// Lets the process whose command line has `words` in it have `bytes` more memory than it has now.
    ///
    /// # Errors
    /// When there is no such process, or the kernel refuses.
    pub fn limit_memory(&self, words: &str, bytes: u64) -> Result<()> {
        let pids = run(&["ip", "netns", "pids", &self.netns])?;
        let has = |pid: &&str| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
        };
        let pid = pids.split_whitespace().find(has).with_context(|| format!("{}: no process {words}", self.name))?;
        self.group.memory(pid, bytes)
    }

    /// Slows one of its cores, until what it returns is dropped.
    ///
    /// # Errors
    /// Where the kernel cannot stop single threads.
    pub fn slow_core(&self, core: usize) -> Result<SlowCore> {
        self.group.slow_core(core)
    }

    /// CPU time that its programs have used so far; nothing where the kernel does not count.
    pub(crate) fn used(&self) -> Option<Duration> {
        self.group.used()
    }

    /// Stops or continues all its processes.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        self.group.freeze(frozen)
    }

    /// Number of probes that run on it now.
    #[must_use]
    pub fn probes(&self) -> usize {
        self.probe_pids().len()
    }

    /// Whether a probe on it has used CPU time worth the name, which looking does not.
    #[must_use]
    pub fn measures(&self) -> bool {
        let ticks = |pid: &String| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // User and system time, the 14th and 15th field; the name before them may hold spaces.
            let fields: Vec<i64> = stat.rsplit(')').next()?.split(' ').filter_map(|f| f.parse().ok()).collect();
            Some(fields.get(10)? + fields.get(11)?)
        };
        self.probe_pids().iter().filter_map(ticks).any(|ticks| ticks > 12)
    }

    pub(crate) fn probe_pids(&self) -> Vec<String> {
        let pids = run(&["ip", "netns", "pids", &self.netns]).unwrap_or_default();
        let is_probe = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|c| c.contains("probe-") && c.contains("serve"))
        };
        pids.split_whitespace().filter(is_probe).map(str::to_owned).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.group.freeze(false);
        self.kill();
    }
}
