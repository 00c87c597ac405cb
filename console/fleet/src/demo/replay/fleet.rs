//! A fleet of virtual nodes as the console has it: addresses, keys, and the process that answers for them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::fleet::{DemoError, io, make_dir, settings_in};
use super::super::guard::Guard;
use super::servers::READY;
use crate::inventory::Inventory;
use crate::settings::Settings;

/// Running virtual nodes. Dropping it ends their process and removes its directory; the same happens when this process is killed.
#[derive(Debug)]
pub struct VirtualFleet {
    inventory: Inventory,
    slowed: Vec<String>,
    dir: PathBuf,
    servers: Child,
    output: BufReader<ChildStdout>,
    guard: Option<Guard>,
}

impl VirtualFleet {
    /// Starts `command`, which is to call [`serve_virtual`](super::serve_virtual) with the directory that it gets as its last
    /// argument; its nodes accept connections when this returns. The directory is made below `dir`.
    ///
    /// # Errors
    /// When a directory or process cannot be made, or the nodes do not come up.
    pub fn start(mut command: Command, dir: &Path) -> Result<Self, DemoError> {
        use std::os::unix::process::CommandExt;
        let dir = make_dir(Some(dir))?;
        let guard = Guard::start(&dir)?;
        // Its own group: Ctrl-C in the terminal is for the console, which ends it.
        command.arg(&dir).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut servers = command.spawn().map_err(io("start the virtual nodes"))?;
        let output = servers.stdout.take().ok_or_else(|| DemoError::Recording("no output".to_owned()))?;
        let mut output = BufReader::new(output);
        if line(&mut output)? != READY {
            // It has said why on standard error.
            let _ = servers.wait();
            return Err(DemoError::Recording("the virtual nodes did not come up".to_owned()));
        }
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).map_err(io(format!("read {name}")));
        let inventory = Inventory::parse(&read("inventory.toml")?, dir.join("inventory.toml"))?;
        let slowed = read("slowed")?.lines().map(str::to_owned).collect();
        Ok(Self { inventory, slowed, dir, servers, output, guard: Some(guard) })
    }

    /// The nodes, with their addresses.
    #[must_use]
    pub const fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Settings that reach the nodes: their recorded host keys, the fleet's key, no agent, no configuration.
    #[must_use]
    pub fn settings(&self) -> Settings {
        settings_in(&self.dir)
    }

    /// Names of the slowed nodes, in order. Nothing that judges nodes may read this.
    #[must_use]
    pub fn slowed(&self) -> &[String] {
        &self.slowed
    }

    /// Ends the nodes. How many bytes crossed their connections, both ways, SSH included.
    ///
    /// # Errors
    /// When their process does not say so.
    pub fn end(mut self) -> Result<u64, DemoError> {
        drop(self.servers.stdin.take());
        let said = line(&mut self.output)?;
        said.parse().map_err(|_| DemoError::Recording("the virtual nodes ended before they were told to".to_owned()))
    }
}

fn line(output: &mut BufReader<ChildStdout>) -> Result<String, DemoError> {
    let mut line = String::new();
    output.read_line(&mut line).map_err(io("listen to the virtual nodes"))?;
    Ok(line.trim_end().to_owned())
}

impl Drop for VirtualFleet {
    fn drop(&mut self) {
        drop(self.servers.stdin.take());
        // It may have ended.
        let _ = (self.servers.kill(), self.servers.wait());
        drop(self.guard.take());
    }
}
