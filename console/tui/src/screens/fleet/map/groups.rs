//! Which nodes stand together: those of one rack at one leaf, in the order of their names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::snapshot::NodeRow;
use crate::text::natural;

/// Nodes of one rack at one leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Empty where the inventory does not say.
    pub(crate) leaf: String,
    /// Empty where the inventory does not say.
    pub(crate) rack: String,
    /// Places in the snapshot.
    pub(crate) nodes: Vec<usize>,
}

/// Whether the inventory says of any node where it stands.
pub(crate) fn is_known(nodes: &[Arc<NodeRow>]) -> bool {
    nodes.iter().any(|node| !node.rack.is_empty() || !node.leaf.is_empty())
}

/// The groups of `nodes`, leaf by leaf and rack by rack; those of which nothing is known come last.
pub(crate) fn groups(nodes: &[Arc<NodeRow>]) -> Vec<Group> {
    let mut by_place: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        by_place.entry((&node.leaf, &node.rack)).or_default().push(at);
    }
    let mut groups: Vec<Group> = by_place
        .into_iter()
        .map(|((leaf, rack), nodes)| Group { leaf: leaf.to_owned(), rack: rack.to_owned(), nodes })
        .collect();
    let named = |a: &str, b: &str| a.is_empty().cmp(&b.is_empty()).then_with(|| natural(a, b));
    groups.sort_by(|a, b| named(&a.leaf, &b.leaf).then_with(|| named(&a.rack, &b.rack)));
    for group in &mut groups {
        group.nodes.sort_by(|a, b| natural(&nodes[*a].name, &nodes[*b].name));
    }
    groups
}

/// A number that differs where nodes or their places do.
pub(crate) fn digest(nodes: &[Arc<NodeRow>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    nodes.iter().for_each(|node| (&node.name, &node.rack, &node.leaf).hash(&mut hasher));
    hasher.finish()
}
