//! A fleet of nodes on one bridge, with a console's namespace beside them.

use std::fmt::Write as _;
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::console::Console;
use crate::node::Node;
use crate::shell::run;

/// How the fleet is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of nodes, named `n001`, `n002`, …
    pub nodes: u8,
}

/// Running nodes; everything ends when dropped.
#[derive(Debug)]
pub struct Fleet {
    // Nodes are dropped before the folder that holds their disks.
    nodes: Vec<Node>,
    held: Vec<Child>,
    pub(crate) routers: Vec<String>,
    prefix: String,
    dir: tempfile::TempDir,
}

impl Fleet {
    /// Raises a fleet and waits until every sshd listens.
    ///
    /// # Errors
    /// When the system refuses; what was made until then is removed.
    pub fn up(options: Options) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("muster-fleet-").tempdir()?;
        // Two fleets of one test program must not meet.
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("mt{}x{}", std::process::id(), FLEETS.fetch_add(1, Ordering::Relaxed));
        let mut fleet = Self { nodes: Vec::new(), held: Vec::new(), routers: Vec::new(), prefix, dir };
        let key = fleet.path("id");
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &key])?;
        fleet.network(options.nodes)?;
        for index in 1..=options.nodes {
            let node = Node::start(fleet.dir.path(), &name(index), &address(index), &fleet.netns(&name(index)))?;
            fleet.nodes.push(node);
        }
        fleet.write_files()?;
        for node in &fleet.nodes {
            fleet.wait(node)?;
        }
        Ok(fleet)
    }

    /// Waits until a probe measures on `node`.
    ///
    /// # Errors
    /// When none does within fifteen minutes.
    pub fn wait_until_measuring(&mut self, node: &str) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(900);
        while !self.node(node).measures() {
            if Instant::now() > deadline {
                bail!("no probe ever measured on {node}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Seconds of CPU time that programs on its nodes have used so far.
    #[must_use]
    pub fn used(&self) -> f64 {
        self.nodes.iter().filter_map(Node::used).map(|used| used.as_secs_f64()).sum()
    }

    /// The node called `name`.
    ///
    /// # Panics
    /// When there is none: the test is wrong.
    pub fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|n| n.name == name).unwrap_or_else(|| panic!("no node {name}"))
    }

    /// Names of its nodes, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Address of the node at this place, counted from 0.
    ///
    /// # Panics
    /// When there is none: the test is wrong.
    #[must_use]
    pub fn address(&self, place: usize) -> &str {
        &self.nodes[place].address
    }

    /// Puts another key for `name` into known_hosts, as if the node had been replaced.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn change_recorded_key(&self, name: &str) -> Result<()> {
        let other = self.dir.path().join("other");
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &other.display().to_string()])?;
        let key = fs::read_to_string(other.with_extension("pub"))?;
        let key = key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let path = self.path("known_hosts");
        let lines = fs::read_to_string(&path)?;
        let address = &self.nodes.iter().find(|n| n.name == name).map(|n| n.address.clone()).unwrap_or_default();
        let changed = lines
            .lines()
            .map(|line| {
                if line.contains(&format!("{address} ")) {
                    format!("{name},{address} {key}\n")
                } else {
                    format!("{line}\n")
                }
            })
            .collect::<String>();
        Ok(fs::write(path, changed)?)
    }

    /// Takes `name` off the network.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn unplug(&self, name: &str) -> Result<()> {
        self.link(&format!("p{}", name.trim_start_matches(['n', '0'])), "down")
    }

    /// Puts `name` back on the network.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn plug_in(&self, name: &str) -> Result<()> {
        self.link(&format!("p{}", name.trim_start_matches(['n', '0'])), "up")
    }

    /// Switches the bridge that all nodes and the console are on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn bridge(&self, up: bool) -> Result<()> {
        self.link("br0", if up { "up" } else { "down" })
    }

    fn link(&self, port: &str, state: &str) -> Result<()> {
        run(&["ip", "-n", &self.netns("hub"), "link", "set", port, state]).map(drop)
    }

    /// Limits what `name` receives to `rate`, such as `8mbit`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn slow_link(&self, name: &str, rate: &str) -> Result<()> {
        let (hub, port) = (self.netns("hub"), format!("p{}", name.trim_start_matches(['n', '0'])));
        let qdisc = ["tc", "-n", &hub, "qdisc", "add", "dev", &port, "root"];
        run(&[&qdisc[..], &["tbf", "rate", rate, "burst", "16kb", "latency", "400ms"]].concat()).map(drop)
    }

    /// Lets the link of the node at `place` (from 0) carry `rate`, such as `200mbit`, in either direction.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn shape_link(&self, place: usize, rate: &str) -> Result<()> {
        let ends = [("hub".to_owned(), format!("p{}", place + 1)), (self.nodes[place].name.clone(), "eth0".to_owned())];
        ends.into_iter().try_for_each(|(netns, device)| {
            let netns = self.netns(&netns);
            let qdisc = ["tc", "-n", &netns, "qdisc", "replace", "dev", &device, "root"];
            run(&[&qdisc[..], &["tbf", "rate", rate, "burst", "64kb", "latency", "400ms"]].concat()).map(drop)
        })
    }

    /// Gives `name` in the inventory the key `file`, which needs a passphrase.
    ///
    /// # Errors
    /// When the key or the inventory cannot be written.
    pub fn encrypt_key(&self, name: &str, file: &str) -> Result<()> {
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", &self.path(file)])?;
        let text = fs::read_to_string(self.path("inventory.toml"))?;
        let line = format!("name = \"{name}\"\n");
        let with_key = format!("{line}identity = \"{}\"\n", self.path(file));
        Ok(fs::write(self.path("inventory.toml"), text.replace(&line, &with_key))?)
    }

    /// Opens a connection to `name` that says nothing for `seconds`: for its sshd, a login under way.
    ///
    /// # Errors
    /// When the connection cannot be made.
    pub fn hold_login(&mut self, name: &str, seconds: u32) -> Result<()> {
        let netns = self.netns("console");
        let held = self.node(name).hold_login(&netns, seconds)?;
        self.held.push(held);
        Ok(())
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A console on this fleet's network, with its own database.
    #[must_use]
    pub fn console(&self) -> Console {
        Console::new(&self.netns("console"), self.dir.path())
    }

    /// A file of the fleet.
    #[must_use]
    pub fn path(&self, file: &str) -> String {
        self.dir.path().join(file).display().to_string()
    }

    pub(crate) fn netns(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn network(&self, nodes: u8) -> Result<()> {
        let (hub, console) = (self.netns("hub"), self.netns("console"));
        run(&["ip", "netns", "add", &hub])?;
        run(&["ip", "-n", &hub, "link", "add", "br0", "type", "bridge"])?;
        run(&["ip", "-n", &hub, "link", "set", "br0", "up"])?;
        self.plug(&hub, &console, "pc", "10.79.255.1")?;
        for index in 1..=nodes {
            self.plug(&hub, &self.netns(&name(index)), &format!("p{index}"), &address(index))?;
        }
        Ok(())
    }

    fn plug(&self, hub: &str, netns: &str, port: &str, address: &str) -> Result<()> {
        run(&["ip", "netns", "add", netns])?;
        run(&["ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", netns])?;
        run(&["ip", "-n", hub, "link", "set", port, "master", "br0", "up"])?;
        run(&["ip", "-n", netns, "link", "set", "lo", "up"])?;
        run(&["ip", "-n", netns, "addr", "add", &format!("{address}/16"), "dev", "eth0"])?;
        run(&["ip", "-n", netns, "link", "set", "eth0", "up"])?;
        Ok(())
    }

    fn write_files(&self) -> Result<()> {
        let (mut hosts, mut inventory) = (String::new(), String::new());
        let id = self.path("id");
        let _ = writeln!(inventory, "[defaults]\nuser = \"root\"\nidentity = \"{id}\"");
        for node in &self.nodes {
            writeln!(hosts, "{},{} {}", node.name, node.address, node.host_key()?)?;
            let _ = writeln!(inventory, "[[nodes]]\nname = \"{}\"\nhost = \"{}\"", node.name, node.address);
        }
        fs::write(self.path("known_hosts"), hosts)?;
        fs::write(self.path("inventory.toml"), inventory)?;
        let config =
            format!("Host *\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n", self.path("known_hosts"));
        Ok(fs::write(self.path("ssh_config"), config)?)
    }

    fn wait(&self, node: &Node) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(300);
        while Instant::now() < deadline {
            let table =
                run(&["nsenter", &format!("--net=/run/netns/{}", node.netns), "--", "ss", "-Htln", "sport = :22"]);
            if table.is_ok_and(|t| !t.trim().is_empty()) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("{} did not come up: {}", node.name, node.log())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for held in &mut self.held {
            let _ = held.kill();
            let _ = held.wait();
        }
        let names: Vec<String> = self.nodes.drain(..).map(|node| node.netns.clone()).collect();
        for netns in names.into_iter().chain(self.routers.clone()).chain([self.netns("hub"), self.netns("console")]) {
            let _ = run(&["ip", "netns", "del", &netns]);
        }
    }
}

fn name(index: u8) -> String {
    format!("n{index:03}")
}

fn address(index: u8) -> String {
    format!("10.79.1.{index}")
}
