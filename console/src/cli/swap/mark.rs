//! Nodes put into other hands: into repair, into the hot buffer, back into service.

use muster_analysis::service::{Marked, Service};
use muster_store::Store;
use muster_wire::clean;
use serde::Serialize;

use super::{Back, Marking, known, usage};
use crate::cli::incidents;
use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED};
use crate::options::Common;
use crate::service::{Mark, Refusal, Standing, mark, marks, refusals};
use crate::{database, out, session};

/// Longest reason, bytes.
const REASON: usize = 1000;

/// What came of one node.
#[derive(Debug, Serialize)]
struct Row {
    node: String,
    returned: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
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
    let said = marks(&store).code(IO)?;
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
        return Err(usage(&format!(
            "{list}: in repair; validate it and give it back first: muster swap return -w {list}"
        )));
    }
    for name in &names {
        mark(&mut store, name, new(state, &options.reason)).code(IO)?;
    }
    let word = if state == Marked::InRepair { "in repair" } else { "hot buffer" };
    out::line(&format!("{}: {word}", out::counted(names.len(), "node", "nodes")))?;
    Ok(PASS)
}

fn new(state: Marked, reason: &str) -> Mark {
    Mark { state, at_ms: now_ms(), who: incidents::user(), why: clean(reason.trim(), REASON) }
}

/// Back into service.
pub(super) fn back(options: &Back, config: &Config, common: &Common) -> Ended {
    allowed(&options.marking, common)?;
    let mut store = database::write(config)?;
    let all = known(&store, config, &options.marking.pick)?;
    let mut rows = Vec::new();
    for standing in &all {
        let refused = given_back(&mut store, standing, &options.marking.reason, config)?;
        rows.push(Row {
            node: standing.machine.name.clone(),
            returned: refused.is_empty(),
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
            out::line(&format!("{}: in service", row.node))?;
        }
        for why in &row.refused {
            out::line(&format!("{}: not given back: {why}", row.node))?;
        }
    }
    Ok(())
}

/// Gives one node back unless something speaks against it.
fn given_back(
    store: &mut dyn Store,
    standing: &Standing,
    reason: &str,
    config: &Config,
) -> Result<Vec<Refusal>, Problem> {
    let node = &standing.machine.name;
    let open = |why: String| vec![Refusal { why, fails: false }];
    match standing.service {
        Service::InRepair => {
            let since_ms = standing.since_ms.unwrap_or(0);
            let (refused, ended) = refusals(&*store, &session::params(config), node, since_ms).code(IO)?;
            if !refused.is_empty() {
                return Ok(refused);
            }
            store.record_incidents(&ended).code(IO)?;
        }
        Service::HotBuffer => {
            if let Some(why) = standing.known.refused() {
                return Ok(open(why.to_owned()));
            }
        }
        Service::Defective => {
            return Ok(open(format!("it is defective: {}; muster swap repair -w {node}", standing.why)));
        }
        Service::Suspect => {
            return Ok(open(format!(
                "it is suspect and not in repair: {}; muster run build-out -w {node}",
                standing.why
            )));
        }
        Service::InService => return Ok(Vec::new()),
    }
    mark(store, node, new(Marked::InService, reason)).code(IO)?;
    Ok(Vec::new())
}
