//! Nodes put into other hands: into repair, into the hot buffer, back into service.

use muster_analysis::service::Marked;
use serde::Serialize;

use super::document::{Other, Sides};
use super::{Back, Marking, Replace, known, usage};
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED};
use crate::options::{Common, Pick};
use crate::service::{Replaced, argument, give_back, put as put_all, replace as put_in_place, replace_listed};
use crate::{database, out, session};

/// What came of one node.
#[derive(Debug, Serialize)]
struct Row {
    node: String,
    returned: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
    /// Who took its place while it was in repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<Other>,
    #[serde(skip)]
    fails: bool,
}

/// Into repair.
pub(super) fn repair(options: &Marking, config: &Config, common: &Common) -> Ended {
    put(Marked::InRepair, options, config, common)
}

/// Into the hot buffer.
pub(super) fn spare(options: &Marking, config: &Config, common: &Common) -> Ended {
    put(Marked::HotBuffer, options, config, common)
}

/// Nothing is changed by who may only read, or of nodes that nobody named.
fn allowed(options: &Marking, common: &Common) -> Result<(), Problem> {
    if common.read_only {
        return Err(usage("--read-only forbids changing where a node stands"));
    }
    if options.pick.names() { Ok(()) } else { Err(usage("say which nodes: -w LIST or --job ID")) }
}

fn put(state: Marked, options: &Marking, config: &Config, common: &Common) -> Ended {
    allowed(options, common)?;
    let names: Vec<String> = session::nodes(config, &options.pick)?.into_iter().map(|node| node.name).collect();
    let mut store = database::write(config)?;
    if let Some(why) = put_all(&mut store, &names, state, &options.reason).code(IO)? {
        return Err(usage(&why));
    }
    let word = if state == Marked::InRepair { "in repair" } else { "hot buffer" };
    out::line(&format!("{}: {word}", out::counted(names.len(), "node", "nodes")))?;
    Ok(PASS)
}

/// Into repair, with a spare in service in its place.
pub(super) fn replace(options: &Replace, config: &Config, common: &Common) -> Ended {
    allowed(&options.marking, common)?;
    let (pick, reason) = (&options.marking.pick, &options.marking.reason);
    let names: Vec<String> = session::nodes(config, pick)?.into_iter().map(|node| node.name).collect();
    let (mut store, params) = (database::write(config)?, session::params(config));
    let done = match &options.by {
        Some(by) => {
            let found = known(&store, config, &Pick { include: vec![by.clone()], ..Pick::default() })?;
            let ([node], [spare]) = (names.as_slice(), found.as_slice()) else {
                return Err(usage("--by puts one node in the place of one: name one with -w and one with --by"));
            };
            let why = put_in_place(&mut store, &params, (node, spare), reason).code(IO)?;
            vec![Replaced { node: node.clone(), by: why.map_or_else(|| Ok(spare.machine.name.clone()), Err) }]
        }
        None => {
            // Spares are looked for in all of the inventory but what is left out, as for the list.
            let all = known(&store, config, &Pick { exclude: pick.exclude.clone(), ..Pick::default() })?;
            replace_listed(&mut store, &params, &all, &names, reason).code(IO)?
        }
    };
    for one in &done {
        match &one.by {
            Ok(spare) => out::line(&format!("{}: in repair, replaced by {spare}", one.node))?,
            Err(why) => out::line(&format!("{}: not replaced: {why}", one.node))?,
        }
    }
    Ok(if done.iter().all(|one| one.by.is_ok()) { PASS } else { UNDECIDED })
}

/// Back into service.
pub(super) fn back(options: &Back, config: &Config, common: &Common) -> Ended {
    allowed(&options.marking, common)?;
    let mut store = database::write(config)?;
    let all = known(&store, config, &options.marking.pick)?;
    let mut rows = Vec::new();
    for standing in &all {
        let refused = give_back(&mut store, &session::params(config), standing, &options.marking.reason).code(IO)?;
        let returned = refused.is_empty();
        let replaced_by = Sides::of(standing.counterpart.as_ref()).replaced_by.filter(|_| returned);
        rows.push(Row {
            node: standing.machine.name.clone(),
            returned,
            replaced_by,
            fails: refused.iter().any(|refusal| refusal.fails),
            refused: refused.into_iter().map(|refusal| refusal.why).collect(),
        });
    }
    if options.json {
        out::list("muster.swap-return", "nodes", &rows)?;
    } else {
        tell(&rows)?;
    }
    Ok(match &rows {
        rows if rows.iter().any(|row| row.fails) => FAIL,
        rows if rows.iter().any(|row| !row.returned) => UNDECIDED,
        _ => PASS,
    })
}

fn tell(rows: &[Row]) -> Result<(), Problem> {
    for row in rows {
        if row.returned {
            out::line(&format!("{}: in service{}", row.node, stays(row)))?;
        }
        for why in &row.refused {
            out::line(&format!("{}: not given back: {why}", row.node))?;
        }
    }
    Ok(())
}

/// What is said of the node that took its place: it stays in service until somebody puts it elsewhere.
fn stays(row: &Row) -> String {
    let other = row.replaced_by.as_ref().filter(|other| other.until.is_none());
    other.map_or_else(String::new, |other| {
        let (node, word) = (&other.node, argument(&other.node));
        format!("; {node}, which replaced it, stays in service (back into the hot buffer: muster swap spare -w {word})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_the_place_of_a_node_that_is_back_is_said_to_stay_in_service() {
        let row = |until: Option<&str>| {
            let (node, since) = ("s1".to_owned(), "2026-11-28T10:00:00Z".to_owned());
            let replaced_by = Some(Other { node, since, until: until.map(str::to_owned) });
            Row { node: "n7".to_owned(), returned: true, refused: Vec::new(), replaced_by, fails: false }
        };
        let said = "; s1, which replaced it, stays in service (back into the hot buffer: muster swap spare -w s1)";
        assert_eq!(stays(&row(None)), said);
        assert_eq!(stays(&row(Some("2026-11-29T10:00:00Z"))), "", "it is in other hands by now");
    }
}
