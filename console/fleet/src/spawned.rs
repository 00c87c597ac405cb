//! How does a program of this machine, `ssh` or `srun`, become the two ends of a command on a node?

use std::process::Stdio;

use bytes::{Bytes, BytesMut};
use russh::ChannelMsg;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// `ssh` ends with this when it fails itself; a command may too, but ours does not.
pub(crate) const OWN_FAILURE: u32 = 255;

/// The half of a running `ssh`, or of another program that runs a command on a node, that is read.
pub(crate) struct Reading {
    child: Child,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    buffers: [BytesMut; 2],
    ended: bool,
}

/// Starts a program whose input and output are those of a command on a node.
pub(crate) fn started(mut command: Command) -> std::io::Result<(Reading, ChildStdin)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let input = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    Ok((Reading { child, output, errors, buffers: Default::default(), ended: false }, input))
}

impl Reading {
    /// The next message, as from a channel; `None` after the exit status.
    pub(crate) async fn wait(&mut self) -> Option<ChannelMsg> {
        let [output, errors] = &mut self.buffers;
        loop {
            tokio::select! {
                more = read(&mut self.output, output), if self.output.is_some() => match more {
                    Some(data) => return Some(ChannelMsg::Data { data }),
                    None => self.output = None,
                },
                more = read(&mut self.errors, errors), if self.errors.is_some() => match more {
                    Some(data) => return Some(ChannelMsg::ExtendedData { data, ext: 1 }),
                    None => self.errors = None,
                },
                else => break,
            }
        }
        if self.ended {
            return None;
        }
        let status = self.child.wait().await.ok().and_then(|status| status.code());
        self.ended = true;
        // A killed ssh or srun is as good as a connection that it lost.
        let exit_status = status.and_then(|code| u32::try_from(code).ok()).unwrap_or(OWN_FAILURE);
        Some(ChannelMsg::ExitStatus { exit_status })
    }
}

/// Bytes as they come; nothing at the end. What was read stays in the buffer when the caller turns to something else.
async fn read(from: &mut Option<impl AsyncReadExt + Unpin>, buffer: &mut BytesMut) -> Option<Bytes> {
    match from.as_mut()?.read_buf(buffer).await {
        Ok(1..) => Some(buffer.split().freeze()),
        _ => None,
    }
}
