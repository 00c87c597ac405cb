//! Does an adapter or a GPU count errors while the job is looked at, and no other node's does?

use super::{Draft, Verdict, found, nothing};
use crate::facts::Facts;
use crate::grown::Grown;
use crate::report::{Done, Suspect};

const STEP: &str = "error-counters";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let growth = &facts.growth;
    let Some(first) = growth.grown.first() else {
        let result = match growth.nodes {
            0 => "no counter was read twice".to_owned(),
            nodes => format!("on {nodes} nodes no part counts errors that the others do not"),
        };
        return nothing(STEP, result, "Go on to how the nodes are built and set up.");
    };
    let mut parts: Vec<&Grown> = Vec::new();
    for grown in &growth.grown {
        if !parts.iter().any(|part| (&part.node, &part.device) == (&grown.node, &grown.device)) {
            parts.push(grown);
        }
    }
    let suspects: Vec<Suspect> = parts.iter().take(super::SUSPECTS).map(|grown| suspect(facts, grown)).collect();
    let names: Vec<String> =
        parts.iter().take(super::SUSPECTS).map(|part| format!("{} of {}", part.device, part.node)).collect();
    found(STEP, format!("errors grow at {}", names.join(", ")), Verdict { category: first.category, suspects })
}

fn suspect(facts: &Facts<'_>, grown: &Grown) -> Suspect {
    let rank = grown.gpu.and_then(|gpu| facts.layout.rank_at(&grown.node, gpu));
    let mut draft = Draft::new(grown.kind(), Some(grown.node.clone()), rank).gpu(grown.gpu);
    if grown.gpu.is_none() {
        draft = draft.element(Some(grown.device.clone()));
    }
    draft.corroborate(facts);
    draft.say(format!("{}.", grown.sentence))
}
