//! A job that runs on a fleet: muster's own training, started as a scheduler would start it, and broken.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::console::binary;
use crate::fleet::Fleet;

/// Where ranks log (`rank_N.log`), write their dumps and leave their process numbers (`pid_N`), on every node.
pub const FOLDER: &str = "/tmp/job";
/// Longest job, seconds.
const LONGEST: u32 = 14_400;

/// What job to start, over all nodes of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct JobOptions<'a> {
    /// Ranks of each node.
    pub each: usize,
    /// Further options of `train-ddp`, for every rank.
    pub with: &'a str,
    /// The rank that gets `--break HOW`.
    pub broken: Option<(usize, &'a str)>,
}

/// A job that was started.
#[derive(Clone, Debug)]
pub struct Job {
    nodes: Vec<String>,
    each: usize,
}

impl Job {
    /// Starts every rank, and returns when the first of them has done its third step.
    ///
    /// # Errors
    /// When a rank cannot be started, or the job has not begun after two minutes.
    pub fn start(fleet: &mut Fleet, options: JobOptions<'_>) -> Result<Self> {
        let JobOptions { each, with, broken } = options;
        let nodes = fleet.names();
        let world = nodes.len() * each;
        let peers: Vec<String> =
            (0..world).map(|rank| format!("{}:{}", fleet.address(rank / each), 7000 + rank % each)).collect();
        let (peers, probe) = (peers.join(","), probe());
        for (at, name) in nodes.iter().enumerate() {
            let node = fleet.node(name);
            node.sh(&format!("rm -rf {FOLDER}; mkdir -p {FOLDER}"))?;
            for rank in at * each..(at + 1) * each {
                let how =
                    broken.filter(|(who, _)| *who == rank).map_or(String::new(), |(_, how)| format!("--break {how}"));
                node.sh_within(&format!(
                    "setsid nohup {} train-ddp --rank {rank} --world {world} --ranks-per-node {each} --peers {peers} \
                     --seconds {LONGEST} --timeout 300 --ras-patience 2 --dir {FOLDER} {with} {how} \
                     > {FOLDER}/rank_{rank}.log 2>&1 < /dev/null & echo $! > {FOLDER}/pid_{rank}",
                    probe.display()
                ))?;
            }
        }
        let job = Self { nodes, each };
        let begun = Instant::now();
        while job.steps(fleet)? < 3 {
            if begun.elapsed() > Duration::from_secs(120) {
                bail!("the job does not begin");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(job)
    }

    /// Steps that its first rank has ended.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn steps(&self, fleet: &mut Fleet) -> Result<u64> {
        let said = fleet.node(&self.nodes[0]).sh(&format!("grep -c ' iteration ' {FOLDER}/rank_0.log || true"))?;
        Ok(said.trim().parse().unwrap_or(0))
    }

    /// The node on which `rank` runs.
    ///
    /// # Panics
    /// When there is no such rank: the test is wrong.
    #[must_use]
    pub fn node(&self, rank: usize) -> &str {
        &self.nodes[rank / self.each]
    }

    /// Sends `signal` (`STOP`, `CONT`, `KILL` …) to one rank.
    ///
    /// # Errors
    /// When it is gone.
    pub fn signal(&self, fleet: &mut Fleet, rank: usize, signal: &str) -> Result<()> {
        fleet.node(self.node(rank)).sh(&format!("kill -{signal} $(cat {FOLDER}/pid_{rank})")).map(drop)
    }

    /// The same to every rank that is still there.
    ///
    /// # Errors
    /// When a node is not up.
    pub fn signal_all(&self, fleet: &mut Fleet, signal: &str) -> Result<()> {
        let script = format!("for pid in $(cat {FOLDER}/pid_*); do kill -{signal} $pid; done; true");
        self.nodes.iter().try_for_each(|name| fleet.node(name).sh(&script).map(drop))
    }

    /// Kills all ranks that are left.
    ///
    /// # Errors
    /// When a node is not up.
    pub fn end(self, fleet: &mut Fleet) -> Result<()> {
        self.signal_all(fleet, "KILL")
    }
}

/// The probe that the console was built with.
#[must_use]
pub fn probe() -> PathBuf {
    let built = "probe-static/x86_64-unknown-linux-gnu/probe/muster-probe";
    let beside = || binary().ancestors().nth(2).map(|target| target.join(built));
    std::env::var_os("MUSTER_PROBE").map(PathBuf::from).or_else(beside).unwrap_or_else(|| built.into())
}
