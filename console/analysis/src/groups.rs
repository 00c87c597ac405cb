//! Which nodes are alike enough to be compared: by what their hardware says of itself.

use std::collections::BTreeMap;

/// Nodes that must share a value before it makes a group of its own.
const QUORUM: usize = 4;
/// Share of the nodes of one model that must share it as well: a few nodes with another firmware, or with a memory module
/// less, are the odd ones among their model and not a model of their own.
const SHARE: f64 = 0.2;

/// What tells hardware apart. Text as the node gives it; `None` where nobody looked.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hardware {
    /// Model of the processors.
    pub cpu: Option<String>,
    /// Model of the GPUs, however many there are: a node that lost one is no other model.
    pub gpu: Option<String>,
    /// Memory, bytes.
    pub memory: Option<u64>,
    /// Version of the firmware.
    pub firmware: Option<String>,
}

impl Hardware {
    /// The models, such as `EPYC 9654, H100 80GB HBM3`: what a replacement must be, too. Memory and firmware are left out, since what
    /// is missing there may be the fault. `None` where no model is known.
    #[must_use]
    pub fn models(&self) -> Option<String> {
        let models: Vec<&str> = [&self.cpu, &self.gpu].into_iter().filter_map(|model| model.as_deref()).collect();
        (!models.is_empty()).then(|| models.join(", "))
    }

    /// The same with what is not known taken from `older`.
    #[must_use]
    pub fn or(self, older: Self) -> Self {
        Self {
            cpu: self.cpu.or(older.cpu),
            gpu: self.gpu.or(older.gpu),
            memory: self.memory.or(older.memory),
            firmware: self.firmware.or(older.firmware),
        }
    }
}

/// A group's name per node, such as `cpu=EPYC 9654,memory=755 GiB`: only what differs within the fleet is in it, so that a
/// fleet of one kind has one group without a name.
///
/// Nodes of different models are never compared; a node that does not say its model, since its driver is broken, say, is
/// compared with the most common one. Memory and firmware make groups within a model where enough nodes share
/// them; a node with a rare value is compared with the most common kind of its model, since what sets it apart may be its fault.
#[must_use]
pub fn hardware_groups(nodes: &[Hardware]) -> Vec<String> {
    let (cpus, gpus) = (models(nodes, |node| node.cpu.as_deref()), models(nodes, |node| node.gpu.as_deref()));
    let mut by_model: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, model) in cpus.iter().copied().zip(gpus.iter().copied()).enumerate() {
        by_model.entry(model).or_default().push(at);
    }
    let differ = |of: &[&str]| of.iter().any(|model| *model != of[0]);
    let named = [("cpu", differ(&cpus)), ("gpu", differ(&gpus))];
    let mut names = vec![String::new(); nodes.len()];
    for ((cpu, gpu), members) in by_model {
        let models = named.iter().zip([cpu, gpu]).filter(|((_, differ), _)| *differ);
        let parts: Vec<String> = models.map(|((key, _), model)| format!("{key}={model}")).collect();
        let memory = kinds(&members, |at| nodes[at].memory.map(gib));
        let firmware = kinds(&members, |at| nodes[at].firmware.clone());
        for (place, at) in members.into_iter().enumerate() {
            let more = [("memory", &memory[place]), ("firmware", &firmware[place])];
            let more = more.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
            names[at] = parts.iter().cloned().chain(more).collect::<Vec<_>>().join(",");
        }
    }
    names
}

/// The model of each node, the most common one where a node has none.
fn models(nodes: &[Hardware], of: impl Fn(&Hardware) -> Option<&str>) -> Vec<&str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    nodes.iter().filter_map(&of).for_each(|model| *counts.entry(model).or_default() += 1);
    let common = counts.iter().max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name)));
    let common = common.map_or("", |(name, _)| *name);
    nodes.iter().map(|node| of(node).unwrap_or(common)).collect()
}

/// The kind of each member, where enough of them share one; `None` for all where they are of one kind.
fn kinds(members: &[usize], value: impl Fn(usize) -> Option<String>) -> Vec<Option<String>> {
    let values: Vec<Option<String>> = members.iter().map(|at| value(*at)).collect();
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    values.iter().flatten().for_each(|value| *counts.entry(value).or_default() += 1);
    let enough = QUORUM.max((SHARE * members.len() as f64).ceil() as usize);
    counts.retain(|_, count| *count >= enough);
    let Some((common, _)) = counts.iter().max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name))) else {
        return vec![None; members.len()];
    };
    if counts.len() == 1 {
        return vec![None; members.len()];
    }
    let of = |value: &Option<String>| value.as_ref().filter(|v| counts.contains_key(v)).unwrap_or(common).clone();
    values.iter().map(|value| Some(of(value))).collect()
}

/// Memory as it is bought: what the kernel keeps for itself differs by some megabytes from node to node.
fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    // 3 % is less than any module and more than any kernel's share.
    let step = 10f64.powf((gib.max(1.0).log10() * 40.0).round() / 40.0);
    format!("{step:.0} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpu: &str, memory: u64, firmware: &str) -> Hardware {
        Hardware { cpu: Some(cpu.into()), gpu: None, memory: Some(memory << 30), firmware: Some(firmware.into()) }
    }

    #[test]
    fn nodes_of_one_kind_are_one_group_without_a_name() {
        assert_eq!(hardware_groups(&vec![node("a", 512, "1"); 6]), [""; 6]);
        assert_eq!(hardware_groups(&vec![Hardware::default(); 2]), [""; 2]);
        assert!(hardware_groups(&[]).is_empty());
    }

    #[test]
    fn models_are_never_mixed() {
        let mut nodes = vec![node("a", 512, "1"); 6];
        nodes.push(node("b", 512, "1"));
        let groups = hardware_groups(&nodes);
        assert_eq!((groups[0].as_str(), groups[6].as_str()), ("cpu=a", "cpu=b"));
    }

    #[test]
    fn a_node_that_does_not_say_its_model_is_compared_with_the_common_one() {
        let of = |gpu: Option<&str>| Hardware { gpu: gpu.map(str::to_owned), ..node("a", 512, "1") };
        let mut nodes = vec![of(Some("H100")); 5];
        nodes.extend([of(None), of(Some("A100"))]);
        let groups = hardware_groups(&nodes);
        assert_eq!((groups[5].as_str(), groups[6].as_str()), ("gpu=H100", "gpu=A100"));
    }

    #[test]
    fn a_node_with_a_module_less_stays_among_its_peers() {
        let mut nodes = vec![node("a", 512, "1"); 15];
        nodes.push(node("a", 480, "1"));
        assert!(hardware_groups(&nodes).iter().all(String::is_empty));
    }

    #[test]
    fn generations_that_enough_nodes_share_are_groups_and_a_rare_one_joins_the_common_one() {
        let mut nodes = vec![node("a", 512, "1.2"); 8];
        nodes.extend(vec![node("a", 1024, "1.2"); 8]);
        nodes.push(node("a", 256, "9.9"));
        let groups = hardware_groups(&nodes);
        assert_ne!(groups[0], groups[8]);
        assert!(groups[0].starts_with("memory=") && !groups[0].contains("firmware"), "{}", groups[0]);
        assert!(groups[16] == groups[0] || groups[16] == groups[8]);
    }

    #[test]
    fn memory_differs_by_what_kernels_keep_and_is_the_same() {
        assert_eq!(gib((512 << 30) - (1 << 30)), gib((512 << 30) - (3 << 30)));
        assert_ne!(gib(512 << 30), gib(1024 << 30));
        assert_ne!(gib(512 << 30), gib(448 << 30));
    }
}
