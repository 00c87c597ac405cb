//! Runs system programs and says plainly when one failed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs `words` and returns its standard output.
///
/// # Errors
/// When it cannot start or fails; the message has the words and what it said.
pub fn run(words: &[&str]) -> Result<String> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", words[0]))?;
    if !output.status.success() {
        bail!("{}: {} {}", words.join(" "), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether this process may make namespaces and cgroups.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
