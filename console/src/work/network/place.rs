//! Where in the fabric is a node, at which address, and over which uplink does it reach another?

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use muster_analysis::network::Topology;
use muster_analysis::network::topology::{Source, from_labels, node_name};
use muster_fleet::{Node, Settings};
use muster_playbook::report::source_word;
use muster_wire::{Engine, Load, Profile};

use super::keep;
use super::together::Amount;

/// Labels of the inventory that say where a node hangs, nearest first.
const LEVELS: [&str; 3] = ["leaf", "aggregate", "core"];
/// Bytes that two nodes reduce in each profile.
const REDUCED: [u32; 4] = [256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Label with the address that measurements use, where it is not the one of SSH; one per rail, separated by commas.
const ADDRESS: &str = "fabric";
/// Most rails of a node.
const RAILS: usize = 16;

/// What loads the network between two nodes; how much of it is the profile's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PairEngine {
    /// Bytes one way, then the other, over TCP.
    #[default]
    Tcp,
    /// The all-reduce of two nodes, both ways at once, over TCP.
    Allreduce,
    /// RDMA writes one way, then the other, by perftest's ib_write_bw on the nodes.
    Rdma,
}

/// What is known of the fabric before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// Read from a file; the inventory's labels count without one.
    pub topology: Option<Topology>,
    /// The uplink that each ordered pair of nodes crosses, where routing is known.
    pub routes: HashMap<(String, String), String>,
    /// Connections of each pair, if not the profile's.
    pub streams: Option<u16>,
    /// Milliseconds that each direction of a pair or each size of a collective is measured, if not the profile's.
    pub duration_ms: Option<u32>,
    /// What loads the network between two nodes.
    pub engine: PairEngine,
    /// Sizes of collectives, bytes, if not the profile's.
    pub sizes: Vec<u64>,
    /// Longest that one size of a collective may take, if not the usual.
    pub deadline: Option<Duration>,
    /// Nodes that train with each other, several such teams at the same time; all of them together without any.
    pub teams: Vec<BTreeSet<String>>,
}

impl Fabric {
    /// The fabric of `names`: from the file, from labels, or one leaf for all.
    ///
    /// # Errors
    /// When the file does not know a node.
    pub fn topology(&self, nodes: &[Node], names: &[String]) -> Result<Topology> {
        if let Some(given) = &self.topology {
            let (topology, unknown) = given.restricted(names);
            if !unknown.is_empty() {
                bail!("the topology does not know {}", unknown.join(", "));
            }
            return Ok(topology);
        }
        let by_name: HashMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let labels = |name: &String| by_name.get(name.as_str()).map(|node| path(node, 0)).unwrap_or_default();
        let places: Vec<(&str, Vec<&str>)> = names.iter().map(|name| (name.as_str(), labels(name))).collect();
        if places.iter().all(|(_, labels)| labels.is_empty()) {
            return Ok(Topology::flat(names));
        }
        from_labels(&places).context("the labels of the inventory")
    }

    /// Where each rail of `name` hangs, nearest switch first, if not where the node does.
    pub(super) fn rail_places(&self, nodes: &[Node], name: &str, rails: usize) -> Vec<(usize, String)> {
        let node = nodes.iter().find(|node| node.name == name);
        let place = |rail: usize| match &self.topology {
            Some(given) => {
                let leaf = given.leaf(given.find(&keep::endpoint(name, Some(rail)))?);
                let above = given.above(leaf);
                Some([&[given.leaves()[leaf as usize].as_str()][..], &above].concat().join("/"))
            }
            None => {
                let (own, first) = (path(node?, rail), path(node?, 0));
                (own != first).then(|| own.join("/"))
            }
        };
        (0..rails).filter(|_| rails > 1).filter_map(|rail| Some((rail, place(rail)?))).collect()
    }

    /// The uplink from `src` to `dst`, endpoints or else their nodes.
    pub(super) fn route(&self, src: &str, dst: &str) -> Option<String> {
        let of = |src: &str, dst: &str| self.routes.get(&(src.to_owned(), dst.to_owned())).cloned();
        of(src, dst).or_else(|| of(node_name(src), node_name(dst)))
    }

    pub(super) fn load(&self, profile: Profile) -> Load {
        let usual = super::load(profile);
        let duration_ms = self.duration_ms.unwrap_or(usual.duration_ms);
        let (streams, engine) = match self.engine {
            PairEngine::Tcp => (self.streams, Engine::Tcp),
            PairEngine::Allreduce => (self.streams, Engine::AllReduce { bytes: REDUCED[profile as usize] }),
            // It makes its own connections, and counts whole seconds.
            PairEngine::Rdma => (Some(0), Engine::Perftest { seconds: duration_ms.div_ceil(1000).max(1) }),
        };
        Load { streams: streams.unwrap_or(usual.streams), duration_ms, engine, ..usual }
    }

    pub(super) fn amount(&self, profile: Profile) -> Amount {
        let usual = Amount::of(profile);
        Amount {
            sizes: if self.sizes.is_empty() { usual.sizes } else { self.sizes.clone() },
            streams: self.streams.unwrap_or(usual.streams),
            duration_ms: self.duration_ms.unwrap_or(usual.duration_ms),
            deadline: self.deadline.unwrap_or(usual.deadline),
        }
    }

    /// Nodes with the address of each rail, and those without one with the reason.
    pub(super) async fn addresses(
        &self,
        nodes: &[Node],
        names: &[String],
        settings: &Settings,
    ) -> (Vec<(Node, Vec<IpAddr>)>, BTreeMap<String, String>) {
        let (mut with, mut without) = (Vec::new(), BTreeMap::new());
        let chosen: Vec<Node> = nodes.iter().filter(|node| names.contains(&node.name)).cloned().collect();
        for (node, host) in chosen.iter().zip(muster_fleet::hosts(&chosen, settings)) {
            match rails(node, host.map_err(|failure| failure.message)).await {
                Ok(addresses) => with.push((node.clone(), addresses)),
                Err(why) => drop(without.insert(node.name.clone(), why)),
            }
        }
        (with, without)
    }
}

async fn rails(node: &Node, host: Result<String, String>) -> Result<Vec<IpAddr>, String> {
    let hosts = node.labels.get(ADDRESS).cloned().map_or(host, Ok)?;
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
    if hosts.len() > RAILS || hosts.iter().any(|host| host.is_empty()) {
        return Err(format!("{}: the label {ADDRESS} is no list of 1 to {RAILS} addresses", node.name));
    }
    let mut addresses = Vec::new();
    for host in hosts {
        addresses.push(address(&node.name, host).await?);
    }
    Ok(addresses)
}

async fn address(name: &str, host: &str) -> Result<IpAddr, String> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let mut found =
        tokio::net::lookup_host((host, 0)).await.map_err(|e| format!("{name}: no address for {host}: {e}"))?;
    found.next().map(|address| address.ip()).ok_or_else(|| format!("{name}: no address for {host}"))
}

/// Switches that a rail of a node is attached to, nearest first: labels may name one per rail, separated by commas.
fn path(node: &Node, rail: usize) -> Vec<&str> {
    LEVELS.iter().map_while(|level| part(node.labels.get(*level)?, rail)).collect()
}

/// The part of a list for one rail; the first where there are fewer.
fn part(list: &str, rail: usize) -> Option<&str> {
    list.split(',').nth(rail).or_else(|| list.split(',').next()).map(str::trim)
}

/// Where `name` hangs, as its record keeps it; nothing where nothing is known.
pub(super) fn told(topology: &Topology, name: &str) -> Option<(String, &'static str)> {
    let node = topology.find(name).filter(|_| topology.source() != Source::Flat)?;
    let leaf = topology.leaf(node);
    let mut path = vec![topology.leaves()[leaf as usize].as_str()];
    path.extend(topology.above(leaf));
    Some((path.join("/"), source_word(topology.source())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(labels: &[(&str, &str)]) -> Node {
        let names = muster_fleet::Inventory::from_names("n1").unwrap();
        let mut node = names.select(&muster_fleet::Selection::default()).unwrap().remove(0);
        node.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        node
    }

    #[tokio::test]
    async fn a_node_has_a_rail_per_address_of_its_label_and_else_that_of_ssh() {
        let of = |label: &'static str| async move { rails(&node(&[(ADDRESS, label)]), Err("no host".into())).await };
        let addresses = |list: &[&str]| Ok(list.iter().map(|a| a.parse().unwrap()).collect::<Vec<IpAddr>>());
        assert_eq!(of("10.0.0.1, 10.1.0.1").await, addresses(&["10.0.0.1", "10.1.0.1"]));
        assert_eq!(rails(&node(&[]), Ok("10.2.0.1".into())).await, addresses(&["10.2.0.1"]));
        assert!(of("10.0.0.1,,10.1.0.1").await.unwrap_err().starts_with("n1: the label fabric"));
    }

    #[test]
    fn a_rail_hangs_under_its_own_leaf_where_the_label_names_one() {
        let nodes = [node(&[("leaf", "a0,a1"), ("aggregate", "spine")])];
        let places = Fabric::default().rail_places(&nodes, "n1", 2);
        assert_eq!(places, [(1, "a1/spine".to_owned())]);
        assert_eq!(Fabric::default().rail_places(&nodes, "n1", 1), []);
        let topology = muster_analysis::network::topology::from_csv("n1,x\nn1:rail1,y\n").unwrap();
        let given = Fabric { topology: Some(topology), ..Fabric::default() };
        assert_eq!(given.rail_places(&nodes, "n1", 2), [(1, "y".to_owned())]);
    }
}
