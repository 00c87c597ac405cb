//! Which host keys must a person be asked about before a run? Those of nodes and jump hosts that no record speaks of.

use std::sync::{Arc, PoisonError};

use crate::connection::Link;
use crate::context::{Reporter, Shared};
use crate::inventory::Node;
use crate::link::Failure;
use crate::run::each;
use crate::settings::{HostKeyPolicy, Settings};
use crate::target::Target;
use crate::transport::Transport;
use crate::trust::NewKey;

/// The unrecorded keys of `nodes` for which the policy is to ask, each once. A node behind a jump host whose own key is unknown is not
/// reached: that key comes first. Connects to nobody that has a record.
pub async fn unknown_keys(nodes: &[Node], settings: Arc<Settings>) -> Vec<NewKey> {
    let shared = Shared::new(settings.clone());
    let asks = |node: &&Node| shared.resolver.target(node, &settings).is_ok_and(|target| unknown(&target, &shared));
    let nodes: Vec<Node> = nodes.iter().filter(asks).cloned().collect();
    if matches!(settings.transport, Transport::OpenSsh | Transport::Slurm) || nodes.is_empty() {
        return Vec::new();
    }
    let shown = each(&nodes, settings, |node, shared| async move {
        let target = shared.resolver.target(&node, &shared.settings)?;
        // It is refused here, which is the answer.
        let refused: Result<_, Failure> = Link::greet(&target, &shared, &Reporter::silent(&node.name)).await;
        drop(refused);
        Ok(std::mem::take(&mut *shared.asked.lock().unwrap_or_else(PoisonError::into_inner)))
    })
    .await;
    let mut keys: Vec<NewKey> = Vec::new();
    for key in shown.into_iter().filter_map(|(_, shown)| shown.ok()).flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Whether a node or one of its jump hosts has no record and somebody is to be asked.
fn unknown(target: &Target, shared: &Shared) -> bool {
    let new = |target: &Target| {
        let (host, port) = &target.key_name;
        target.records.policy == HostKeyPolicy::Ask && !shared.trust(&target.records).knows(host, *port)
    };
    let hops = shared.resolver.way(&target.jump, &shared.settings).unwrap_or_default();
    let hop = |at: usize| shared.resolver.hop(&hops[..=at], &shared.settings).is_ok_and(|hop| new(&hop));
    new(target) || (0..hops.len()).any(hop)
}
