//! `muster swap history`: which parts failed on nodes, and how often each of them failed anywhere.

use muster_analysis::service::Failure;
use muster_playbook::report::rfc3339;
use serde::Serialize;

use super::{Shown, picked};
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::service::{Counted, failures, history};
use crate::{database, out};

#[derive(Debug, Serialize)]
struct Row {
    node: String,
    at: String,
    component: String,
    /// Serial number of the part; null where the node did not tell.
    serial: Option<String>,
    /// How often this part failed up to now, here or elsewhere; null where it cannot be told from others.
    times: Option<usize>,
    /// `third time this GPU fails here`; left out of a part's first failure, and of all but its last.
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    reason: String,
}

/// Shows it, oldest first.
pub(super) fn run(options: &Shown, config: &Config) -> Ended {
    let all = failures(&*database::read(config)?).code(IO)?;
    let rows = rows(&all, picked(config, &options.pick)?);
    if options.json {
        out::list("muster.swap-history", "failures", &rows)?;
        return Ok(PASS);
    }
    let cells = |row: &Row| {
        let serial = row.serial.clone().unwrap_or_else(|| "not told".to_owned());
        let said = row.said.clone().unwrap_or_default();
        vec![row.node.clone(), row.at.clone(), row.component.clone(), serial, said, row.reason.clone()]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    out::line(&out::table(&["node", "failed", "part", "serial", "how often", "why"], &cells))?;
    Ok(PASS)
}

fn rows(all: &[Failure], wanted: impl Fn(&str) -> bool) -> Vec<Row> {
    let row = |counted: Counted<'_>| {
        let failure = counted.failure;
        Row {
            node: failure.node.clone(),
            at: rfc3339(failure.at_ms),
            component: failure.component.clone(),
            serial: failure.part.as_ref().map(|part| part.serial.clone()),
            times: counted.times,
            said: counted.said,
            reason: failure.reason.clone(),
        }
    };
    history(all, wanted).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use muster_analysis::service::Part;

    use super::*;

    #[test]
    fn a_part_that_fails_again_is_said_to_at_its_last_failure() {
        let of = |at_ms, node: &str, serial: Option<&str>| Failure {
            at_ms,
            node: node.into(),
            component: "gpu:3".into(),
            part: serial.map(|serial| Part { kind: "gpu".into(), serial: serial.into() }),
            reason: "slow".into(),
        };
        let all = [of(1, "n1", Some("A")), of(2, "n2", Some("B")), of(3, "n2", Some("A")), of(4, "n2", None)];
        let found = rows(&all, |node| node == "n2");
        let told: Vec<(Option<usize>, Option<&str>)> =
            found.iter().map(|row| (row.times, row.said.as_deref())).collect();
        let second = Some("second time this GPU fails, before on n1");
        assert_eq!(told, [(Some(1), None), (Some(2), second), (None, None)]);
    }
}
