//! Which look answers to which name.

use muster_wire::Fact;

use super::{
    Facts, Root, cpu, disk, gpu, identity, infiniband, kernel, kernel_log, load, memory, nic, pcie, process, time,
};

/// Name of the collector whose facts a busy check also says.
pub(crate) const LOAD: &str = "load";

/// The facts of the collector called `name`, `None` when there is no such collector.
pub(crate) fn collect(name: &str, root: &Root) -> Option<Vec<Fact>> {
    let mut facts = Facts::default();
    match name {
        "identity" => identity::look(root, &mut facts),
        "cpu" => cpu::look(root, &mut facts),
        "memory" => memory::look(root, &mut facts),
        "disk" => disk::look(root, &mut facts),
        "nic" => nic::look(root, &mut facts),
        "kernel" => kernel::look(root, &mut facts),
        "process" => process::look(root, &mut facts),
        "infiniband" => infiniband::look(root, &mut facts),
        "pcie" => pcie::look(root, &mut facts),
        "gpu" => gpu::look(root, &mut facts),
        "time" => time::look(root, &mut facts),
        LOAD => load::look(root, &mut facts),
        "kernel-log" => kernel_log::look(root, &mut facts),
        _ => return None,
    }
    Some(facts.done())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use muster_wire::limits::{FACTS, NAME_BYTES};
    use muster_wire::{COLLECTORS, Reading};

    use super::*;

    #[test]
    fn every_collector_of_the_catalogue_answers_here_within_the_limits() {
        for collector in COLLECTORS {
            let facts = collect(collector.name, &Root::system()).unwrap();
            assert!(!facts.is_empty() && facts.len() <= FACTS, "{}: {} facts", collector.name, facts.len());
            let keys: HashSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
            assert_eq!(keys.len(), facts.len(), "{}: keys repeat", collector.name);
            assert!(keys.iter().all(|key| key.len() <= NAME_BYTES), "{}", collector.name);
        }
        assert_eq!(collect("aura", &Root::system()), None);
    }

    #[test]
    fn an_empty_tree_gives_no_values_and_no_panic() {
        let dir = tempfile::tempdir().unwrap();
        for collector in COLLECTORS {
            for fact in collect(collector.name, &Root::at(dir.path())).unwrap() {
                let counted = fact.key.ends_with(".over");
                assert!(counted || fact.reading.value().is_none(), "{}: {fact:?}", collector.name);
                assert!(!matches!(fact.reading, Reading::Denied), "{}: {fact:?}", collector.name);
            }
        }
    }
}
