//! Who cleans up when this process is killed? A shell that waits for the end of its input, which the kernel brings.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::fleet::{DemoError, io};

/// Every process of the fleet carries the fleet's word in its environment, so that it is found wherever it
/// went: other sessions, other parents. A stopped one would never notice the end by itself.
pub(super) const MARK: &str = "MUSTER_DEMO_FLEET";

/// Takes the fleet's word and directory. Kills twice, because a process may fork while the first pass reads.
const SCRIPT: &str = r#"trap "" INT HUP TERM QUIT; read -r _;
for pass in 1 2 3; do for p in /proc/[0-9]*; do
if [ "$p" != "/proc/$$" ] && grep -qs "MUSTER_DEMO_FLEET=$1" "$p/environ"; then kill -9 "${p#/proc/}" 2>/dev/null; fi; done; done;
rm -rf "$2""#;

/// The waiting shell.
#[derive(Debug)]
pub(super) struct Guard {
    word: String,
    shell: Child,
}

impl Guard {
    pub(super) fn start(dir: &Path) -> Result<Self, DemoError> {
        use std::os::unix::process::CommandExt;
        let word = format!("{:016x}", rand::random::<u64>());
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "demo-guard", &word])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Its own group: Ctrl-C in the terminal is not for it.
            .process_group(0)
            .spawn()
            .map_err(io("start the guard (sh)"))?;
        Ok(Self { word, shell })
    }

    /// The word in the environment of the fleet's processes.
    pub(super) fn word(&self) -> &str {
        &self.word
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It ends by itself now; waiting leaves no zombie and no directory behind.
        let _ = self.shell.wait();
    }
}
