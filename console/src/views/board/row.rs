//! How is a node shown before anything is known about it, and how is its connection described?

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use muster_fleet::{LinkState, Node};
use muster_tui::snapshot::{Link, LinkKind, NodeRow};

/// A row for each of `names`; the inventory has `known`.
pub(super) fn rows(names: &[String], known: &[Node]) -> Vec<Arc<NodeRow>> {
    let known: HashMap<&str, &Node> = known.iter().map(|node| (node.name.as_str(), node)).collect();
    let of = |name: &String| known.get(name.as_str()).map_or_else(|| nameless(name), |node| row(node));
    let mut seen = HashSet::new();
    names.iter().filter(|name| seen.insert(name.as_str())).map(|name| Arc::new(of(name))).collect()
}

fn row(node: &Node) -> NodeRow {
    let rack = node.labels.get("rack").cloned().unwrap_or_default();
    // Rails may hang at leaves of their own; the first stands for the node.
    let leaf =
        node.labels.get("leaf").and_then(|leaves| leaves.split(',').next()).unwrap_or_default().trim().to_owned();
    NodeRow { rack, leaf, groups: node.groups.clone(), ..nameless(&node.name) }
}

/// A node that the inventory does not know.
fn nameless(name: &str) -> NodeRow {
    NodeRow {
        name: name.to_owned(),
        rack: String::new(),
        leaf: String::new(),
        groups: Vec::new(),
        link: Link { kind: LinkKind::Idle, text: "idle".into() },
        state: muster_analysis::State::NotRun,
        provisional: false,
        worst: None,
        work: None,
        done: 0.0,
        seen_ms: None,
        result_ms: None,
        reasons: Arc::from([]),
        facts: Arc::from([]),
        verdicts: Arc::from([]),
        gpus: Arc::from([]),
        checks: Arc::from([]),
        service: None,
    }
}

pub(super) fn link(state: &LinkState) -> Link {
    let (kind, text) = match state {
        LinkState::Idle => (LinkKind::Idle, "idle".to_owned()),
        LinkState::Resolving => (LinkKind::Connecting, "resolving".to_owned()),
        LinkState::TcpConnect => (LinkKind::Connecting, "connecting".to_owned()),
        LinkState::Authenticating => (LinkKind::Connecting, "authenticating".to_owned()),
        LinkState::Uploading { done, total } => {
            (LinkKind::Connecting, format!("uploading {} %", done * 100 / (*total).max(1)))
        }
        LinkState::Starting => (LinkKind::Connecting, "starting".to_owned()),
        LinkState::Live => (LinkKind::Live, "live".to_owned()),
        LinkState::Waiting { retry_in_ms, because } => {
            (LinkKind::Waiting, format!("retry in {:.1} s: {because}", *retry_in_ms as f64 / 1e3))
        }
        LinkState::Closed => (LinkKind::Closed, "closed".to_owned()),
        LinkState::Failed { why } => (LinkKind::Failed, why.clone()),
    };
    Link { kind, text }
}
