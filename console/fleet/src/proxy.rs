//! How is a node reached over a `ProxyCommand`? Its standard input and output are the connection.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, Join};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::link::{Failure, FailureKind, Phase};
use crate::target::Target;

/// Bytes kept of what the command says on standard error.
const KEPT: usize = 300;

/// A running command; killed when dropped, with everything it started.
pub(crate) struct Proxy {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

/// Starts `command`, its tokens filled in.
pub(crate) fn start(command: &str, target: &Target) -> Result<(Join<ChildStdout, ChildStdin>, Proxy), Failure> {
    let failed = |what: String| Failure::new(&target.node, Phase::Connect, FailureKind::BadConfig, what);
    let spawned = Command::new("sh")
        .args(["-c", &format!("exec {command}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = spawned.map_err(|e| failed(format!("ProxyCommand '{command}' cannot start: {e}")))?;
    let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed(format!("ProxyCommand '{command}' has no pipes")));
    };
    let said = Arc::default();
    let listener = tokio::spawn(listen(errors, Arc::clone(&said)));
    Ok((tokio::io::join(output, input), Proxy { child, said, listener }))
}

/// Reads to the end, so that the command never waits for us, and keeps the last words.
async fn listen(mut errors: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; KEPT];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let over = said.len().saturating_sub(KEPT);
        said.drain(..over);
    }
}

impl Proxy {
    /// The failure of a connection over this command, with what became of the command. One that failed by itself
    /// fails again, so that no other attempt is made.
    pub(crate) async fn explain(mut self, failure: Failure, command: &str) -> Failure {
        let moment = Duration::from_millis(500);
        let ended = timeout(moment, self.child.wait()).await;
        // Its last words may still be on their way.
        let _ = timeout(moment, &mut self.listener).await;
        let how = match ended {
            Ok(Ok(status)) => format!("ended, {status}"),
            _ => "still runs".to_owned(),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = muster_wire::clean(String::from_utf8_lossy(&said).trim(), KEPT);
        let said = if said.is_empty() { String::new() } else { format!("; it said '{said}'") };
        let broken = ended.is_ok_and(|status| status.is_ok_and(|status| !ExitStatus::success(&status)));
        Failure {
            kind: if broken { FailureKind::Unreachable } else { failure.kind },
            message: format!("{}; ProxyCommand '{command}' {how}{said}", failure.message),
            ..failure
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Without an id it has ended and was waited for: the number may be another's by now.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(group) = id {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
