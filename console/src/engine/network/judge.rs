//! What do the pairs of a run say of each node?

use muster_analysis::network::localise::{Kind, SURE, Suspect};
use muster_analysis::{Params, State};
use muster_playbook::PAIRS;
use muster_playbook::report::{NodeFindings, PairsReport, accusation};
use muster_store::{Record, Run};
use muster_wire::Outcome;

use super::found::network;

/// What the `pairs` of a run point at, once all were measured; adds to each node what it says of that node.
#[must_use]
pub fn judge_pairs(run: &Run, pairs: &[&Record], nodes: &mut [NodeFindings], params: &Params) -> Option<PairsReport> {
    if !pairs.iter().any(|record| record.work == PAIRS) {
        return None;
    }
    let report = network(run, pairs.iter().copied(), None, params)?.report;
    for findings in nodes {
        let node = findings.node.as_str();
        let accused = report.suspects.iter().filter(|suspect| of_node_alone(&suspect.found, node));
        findings.troubles.extend(accused.map(|suspect| {
            let state = if suspect.found.confidence >= SURE { State::Fail } else { State::Unknown };
            (state, format!("{node}: {}", accusation(suspect)))
        }));
        let own = pairs.iter().find(|record| record.work == PAIRS && record.node == node);
        match own.map(|record| &record.outcome) {
            Some(Outcome::Done) => findings.troubles.push((State::Pass, String::new())),
            Some(Outcome::Failed(why)) => {
                findings.troubles.push((State::Unknown, format!("{node}: left out of the pairs: {why}")));
            }
            _ => {}
        }
    }
    Some(report)
}

/// Whether a suspect is `node` or a part of it.
fn of_node_alone(suspect: &Suspect, node: &str) -> bool {
    match suspect.kind {
        Kind::Node | Kind::NodeRx | Kind::NodeTx => suspect.element == node,
        Kind::Nic => suspect.element.rsplit_once(':').is_some_and(|(owner, _)| owner == node),
        Kind::Leaf | Kind::Uplink | Kind::Pair => false,
    }
}
