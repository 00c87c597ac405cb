//! What do the pairs of a run say of each node?

use muster_run::{PAIRS, Record};
use muster_wire::{Component, Outcome};

use crate::State;
use crate::findings::{ComponentState, Finding, NodeFindings, Source};
use crate::network::localise::{Kind, SURE};
use crate::network::{PairsReport, accusation, warning};

/// Adds to each node what the `pairs` of a run, once all were measured, say of that node: `report` has what they point at.
pub fn judge_pairs(report: &PairsReport, pairs: &[&Record], nodes: &mut [NodeFindings]) {
    for findings in nodes {
        let node = findings.node.as_str();
        let nic = Component::Nic(None);
        let accused =
            report.suspects.iter().filter(|suspect| of_node_alone((suspect.found.kind, &suspect.found.element), node));
        let mut found: Vec<Finding> = accused
            .map(|suspect| {
                let state = if suspect.found.confidence >= SURE { State::Fail } else { State::Unknown };
                let said = format!("{node}: {}", accusation(suspect));
                Finding::new(node, nic.clone(), Source::Pairs, state, said)
            })
            .collect();
        let slow = report.warnings.iter().filter(|w| of_node_alone((w.found.kind, &w.found.element), node));
        found.extend(slow.map(|slow| Finding::new(node, nic.clone(), Source::Pairs, State::Warn, warning(slow))));
        let own = pairs.iter().find(|record| record.work == PAIRS && record.node == node);
        match own.map(|record| &record.outcome) {
            Some(Outcome::Done) if !findings.measured.iter().any(|known| known.component == nic) => {
                let (state, undecided, resolution) = (State::Pass, false, None);
                findings.measured.push(ComponentState { component: nic, state, undecided, resolution });
            }
            Some(Outcome::Failed(why)) => {
                let own = why.strip_prefix(node).and_then(|rest| rest.strip_prefix(": "));
                let said = format!("{node}: left out of the pairs: {}", own.unwrap_or(why));
                found.push(Finding::new(node, nic, Source::Pairs, State::Unknown, said));
            }
            _ => {}
        }
        findings.findings.append(&mut found);
    }
}

/// Whether an element is `node` or a part of it.
fn of_node_alone((kind, element): (Kind, &str), node: &str) -> bool {
    match kind {
        Kind::Node | Kind::NodeRx | Kind::NodeTx => element == node,
        Kind::Nic => element.rsplit_once(':').is_some_and(|(owner, _)| owner == node),
        Kind::Leaf | Kind::Uplink | Kind::Pair => false,
    }
}
