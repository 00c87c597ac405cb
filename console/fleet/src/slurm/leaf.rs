//! Under which leaf switch is a node, as Slurm's topology has it?

use std::collections::BTreeMap;

use muster_wire::clean;

use crate::hostlist::expand;

/// The leaf switch of each node from `scontrol show topology`, whose lines are
/// `SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[001-002]`. Lines that say anything else, such as switches above, are passed over: a node
/// that is in no line has no leaf.
#[must_use]
pub fn leaves(text: &str) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    for line in text.lines() {
        let word = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
        let (Some(switch), Some("0"), Some(nodes)) = (word("SwitchName="), word("Level="), word("Nodes=")) else {
            continue;
        };
        for node in expand(nodes).unwrap_or_default() {
            leaves.entry(node).or_insert_with(|| clean(switch, 80));
        }
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::leaves;

    #[test]
    fn nodes_are_under_the_switch_of_level_0_that_names_them() {
        let text = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[001-002]\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n003,n004\n\
                    SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[001-004] Switches=leaf[1-2]\n";
        let found = leaves(text);
        assert_eq!((found.len(), found["n002"].as_str(), found["n003"].as_str()), (4, "leaf1", "leaf2"));
    }

    #[test]
    fn a_slurm_without_a_topology_has_no_leaves_and_nonsense_has_none_either() {
        for text in ["", "No topology information available\n", "SwitchName=s Level=0 Nodes=n[1-\n", "Level=0 Nodes=n1"]
        {
            assert!(leaves(text).is_empty(), "{text}");
        }
    }
}
