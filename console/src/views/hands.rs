//! From what is known of machines to what the screen shows of the hands they are in.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::service::{Failure, Service, Swap};
use muster_store::{Db, Store};
use muster_tui::snapshot::{FailureRow, HandedRow, ServicePast, ServiceRow};
use muster_wire::clean;
use muster_wire::limits::TEXT_BYTES;

use super::Board;
use super::past::each_looked_at;
use crate::service::{self, Counted, Counterpart, Mark, Standing};

/// A node and its labels in the inventory.
pub type Labelled = (String, BTreeMap<String, String>);

/// Rows of the nodes of which anything is to be said, by name.
pub type Hands = HashMap<String, Arc<ServiceRow>>;

/// In whose hands `nodes` are.
///
/// # Errors
/// When the store cannot be read.
pub fn hands(store: &dyn Store, params: &Params, nodes: &[Labelled]) -> Result<Hands> {
    let all = service::standings(store, params, nodes)?;
    Ok(rows(&all, &service::failures(store)?))
}

fn rows(all: &[Standing], failed: &[Failure]) -> Hands {
    let (told, again) = (told(all), service::again(failed));
    let broken: HashSet<&str> = failed.iter().map(|failure| failure.node.as_str()).collect();
    let said = |one: &&Standing| {
        one.service != Service::InService || one.since_ms.is_some() || broken.contains(one.machine.name.as_str())
    };
    let row = |one: &Standing| {
        let name = &one.machine.name;
        let told = told.get(name.as_str());
        let row = ServiceRow {
            state: one.service,
            since_ms: one.since_ms,
            who: one.who.clone(),
            why: tidy(&one.why),
            swap: swap(told, one.counterpart.as_ref()),
            repeated: again.get(name).map_or_else(Vec::new, |said| said.iter().map(|text| tidy(text)).collect()).into(),
            commands: told.map_or_else(Vec::new, |told| told.commands.clone()).into(),
        };
        (name.clone(), Arc::new(row))
    };
    all.iter().filter(said).map(row).collect()
}

/// Who is to replace the machine or whom it is to replace, and who did or whom it did.
fn swap(told: Option<&Told>, counterpart: Option<&Counterpart>) -> String {
    let next = told.map(|told| told.sentence.clone());
    let done = counterpart.map(|other| tidy(&other.sentence()));
    next.into_iter().chain(done).collect::<Vec<_>>().join("; ")
}

/// What is said of a machine that is to be replaced, or of a spare.
struct Told {
    sentence: String,
    commands: Vec<String>,
}

impl From<String> for Told {
    fn from(sentence: String) -> Self {
        Self { sentence: tidy(&sentence), commands: Vec::new() }
    }
}

fn told(all: &[Standing]) -> HashMap<String, Told> {
    let refused = service::spares(all).into_iter().filter_map(|spare| {
        let why = spare.refused?;
        Some((spare.machine.name, Told::from(format!("it cannot replace anyone: {why}"))))
    });
    let mut told: HashMap<String, Told> = refused.collect();
    for (out, swap) in service::replaced(all, |_| true) {
        let name = &out.machine.name;
        let sentence = match &swap {
            Swap::By { spare, near } => {
                told.insert(spare.clone(), format!("it replaces {name} ({})", near.title()).into());
                format!("{spare} replaces it ({})", near.title())
            }
            Swap::Nobody { why } => format!("nobody replaces it: {why}"),
        };
        let commands = service::commands(out, &swap).iter().map(|command| tidy(command)).collect();
        told.insert(name.clone(), Told { commands, ..sentence.into() });
    }
    told
}

fn tidy(text: &str) -> String {
    clean(text, TEXT_BYTES)
}

/// Reads what became of nodes before from the database in `dir`, for `board` from now on, whatever node it looks at. What a return
/// needs takes as long as judging a run, and nobody waits for it.
pub fn read_service(dir: PathBuf, params: Params, board: &Board) {
    each_looked_at(board, move |board, node| {
        if !board.is_handed(node) {
            return;
        }
        let looked = Db::open_read_only(&dir).map_err(Into::into).and_then(|db| past(&db, &params, node));
        match looked {
            Ok(past) => board.service_past(node, past),
            Err(why) => log::warn!("whose hands {node} was in cannot be read: {why:#}"),
        }
    });
}

fn past(store: &dyn Store, params: &Params, node: &str) -> Result<ServicePast> {
    let standing = service::standings(store, params, &[(node.to_owned(), BTreeMap::new())])?.pop();
    let kept = standing.filter(|one| matches!(one.service, Service::InRepair | Service::HotBuffer));
    let needs = kept.map(|one| service::needs(store, params, &one)).transpose()?;
    let failures = service::failures(store)?;
    let marks = service::marks(store)?.remove(node).unwrap_or_default();
    Ok(ServicePast {
        needs: needs.map(|(refused, _)| refused.iter().map(|refusal| tidy(&refusal.why)).collect()),
        failures: service::history(&failures, |name| name == node).iter().rev().map(failure).collect(),
        handed: marks.iter().rev().map(handed).collect(),
    })
}

fn failure(counted: &Counted<'_>) -> FailureRow {
    let Failure { at_ms, component, part, reason, .. } = counted.failure;
    FailureRow {
        at_ms: *at_ms,
        component: component.clone(),
        serial: part.as_ref().map(|part| part.serial.clone()),
        said: counted.said.clone().unwrap_or_default(),
        reason: tidy(reason),
    }
}

fn handed(mark: &Mark) -> HandedRow {
    HandedRow {
        at_ms: mark.at_ms,
        into: Service::from(mark.state).title(),
        who: mark.who.clone(),
        why: tidy(&mark.why),
        swap: tidy(&mark.swap()),
    }
}

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_analysis::service::{Known, Machine, Marked, Part};

    use super::*;

    fn standing(name: &str, known: Known, since_ms: Option<u64>) -> Standing {
        let machine = Machine { name: name.to_owned(), hardware: Some("H100".to_owned()), leaf: None, rack: None };
        let (who, why) = (String::new(), "GPU 3 is slow".to_owned());
        Standing { machine, known, service: known.service(), since_ms, who, why, run: None, counterpart: None }
    }

    #[test]
    fn who_replaces_whom_is_said_of_both_and_of_a_node_in_service_nothing_unless_a_part_of_it_failed() {
        let sound = Known { newest: Some(State::Pass), ..Known::default() };
        let spare = Known { marked: Some(Marked::HotBuffer), ..sound };
        let broken = Known { incident: true, ..Known::default() };
        let all = [
            standing("n1", broken, Some(5)),
            standing("n2", broken, Some(6)),
            standing("n3", sound, None),
            standing("n4", sound, None),
            standing("s1", spare, Some(1)),
            standing("s2", Known { newest: None, ..spare }, Some(1)),
        ];
        let failure = |at_ms, node: &str| Failure {
            at_ms,
            node: node.to_owned(),
            component: "gpu:3".to_owned(),
            part: Some(Part { kind: "gpu".to_owned(), serial: "165".to_owned() }),
            reason: String::new(),
        };
        let found = rows(&all, &[failure(1, "n4"), failure(2, "n1")]);
        let said = |name: &str| found.get(name).map(|row| row.swap.as_str());
        assert_eq!(said("n1"), Some("s1 replaces it (elsewhere)"));
        assert_eq!(said("s1"), Some("it replaces n1 (elsewhere)"));
        assert_eq!(
            said("n2"),
            Some("nobody replaces it: all 1 sound spares of its hardware are taken (1 more are not sound)")
        );
        assert_eq!(said("s2"), Some("it cannot replace anyone: it was never validated"));
        assert_eq!((said("n3"), said("n4")), (None, Some("")));
        assert_eq!(*found["n1"].repeated, ["second time this GPU fails, before on n4 (gpu:3, 165)"]);
        assert_eq!(found["n1"].commands.len(), 2);
    }

    #[test]
    fn who_took_whose_place_is_said_of_both_also_of_one_that_fails_in_turn() {
        let sound = Known { newest: Some(State::Pass), ..Known::default() };
        let repaired = Known { marked: Some(Marked::InRepair), ..sound };
        let broken = Known { incident: true, ..Known::default() };
        let by = Counterpart::ReplacedBy { node: "s1".to_owned(), since_ms: 0, until_ms: None };
        let of = |node: &str| Some(Counterpart::InPlaceOf { node: node.to_owned(), since_ms: 0 });
        let all = [
            Standing { counterpart: Some(by), ..standing("n1", repaired, Some(5)) },
            Standing { counterpart: of("n1"), ..standing("s1", sound, Some(6)) },
            Standing { counterpart: of("n9"), ..standing("s2", broken, Some(6)) },
        ];
        let found = rows(&all, &[]);
        assert_eq!(found["n1"].swap, "replaced by s1 on 1970-01-01");
        assert_eq!(found["s1"].swap, "in place of n1 since 1970-01-01");
        assert_eq!(found["s2"].swap, "nobody replaces it: the hot buffer is empty; in place of n9 since 1970-01-01");
    }
}
