//! How is a command started on one node of an allocation? One `srun` of one task for each node.
//!
//! One `srun` over all nodes would not do: what it reads goes to every task or to a single one, while every node is told something else;
//! and `--label` marks lines, which frames are not. So the label of a stream is the process it comes from.

use tokio::process::{ChildStdin, Command};

use crate::spawned::{self, Reading};

/// A node of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Id of the job.
    pub(crate) job: String,
    /// `NodeName`.
    pub(crate) node: String,
}

impl Step {
    fn arguments(&self) -> Vec<String> {
        let mut words = vec![format!("--jobid={}", self.job), format!("--nodelist={}", self.node)];
        words.extend(
            [
                "--nodes=1",
                "--ntasks=1",
                // The steps of a node share what the job has of it: a second one must be able to end the first.
                "--overlap",
                // The probe pins its own threads.
                "--cpu-bind=none",
                "--mpi=none",
                "--job-name=muster",
                "--chdir=/",
                "--export=HOME,PATH",
                // Otherwise slurmstepd holds back what does not end with a newline, as frames do not.
                "--unbuffered",
            ]
            .map(str::to_owned),
        );
        words
    }

    /// Starts `command` on the node, as a login shell would.
    pub(crate) fn start(&self, command: &str) -> std::io::Result<(Reading, ChildStdin)> {
        let mut srun = program("srun");
        srun.args(self.arguments()).args(["sh", "-c", command]);
        spawned::started(srun)
    }
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
