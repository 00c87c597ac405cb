//! Nodes put into other hands: into repair, into the hot buffer, back into service.

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::service::{Marked, Service};
use muster_store::{Incident, Store};

use super::back::{Refusal, refusals};
use super::counterpart::Counterpart;
use super::fleet::Standing;
use super::list::listed;
use super::marks::{Mark, mark, marks};
use super::shell::argument;

/// Puts nodes into repair or into the hot buffer; or says why none is. Who is there already stays there since then, since a validation
/// counts from then on; a new reason replaces the old one.
///
/// # Errors
/// When the store fails.
pub fn put(store: &mut dyn Store, names: &[String], state: Marked, reason: &str) -> Result<Option<String>> {
    let said = marks(store)?;
    // From repair the only way leads over a validation.
    let repaired: Vec<&str> = names
        .iter()
        .filter(|name| {
            state == Marked::HotBuffer
                && said.get(*name).and_then(|all| all.last()).is_some_and(|last| last.state == Marked::InRepair)
        })
        .map(String::as_str)
        .collect();
    if !repaired.is_empty() {
        let (list, nodes) = (repaired.join(","), argument(&repaired.join(",")));
        return Ok(Some(format!(
            "{list}: in repair; validate it and give it back first: muster swap return -w {nodes}"
        )));
    }
    for name in names {
        hand_over(store, name, said.get(name).and_then(|all| all.last()), Mark::now(state, reason))?;
    }
    Ok(None)
}

/// Adds `new` to what was said of a node; `last` is the last of that. A node that is in these hands already is there since then, and what
/// `new` leaves out stays as it was.
fn hand_over(store: &mut dyn Store, name: &str, last: Option<&Mark>, new: Mark) -> Result<()> {
    let Some(last) = last.filter(|last| last.state == new.state) else { return mark(store, name, new) };
    let why = if new.why.is_empty() { last.why.clone() } else { new.why.clone() };
    let counterpart = new.counterpart.clone().or_else(|| last.counterpart.clone());
    if why == last.why && counterpart == last.counterpart {
        return Ok(());
    }
    mark(store, name, Mark { at_ms: last.at_ms, why, counterpart, ..new })
}

/// Puts `node` into repair and `spare` into service in its place, unless something speaks against that, which is what it returns. What is
/// kept of each names the other. A spare that is in service already stays there.
///
/// # Errors
/// When the store fails.
pub fn replace(
    store: &mut dyn Store,
    params: &Params,
    (node, spare): (&str, &Standing),
    reason: &str,
) -> Result<Option<String>> {
    let name = spare.machine.name.as_str();
    if name == node {
        return Ok(Some(format!("{node} cannot replace itself")));
    }
    let said = marks(store)?;
    let took = match Counterpart::of(&said, name) {
        Some(Counterpart::InPlaceOf { node: other, .. }) if other != node => {
            return Ok(Some(format!("{name} is in place of {other}, which is in repair")));
        }
        other => matches!(other, Some(Counterpart::InPlaceOf { .. })),
    };
    if spare.service == Service::InRepair {
        return Ok(Some(format!("{name} is in repair; give it back first: muster swap return -w {}", argument(name))));
    }
    let (refused, _) = needs(&*store, params, spare)?;
    if !refused.is_empty() {
        let why: Vec<String> = refused.into_iter().map(|refusal| refusal.why).collect();
        return Ok(Some(format!("{name} cannot replace it: {}", why.join("; "))));
    }
    // The spare first: where only this can be written, no node is said to be replaced by a spare that is still in the hot buffer.
    if !took {
        mark(store, name, Mark { counterpart: Some(node.to_owned()), ..Mark::now(Marked::InService, "") })?;
    }
    let new = Mark { counterpart: Some(name.to_owned()), ..Mark::now(Marked::InRepair, reason) };
    hand_over(store, node, said.get(node).and_then(|all| all.last()), new)?;
    Ok(None)
}

/// What came of replacing a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The node.
    pub node: String,
    /// The spare that took its place, or why none did.
    pub by: Result<String, String>,
}

/// Replaces each of `names` by the spare that is listed for it among `all`.
///
/// # Errors
/// When the store fails.
pub fn replace_listed(
    store: &mut dyn Store,
    params: &Params,
    all: &[Standing],
    names: &[String],
    reason: &str,
) -> Result<Vec<Replaced>> {
    let mut done = Vec::new();
    for (node, spare) in listed(all, names) {
        let by = match spare {
            Ok(spare) => match replace(store, params, (&node, spare), reason)? {
                None => Ok(spare.machine.name.clone()),
                Some(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        done.push(Replaced { node, by });
    }
    Ok(done)
}

/// What speaks against giving a node back to service, whatever hands it is in; and the incidents that end when nothing does.
///
/// # Errors
/// When the store cannot be read.
pub fn needs(store: &dyn Store, params: &Params, standing: &Standing) -> Result<(Vec<Refusal>, Vec<Incident>)> {
    let node = &standing.machine.name;
    let word = argument(node);
    let why = match standing.service {
        Service::InRepair => return refusals(store, params, node, standing.since_ms.unwrap_or(0)),
        Service::HotBuffer => standing.known.refused().map(str::to_owned),
        Service::Defective => Some(format!("it is defective: {}; muster swap repair -w {word}", standing.why)),
        Service::Suspect => {
            Some(format!("it is suspect and not in repair: {}; muster run build-out -w {word}", standing.why))
        }
        Service::InService => None,
    };
    Ok((why.map(|why| Refusal { why, fails: false }).into_iter().collect(), Vec::new()))
}

/// Gives one node back unless something speaks against it, which is what it returns.
///
/// # Errors
/// When the store fails.
pub fn give_back(store: &mut dyn Store, params: &Params, standing: &Standing, reason: &str) -> Result<Vec<Refusal>> {
    let (refused, ended) = needs(&*store, params, standing)?;
    if refused.is_empty() && standing.service != Service::InService {
        store.record_incidents(&ended)?;
        mark(store, &standing.machine.name, Mark::now(Marked::InService, reason))?;
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use muster_store::{Db, Options};

    use super::*;

    #[test]
    fn a_node_in_repair_keeps_its_since_and_its_reason_until_there_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let names = ["n1".to_owned(), "n2".to_owned()];
        let counterpart = Some("s1".to_owned());
        let first = Mark { state: Marked::InRepair, at_ms: 5, who: "kim".into(), why: "disk dead".into(), counterpart };
        mark(&mut db, "n1", first.clone()).unwrap();
        assert_eq!(put(&mut db, &names, Marked::InRepair, " ").unwrap(), None);
        let all = marks(&db).unwrap();
        assert_eq!(all["n1"], [first], "nothing new was said of it");
        assert!(all["n2"][0].at_ms > 5 && all["n2"][0].why.is_empty(), "{:?}", all["n2"]);
        put(&mut db, &names, Marked::InRepair, "RMA 4711").unwrap();
        let all = marks(&db).unwrap();
        let last = all["n1"].last().unwrap();
        assert_eq!((all["n1"].len(), last.at_ms, last.why.as_str()), (2, 5, "RMA 4711"));
        assert_eq!(last.counterpart.as_deref(), Some("s1"), "a new reason leaves in place who replaced it");
        mark(&mut db, "n1", Mark { state: Marked::InService, at_ms: 7, counterpart: None, ..last.clone() }).unwrap();
        put(&mut db, &names, Marked::InRepair, "").unwrap();
        let again = marks(&db).unwrap()["n1"].last().cloned().unwrap();
        assert!(again.state == Marked::InRepair && again.at_ms > 7 && again.why.is_empty(), "{again:?}");
        assert_eq!(again.counterpart, None, "nobody replaces it this time");
    }

    #[test]
    fn a_node_in_repair_is_no_spare_before_it_was_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let names = ["n1".to_owned(), "n2".to_owned()];
        put(&mut db, &names, Marked::InRepair, "").unwrap();
        let why = put(&mut db, &names, Marked::HotBuffer, "").unwrap().unwrap();
        assert!(why.ends_with("muster swap return -w n1,n2"), "{why}");
    }
}
