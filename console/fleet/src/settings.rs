//! How patient, how parallel and how trusting the console is with its nodes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::slurm::Launcher;
use crate::tell::Tell;
use crate::transport::Transport;

/// What to do with a host key that is not recorded. A changed or revoked key is always refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKeyPolicy {
    /// Refuse it.
    Strict,
    /// Refuse it until a person has said that it is right (OpenSSH's `ask`).
    Ask,
    /// Record it in the first known-hosts file and go on (OpenSSH's `accept-new`).
    AcceptNew,
}

/// Everything `run` and `clean` need to know besides the nodes. Every limit is per node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes logged in to, and nodes sent the probe, at the same time.
    pub fan_out: usize,
    /// Nodes that measure at the same time; nodes that only look at themselves are not counted.
    pub at_once: usize,
    /// TCP must connect within this.
    pub connect: Duration,
    /// Then the banner and the key exchange must be done within this.
    pub banner: Duration,
    /// Login must be done within this; then the login shell must run a command within this.
    pub login: Duration,
    /// An upload that makes no progress for this long has failed.
    pub upload: Duration,
    /// The probe must speak within this after it arrived.
    pub start: Duration,
    /// A probe that sends nothing for this long hangs.
    pub idle: Duration,
    /// Time between pings; also the grace for a probe that was told to stop is at most this.
    pub ping: Duration,
    /// Attempts after the first when a server drops the connection before login.
    pub retries: u32,
    /// First pause before another attempt; doubled each time, with jitter.
    pub back_off: Duration,
    /// How commands get to a node.
    pub transport: Transport,
    /// What starts probes where the transport is Slurm.
    pub slurm: Option<Arc<Launcher>>,
    /// What to do with unrecorded host keys; as the SSH configuration says where left out. Its `yes` holds in any case.
    pub host_key_policy: Option<HostKeyPolicy>,
    /// Who is told of keys that were recorded.
    pub tell: Tell,
    /// Known-hosts files, the operator's first: new keys go there. The SSH configuration may name others.
    pub known_hosts: Vec<PathBuf>,
    /// OpenSSH client configuration, if any is to be read.
    pub ssh_config: Option<PathBuf>,
    /// Keys tried when neither inventory nor configuration names one.
    pub identities: Vec<PathBuf>,
    /// Whether the agent at `SSH_AUTH_SOCK` is asked.
    pub agent: bool,
    /// Login name where neither inventory nor configuration gives one.
    pub user: String,
    /// Directories on the node tried for the probe before the usual ones.
    pub scratch: Vec<String>,
}

impl Default for Settings {
    /// Files under `$HOME/.ssh`, the agent, 64 nodes at a time.
    fn default() -> Self {
        let ssh = home().map(|home| home.join(".ssh"));
        let under = |name: &str| ssh.as_ref().map(|ssh| ssh.join(name));
        Self {
            fan_out: 64,
            at_once: Semaphore::MAX_PERMITS,
            connect: Duration::from_secs(10),
            banner: Duration::from_secs(10),
            login: Duration::from_secs(30),
            upload: Duration::from_secs(30),
            start: Duration::from_secs(20),
            idle: Duration::from_secs(15),
            ping: Duration::from_secs(5),
            retries: 6,
            back_off: Duration::from_millis(250),
            transport: Transport::default(),
            slurm: None,
            host_key_policy: None,
            tell: Tell::default(),
            known_hosts: under("known_hosts").into_iter().chain([PathBuf::from("/etc/ssh/ssh_known_hosts")]).collect(),
            ssh_config: under("config"),
            identities: ["id_ed25519", "id_ecdsa", "id_rsa"].into_iter().filter_map(under).collect(),
            agent: true,
            user: ["USER", "LOGNAME"].iter().find_map(|v| std::env::var(v).ok()).unwrap_or_else(|| "root".to_owned()),
            scratch: Vec::new(),
        }
    }
}

pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

impl Settings {
    /// Connections that this process may have open at the same time, from its limit on files, which is raised as far as it goes.
    #[must_use]
    pub fn connections(&self) -> usize {
        crate::files::connections(self.transport)
    }
}
