//! How is a node reached that only the system's `ssh` can log in to? One `ssh` process for each command: what needs
//! Kerberos, a hardware key or a program of the site's own works there, because it works for the operator.

use std::process::Stdio;

use bytes::{Bytes, BytesMut};
use russh::ChannelMsg;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::settings::{HostKeyPolicy, Settings};
use crate::sshconfig::Jump;
use crate::target::Target;

/// `ssh` ends with this when it fails itself; a command may too, but ours does not.
pub(crate) const OWN_FAILURE: u32 = 255;

/// How `ssh` is started for one node.
pub(crate) struct OpenSsh {
    arguments: Vec<String>,
}

/// The half of a running `ssh` that is read.
pub(crate) struct Reading {
    child: Child,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    buffers: [BytesMut; 2],
    ended: bool,
}

impl OpenSsh {
    pub(crate) fn new(target: &Target, settings: &Settings) -> Self {
        let mut arguments: Vec<String> = ["-T", "-x", "-a"].map(str::to_owned).into();
        let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        if let Some(file) = &settings.ssh_config {
            // The usual file is read anyway, and then the machine's with it.
            if crate::settings::home().is_none_or(|home| home.join(".ssh/config") != *file) {
                add("-F", file.display().to_string());
            }
        }
        add("-o", "BatchMode=yes".to_owned());
        add("-o", format!("ConnectTimeout={}", target.connect.as_secs().max(1)));
        add("-o", format!("ServerAliveInterval={}", settings.ping.as_secs().max(1)));
        // Nobody is there to be asked by it.
        let accepts = target.records.policy == HostKeyPolicy::AcceptNew;
        add("-o", format!("StrictHostKeyChecking={}", if accepts { "accept-new" } else { "yes" }));
        // The records that we go by, ours and the machine's.
        let files: Vec<String> = target.records.files.iter().map(|file| format!("\"{}\"", file.display())).collect();
        if !files.is_empty() {
            add("-o", format!("UserKnownHostsFile={}", files.join(" ")));
        }
        add("-l", target.user.clone());
        add("-p", target.port.to_string());
        for identity in &target.identities {
            add("-i", identity.display().to_string());
        }
        if !target.jump.is_empty() {
            add("-J", target.jump.iter().map(hop).collect::<Vec<_>>().join(","));
        }
        arguments.extend(["--".to_owned(), target.alias.clone()]);
        Self { arguments }
    }

    /// Starts `command` on the node.
    pub(crate) fn start(&self, command: &str) -> std::io::Result<(Reading, ChildStdin)> {
        let mut child = Command::new("ssh")
            .args(&self.arguments)
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let input = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok((Reading { child, output, errors, buffers: Default::default(), ended: false }, input))
    }
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
        // A killed ssh is as good as a connection that it lost.
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

fn hop(jump: &Jump) -> String {
    let user = jump.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
    let port = jump.port.map_or(String::new(), |port| format!(":{port}"));
    let host = if jump.host.contains(':') { format!("[{}]", jump.host) } else { jump.host.clone() };
    format!("{user}{host}{port}")
}
