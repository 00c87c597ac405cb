//! What carries the commands of a node: an SSH connection of our own, the system's `ssh`, or Slurm's `srun`?

use std::time::Duration;

use russh::Channel;
use russh::client::Msg;
use tokio::time::timeout;

use crate::connection::Link;
use crate::context::{Reporter, Shared};
use crate::exec::{self, Output};
use crate::inventory::Node;
use crate::link::{Failure, FailureKind, LinkState, Phase, spoken};
use crate::openssh::OpenSsh;
use crate::pipe::{Pipe, Reading, Writing};
use crate::script::Seed;
use crate::slurm::Step;
use crate::spawned;
use crate::target::Target;
use crate::transport::Transport;

/// A way to run commands on a node.
pub(crate) enum Route {
    Own(Box<Link>),
    OpenSsh(OpenSsh),
    /// A node of a Slurm job, and where the probe lies for it.
    Slurm(Step, Option<Seed>),
}

impl Route {
    /// The way to `node`: over SSH, or by Slurm, which needs no SSH configuration.
    pub(crate) async fn by(node: &Node, shared: &Shared, report: &Reporter) -> Result<Self, Failure> {
        if shared.settings.transport == Transport::Slurm {
            let (step, seed) = shared.seats.step(&node.name)?;
            return Ok(Self::Slurm(step, seed));
        }
        let target = shared.resolver.target(node, &shared.settings)?;
        Self::open(&target, shared, report).await
    }

    /// Where the probe lies already for the node to take.
    pub(crate) const fn seed(&self) -> Option<&Seed> {
        if let Self::Slurm(_, seed) = self { seed.as_ref() } else { None }
    }

    /// Logs in as the settings say; where we have no usable key, the system's `ssh` may have other means.
    async fn open(target: &Target, shared: &Shared, report: &Reporter) -> Result<Self, Failure> {
        let ssh = || Self::OpenSsh(OpenSsh::new(target, &shared.settings));
        if shared.settings.transport == Transport::OpenSsh {
            report.link(LinkState::Authenticating).await;
            return Ok(ssh());
        }
        match Link::open(target, shared, report).await {
            Ok(link) => Ok(Self::Own(Box::new(link))),
            Err(failure) if failure.kind == FailureKind::NoKey && shared.settings.transport == Transport::Auto => {
                ssh().checked(target, shared.settings.login, failure).await
            }
            Err(failure) => Err(failure),
        }
    }

    /// Logs in outside the course of a run; tells nobody.
    pub(crate) async fn to(node: &Node, shared: &Shared) -> Result<Self, Failure> {
        Self::by(node, shared, &Reporter::silent(&node.name)).await
    }

    /// Itself if it can log in; else our own failure and what `ssh` said.
    async fn checked(self, target: &Target, limit: Duration, own: Failure) -> Result<Self, Failure> {
        let said = match self.run(&target.node, "exit 0", limit).await {
            Ok(output) if output.status != Some(spawned::OWN_FAILURE) => {
                log::info!("{}: reached with the system's ssh, because of {}", target.node, own.message);
                return Ok(self);
            }
            Ok(output) => muster_wire::clean(String::from_utf8_lossy(&output.stderr).trim(), 300),
            Err(failure) => failure.what(&target.node).to_owned(),
        };
        Err(Failure { message: format!("{}; the system's ssh said '{said}'", own.message), ..own })
    }

    /// Runs `command` to its end.
    pub(crate) async fn run(&self, node: &str, command: &str, limit: Duration) -> Result<Output, Failure> {
        exec::output(self.exec(node, command, limit).await?, limit).await
    }

    /// Starts `command`.
    pub(crate) async fn exec(&self, node: &str, command: &str, limit: Duration) -> Result<Pipe, Failure> {
        let failed = |kind, what: String| Failure::new(node, Phase::Start, kind, what);
        match self {
            Self::Own(link) => {
                let (read, write) = session(link, node, limit).await?.split();
                let asked = write.exec(true, command).await;
                asked.map_err(|e| failed(FailureKind::LinkLost, format!("the connection broke: {e}")))?;
                Ok(Pipe::new(node, Reading::Own(read), Writing::Own(write)))
            }
            Self::OpenSsh(ssh) => {
                let started = ssh.start(command);
                let (read, input) = started
                    .map_err(|e| failed(FailureKind::BadConfig, format!("the system's ssh cannot start: {e}")))?;
                Ok(Pipe::new(node, Reading::OpenSsh(Box::new(read)), Writing::Program(Some(input))))
            }
            Self::Slurm(step, _) => {
                let (read, input) = step
                    .start(command)
                    .map_err(|e| failed(FailureKind::BadConfig, format!("Slurm's srun cannot start: {e}")))?;
                Ok(Pipe::new(node, Reading::Srun(Box::new(read)), Writing::Program(Some(input))))
            }
        }
    }

    /// Ends the connection politely.
    pub(crate) async fn goodbye(&self) {
        if let Self::Own(link) = self {
            link.goodbye().await;
        }
    }
}

/// Opens a session channel.
async fn session(link: &Link, node: &str, limit: Duration) -> Result<Channel<Msg>, Failure> {
    let failed = |kind, what: String| Failure::new(node, Phase::Start, kind, what);
    match timeout(limit, link.handle.channel_open_session()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(russh::Error::ChannelOpenFailure(why))) => {
            Err(failed(FailureKind::NoSession, format!("the server opens no session ({why:?}; MaxSessions?)")))
        }
        Ok(Err(e)) => Err(failed(FailureKind::LinkLost, format!("the connection broke: {e}"))),
        Err(_) => Err(failed(FailureKind::NoSession, format!("no session within {}", spoken(limit)))),
    }
}
