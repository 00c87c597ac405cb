//! Nodes put into other hands: into repair, into the hot buffer, back into service.

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::service::{Marked, Service};
use muster_store::{Incident, Store};

use super::back::{Refusal, refusals};
use super::fleet::Standing;
use super::marks::{Mark, mark, marks};

/// Puts nodes into repair or into the hot buffer; or says why none is.
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
        let list = repaired.join(",");
        return Ok(Some(format!(
            "{list}: in repair; validate it and give it back first: muster swap return -w {list}"
        )));
    }
    for name in names {
        mark(store, name, Mark::now(state, reason))?;
    }
    Ok(None)
}

/// What speaks against giving a node back to service, whatever hands it is in; and the incidents that end when nothing does.
///
/// # Errors
/// When the store cannot be read.
pub fn needs(store: &dyn Store, params: &Params, standing: &Standing) -> Result<(Vec<Refusal>, Vec<Incident>)> {
    let node = &standing.machine.name;
    let why = match standing.service {
        Service::InRepair => return refusals(store, params, node, standing.since_ms.unwrap_or(0)),
        Service::HotBuffer => standing.known.refused().map(str::to_owned),
        Service::Defective => Some(format!("it is defective: {}; muster swap repair -w {node}", standing.why)),
        Service::Suspect => {
            Some(format!("it is suspect and not in repair: {}; muster run build-out -w {node}", standing.why))
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
