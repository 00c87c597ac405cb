//! What is a command that runs on a node? What is written to it, what it says, and how it ends.

use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::timeout;

use crate::link::{Failure, FailureKind, Phase};
use crate::{slurm, spawned};

/// Bytes kept of standard error.
const TAIL: usize = 2 * 1024;

/// A command that runs on a node.
pub(crate) struct Pipe {
    pub(crate) node: String,
    pub(crate) read: Reading,
    pub(crate) write: Writing,
    /// How the command ended, once it did.
    pub(crate) exit: Option<Exit>,
    pub(crate) errors: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Status(u32),
    Signal(String),
}

impl Exit {
    /// Whether others ended it, rather than the command itself.
    pub(crate) fn by_others(&self) -> bool {
        match self {
            Self::Status(status) => [129, 130, 137, 143].contains(status),
            Self::Signal(name) => ["HUP", "INT", "KILL", "TERM"].contains(&name.as_str()),
        }
    }
}

/// What a channel had to say.
pub(crate) enum Heard {
    Data(Bytes),
    /// The other side took bytes of ours.
    Taken,
    Other,
    Closed,
    Lost,
}

impl Pipe {
    pub(crate) fn new(node: &str, read: Reading, write: Writing) -> Self {
        Self { node: node.to_owned(), read, write, exit: None, errors: Vec::new() }
    }

    /// The next message. Standard error and the exit are kept here.
    pub(crate) async fn hear(&mut self) -> Heard {
        let message = self.read.wait().await;
        note(message, &mut self.exit, &mut self.errors)
    }

    /// Whether the system's `ssh` failed by itself, and not the command.
    pub(crate) fn ssh_failed(&self) -> bool {
        matches!(self.read, Reading::OpenSsh(_)) && self.exit == Some(Exit::Status(spawned::OWN_FAILURE))
    }

    /// What Slurm did, rather than the command, where it says so.
    pub(crate) fn slurm(&self) -> Option<(FailureKind, &'static str)> {
        if matches!(self.read, Reading::Srun(_)) { slurm::explained(&self.errors) } else { None }
    }

    /// What runs commands on the node.
    pub(crate) fn starter(&self) -> &'static str {
        if matches!(self.read, Reading::Srun(_)) { "Slurm's step" } else { "the login shell" }
    }

    /// The last of standard error, for a message; empty, or beginning with `; it said`.
    pub(crate) fn errors(&self) -> String {
        // Said wherever Slurm binds nothing, and so of no use.
        let said = String::from_utf8_lossy(&self.errors)
            .replace("srun: cluster configuration lacks support for cpu binding", "");
        let text = muster_wire::clean(said.trim(), 300);
        if text.is_empty() { text } else { format!("; it said '{text}'") }
    }
}

/// What `message` comes to; how the command ended and the last of standard error are kept.
pub(crate) fn note(message: Option<ChannelMsg>, exit: &mut Option<Exit>, errors: &mut Vec<u8>) -> Heard {
    match message {
        Some(ChannelMsg::Data { data }) => return Heard::Data(data),
        Some(ChannelMsg::ExtendedData { data, .. }) => {
            errors.extend_from_slice(&data);
            let over = errors.len().saturating_sub(TAIL);
            errors.drain(..over);
        }
        Some(ChannelMsg::ExitStatus { exit_status }) => *exit = Some(Exit::Status(exit_status)),
        Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
            *exit = Some(Exit::Signal(muster_wire::clean(&format!("{signal_name:?}"), 40)));
        }
        Some(ChannelMsg::Failure) => *exit = Some(Exit::Status(127)),
        Some(ChannelMsg::WindowAdjusted { .. }) => return Heard::Taken,
        Some(ChannelMsg::Close) => return Heard::Closed,
        None => return if exit.is_some() { Heard::Closed } else { Heard::Lost },
        Some(_) => {}
    }
    Heard::Other
}

impl Pipe {
    /// The connection is gone.
    pub(crate) fn lost(&self, phase: Phase) -> Failure {
        let what = format!("the connection was lost{}", self.errors());
        Failure::new(&self.node, phase, FailureKind::LinkLost, what)
    }

    /// Writes a request; a connection that takes nothing for a second counts as written, silence will tell.
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) {
        let _ = timeout(Duration::from_secs(1), self.write.data(bytes.into())).await;
    }
}

/// The half of a command that is read.
pub(crate) enum Reading {
    Own(ChannelReadHalf),
    OpenSsh(Box<spawned::Reading>),
    Srun(Box<spawned::Reading>),
}

/// The half of a command that is written.
pub(crate) enum Writing {
    Own(ChannelWriteHalf<Msg>),
    Program(Option<ChildStdin>),
}

impl Reading {
    pub(crate) async fn wait(&mut self) -> Option<ChannelMsg> {
        match self {
            Self::Own(channel) => channel.wait().await,
            Self::OpenSsh(process) | Self::Srun(process) => process.wait().await,
        }
    }
}

impl Writing {
    pub(crate) async fn data(&mut self, bytes: Bytes) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.data_bytes(bytes).await,
            Self::Program(Some(input)) => Ok(input.write_all(&bytes).await?),
            Self::Program(None) => Err(russh::Error::SendError),
        }
    }

    /// Nothing more will be written.
    pub(crate) async fn eof(&mut self) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.eof().await,
            Self::Program(input) => {
                *input = None;
                Ok(())
            }
        }
    }

    pub(crate) async fn close(&mut self) -> Result<(), russh::Error> {
        match self {
            Self::Own(channel) => channel.close().await,
            Self::Program(_) => self.eof().await,
        }
    }
}
