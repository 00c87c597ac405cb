//! The console under test: the built binary, started in a namespace, with a database of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// Starts `muster` with this fleet's inventory.
#[derive(Clone, Debug)]
pub struct Console {
    netns: String,
    dir: PathBuf,
    variables: Vec<(String, String)>,
    bare: bool,
}

/// A run that ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` when killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Standard output as JSON.
    ///
    /// # Errors
    /// When it is none; the message holds both streams.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {} / {}", self.out, self.err))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Console {
    pub(crate) fn new(netns: &str, dir: &Path) -> Self {
        Self { netns: netns.to_owned(), dir: dir.to_owned(), variables: Vec::new(), bare: false }
    }

    /// The same without an inventory.
    #[must_use]
    pub const fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// The same with an environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn run(&self, arguments: &[&str]) -> Result<Ran> {
        Ok(self.command(arguments).output().context("cannot start the console")?.into())
    }

    /// Starts and returns at once.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn start(&self, arguments: &[&str]) -> Result<Child> {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the console")
    }

    /// Starts with at most `kilobytes` of address space, and returns at once. With one heap for all threads, since every
    /// further one reserves 64 MB that nobody uses.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn start_within(&self, kilobytes: Option<u64>, arguments: &[&str]) -> Result<Child> {
        let limit = kilobytes.map(|kilobytes| format!("--as={}", kilobytes << 10));
        let wrapper: Vec<&str> = limit.iter().flat_map(|limit| ["prlimit", limit, "--"]).collect();
        self.wrapped(&wrapper, arguments)
            .env("MALLOC_ARENA_MAX", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the console")
    }

    /// A line of a shell in the folder `home`, which is the user's home as well, with `muster` on its path and nothing set.
    #[must_use]
    pub fn shell(&self, home: &Path, line: &str) -> Command {
        let folder = binary().parent().map(Path::to_owned).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.netns)).args(["--", "sh", "-ec", line]);
        command.current_dir(home).env("HOME", home).env("PATH", format!("{}:{path}", folder.display()));
        command.env_remove("SSH_AUTH_SOCK").stdin(Stdio::null());
        command
    }

    /// The command that starts it on a terminal.
    #[must_use]
    pub fn on_terminal(&self, arguments: &[&str]) -> Command {
        self.command(arguments)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.wrapped(&[], arguments)
    }

    fn wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.netns))
            .arg("--")
            .args(wrapper)
            .arg(binary())
            .args(if self.bare { Vec::new() } else { vec!["--inventory".to_owned(), self.file("inventory.toml")] })
            .args(["--ssh-config", &self.file("ssh_config")])
            .args(["--db", &self.file("db")])
            .args(arguments)
            .env_remove("SSH_AUTH_SOCK")
            .env("HOME", &self.dir)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

/// The built console: beside the test's own binary.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("MUSTER_BIN") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().unwrap_or_default();
    // <target>/<profile>/deps/test-hash
    test.ancestors().nth(2).unwrap_or(Path::new(".")).join("muster")
}
