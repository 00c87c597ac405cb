//! How is a command started on nodes of an allocation? One `srun` of one task for each node that is talked to.
//!
//! One `srun` over all nodes would not do for that: what it reads goes to every task or to a single one, while every node is told
//! something else; and `--label` marks lines, which frames are not. So the label of a stream is the process it comes from.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdin, Command};

use super::host_list;
use crate::spawned::{self, Reading};

/// Most bytes that are read for each node of what all say together.
const SAID: u64 = 4 << 10;

/// A node of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Id of the job.
    pub(crate) job: String,
    /// `NodeName`.
    pub(crate) node: String,
}

/// How every step is started.
const ARGUMENTS: [&str; 6] = [
    // The steps of a node share what the job has of it: a second one must be able to end the first.
    "--overlap",
    // The probe pins its own threads.
    "--cpu-bind=none",
    "--mpi=none",
    "--job-name=muster",
    "--chdir=/",
    "--export=HOME,PATH",
];

impl Step {
    /// Starts `command` on the node, as a login shell would.
    pub(crate) fn start(&self, command: &str) -> std::io::Result<(Reading, ChildStdin)> {
        let mut srun = program("srun");
        srun.args([format!("--jobid={}", self.job), format!("--nodelist={}", self.node)]).args(ARGUMENTS);
        // Unbuffered, as slurmstepd otherwise holds back what does not end with a newline, and frames do not.
        srun.args(["--nodes=1", "--ntasks=1", "--unbuffered", "sh", "-c", command]);
        spawned::started(srun)
    }
}

/// Runs `command` on all of `nodes` of `job` by one step, which Slurm starts when all of them are ready, and adds each line to `said` as it
/// comes: whoever stops waiting has what was said until then.
pub(super) async fn on_all(job: &str, nodes: &[&str], command: &str, said: &mut Vec<String>) -> std::io::Result<()> {
    let mut srun = program("srun");
    srun.args([format!("--jobid={job}"), format!("--nodelist={}", host_list(nodes))]).args(ARGUMENTS);
    srun.args([format!("--nodes={}", nodes.len()), format!("--ntasks={}", nodes.len())]);
    srun.args(["--ntasks-per-node=1", "--no-kill", "--input=none", "sh", "-c", command]);
    srun.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = srun.spawn()?;
    let output = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    let mut lines = BufReader::new(output.take(SAID * nodes.len() as u64)).lines();
    while let Some(line) = lines.next_line().await? {
        said.push(line);
    }
    child.wait().await.map(drop)
}

/// One of Slurm's programs without what an allocation around the console says of itself.
pub(super) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    let own = |name: &str| name.starts_with("SLURM_") && !["SLURM_CONF", "SLURM_JWT"].contains(&name);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        command.env_remove(name);
    }
    command.process_group(0);
    command
}
