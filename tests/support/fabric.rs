//! Leaves and spines beside the fleet's own bridge: routed, shaped, and broken as fabrics break.
//!
//! Every rack has a leaf, every leaf a link to every spine; the spine is chosen by the receiver's place in its rack, as an
//! InfiniBand forwarding table does, so every path is known and written to `routes.csv`.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Result, bail};

use crate::fleet::Fleet;
use crate::shell::run;

/// How the fabric is made.
#[derive(Clone, Copy, Debug)]
pub struct Fabric {
    /// Racks, each with one leaf.
    pub racks: u8,
    /// Nodes of each rack; racks times nodes are all nodes of the fleet.
    pub nodes: u8,
    /// Spines.
    pub spines: u8,
    /// What each NIC carries, Mbit/s.
    pub rate: u32,
}

/// Why packets cannot be lost here, if they cannot.
#[must_use]
pub fn no_loss() -> Option<&'static str> {
    run(&["nft", "--version"]).is_err().then_some("nft, for packet loss")
}

impl Fleet {
    /// Gives every node a second interface into a fabric, and the inventory its labels.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn weave(&mut self, fabric: &Fabric) -> Result<()> {
        for spine in 1..=fabric.spines {
            self.router(&format!("spine{spine}"))?;
        }
        for rack in 1..=fabric.racks {
            self.leaf(fabric, rack)?;
        }
        self.describe(fabric)
    }

    fn router(&mut self, name: &str) -> Result<()> {
        let netns = self.netns(name);
        run(&["ip", "netns", "add", &netns])?;
        self.routers.push(netns.clone());
        run(&["ip", "-n", &netns, "link", "set", "lo", "up"])?;
        inside(&netns, "sysctl -qw net.ipv4.ip_forward=1")
    }

    fn leaf(&mut self, fabric: &Fabric, rack: u8) -> Result<()> {
        let name = format!("leaf{rack}");
        self.router(&name)?;
        let leaf = self.netns(&name);
        let mut script = String::from("set -e; ip link add br0 type bridge; ip link set br0 up;");
        let _ = write!(script, "ip addr add 10.80.{rack}.254/24 dev br0;");
        inside(&leaf, &script)?;
        for index in 1..=fabric.nodes {
            let (node, port) = (self.netns(&fabric.name(rack, index)), format!("p{index}"));
            run(&["ip", "-n", &leaf, "link", "add", &port, "type", "veth", "peer", "name", "fab0", "netns", &node])?;
            run(&["ip", "-n", &leaf, "link", "set", &port, "master", "br0", "up"])?;
            // Without a limit on what lies in the socket's queue, the node's own shaper drops what TCP hands it.
            let script = format!(
                "set -e; ip addr add 10.80.{rack}.{index}/24 dev fab0; ip link set fab0 up; \
                 ip route add 10.80.0.0/15 via 10.80.{rack}.254; sysctl -qw net.ipv4.tcp_limit_output_bytes=65536"
            );
            inside(&node, &script)?;
            shape(&node, "fab0", fabric.rate)?;
            shape(&leaf, &port, fabric.rate)?;
        }
        for spine in 1..=fabric.spines {
            let (other, base) = (self.netns(&format!("spine{spine}")), 4 * (spine - 1));
            let (up, down) = (format!("up{spine}"), format!("d{rack}"));
            run(&["ip", "-n", &leaf, "link", "add", &up, "type", "veth", "peer", "name", &down, "netns", &other])?;
            let (here, there) = (format!("10.81.{rack}.{}", base + 1), format!("10.81.{rack}.{}", base + 2));
            inside(&leaf, &format!("ip addr add {here}/30 dev {up} && ip link set {up} up"))?;
            let script = format!("ip addr add {there}/30 dev {down} && ip link set {down} up");
            inside(&other, &format!("{script} && ip route add 10.80.{rack}.0/24 via {here}"))?;
        }
        let mut routes = String::new();
        for other in (1..=fabric.racks).filter(|other| *other != rack) {
            for index in 1..=fabric.nodes {
                let via = 4 * (fabric.spine(index) - 1) + 2;
                let _ = writeln!(routes, "ip route add 10.80.{other}.{index}/32 via 10.81.{rack}.{via} || exit 1");
            }
        }
        inside(&leaf, &routes)
    }

    /// The inventory with leaves and addresses, and the uplink of every ordered pair.
    fn describe(&self, fabric: &Fabric) -> Result<()> {
        let mut inventory = fs::read_to_string(self.path("inventory.toml"))?;
        let mut routes = String::from("src,dst,up\n");
        for (rack, index) in fabric.places() {
            let name = fabric.name(rack, index);
            let line = format!("name = \"{name}\"\n");
            let labels = format!("labels = {{ leaf = \"leaf{rack}\", fabric = \"10.80.{rack}.{index}\" }}\n");
            inventory = inventory.replace(&line, &format!("{line}{labels}"));
            for (other, place) in fabric.places().filter(|place| place.0 != rack) {
                let up = format!("leaf{rack}-spine{}-leaf{other}", fabric.spine(place));
                let _ = writeln!(routes, "{name},{},{up}", fabric.name(other, place));
            }
        }
        fs::write(self.path("inventory.toml"), inventory)?;
        Ok(fs::write(self.path("routes.csv"), routes)?)
    }

    /// Gives every node `rails` interfaces `rail0`, `rail1`, … of `rate` Mbit/s, each on a switch of its own, and the inventory
    /// their addresses.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn add_rails(&mut self, nodes: u8, rails: u8, rate: u32) -> Result<()> {
        for rail in 0..rails {
            self.router(&format!("rail{rail}"))?;
            let switch = self.netns(&format!("rail{rail}"));
            inside(&switch, "ip link add br0 type bridge && ip link set br0 up")?;
            for index in 1..=nodes {
                let (node, port, nic) =
                    (self.netns(&format!("n{index:03}")), format!("p{index}"), format!("rail{rail}"));
                run(&[
                    "ip", "-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", &nic, "netns", &node,
                ])?;
                run(&["ip", "-n", &switch, "link", "set", &port, "master", "br0", "up"])?;
                let script = format!(
                    "ip addr add 10.{}.1.{index}/16 dev {nic} && ip link set {nic} up && \
                     sysctl -qw net.ipv4.tcp_limit_output_bytes=65536",
                    82 + rail
                );
                inside(&node, &script)?;
                self.rail_rate(index, rail, rate)?;
            }
        }
        let mut inventory = fs::read_to_string(self.path("inventory.toml"))?;
        for index in 1..=nodes {
            let line = format!("name = \"n{index:03}\"\n");
            let addresses: Vec<String> = (0..rails).map(|rail| format!("10.{}.1.{index}", 82 + rail)).collect();
            let labels = format!("labels = {{ fabric = \"{}\" }}\n", addresses.join(","));
            inventory = inventory.replace(&line, &format!("{line}{labels}"));
        }
        Ok(fs::write(self.path("inventory.toml"), inventory)?)
    }

    /// Sets what one rail of node `index` sends and receives, Mbit/s.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn rail_rate(&self, index: u8, rail: u8, rate: u32) -> Result<()> {
        shape(&self.netns(&format!("n{index:03}")), &format!("rail{rail}"), rate)?;
        shape(&self.netns(&format!("rail{rail}")), &format!("p{index}"), rate)
    }

    /// Limits the link of a leaf and a spine in both directions, Mbit/s.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn uplink_rate(&self, rack: u8, spine: u8, rate: u32) -> Result<()> {
        shape(&self.netns(&format!("leaf{rack}")), &format!("up{spine}"), rate)?;
        shape(&self.netns(&format!("spine{spine}")), &format!("d{rack}"), rate)
    }

    /// Loses one packet in a hundred on the link of a leaf and a spine, in both directions.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn uplink_loss(&self, rack: u8, spine: u8) -> Result<()> {
        lose(&self.netns(&format!("leaf{rack}")), &format!("up{spine}"))?;
        lose(&self.netns(&format!("spine{spine}")), &format!("d{rack}"))
    }

    /// Lets nothing through from a leaf to a spine, as where a transceiver is dead.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn cut_uplink(&self, rack: u8, spine: u8) -> Result<()> {
        let chain = "nft add chain ip cut way '{ type filter hook forward priority 0; }'";
        let rule = format!("nft add rule ip cut way oifname up{spine} drop");
        inside(&self.netns(&format!("leaf{rack}")), &format!("set -e; nft add table ip cut; {chain}; {rule}"))
    }

    /// Heals the link of a leaf and a spine.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn heal_uplink(&self, rack: u8, spine: u8) -> Result<()> {
        for (netns, port) in
            [(format!("leaf{rack}"), format!("up{spine}")), (format!("spine{spine}"), format!("d{rack}"))]
        {
            inside(
                &self.netns(&netns),
                &format!(
                    "tc qdisc del dev {port} root 2>/dev/null; nft delete table netdev loss_{port} 2>/dev/null; true"
                ),
            )?;
        }
        Ok(())
    }

    /// Sets what a node sends and receives, Mbit/s.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn nic_rate(&self, place: (u8, u8), fabric: &Fabric, rate: u32) -> Result<()> {
        shape(&self.netns(&fabric.name(place.0, place.1)), "fab0", rate)?;
        self.receive_rate(place, rate)
    }

    /// Sets what a node receives only, Mbit/s.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive_rate(&self, (rack, index): (u8, u8), rate: u32) -> Result<()> {
        shape(&self.netns(&format!("leaf{rack}")), &format!("p{index}"), rate)
    }

    /// Takes a node off the fabric, or puts it back; SSH goes on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn plug_fabric(&self, (rack, index): (u8, u8), plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        inside(&self.netns(&format!("leaf{rack}")), &format!("ip link set p{index} {state}"))
    }
}

impl Fabric {
    /// Name of a node.
    #[must_use]
    pub fn name(&self, rack: u8, index: u8) -> String {
        format!("n{:03}", (rack - 1) * self.nodes + index)
    }

    /// Rack and place in it of every node.
    pub fn places(&self) -> impl Iterator<Item = (u8, u8)> + use<> {
        let nodes = self.nodes;
        (1..=self.racks).flat_map(move |rack| (1..=nodes).map(move |index| (rack, index)))
    }

    fn spine(&self, index: u8) -> u8 {
        (index - 1) % self.spines + 1
    }
}

/// A queue that is long enough for everything that TCP has under way, so that a sound link loses nothing.
fn shape(netns: &str, port: &str, rate: u32) -> Result<()> {
    let rate = format!("{rate}mbit");
    let qdisc = ["tc", "-n", netns, "qdisc", "replace", "dev", port, "root", "tbf", "rate", &rate];
    run(&[&qdisc[..], &["burst", "32kb", "limit", "2mb"]].concat()).map(drop)
}

fn lose(netns: &str, port: &str) -> Result<()> {
    let chain = format!("type filter hook ingress device \"{port}\" priority 0; numgen random mod 100 < 1 drop;");
    inside(netns, &format!("nft 'table netdev loss_{port} {{ chain i {{ {chain} }}; }}'"))
}

/// Runs a script in a network namespace.
fn inside(netns: &str, script: &str) -> Result<()> {
    let net = format!("--net=/run/netns/{netns}");
    if let Err(why) = run(&["nsenter", &net, "--", "sh", "-c", script]) {
        bail!("{netns}: {why}");
    }
    Ok(())
}
