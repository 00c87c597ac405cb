//! How is a node reached that only the system's `ssh` can log in to? One `ssh` process for each command: what needs
//! Kerberos, a hardware key or a program of the site's own works there, because it works for the operator.

use tokio::process::{ChildStdin, Command};

use crate::settings::{HostKeyPolicy, Settings};
use crate::spawned::{Reading, started};
use crate::sshconfig::Jump;
use crate::target::Target;

/// How `ssh` is started for one node.
pub(crate) struct OpenSsh {
    arguments: Vec<String>,
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
        let mut ssh = Command::new("ssh");
        ssh.args(&self.arguments).arg(command).process_group(0);
        started(ssh)
    }
}

fn hop(jump: &Jump) -> String {
    let user = jump.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
    let port = jump.port.map_or(String::new(), |port| format!(":{port}"));
    let host = if jump.host.contains(':') { format!("[{}]", jump.host) } else { jump.host.clone() };
    format!("{user}{host}{port}")
}
