//! Which inventory is it that Slurm has?

use std::collections::BTreeMap;

use super::Listed;
use crate::inventory::{Inventory, Node};

impl Inventory {
    /// The nodes of a Slurm cluster. Partitions become groups by their names and features groups called `feature:NAME`; state, generic
    /// resources and leaf switch become the labels `state`, `sku` and `leaf`. A name that cannot be a group's is left out.
    #[must_use]
    pub fn from_slurm(listed: &[Listed], leaves: &BTreeMap<String, String>) -> Self {
        let mut inventory = Self::default();
        for one in listed {
            let features = one.features.iter().map(|feature| format!("feature:{feature}"));
            let mut groups: Vec<String> =
                one.partitions.iter().cloned().chain(features).filter(|g| is_group(g)).collect();
            groups.sort();
            groups.dedup();
            let label = |key: &str, value: &str| (!value.is_empty()).then(|| (key.to_owned(), value.to_owned()));
            let leaf = leaves.get(&one.name).map_or("", String::as_str);
            let state = one.state().to_lowercase();
            let labels = [label("state", &state), label("sku", &one.gres), label("leaf", leaf)];
            let labels = labels.into_iter().flatten().collect();
            let (name, host) = (one.name.clone(), one.address.clone());
            // Each name comes once.
            let _ = inventory.push(Node { name, host, groups, labels, ..Node::default() });
        }
        inventory
    }
}

fn is_group(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-:/+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;

    #[test]
    fn nodes_are_picked_by_partition_feature_state_and_leaf() {
        let node = |name: &str, partition: &str, state: &str| Listed {
            name: name.into(),
            address: "10.0.0.1".into(),
            states: state.split('+').map(str::to_owned).collect(),
            partitions: vec![partition.into(), "not a group".into()],
            features: vec!["h100".into()],
            gres: "gpu:h100:8".into(),
            ..Listed::default()
        };
        let listed = [node("n1", "batch", "IDLE"), node("n2", "debug", "IDLE+DRAIN")];
        let inventory = Inventory::from_slurm(&listed, &BTreeMap::from([("n1".into(), "leaf1".into())]));
        let pick = |term: &str| {
            let selection = Selection { include: vec![term.to_owned()], exclude: Vec::new() };
            let nodes = inventory.select(&selection).unwrap_or_default();
            nodes.into_iter().map(|node| node.name).collect::<Vec<_>>().join(",")
        };
        assert_eq!((pick("@batch"), pick("@feature:h100")), ("n1".into(), "n1,n2".into()));
        assert_eq!(
            (pick("@state=idle+drain"), pick("@leaf=leaf1"), pick("@all")),
            ("n2".into(), "n1".into(), "n1,n2".into())
        );
        assert_eq!(inventory.nodes()[0].labels["sku"], "gpu:h100:8");
        assert_eq!(inventory.nodes()[0].groups, ["batch", "feature:h100"]);
    }
}
