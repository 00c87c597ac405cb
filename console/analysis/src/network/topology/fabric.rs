//! Which hosts and switches does `ibnetdiscover` list, and how far are the hosts apart?

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Hops, MAX_GROUPS, MAX_NODES, Source, Topology};
use crate::network::Malformed;

/// Descriptions of channel adapters that are no hosts: switch-internal reduction nodes and fabric managers.
const NOT_HOSTS: [&str; 3] = ["Aggregation Node", "SHARP", "UFM"];

/// An InfiniBand fabric as `ibnetdiscover` prints it.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// Host channel adapters, in the order first met.
    hcas: Vec<Hca>,
    /// Switch descriptions.
    switches: Vec<String>,
    /// Switches next to each switch.
    links: Vec<Vec<u32>>,
    /// Switches next to each adapter.
    ports: Vec<Vec<u32>>,
}

/// A host channel adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hca {
    /// Node GUID, lower-case hexadecimal without leading zeros.
    pub guid: String,
    /// Node description, usually `HOST DEVICE`.
    pub description: String,
}

impl Hca {
    /// First word of the description: the physical host.
    #[must_use]
    pub fn host(&self) -> &str {
        self.description.split_whitespace().next().unwrap_or(&self.guid)
    }
}

#[derive(Clone, Copy)]
enum End {
    Switch(u32),
    Hca(u32),
    Ignored,
}

/// Reads the text of `ibnetdiscover` (infiniband-diags). Lines other than `Switch`, `Ca`, `Rt` and port lines are
/// skipped, as are adapters of switches (aggregation nodes) and of fabric managers.
///
/// # Errors
/// Names the line: a device or port line that cannot be read, a port before any device, too many devices.
pub fn ibnetdiscover(text: &str) -> Result<Fabric, Malformed> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(line.trim()).map_err(|what| Malformed::new(at + 1, what))?;
    }
    if reader.fabric.hcas.is_empty() {
        return Err(Malformed::new(text.lines().count().max(1), "no host channel adapter in the whole text"));
    }
    for near in reader.fabric.links.iter_mut().chain(&mut reader.fabric.ports) {
        near.sort_unstable();
        near.dedup();
    }
    Ok(reader.fabric)
}

#[derive(Default)]
struct Reader {
    fabric: Fabric,
    known: HashMap<String, End>,
    current: Option<End>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let word = line.split_whitespace().next().unwrap_or("");
        match word {
            "Switch" | "Ca" | "Rt" => {
                let (id, rest) = quoted(line).ok_or("expected KIND PORTS \"ID\" # \"description\"")?;
                let description = quoted(rest).map_or("", |(d, _)| d);
                self.current = Some(self.device(id, description)?);
                Ok(())
            }
            _ if word.starts_with('[') => {
                let here = self.current.ok_or("a port line before any Switch or Ca line")?;
                let (id, rest) = quoted(line).ok_or("expected [PORT] \"ID\"[PORT]")?;
                let description = quoted(rest).map_or("", |(d, _)| d);
                let there = self.device(id, description)?;
                self.link(here, there);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn device(&mut self, id: &str, description: &str) -> Result<End, String> {
        let next = (self.fabric.switches.len(), self.fabric.hcas.len());
        if let Some(end) = self.known.get(id) {
            return Ok(*end);
        }
        if next.0 + next.1 >= 2 * MAX_NODES {
            return Err(format!("more than {} devices", 2 * MAX_NODES));
        }
        let (kind, guid) = id.split_once('-').ok_or_else(|| format!("{id} is no S-GUID or H-GUID"))?;
        let end = match kind {
            "S" => {
                self.fabric.switches.push(if description.is_empty() { id } else { description }.to_owned());
                self.fabric.links.push(Vec::new());
                End::Switch(next.0 as u32)
            }
            "H" if NOT_HOSTS.iter().any(|word| description.contains(word)) => End::Ignored,
            "H" => {
                self.fabric.hcas.push(Hca { guid: short(guid), description: description.to_owned() });
                self.fabric.ports.push(Vec::new());
                End::Hca(next.1 as u32)
            }
            "R" => End::Ignored,
            _ => return Err(format!("{id} is no S-GUID or H-GUID")),
        };
        self.known.insert(id.to_owned(), end);
        Ok(end)
    }

    fn link(&mut self, a: End, b: End) {
        match (a, b) {
            (End::Switch(a), End::Switch(b)) => {
                self.fabric.links[a as usize].push(b);
                self.fabric.links[b as usize].push(a);
            }
            (End::Hca(hca), End::Switch(switch)) | (End::Switch(switch), End::Hca(hca)) => {
                self.fabric.ports[hca as usize].push(switch);
            }
            _ => {}
        }
    }
}

/// First quoted text and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, after) = text.split_once('"')?;
    after.split_once('"')
}

fn short(guid: &str) -> String {
    guid.trim_start_matches('0').to_ascii_lowercase()
}

impl Fabric {
    /// All host channel adapters.
    #[must_use]
    pub fn hcas(&self) -> &[Hca] {
        &self.hcas
    }

    /// Hop distances between nodes. `name` says which node an adapter belongs to, `None` to leave it out;
    /// adapters of one name are one node with several NICs, whose distance is that of its nearest pair of ports.
    /// `|hca| Some(hca.host().to_owned())` takes physical hosts; virtual machines are found by GUID.
    ///
    /// # Errors
    /// More than [`MAX_NODES`] nodes or [`MAX_GROUPS`] groups of equally attached nodes.
    pub fn topology(&self, name: impl Fn(&Hca) -> Option<String>) -> Result<Topology, String> {
        let mut switches_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let (mut names, mut index) = (Vec::new(), HashMap::new());
        for (hca, ports) in self.hcas.iter().zip(&self.ports) {
            let Some(name) = name(hca) else { continue };
            let next = names.len() as u32;
            let node = *index.entry(name.clone()).or_insert(next);
            if node == next {
                names.push(name);
            }
            switches_of.entry(node).or_default().extend(ports);
        }
        if names.len() > MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes"));
        }
        let (leaf_of, groups) = group(switches_of.into_values());
        if groups.len() > MAX_GROUPS {
            return Err(format!("more than {MAX_GROUPS} groups of equally attached nodes"));
        }
        let leaves = groups.iter().map(|group| self.group_name(group)).collect();
        Ok(Topology {
            names,
            index,
            leaf_of,
            leaves,
            hops: Hops::Table(self.table(&groups)),
            source: Source::Ibnetdiscover,
        })
    }

    fn group_name(&self, switches: &[u32]) -> String {
        let names: Vec<&str> = switches.iter().map(|&s| self.switches[s as usize].as_str()).collect();
        if names.is_empty() { "unconnected".to_owned() } else { names.join("+") }
    }

    /// Links between the nearest switches of every two groups.
    fn table(&self, groups: &[Vec<u32>]) -> Vec<u16> {
        let mut table = Vec::with_capacity(groups.len() * groups.len());
        for from in groups {
            let far = self.distances(from);
            let nearest = |to: &Vec<u32>| to.iter().map(|&s| far[s as usize]).min().unwrap_or(u16::MAX);
            table.extend(groups.iter().map(nearest));
        }
        table
    }

    /// Breadth first from several switches at once.
    fn distances(&self, from: &[u32]) -> Vec<u16> {
        let mut far = vec![u16::MAX; self.switches.len()];
        let mut queue: VecDeque<u32> = from.iter().copied().collect();
        from.iter().for_each(|&s| far[s as usize] = 0);
        while let Some(at) = queue.pop_front() {
            // A longer path than this is none.
            let next = far[at as usize].saturating_add(1).min(u16::MAX - 3);
            for &to in &self.links[at as usize] {
                if far[to as usize] == u16::MAX {
                    far[to as usize] = next;
                    queue.push_back(to);
                }
            }
        }
        far
    }
}

/// Numbers the distinct sets of switches; nodes with equal sets are equally far from everyone.
fn group(switches: impl Iterator<Item = Vec<u32>>) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut groups = Vec::new();
    let leaf_of = switches
        .map(|mut set| {
            set.sort_unstable();
            set.dedup();
            *known.entry(set.clone()).or_insert_with(|| {
                groups.push(set);
                groups.len() as u32 - 1
            })
        })
        .collect();
    (leaf_of, groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str = "Switch 4 \"S-01\" # \"leaf one\" base port 0\n[1] \"H-0a\"[1](a) # \"h1 mlx5_0\" lid 1\n\
        [2] \"H-0b\"[1](b) # \"h2 mlx5_0\"\n[3] \"S-03\"[1] # \"spine\"\n\nSwitch 4 \"S-02\" # \"leaf two\"\n\
        [1] \"H-0c\"[1](c) # \"h3 mlx5_0\"\n[3] \"S-03\"[2] # \"spine\"\n[4] \"H-0d\"[1] # \"Mellanox Technologies Aggregation Node\"\n\
        Ca 1 \"H-0a\" # \"h1 mlx5_0\"\n[1](a) \"S-01\"[1] # lid 1\n";

    fn hosts(hca: &Hca) -> Option<String> {
        Some(hca.host().to_owned())
    }

    #[test]
    fn hosts_are_as_far_apart_as_their_switches() {
        let topology = ibnetdiscover(SMALL).unwrap().topology(hosts).unwrap();
        assert_eq!(topology.names(), ["h1", "h2", "h3"]);
        assert_eq!((topology.hops(0, 1), topology.hops(0, 2)), (Some(2), Some(4)));
        assert_eq!(topology.leaves(), ["leaf one", "leaf two"]);
    }

    #[test]
    fn hosts_without_a_common_switch_have_no_distance() {
        let text = "Ca 1 \"H-1\" # \"a x\"\n[1] \"S-1\"[1]\nCa 1 \"H-2\" # \"b x\"\n[1] \"S-2\"[1]\n";
        let topology = ibnetdiscover(text).unwrap().topology(hosts).unwrap();
        assert_eq!(topology.hops(0, 1), None);
        assert!(topology.tiers().is_empty());
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| ibnetdiscover(text).unwrap_err().line;
        assert_eq!(error("# x\n[1] \"S-1\"[1]"), 2);
        assert_eq!(error("\nSwitch 4 S-1"), 2);
        assert_eq!(error("Switch 4 \"X1\""), 1);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(Switch |Ca |Rt |\"S-1\"|\"H-[1-3]\"|\"h \"|[\\[\\]#\"1-3 \n]|\\PC){0,40}") {
            if let Ok(fabric) = ibnetdiscover(&text) {
                let _ = fabric.topology(hosts);
            }
        }
    }
}
