//! A real Slurm on the nodes of a fleet, without systemd: munged and slurmctld beside the console, one slurmd in each node.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::fleet::Fleet;
use crate::shell::run;

const PROGRAMS: [&str; 7] = ["slurmctld", "slurmd", "munged", "scontrol", "srun", "salloc", "sinfo"];

/// A controller that runs; it and every slurmd end when dropped.
#[derive(Debug)]
pub struct Slurm {
    dir: PathBuf,
    netns: String,
    held: Vec<Child>,
}

impl Slurm {
    /// The first of its programs that is not installed here.
    #[must_use]
    pub fn lacks() -> Option<&'static str> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/sbin".into()]).collect();
        PROGRAMS.into_iter().find(|program| !folders.iter().any(|folder| folder.join(program).exists()))
    }

    /// Starts it on all nodes of `fleet` and waits until all of them are idle. Half of the nodes have feature `h100`, the others
    /// `a100`; two nodes share a leaf switch.
    ///
    /// # Errors
    /// When a daemon does not start; the message has the end of its log.
    pub fn up(fleet: &Fleet) -> Result<Self> {
        let dir = PathBuf::from(fleet.path("slurm"));
        fs::create_dir_all(dir.join("state"))?;
        let mut slurm = Self { dir, netns: fleet.netns("console"), held: Vec::new() };
        slurm.configure(fleet)?;
        let munged = ["munged", "--foreground", "--force", "--key-file", "munge.key", "--socket", "munge.sock"];
        let munged = [&munged[..], &["--pid-file", "munge.pid", "--seed-file", "munge.seed"]].concat();
        slurm.hold(&munged, "munged")?;
        slurm.wait("munged", |slurm| Ok(slurm.dir.join("munge.sock").exists()))?;
        for node in fleet.nodes() {
            let (pid, root) = (node.init()?.to_string(), node.root());
            let (from, to) = (slurm.dir.display(), format!("{}{}", root.display(), slurm.dir.display()));
            let bind = format!("mkdir -p {to} && mount --bind {from} {to}");
            run(&["nsenter", "--mount", "--target", &pid, "--", "sh", "-c", &bind])?;
            let enter = ["nsenter", "--all", "--target", &pid, "--root", "--wd", "--"];
            slurm
                .hold(&[&enter[..], &["slurmd", "-D", "-N", &node.name]].concat(), &format!("slurmd.{}", node.name))?;
        }
        // A controller that asks nodes before they listen calls them not responding for a while.
        for node in fleet.nodes() {
            let (netns, log) = (format!("--net=/run/netns/{}", node.netns), format!("slurmd.{}", node.name));
            let listens = || run(&["nsenter", &netns, "--", "ss", "-Htln", "sport = :6818"]);
            slurm.wait(&log, |_| Ok(listens().is_ok_and(|table| !table.trim().is_empty())))?;
        }
        let netns = format!("--net=/run/netns/{}", slurm.netns);
        slurm.hold(&["nsenter", &netns, "--", "slurmctld", "-D"], "slurmctld")?;
        let all = fleet.nodes().len();
        slurm.wait("slurmctld", |slurm| {
            let nodes = slurm.run(&["scontrol", "-o", "show", "node"]).unwrap_or_default();
            Ok(nodes.matches(" State=IDLE ").count() == all)
        })?;
        Ok(slurm)
    }

    /// Runs one of Slurm's programs beside the console.
    ///
    /// # Errors
    /// When it cannot start or fails.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let conf = format!("SLURM_CONF={}", self.path("slurm.conf"));
        let netns = format!("--net=/run/netns/{}", self.netns);
        run(&[&["nsenter", &netns, "--", "env", &conf], words].concat())
    }

    /// The same, and returns at once.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn start(&self, words: &[&str]) -> Result<Child> {
        let netns = format!("--net=/run/netns/{}", self.netns);
        let mut command = Command::new("nsenter");
        command.args([&netns, "--"]).args(words).env("SLURM_CONF", self.path("slurm.conf")).current_dir("/");
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    /// `console` where Slurm's programs find this Slurm.
    #[must_use]
    pub fn console(&self, console: Console) -> Console {
        console.with("SLURM_CONF", &self.path("slurm.conf"))
    }

    /// A file that the console and all nodes see under the same name.
    #[must_use]
    pub fn path(&self, file: &str) -> String {
        self.dir.join(file).display().to_string()
    }

    /// Puts `script` in the place of the prolog.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prolog(&self, script: &str) -> Result<()> {
        executable(&self.dir.join("prolog.new"), script)?;
        Ok(fs::rename(self.dir.join("prolog.new"), self.dir.join("prolog.sh"))?)
    }

    /// State and reason of a node, such as `IDLE+DRAIN` and `bad fan`.
    ///
    /// # Errors
    /// When Slurm does not tell.
    pub fn state(&self, node: &str) -> Result<(String, String)> {
        let said = self.run(&["scontrol", "-o", "show", "node", node])?;
        let state = said.split(' ').find_map(|word| word.strip_prefix("State=")).context("no state")?;
        let reason =
            said.split_once(" Reason=").map_or("", |(_, rest)| rest.rsplit_once(" [").map_or(rest, |(r, _)| r));
        Ok((state.to_owned(), reason.trim().to_owned()))
    }

    /// CPU time of the controller until now, seconds.
    ///
    /// # Errors
    /// When it no longer runs.
    pub fn controller_cpu_s(&self) -> Result<f64> {
        let pid = self.held.last().context("no controller")?.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let behind_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks: Vec<u64> = behind_name.split(' ').skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
        let [user, system] = ticks.as_slice() else { bail!("{stat}: no times") };
        // Linux counts in hundredths here, whatever its own clock.
        Ok((user + system) as f64 / 100.0)
    }

    /// Jobs that are not over, by their ids; one whose last steps are being ended is.
    ///
    /// # Errors
    /// When Slurm does not tell.
    pub fn jobs(&self) -> Result<Vec<String>> {
        Ok(self.run(&["squeue", "-h", "-t", "PD,CF,R,S", "-o", "%i"])?.lines().map(str::to_owned).collect())
    }

    fn configure(&self, fleet: &Fleet) -> Result<()> {
        let key = self.dir.join("munge.key");
        fs::write(&key, [rand(), rand(), rand()].concat())?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let mut conf = CONF.replace("@DIR@", &self.dir.display().to_string()).replace("@HOST@", host.trim());
        let mut topology = String::new();
        let nodes: Vec<_> = fleet.nodes().iter().map(|node| (&node.name, &node.address)).collect();
        for (index, (name, address)) in nodes.iter().enumerate() {
            let kind = if index < nodes.len() / 2 { "h100" } else { "a100" };
            writeln!(conf, "NodeName={name} NodeAddr={address} Feature={kind},ib Gres=gpu:{kind}:2 {HARDWARE}")?;
        }
        conf += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n";
        writeln!(conf, "PartitionName=small Nodes={} MaxTime=60 State=UP", nodes[0].0)?;
        for (index, pair) in nodes.chunks(2).enumerate() {
            let names: Vec<&str> = pair.iter().map(|(name, _)| name.as_str()).collect();
            writeln!(topology, "SwitchName=leaf{} Nodes={}", index + 1, names.join(","))?;
        }
        writeln!(topology, "SwitchName=spine Switches=leaf[1-{}]", nodes.len().div_ceil(2))?;
        fs::write(self.dir.join("slurm.conf"), conf)?;
        fs::write(self.dir.join("topology.conf"), topology)?;
        // Nothing is bound to a control group here, and what there is of them inside a node is not found by itself.
        fs::write(self.dir.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n")?;
        // Files that stand for the devices of GPUs.
        let mut gres = String::new();
        for (index, (name, _)) in nodes.iter().enumerate() {
            let kind = if index < nodes.len() / 2 { "h100" } else { "a100" };
            writeln!(gres, "NodeName={name} Name=gpu Type={kind} File={}", self.path("gpu[0-1]"))?;
        }
        fs::write(self.dir.join("gres.conf"), gres)?;
        fs::write(self.dir.join("gpu0"), "")?;
        fs::write(self.dir.join("gpu1"), "")?;
        self.prolog("#!/bin/sh\nexit 0\n")
    }

    fn hold(&mut self, words: &[&str], log: &str) -> Result<()> {
        let log = fs::File::create(self.dir.join(format!("{log}.log")))?;
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SLURM_CONF", self.path("slurm.conf")).current_dir(&self.dir).env("PATH", path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.held.push(command.spawn().with_context(|| words.join(" "))?);
        Ok(())
    }

    fn wait(&self, log: &str, until: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !until(self)? {
            if Instant::now() > deadline {
                let text = fs::read_to_string(self.dir.join(format!("{log}.log"))).unwrap_or_default();
                let last: Vec<&str> = text.lines().rev().take(12).collect();
                bail!("{log} did not come up: {}", last.join(" | "));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The controller first, so that it sees no node go.
        for child in &mut self.held {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Slurm's daemons lie where not every user looks.
fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}

fn rand() -> Vec<u8> {
    fs::read("/proc/sys/kernel/random/uuid").unwrap_or_default()
}

fn executable(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text)?;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

const HARDWARE: &str = "CPUs=2 RealMemory=1000 State=UNKNOWN";

const CONF: &str = "\
ClusterName=muster
SlurmctldHost=@HOST@(10.79.255.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=@DIR@/munge.sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
GresTypes=gpu
StateSaveLocation=@DIR@/state
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=@DIR@/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldTimeout=60
SlurmdTimeout=60
ReturnToService=2
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait=2
Prolog=@DIR@/prolog.sh
PrologFlags=Alloc
PrologEpilogTimeout=20
";
