//! `muster swap history`: which parts failed on nodes, how often each of them failed anywhere, and who put the nodes where.

use std::collections::BTreeMap;

use muster_analysis::service::{Failure, Marked, Service};
use muster_playbook::report::rfc3339;
use serde::Serialize;

use super::{Shown, picked};
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::service::{Counted, Mark, failures, history, marks};
use crate::{database, out};

/// The published document `muster.swap-history`.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    version: u32,
    failures: Vec<Row>,
    /// Nodes that were put into other hands, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    handed: Vec<Handed>,
}

#[derive(Debug, Serialize)]
struct Handed {
    node: String,
    /// Since when it is there.
    at: String,
    state: Marked,
    who: String,
    reason: String,
    /// The other node of a swap: of one in repair who took its place, of one in service whose place it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    counterpart: Option<String>,
    /// The swap in words.
    #[serde(skip)]
    swap: String,
}

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
    let store = database::read(config)?;
    let (all, marks) = (failures(&*store).code(IO)?, marks(&*store).code(IO)?);
    let wanted = picked(config, &options.pick)?;
    let (rows, handed) = (rows(&all, &wanted), handed(&marks, &wanted));
    if options.json {
        out::json(&Document { schema: "muster.swap-history", version: 1, failures: rows, handed })?;
        return Ok(PASS);
    }
    let cells = |row: &Row| {
        let serial = row.serial.clone().unwrap_or_else(|| "not told".to_owned());
        let said = row.said.clone().unwrap_or_default();
        vec![row.node.clone(), row.at.clone(), row.component.clone(), serial, said, row.reason.clone()]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    out::line(&out::table(&["node", "failed", "part", "serial", "how often", "why"], &cells))?;
    if !handed.is_empty() {
        let cells: Vec<Vec<String>> = handed.iter().map(Handed::cells).collect();
        out::line(&format!("\n{}", out::table(&["node", "since", "state", "put there by", "swap", "why"], &cells)))?;
    }
    Ok(PASS)
}

impl Handed {
    fn of(node: &str, mark: &Mark) -> Self {
        Self {
            node: node.to_owned(),
            at: rfc3339(mark.at_ms),
            state: mark.state,
            who: mark.who.clone(),
            reason: mark.why.clone(),
            counterpart: mark.counterpart.clone(),
            swap: mark.swap(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let state = Service::from(self.state).title().to_owned();
        vec![self.node.clone(), self.at.clone(), state, self.who.clone(), self.swap.clone(), self.reason.clone()]
    }
}

fn handed(all: &BTreeMap<String, Vec<Mark>>, wanted: impl Fn(&str) -> bool) -> Vec<Handed> {
    let of_wanted = all.iter().filter(|(node, _)| wanted(node));
    let mut found: Vec<(&String, &Mark)> =
        of_wanted.flat_map(|(node, said)| said.iter().map(move |mark| (node, mark))).collect();
    // Of one node in the order in which it was said.
    found.sort_by_key(|(_, mark)| mark.at_ms);
    found.into_iter().map(|(node, mark)| Handed::of(node, mark)).collect()
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

    #[test]
    fn who_was_put_where_is_told_in_its_order_with_the_other_node_of_a_swap() {
        let mark = |state, at_ms, counterpart: Option<&str>| Mark {
            state,
            at_ms,
            who: "kim".into(),
            why: String::new(),
            counterpart: counterpart.map(str::to_owned),
        };
        let n7 = vec![mark(Marked::InRepair, 5_000, Some("s1")), mark(Marked::InService, 9_000, None)];
        let s1 = vec![mark(Marked::HotBuffer, 1_000, None), mark(Marked::InService, 6_000, Some("n7"))];
        let all = BTreeMap::from([("n7".to_owned(), n7), ("s1".to_owned(), s1)]);
        let cells: Vec<String> = handed(&all, |_| true).iter().map(|row| row.cells().join(" ")).collect();
        let expected = [
            "s1 1970-01-01T00:00:01Z hot buffer kim  ",
            "n7 1970-01-01T00:00:05Z in repair kim replaced by s1 ",
            "s1 1970-01-01T00:00:06Z in service kim in place of n7 ",
            "n7 1970-01-01T00:00:09Z in service kim  ",
        ];
        assert_eq!(cells, expected);
        let json = serde_json::to_value(handed(&all, |node| node == "n7")).unwrap();
        assert_eq!(json.as_array().map(Vec::len), Some(2));
        assert_eq!((json[0]["state"].as_str(), json[0]["counterpart"].as_str()), (Some("in-repair"), Some("s1")));
        assert_eq!(json[1].get("counterpart"), None);
    }
}
