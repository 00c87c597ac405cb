//! Where in the fabric is a node, at which address, and over which uplink does it reach another?

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use muster_analysis::network::Topology;
use muster_analysis::network::topology::{Source, from_labels};
use muster_fleet::{Node, Settings};
use muster_playbook::report::source_word;
use muster_wire::{Load, Profile};

/// Labels of the inventory that say where a node hangs, nearest first.
const LEVELS: [&str; 3] = ["leaf", "aggregate", "core"];
/// Label with the address that measurements use, where it is not the one of SSH.
const ADDRESS: &str = "fabric";

/// What is known of the fabric before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// Read from a file; the inventory's labels count without one.
    pub topology: Option<Topology>,
    /// The uplink that each ordered pair of nodes crosses, where routing is known.
    pub routes: HashMap<(String, String), String>,
    /// Connections of each pair, if not the profile's.
    pub streams: Option<u16>,
    /// Milliseconds that each direction is loaded, if not the profile's.
    pub duration_ms: Option<u32>,
}

impl Fabric {
    /// The fabric of `names`: from the file, from labels, or one leaf for all.
    ///
    /// # Errors
    /// When the file does not know a node.
    pub(super) fn topology(&self, nodes: &[Node], names: &[String]) -> Result<Topology> {
        if let Some(given) = &self.topology {
            let (topology, unknown) = given.restricted(names);
            if !unknown.is_empty() {
                bail!("the topology does not know {}", unknown.join(", "));
            }
            return Ok(topology);
        }
        let by_name: HashMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let labels = |name: &String| {
            let node = by_name.get(name.as_str());
            LEVELS.iter().map_while(|level| node?.labels.get(*level)).map(String::as_str).collect::<Vec<_>>()
        };
        let places: Vec<(&str, Vec<&str>)> = names.iter().map(|name| (name.as_str(), labels(name))).collect();
        if places.iter().all(|(_, labels)| labels.is_empty()) {
            return Ok(Topology::flat(names));
        }
        from_labels(&places).context("the labels of the inventory")
    }

    /// The uplink from `src` to `dst`.
    pub(super) fn route(&self, src: &str, dst: &str) -> Option<String> {
        self.routes.get(&(src.to_owned(), dst.to_owned())).cloned()
    }

    pub(super) fn load(&self, profile: Profile) -> Load {
        let usual = super::load(profile);
        Load {
            streams: self.streams.unwrap_or(usual.streams),
            duration_ms: self.duration_ms.unwrap_or(usual.duration_ms),
            ..usual
        }
    }

    /// Nodes with the address that measurements use, and those without one with the reason.
    pub(super) async fn addresses(
        &self,
        nodes: &[Node],
        names: &[String],
        settings: &Settings,
    ) -> (Vec<(Node, IpAddr)>, BTreeMap<String, String>) {
        let (mut with, mut without) = (Vec::new(), BTreeMap::new());
        let chosen: Vec<Node> = nodes.iter().filter(|node| names.contains(&node.name)).cloned().collect();
        for (node, host) in chosen.iter().zip(muster_fleet::hosts(&chosen, settings)) {
            match address(node, host.map_err(|failure| failure.message)).await {
                Ok(address) => with.push((node.clone(), address)),
                Err(why) => drop(without.insert(node.name.clone(), why)),
            }
        }
        (with, without)
    }
}

async fn address(node: &Node, host: Result<String, String>) -> Result<IpAddr, String> {
    let host = node.labels.get(ADDRESS).cloned().map_or(host, Ok)?;
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let name = &node.name;
    let mut found =
        tokio::net::lookup_host((host.as_str(), 0)).await.map_err(|e| format!("{name}: no address for {host}: {e}"))?;
    found.next().map(|address| address.ip()).ok_or_else(|| format!("{name}: no address for {host}"))
}

/// Where `name` hangs, as its record keeps it; nothing where nothing is known.
pub(super) fn told(topology: &Topology, name: &str) -> Option<(String, &'static str)> {
    let node = topology.find(name).filter(|_| topology.source() != Source::Flat)?;
    let leaf = topology.leaf(node);
    let mut path = vec![topology.leaves()[leaf as usize].as_str()];
    path.extend(topology.above(leaf));
    Some((path.join("/"), source_word(topology.source())))
}
