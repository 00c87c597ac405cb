//! What a node says of its run while that goes on: what is missing now is not lost, it has not come yet.

use std::borrow::Cow;

use muster_analysis::checks::NOT_LOOKED;
use muster_analysis::records::NOT_REACHED;

use crate::snapshot::{CheckRow, LinkKind, NodeRow, Snapshot, VerdictRow};

/// The node in the words of a run that goes on, where one does and the node is still in it.
pub(super) fn so_far<'n>(snapshot: &Snapshot, node: &'n NodeRow) -> Cow<'n, NodeRow> {
    let in_it = matches!(node.link.kind, LinkKind::Live | LinkKind::Connecting | LinkKind::Waiting);
    let Some(run) = snapshot.run.as_deref().filter(|run| in_it && run.phase.is_going()) else {
        return Cow::Borrowed(node);
    };
    let verdict = |row: &VerdictRow| {
        let reason = if *row.run == *run.id { yet(&row.reason) } else { row.reason.clone() };
        VerdictRow { reason, ..row.clone() }
    };
    let check = |row: &CheckRow| CheckRow { said: yet(&row.said), ..row.clone() };
    Cow::Owned(NodeRow {
        reasons: node.reasons.iter().map(|reason| yet(reason)).collect(),
        verdicts: node.verdicts.iter().map(verdict).collect(),
        checks: node.checks.iter().map(check).collect(),
        ..node.clone()
    })
}

/// `said`, which may speak of what has not come, as something that may still come.
fn yet(said: &str) -> String {
    let said = said.replace(&format!("not measured: {NOT_REACHED}"), "not measured yet");
    if said.ends_with(NOT_LOOKED) { said + " yet" } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_may_still_come_and_what_has_a_cause_keeps_it() {
        assert_eq!(
            yet("n1: cpu-gemm/fp64 not measured: it did not get that far"),
            "n1: cpu-gemm/fp64 not measured yet"
        );
        assert_eq!(yet("the clock collector did not run"), "the clock collector did not run yet");
        let cause = "the clock collector did not run: no room";
        assert_eq!(yet(cause), cause);
    }
}
