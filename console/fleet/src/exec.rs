//! What does one command on a node answer?

use std::time::Duration;

use russh::ChannelMsg;
use tokio::time::timeout;

use crate::link::{Failure, FailureKind, Phase, spoken};
use crate::pipe::{Pipe, Reading};

/// Most bytes kept of each of standard output and standard error.
const KEPT: usize = 64 * 1024;

/// What a command said and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output, its first 64 kB.
    pub stdout: Vec<u8>,
    /// Standard error, its first 64 kB.
    pub stderr: Vec<u8>,
    /// Exit status; absent when a signal ended it.
    pub status: Option<u32>,
}

/// Waits until the command of `pipe` has ended, which gets no input.
pub(crate) async fn output(mut pipe: Pipe, limit: Duration) -> Result<Output, Failure> {
    let failed = |kind, what: String| Failure::new(&pipe.node, Phase::Run, kind, what);
    let broke = |e: russh::Error| failed(FailureKind::LinkLost, format!("the connection broke: {e}"));
    pipe.write.eof().await.map_err(broke)?;
    let collected = timeout(limit, collect(&mut pipe.read)).await;
    collected.map_err(|_| failed(FailureKind::TimeLimit, format!("no end within {}", spoken(limit))))
}

async fn collect(channel: &mut Reading) -> Output {
    let mut output = Output::default();
    let keep = |into: &mut Vec<u8>, data: &[u8]| {
        let room = KEPT.saturating_sub(into.len()).min(data.len());
        into.extend_from_slice(data.get(..room).unwrap_or_default());
    };
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => keep(&mut output.stdout, &data),
            ChannelMsg::ExtendedData { data, .. } => keep(&mut output.stderr, &data),
            ChannelMsg::ExitStatus { exit_status } => output.status = Some(exit_status),
            ChannelMsg::Failure | ChannelMsg::Close => break,
            _ => {}
        }
    }
    output
}
