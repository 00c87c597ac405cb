//! The reference job on all nodes and, where it fails, on parts of them until it is known what it takes to fail.

use muster_analysis::records::digests::digest;
use muster_playbook::report::RunReport;
use muster_run::Record;
use muster_triage::halving::{Found, Next, Nodes, Trial, next};
use muster_triage::offline::Tried;
use muster_wire::TRAIN_DDP;

use super::folded;
use super::rig::Rig;
use crate::exit::Problem;

/// What came of it.
pub(super) struct Searched {
    pub found: Found,
    /// In the order tried.
    pub tried: Vec<Tried>,
    /// What was said of the run over all nodes, which is the first.
    pub whole: Option<RunReport>,
}

/// Searches among the nodes of the rig.
///
/// # Errors
/// As [`Rig::train`], or when the topology does not know a node.
pub(super) async fn search(rig: &mut Rig<'_>) -> Result<Searched, Problem> {
    let places = rig.places()?;
    let (mut trials, mut tried, mut whole) = (Vec::new(), Vec::new(), None);
    loop {
        let sets = match next(&places, &trials) {
            Next::Try(sets) => sets,
            Next::End(found) => return Ok(Searched { found, tried, whole }),
        };
        let names: Vec<Vec<String>> = sets.iter().map(|set| named(rig, set)).collect();
        (rig.say)(&format!(
            "reference job on {}",
            names.iter().map(|set| list(set)).collect::<Vec<_>>().join(" and on ")
        ));
        let (report, records) = rig.train(&sets).await?;
        whole.get_or_insert(report);
        for (nodes, names) in sets.into_iter().zip(names) {
            let why = failure(&records, &names);
            (rig.say)(&format!("  {}: {}", list(&names), if why.is_some() { "fails" } else { "runs" }));
            trials.push(Trial { nodes, fails: why.is_some() });
            tried.push(Tried { nodes: names, fails: why.is_some(), why: why.unwrap_or_default() });
        }
    }
}

fn named(rig: &Rig<'_>, set: &Nodes) -> Vec<String> {
    set.iter().map(|node| rig.nodes[*node].name.clone()).collect()
}

fn list(names: &[String]) -> String {
    folded(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Why the reference job on `names` failed; `None` where it ran to its end with the same weights everywhere.
fn failure(records: &[Record], names: &[String]) -> Option<String> {
    let of = |name: &String| records.iter().find(|record| record.node == *name && record.work == TRAIN_DDP);
    let own: Vec<&Record> = names.iter().filter_map(of).collect();
    if let Some(why) = own.iter().find_map(|record| record.outcome.why()) {
        return Some(why.to_owned());
    }
    if let Some(missing) = names.iter().find(|name| of(name).is_none()) {
        return Some(format!("{missing}: it told nothing"));
    }
    let first = own.first()?;
    let other = own.iter().find(|record| digest(record).is_none() || digest(record) != digest(first))?;
    Some(match digest(other) {
        Some(_) => format!("{} ends with other weights than {}", other.node, first.node),
        None => format!("{} does not tell the weights that it ended with", other.node),
    })
}

#[cfg(test)]
mod tests {
    use muster_wire::{DIGEST, Datum, Fact, Outcome, Reading};

    use super::*;

    fn record(node: &str, weights: &str, outcome: Outcome) -> Record {
        Record {
            run: "r".into(),
            node: node.into(),
            work: TRAIN_DDP.into(),
            outcome,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: vec![Fact {
                key: format!("{DIGEST}x_team1"),
                reading: Reading::Value(Datum::Text(weights.into())),
                unit: None,
            }],
        }
    }

    #[test]
    fn a_reference_job_fails_where_a_node_ends_early_says_nothing_or_ends_with_other_weights() {
        let names = ["n1", "n2"].map(str::to_owned);
        let of = |records: &[Record]| failure(records, &names);
        let n1 = record("n1", "aa", Outcome::Done);
        assert_eq!(of(&[n1.clone(), record("n2", "aa", Outcome::Done)]), None);
        assert_eq!(of(&[n1.clone(), record("n2", "ab", Outcome::Done)]).unwrap(), "n2 ends with other weights than n1");
        assert_eq!(of(&[n1.clone(), record("n2", "", Outcome::Failed("n2: gone".into()))]).unwrap(), "n2: gone");
        assert_eq!(of(&[n1]).unwrap(), "n2: it told nothing");
    }
}
