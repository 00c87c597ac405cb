//! Which SSH carries the commands of a node: a connection of our own, or the system's `ssh`?

use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

use crate::connect::Link;
use crate::context::{Reporter, Shared};
use crate::exec;
use crate::link::{Failure, FailureKind, LinkState, Phase};
use crate::openssh::{self, OpenSsh};
use crate::settings::Transport;
use crate::target::Target;
use crate::upload::Pipe;

/// A way to run commands on a node.
pub(crate) enum Route {
    Own(Box<Link>),
    OpenSsh(OpenSsh),
}

/// The half of a command that is read.
pub(crate) enum Reading {
    Own(ChannelReadHalf),
    OpenSsh(Box<openssh::Reading>),
}

/// The half of a command that is written.
pub(crate) enum Writing {
    Own(ChannelWriteHalf<Msg>),
    OpenSsh(Option<ChildStdin>),
}

impl Route {
    /// Logs in as the settings say; where we have no usable key, the system's `ssh` may have other means.
    pub(crate) async fn open(target: &Target, shared: &Shared, report: &Reporter) -> Result<Self, Failure> {
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

    /// Itself if it can log in; else our own failure and what `ssh` said.
    async fn checked(self, target: &Target, limit: Duration, own: Failure) -> Result<Self, Failure> {
        let said = match exec::run(&self, &target.node, "exit 0", limit).await {
            Ok(output) if output.status != Some(openssh::OWN_FAILURE) => {
                log::info!("{}: reached with the system's ssh, because of {}", target.node, own.message);
                return Ok(self);
            }
            Ok(output) => muster_wire::clean(String::from_utf8_lossy(&output.stderr).trim(), 300),
            Err(failure) => failure.what(&target.node).to_owned(),
        };
        Err(Failure { message: format!("{}; the system's ssh said '{said}'", own.message), ..own })
    }

    /// Starts `command`.
    pub(crate) async fn exec(&self, node: &str, command: &str, limit: Duration) -> Result<Pipe, Failure> {
        let failed = |kind, what: String| Failure::new(node, Phase::Start, kind, what);
        match self {
            Self::Own(link) => {
                let (read, write) = exec::session(link, node, limit).await?.split();
                let asked = write.exec(true, command).await;
                asked.map_err(|e| failed(FailureKind::LinkLost, format!("the connection broke: {e}")))?;
                Ok(Pipe::new(node, Reading::Own(read), Writing::Own(write)))
            }
            Self::OpenSsh(ssh) => {
                let started = ssh.start(command);
                let (read, input) = started
                    .map_err(|e| failed(FailureKind::BadConfig, format!("the system's ssh cannot start: {e}")))?;
                Ok(Pipe::new(node, Reading::OpenSsh(Box::new(read)), Writing::OpenSsh(Some(input))))
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

impl Reading {
    pub(crate) async fn wait(&mut self) -> Option<ChannelMsg> {
        match self {
            Self::Own(channel) => channel.wait().await,
            Self::OpenSsh(process) => process.wait().await,
        }
    }
}

impl Writing {
    pub(crate) async fn data(&mut self, bytes: Bytes) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.data_bytes(bytes).await,
            Self::OpenSsh(Some(input)) => Ok(input.write_all(&bytes).await?),
            Self::OpenSsh(None) => Err(russh::Error::SendError),
        }
    }

    /// Nothing more will be written.
    pub(crate) async fn eof(&mut self) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.eof().await,
            Self::OpenSsh(input) => {
                *input = None;
                Ok(())
            }
        }
    }

    pub(crate) async fn close(&mut self) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.close().await,
            Self::OpenSsh(_) => self.eof().await,
        }
    }
}
