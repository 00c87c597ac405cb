//! Which nodes are meant when hosts are named on the command line and there is no inventory?

use super::{Inventory, Node, SelectError};
use crate::hostlist::{HostListError, expand, terms};

impl Inventory {
    /// An inventory of the hosts in a list such as `node[1-4],root@10.0.0.[1-2]:2222`.
    ///
    /// A name given twice counts once. Groups and files belong to an inventory and are refused here.
    pub fn from_names(list: &str) -> Result<Self, SelectError> {
        let mut inventory = Self::default();
        for (at, term) in terms(list)? {
            if term.starts_with(['@', '^']) {
                let message = format!("{term} needs an inventory; without one, name the hosts themselves");
                return Err(SelectError::Misplaced(message));
            }
            let (user, hosts) = match term.split_once('@') {
                Some((user, hosts)) => (Some(login(list, at, user)?), hosts),
                None => (None, term),
            };
            for name in expand(hosts)? {
                let (host, port) = host_port(list, at, &name)?;
                let node =
                    Node { host: host.to_owned(), port, user: user.clone(), name: name.clone(), ..Node::default() };
                // Taken already: the same host named twice.
                let _ = inventory.push(node);
            }
        }
        if inventory.nodes().is_empty() { Err(SelectError::Empty) } else { Ok(inventory) }
    }

    /// The nodes of a run, so that a selection means them and no others; what this inventory does not know has neither
    /// groups nor labels.
    pub fn of_run<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut inventory = Self::default();
        for name in names {
            let unknown = || Node { name: name.to_owned(), host: name.to_owned(), ..Node::default() };
            // Taken already: the same node named twice.
            let _ = inventory.push(self.node(name).cloned().unwrap_or_else(unknown));
        }
        inventory
    }
}

fn login(list: &str, at: usize, user: &str) -> Result<String, HostListError> {
    if user.is_empty() || user.starts_with('-') || user.contains(['[', ']']) {
        return Err(HostListError::at(list, at, "expected a user name before '@'"));
    }
    Ok(user.to_owned())
}

/// Splits off a port; a name with several colons is an IPv6 address and has none.
fn host_port<'n>(list: &str, at: usize, name: &'n str) -> Result<(&'n str, u16), HostListError> {
    match name.split_once(':') {
        Some((host, port)) if !host.is_empty() && !port.contains(':') => {
            let number = port.parse().ok().filter(|number| *number > 0);
            let number = number.ok_or_else(|| {
                HostListError::at(list, at, format!("{port:?} is not a port; expected a number from 1 to 65535"))
            })?;
            Ok((host, number))
        }
        _ => Ok((name, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_users_and_ports_are_taken_from_the_list() {
        let inventory = Inventory::from_names("n[1-2],root@10.0.0.9:2222,fe80::1,n1").unwrap();
        let seen: Vec<_> = inventory
            .nodes()
            .iter()
            .map(|node| (node.name.as_str(), node.host.as_str(), node.port, node.user.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                ("n1", "n1", 0, None),
                ("n2", "n2", 0, None),
                ("10.0.0.9:2222", "10.0.0.9", 2222, Some("root")),
                ("fe80::1", "fe80::1", 0, None)
            ]
        );
    }

    #[test]
    fn a_run_has_its_own_nodes_with_the_labels_that_the_inventory_knows() {
        let text = "[[nodes]]\nnames = \"n[1-4]\"\nrack = \"r1\"\n";
        let run = Inventory::parse(text, "fleet.toml").unwrap().of_run(["n2", "imported node", "n2"]);
        let select = |term: &str| run.select(&crate::Selection { include: vec![term.to_owned()], exclude: Vec::new() });
        assert_eq!(run.nodes().len(), 2);
        assert_eq!(select("@rack=r1").unwrap()[0].name, "n2");
        assert!(matches!(select("n1"), Err(SelectError::Unknown { .. })));
    }

    #[test]
    fn what_only_an_inventory_can_answer_is_refused() {
        assert!(matches!(Inventory::from_names("@canary"), Err(SelectError::Misplaced(_))));
        assert!(matches!(Inventory::from_names("^file"), Err(SelectError::Misplaced(_))));
        assert!(matches!(Inventory::from_names(" "), Err(SelectError::Empty)));
        for list in ["n:0", "n:70000", "n:x", "x@@n"] {
            assert!(matches!(Inventory::from_names(list), Err(SelectError::List(_))), "{list}");
        }
    }
}
