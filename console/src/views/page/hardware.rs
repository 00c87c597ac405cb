//! Who the nodes are: what hardware they say they have, equal ones together.

use std::collections::BTreeMap;

use muster_page::{Cell, Fold, Names, Part, Table};
use muster_playbook::report::RunReport;
use muster_run::Record;
use muster_tui::snapshot::FactRow;
use muster_wire::{Component, fact_of};

use crate::out::counted;
use crate::views::picture::facts;

/// Rows of the table.
const ROWS: usize = 60;
/// Facts of one node.
const FACTS: usize = 600;
/// Heading, collector and the keys of which the first known one counts.
const FIELDS: [(&str, &str, &[&str]); 9] = [
    ("product", "identity", &["dmi.product"]),
    ("CPU", "cpu", &["model"]),
    ("sockets", "cpu", &["sockets"]),
    ("cores", "cpu", &["cores"]),
    ("memory", "memory", &["total"]),
    ("GPUs", "gpu", &[]),
    ("BIOS", "identity", &["bios.version"]),
    ("system", "identity", &["os.name"]),
    ("kernel", "identity", &["kernel.release"]),
];

/// One row for each kind of node, the most frequent first.
pub(super) fn parts(report: &RunReport, records: &[Record]) -> Vec<Part> {
    let mut of: BTreeMap<&str, Vec<FactRow>> =
        report.nodes.iter().map(|node| (node.node.as_str(), Vec::new())).collect();
    for record in records {
        if let Some(own) = of.get_mut(record.node.as_str()) {
            own.extend(facts(record));
        }
    }
    let mut kinds: BTreeMap<Vec<Option<String>>, Vec<&str>> = BTreeMap::new();
    for (node, facts) in &of {
        kinds.entry(FIELDS.iter().map(|field| value(facts, field)).collect()).or_default().push(node);
    }
    kinds.retain(|fields, _| fields.iter().any(Option::is_some));
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    if kinds.is_empty() {
        return Vec::new();
    }
    let columns: Vec<&str> = ["nodes", "#number"].into_iter().chain(FIELDS.iter().map(|field| field.0)).collect();
    let mut table = Table::new("Nodes of one kind, by what their collectors saw", &columns);
    for (fields, nodes) in kinds.iter().take(ROWS) {
        let head = [Cell::Names(Names::of(nodes.iter().copied())), Cell::Number(nodes.len().to_string())];
        table.rows.push(
            head.into_iter().chain(fields.iter().map(|field| Cell::text(field.clone().unwrap_or_default()))).collect(),
        );
    }
    if kinds.len() > ROWS {
        table.left_out =
            format!("{} of fewer nodes are left out.", counted(kinds.len() - ROWS, "further kind", "further kinds"));
    }
    vec![Part::Table(table)]
}

fn value(facts: &[FactRow], (heading, collector, keys): &(&str, &str, &[&str])) -> Option<String> {
    if *heading == "GPUs" {
        return gpus(facts);
    }
    let known = |key: &&str| facts.iter().find(|fact| fact.known && fact.collector == *collector && fact.key == *key);
    keys.iter().find_map(known).map(|fact| fact.value.clone())
}

/// `8 x H100`, model by model.
fn gpus(facts: &[FactRow]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let model = |fact: &&FactRow| matches!(fact_of(&fact.key), Some((Component::Gpu(_), "model")));
    for fact in facts.iter().filter(|fact| fact.known && fact.collector == "gpu").filter(model) {
        *counts.entry(&fact.value).or_default() += 1;
    }
    let words: Vec<String> = counts.iter().map(|(model, count)| format!("{count} x {model}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Everything that the collectors saw of one node.
pub(super) fn all(node: &str, records: &[Record]) -> Option<Part> {
    let rows: Vec<FactRow> = records.iter().filter(|record| record.node == node).flat_map(facts).collect();
    let mut table = Table::new(format!("Facts of {node}"), &["fact", "collector", "value"]);
    for fact in rows.iter().take(FACTS) {
        table.rows.push(vec![Cell::text(&fact.key), Cell::text(&fact.collector), Cell::text(&fact.value)]);
    }
    if rows.len() > FACTS {
        table.left_out = format!("{} further facts are left out.", rows.len() - FACTS);
    }
    let title = format!("All {}", counted(rows.len(), "fact", "facts"));
    (!rows.is_empty()).then(|| Part::Fold(Fold { title, open: false, parts: vec![Part::Table(table)] }))
}
