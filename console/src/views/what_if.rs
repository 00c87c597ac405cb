//! Which nodes would be judged otherwise under other terms? Asked of the records at hand; nothing is measured or kept.

use std::collections::HashMap;
use std::time::Instant;

use muster_analysis::State;
use muster_run::Record;
use muster_tui::snapshot::{Flip, NodeRow, Terms, WhatIf};

use crate::judge::{Judging, Told, assess, report};

/// Which nodes of a judged run `terms` judge otherwise; a node is in the groups of its row.
#[must_use]
pub fn what_if<'r>(
    told: &Told,
    records: impl Iterator<Item = &'r Record>,
    judging: &Judging,
    rows: &[impl AsRef<NodeRow>],
    terms: &Terms,
) -> WhatIf {
    let begin = Instant::now();
    let rows: HashMap<&str, (usize, &NodeRow)> =
        rows.iter().map(AsRef::as_ref).enumerate().map(|(i, row)| (row.name.as_str(), (i, row))).collect();
    let asked = |node: &str| {
        let member = |group: &String| rows.get(node).is_some_and(|(_, row)| row.groups.contains(group));
        terms.group.as_ref().is_none_or(member)
    };
    let mut run = told.run.clone();
    run.nodes.retain(|node| asked(node));
    let mut judging = judging.clone();
    (judging.terms.params.alpha, judging.terms.params.tau) = (terms.alpha, terms.tau);
    let found = assess(&run, records.filter(|r| asked(&r.node)), &judging);
    let found = report(&run, &found);
    let flips = found.nodes.iter().filter_map(|finding| {
        let (node, _) = rows.get(finding.node.as_str())?;
        let before = told.of(&finding.node)?.findings.state().state;
        let because = finding.reasons.first().cloned().unwrap_or_default();
        (finding.state != before).then_some(Flip { node: *node, from: before, to: finding.state, because })
    });
    let mut flips: Vec<Flip> = flips.collect();
    flips.sort_by_key(|f| (f.to != State::Fail, f.node));
    WhatIf {
        terms: terms.clone(),
        nodes: found.nodes.len(),
        flips: flips.into(),
        took_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}
