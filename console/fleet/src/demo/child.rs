//! Which processes belong to one command of a node, and how do all of them end?

use std::collections::BTreeSet;
use std::num::NonZeroI32;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use muster_wire::DEMO_NODE;

use super::guard::MARK;

/// Carried by the processes of one command, beside the fleet's mark.
const COMMAND: &str = "MUSTER_DEMO_COMMAND";

/// Whose process it is.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) fleet: &'a str,
    pub(super) node: &'a str,
    pub(super) home: &'a Path,
    /// Of this command alone.
    pub(super) word: &'a str,
}

/// Starts `command` in the login shell of a node.
pub(super) fn start(command: &str, of: Of<'_>) -> std::io::Result<Child> {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", command]);
    place(&mut shell, of);
    Command::from(shell).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()
}

/// Makes `command` one of a node: its home, its environment, a process group of its own.
pub(super) fn place(command: &mut std::process::Command, Of { fleet, node, home, word }: Of<'_>) {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()))
        .env("HOME", home)
        .env("USER", "demo")
        .env("LOGNAME", "demo")
        .env("SHELL", "/bin/sh")
        .env("TMPDIR", home)
        .env(MARK, fleet)
        .env(COMMAND, word)
        .env(DEMO_NODE, node)
        .current_dir(home)
        .process_group(0);
}

/// The process groups of a command: its leader's, and those that its processes made.
pub(super) fn groups(leader: Pid, word: &str) -> Vec<Pid> {
    let mut groups = carrying(word);
    groups.insert(leader.as_raw_nonzero());
    groups.into_iter().filter_map(|raw| Pid::from_raw(raw.get())).collect()
}

/// Kills every process of a command, until none is left: a process may fork while the list is made.
pub(super) fn kill(word: &str) {
    for _ in 0..5 {
        let groups = carrying(word);
        if groups.is_empty() {
            return;
        }
        for group in groups.into_iter().filter_map(|raw| Pid::from_raw(raw.get())) {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The groups of the processes that carry the command's word in their environment, which sessions and changed
/// parents do not hide. Processes of others, and those that have just ended, cannot be read, and are not ours.
fn carrying(word: &str) -> BTreeSet<NonZeroI32> {
    let mark = format!("{COMMAND}={word}");
    let mut groups = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(environ) = std::fs::read(entry.path().join("environ")) else { continue };
        if environ.split(|b| *b == 0).any(|entry| entry == mark.as_bytes())
            && let Some(pid) = Pid::from_raw(pid)
            && let Ok(group) = rustix::process::getpgid(Some(pid))
        {
            groups.insert(group.as_raw_nonzero());
        }
    }
    groups
}
