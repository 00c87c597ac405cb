//! Which nodes fell silent while they measured one another, and who of them comes back?
//!
//! A network that is gone for a while is no word on any pair: what failed meanwhile is measured again once the nodes answer.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use muster_fleet::Node;

use super::mesh::Mesh;
use crate::work::outage::Outages;
use crate::work::{Observer, Update};

/// Several nodes that fell silent together are waited for this long. One alone is tried once: nobody waits for a single node.
const RETURN: Duration = Duration::from_secs(60);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(2);
/// A node that is there answers within this.
const ANSWER: Duration = Duration::from_secs(2);

/// Who is there once it was waited.
#[derive(Default)]
pub(super) struct Now {
    /// Nodes of which it was not certain, and which answer.
    pub(super) there: BTreeSet<String>,
    /// Those of them whose connection was lost.
    pub(super) returned: BTreeSet<String>,
}

/// Waits for nodes that were lost and may come back, and for those of `silent` that are connected and do not answer. Who does not come
/// back is among the lost of `mesh`. `nodes` are those of the run.
pub(super) async fn wait(
    mesh: &mut Mesh,
    silent: &BTreeSet<String>,
    nodes: &[Node],
    watchers: &mut [&mut dyn Observer],
) -> Now {
    let mut lost = mesh.away();
    let mut silent = silent.clone();
    silent.retain(|node| mesh.has(node));
    let all: BTreeSet<String> = lost.keys().cloned().chain(silent.iter().cloned()).collect();
    let mut returned = BTreeSet::new();
    if all.is_empty() {
        return Now::default();
    }
    let until = Instant::now() + RETURN;
    let mut told = false;
    loop {
        let answering = mesh.answering(&silent, ANSWER, watchers).await;
        // A link may break only now that it is used.
        lost.extend(mesh.away());
        let names: BTreeSet<String> = lost.keys().cloned().collect();
        let back = mesh.retry(&names, watchers).await;
        lost.retain(|node, _| !back.contains(node));
        returned.extend(back.iter().cloned());
        let there: BTreeSet<String> = back.union(&answering).cloned().collect();
        silent = all.iter().filter(|node| mesh.has(node) && !there.contains(*node)).cloned().collect();
        let alone = lost.len() + silent.len() <= 1;
        if alone || Instant::now() >= until || mesh.cancelled() {
            break;
        }
        if !told {
            told = true;
            tell(lost.keys().chain(&silent), nodes, watchers);
        }
        tokio::time::sleep(PAUSE).await;
        silent = all.iter().filter(|node| mesh.has(node)).cloned().collect();
    }
    mesh.lost.extend(lost);
    let there: BTreeSet<String> = all.into_iter().filter(|node| mesh.has(node) && !silent.contains(node)).collect();
    returned.retain(|node| there.contains(node));
    Now { there, returned }
}

/// Says of the nodes that are missing together what they share.
fn tell<'a>(missing: impl Iterator<Item = &'a String>, nodes: &[Node], watchers: &mut [&mut dyn Observer]) {
    let (mut outages, now) = (Outages::default(), Instant::now());
    let mut last = None;
    for node in missing {
        outages.lost(node, now);
        last = Some(node);
    }
    if let Some(said) = last.and_then(|node| outages.sentence(node, nodes)) {
        watchers.iter_mut().for_each(|watcher| watcher.see(&Update::Outage(&said)));
    }
}
