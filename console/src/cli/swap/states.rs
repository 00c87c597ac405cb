//! `muster swap states`: in whose hands every node is.

use muster_analysis::service::Service;

use super::document::StateRow;
use super::{Shown, known};
use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{database, out};

/// Shows them.
pub(super) fn run(options: &Shown, config: &Config) -> Ended {
    let all = known(&*database::read(config)?, config, &options.pick)?;
    let rows: Vec<StateRow> = all.iter().map(StateRow::of).collect();
    if options.json {
        out::list("muster.swap-states", "nodes", &rows)?;
        return Ok(PASS);
    }
    let cells = |row: &StateRow| {
        let since = row.since.clone().unwrap_or_default();
        let said = [row.said.as_str(), row.reason.as_str()].into_iter().filter(|text| !text.is_empty());
        vec![row.node.clone(), row.state.title().to_owned(), since, said.collect::<Vec<_>>().join("; ")]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    out::line(&out::table(&["node", "state", "since", "why"], &cells))?;
    let count = |state: Service| rows.iter().filter(|row| row.state == state).count();
    let counts: Vec<String> = Service::ALL
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| format!("{} {}", count(state), state.title()))
        .collect();
    out::line(&counts.join(", "))?;
    Ok(PASS)
}
