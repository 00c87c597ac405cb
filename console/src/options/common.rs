//! Settings of every subcommand.

use std::path::PathBuf;

use clap::Args;
use muster_fleet::slurm::Options;

use crate::config::Raw;

/// Settings for every subcommand.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Settings of every subcommand")]
pub struct Common {
    /// Inventory file (TOML).
    #[arg(short, long, global = true, env = "MUSTER_INVENTORY", value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// Whether the environment names the inventory, rather than the command line.
    #[arg(skip)]
    pub inventory_of_shell: bool,
    /// Take the nodes from Slurm, unless --inventory names them, and start probes by srun instead of SSH. As OPTIONS: partition=NAME,
    /// account=NAME, reservation=NAME, qos=NAME, exclusive=no, job=ID, wait=SECONDS, time=MINUTES, shared=DIR; `job` also means the nodes
    /// of that job where no others are named, as the job does in whose allocation muster runs; `ssh` takes the nodes from Slurm and
    /// reaches them over SSH.
    #[arg(long, global = true, value_name = "OPTIONS", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = slurm)]
    pub slurm: Option<Options>,
    /// Database directory.
    #[arg(long, global = true, env = "MUSTER_DB", value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Configuration file.
    #[arg(long, global = true, env = "MUSTER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// SSH client configuration to follow.
    #[arg(short = 'F', long, global = true, env = "MUSTER_SSH_CONFIG", value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// New host keys: `ssh` does as your SSH configuration says, `yes` refuses them, `ask` asks in a terminal, `accept-new` records
    /// them and says so. A changed key is always refused [default: ssh].
    #[arg(long, global = true, env = "MUSTER_HOST_KEYS", value_name = "POLICY")]
    pub host_keys: Option<String>,
    /// Nodes logged in to, and nodes sent the probe, at the same time [default: 64].
    #[arg(long, global = true, env = "MUSTER_FAN_OUT", value_name = "N")]
    pub fan_out: Option<usize>,
    /// Nodes that measure at the same time [default: all]. For nodes that share a machine or a disk.
    #[arg(long, global = true, env = "MUSTER_AT_ONCE", value_name = "N")]
    pub at_once: Option<usize>,
    /// One node measures after another, as with --at-once 1.
    #[arg(long, global = true, conflicts_with = "at_once")]
    pub one_at_a_time: bool,
    /// Similarity under which a node differs from its peers, 0 to 1.
    #[arg(long, global = true, value_name = "SHARE")]
    pub alpha: Option<f64>,
    /// Share of steps a regression must touch to count in full, 0 to 1.
    #[arg(long, global = true, value_name = "SHARE")]
    pub tau: Option<f64>,
    /// Age in days past which a result is shown as stale [default: 30].
    #[arg(long, global = true, env = "MUSTER_STALE_AFTER", value_name = "DAYS")]
    pub stale_after: Option<f64>,
    /// Colour: auto, always or never.
    #[arg(long, global = true, value_name = "WHEN")]
    pub color: Option<String>,
    /// Draw with plain ASCII.
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Forbid `drain`, `resume`, `swap` and `clean`, and in the console also tests, watches and entries in the log; a run is no change:
    /// it is allowed and leaves its probe in the cache of each node.
    #[arg(long, global = true)]
    pub read_only: bool,
    /// Answer yes to questions.
    #[arg(short = 'y', long, global = true)]
    pub yes: bool,
}

impl Common {
    /// The flags as settings.
    #[must_use]
    pub fn raw(&self) -> Raw {
        Raw {
            inventory: self.inventory.clone(),
            inventory_of_shell: self.inventory_of_shell,
            db: self.db.clone(),
            fan_out: self.fan_out,
            at_once: if self.one_at_a_time { Some(1) } else { self.at_once },
            alpha: self.alpha,
            tau: self.tau,
            stale_after: self.stale_after,
            ssh_config: self.ssh_config.clone(),
            host_keys: self.host_keys.clone(),
            color: self.color.clone(),
            slurm: self.slurm.clone(),
            ..Raw::default()
        }
    }
}

fn slurm(text: &str) -> Result<Options, String> {
    Options::parse(text)
}
