//! Were nodes lost one by one, or together, and what do those have in common? Several that fall silent within seconds of each
//! other have not all died.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use muster_fleet::{Node, hostlist};

/// Nodes that fall silent within this of each other were lost together.
const TOGETHER: Duration = Duration::from_secs(10);
/// Labels that say where a node is, the nearest first.
const PLACES: [&str; 6] = ["leaf", "switch", "rack", "row", "pdu", "spine"];

/// Nodes that were lost during a run.
#[derive(Debug, Default)]
pub(super) struct Outages {
    lost: BTreeMap<String, Instant>,
    /// Those of which it was said.
    told: BTreeSet<String>,
}

impl Outages {
    /// `node` was lost; it was last heard then.
    pub fn lost(&mut self, node: &str, heard: Instant) {
        self.lost.insert(node.to_owned(), heard);
        self.told.remove(node);
    }

    /// Nodes that were lost together with `node`, itself among them; none where it was lost alone.
    pub fn together(&self, node: &str) -> BTreeSet<&str> {
        let Some(heard) = self.lost.get(node) else { return BTreeSet::new() };
        let near = |other: &Instant| other.max(heard).duration_since(*other.min(heard)) <= TOGETHER;
        let group: BTreeSet<&str> =
            self.lost.iter().filter(|(_, other)| near(other)).map(|(name, _)| name.as_str()).collect();
        if group.len() > 1 { group } else { BTreeSet::new() }
    }

    /// A sentence about those that were lost together with `node`, where none was said of them yet. `nodes` are those of the run.
    pub fn sentence(&mut self, node: &str, nodes: &[Node]) -> Option<String> {
        let group: BTreeSet<String> = self.together(node).into_iter().map(str::to_owned).collect();
        if group.is_empty() || group.is_subset(&self.told) {
            return None;
        }
        let names: Vec<&str> = group.iter().map(String::as_str).collect();
        let said = said(&names, nodes);
        self.told.extend(group);
        Some(said)
    }
}

fn said(lost: &[&str], nodes: &[Node]) -> String {
    let folded = hostlist::fold(lost.iter().copied());
    let shared = shared(lost, nodes).map_or_else(String::new, |shared| format!("; all of them {shared}"));
    let of = nodes.len();
    let seconds = TOGETHER.as_secs();
    format!(
        "{folded}: {} of {of} nodes lost within {seconds} s: probably the network or a switch{shared}. Waiting for them.",
        lost.len()
    )
}

/// What the lost nodes have in common that others do not have as well.
fn shared(lost: &[&str], nodes: &[Node]) -> Option<String> {
    let (own, others): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| lost.contains(&node.name.as_str()));
    if others.is_empty() {
        return Some("that the run has: look at this console's own network first".to_owned());
    }
    let first = own.first()?;
    let only = |of: &dyn Fn(&Node) -> Option<String>| {
        let value = of(first)?;
        let has = |node: &&Node| of(node).as_ref() == Some(&value);
        (own.iter().all(has) && !others.iter().any(has)).then_some(value)
    };
    if let Some(jump) = only(&|node| node.jump.clone()) {
        return Some(format!("are behind the jump host {jump}"));
    }
    let labels = PLACES.into_iter().chain(first.labels.keys().map(String::as_str));
    labels.into_iter().find_map(|label| {
        let value = only(&|node| node.labels.get(label).cloned())?;
        Some(format!("are in {label} {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, rack: &str, jump: Option<&str>) -> Node {
        let labels = [("rack", rack), ("sku", "h100")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        Node { name: name.into(), labels: labels.into(), jump: jump.map(str::to_owned), ..Node::default() }
    }

    #[test]
    fn nodes_that_are_lost_together_are_told_once_with_what_only_they_share() {
        let nodes = [node("n1", "r1", None), node("n2", "r1", None), node("n3", "r2", None)];
        let now = Instant::now();
        let mut outages = Outages::default();
        outages.lost("n1", now);
        assert_eq!(outages.sentence("n1", &nodes), None, "one node alone is no outage");
        outages.lost("n2", now + Duration::from_secs(3));
        let said = "n[1-2]: 2 of 3 nodes lost within 10 s: probably the network or a switch; all of them are in rack r1. \
                    Waiting for them.";
        assert_eq!(outages.sentence("n2", &nodes).as_deref(), Some(said));
        assert_eq!(outages.sentence("n1", &nodes), None, "said once");
        outages.lost("n3", now + Duration::from_secs(60));
        assert_eq!(outages.sentence("n3", &nodes), None, "a minute later is another matter");
    }

    #[test]
    fn a_jump_host_is_named_and_where_all_are_lost_the_console_looks_at_itself() {
        let nodes = [node("n1", "r1", Some("j")), node("n2", "r2", Some("j")), node("n3", "r1", None)];
        assert_eq!(shared(&["n1", "n2"], &nodes).as_deref(), Some("are behind the jump host j"));
        assert_eq!(shared(&["n1", "n3"], &nodes).as_deref(), Some("are in rack r1"));
        assert_eq!(shared(&["n2", "n3"], &nodes), None);
        assert!(shared(&["n1", "n2", "n3"], &nodes).unwrap().contains("console's own network"));
    }
}
