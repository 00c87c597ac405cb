//! Does a node answer under its own name? One that calls itself otherwise may be another machine than the inventory means.

use crate::State;
use crate::findings::{Finding, Source};
use muster_run::Record;
use muster_wire::{Component, Datum, clean, limits::NAME_BYTES};

use super::Evidence;

/// The fact of the collector `identity` that is the host's own name.
const HOST_NAME: &str = "hostname";

/// Nodes that call themselves otherwise than the run does, where most nodes do not: names of hosts then mean something here.
#[must_use]
pub fn findings(nodes: &[String], evidence: &Evidence<'_>) -> Vec<Finding> {
    let told = |node: &String| Some((node.clone(), evidence.every(node).find_map(host_name)?));
    let told: Vec<(String, String)> = nodes.iter().filter_map(told).collect();
    let odd: Vec<&(String, String)> = told.iter().filter(|(node, host)| short(node) != short(host)).collect();
    if odd.len() * 2 >= told.len() {
        return Vec::new();
    }
    let finding = |(node, host): &(String, String)| {
        let sentence = format!("{node}: answers as {}", clean(host, NAME_BYTES));
        let next = "check its address in the inventory: what was measured may be another machine";
        Finding::new(node, Component::Node, Source::HostName, State::Warn, sentence).next(next)
    };
    odd.into_iter().map(finding).collect()
}

fn host_name(record: &Record) -> Option<String> {
    let fact = record.facts.iter().find(|fact| record.work == "collect/identity" && fact.key == HOST_NAME)?;
    match fact.reading.value()? {
        Datum::Text(host) => Some(host.clone()),
        _ => None,
    }
}

/// A name without its domain, in small letters.
fn short(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::noted;
    use muster_wire::{Fact, Reading};

    fn said(hosts: &[(&str, &str)]) -> Vec<String> {
        let record = |(node, host): &(&str, &str)| {
            let reading = Reading::Value(Datum::Text((*host).to_owned()));
            noted("r", node, "collect/identity", vec![Fact { key: HOST_NAME.to_owned(), reading, unit: None }], 1)
        };
        let records: Vec<Record> = hosts.iter().map(record).collect();
        let nodes: Vec<String> = hosts.iter().map(|(node, _)| (*node).to_owned()).collect();
        findings(&nodes, &Evidence::new(&records)).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_node_that_answers_as_another_is_told_where_names_mean_something() {
        let all = [("n001", "N001"), ("n002", "n002.lab.example"), ("n003", "n005"), ("n004.lab", "n004")];
        assert_eq!(said(&all), ["n003: answers as n005"]);
        assert_eq!(
            said(&[("a", "box"), ("b", "box"), ("c", "box")]),
            Vec::<String>::new(),
            "one machine plays all nodes"
        );
        assert_eq!(said(&[("10.0.0.1", "n1"), ("10.0.0.2", "n2")]), Vec::<String>::new());
        assert_eq!(said(&[("n1", "n1"), ("n2", "\u{1b}[2Jx"), ("n3", "n3")]), ["n2: answers as x"]);
    }
}
