//! Nodes put into other hands: into repair, into the hot buffer, back into service.

use muster_analysis::service::Marked;
use serde::Serialize;

use super::{Back, Marking, known, usage};
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED};
use crate::options::Common;
use crate::service::{give_back, put as put_all};
use crate::{database, out, session};

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
    if let Some(why) = put_all(&mut store, &names, state, &options.reason).code(IO)? {
        return Err(usage(&why));
    }
    let word = if state == Marked::InRepair { "in repair" } else { "hot buffer" };
    out::line(&format!("{}: {word}", out::counted(names.len(), "node", "nodes")))?;
    Ok(PASS)
}

/// Back into service.
pub(super) fn back(options: &Back, config: &Config, common: &Common) -> Ended {
    allowed(&options.marking, common)?;
    let mut store = database::write(config)?;
    let all = known(&store, config, &options.marking.pick)?;
    let mut rows = Vec::new();
    for standing in &all {
        let refused = give_back(&mut store, &session::params(config), standing, &options.marking.reason).code(IO)?;
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
