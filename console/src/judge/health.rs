//! What the checks of a run say: which were asked for, and their answers, always from the stored records.

use std::collections::BTreeMap;

use muster_analysis::checks::{self, CLOCK, CheckResult, NodeFacts, Policy, check};
use muster_fleet::{Clock, Node};
use muster_playbook::Plan;
use muster_playbook::report::Dropped;
use muster_run::{LINK, OUT_OF_TURN, Record, noted};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{Component, Datum, Fact, Outcome, Reading, Unit, clean, fact_of};

use muster_analysis::records::{Evidence, Latest};

/// What is asked of a node: checks, limits, expectations, and the labels by which they are read.
const ASKED: &str = "console/asked";
/// How far a node's clock is from the console's.
const OFFSET: &str = "console/clock";
/// Why and when a node left the run.
const DROPPED: &str = "console/dropped";

fn fact(key: String, datum: Datum) -> Fact {
    Fact { key, reading: Reading::Value(datum), unit: None }
}

/// What `plan` asks of each node, to be kept with the run: its verdicts must not change when the inventory or the
/// playbook does. None without checks.
#[must_use]
pub fn asked(run: &str, plan: &Plan, nodes: &[Node], at_ms: u64) -> Vec<Record> {
    let checks = plan.checks().join(" ");
    if checks.is_empty() {
        return Vec::new();
    }
    let mut common = vec![fact("checks".to_owned(), Datum::Text(checks))];
    let demand = plan.policy.demanded().collect::<Vec<_>>().join(" ");
    if !demand.is_empty() {
        common.push(fact("demand".to_owned(), Datum::Text(demand)));
    }
    for (kind, changes) in ["limit", "expect"].into_iter().zip(plan.policy.changes()) {
        common.extend(changes.iter().map(|(name, value)| fact(format!("{kind}.{name}"), Datum::Number(*value))));
    }
    let record = |node: &Node| {
        let labels = node.labels.iter().map(|(name, value)| fact(format!("label.{name}"), Datum::Text(value.clone())));
        noted(run, &node.name, ASKED, common.iter().cloned().chain(labels).collect(), at_ms)
    };
    nodes.iter().map(record).collect()
}

/// A measured offset as a record.
#[must_use]
pub fn offset(run: &str, node: &str, clock: &Clock, at_ms: u64) -> Record {
    let seconds =
        |key: &str, value: f64| Fact { unit: Some(Unit::Seconds), ..fact(key.to_owned(), Datum::Number(value)) };
    let facts = vec![
        seconds("offset", clock.offset_ns as f64 * 1e-9),
        seconds("uncertainty", clock.uncertainty_ns as f64 * 1e-9),
        fact("exchanges".to_owned(), Datum::Number(f64::from(clock.exchanges))),
    ];
    noted(run, node, OFFSET, facts, at_ms)
}

/// A node that leaves after `step`, as a record.
#[must_use]
pub fn dropped(run: &str, node: &str, step: &str, reason: &str, at_ms: u64) -> Record {
    let text = |key: &str, text: &str| fact(key.to_owned(), Datum::Text(text.to_owned()));
    noted(run, node, DROPPED, vec![text("step", step), text("reason", reason)], at_ms)
}

/// That `node` sent what it was not asked for, and what.
pub fn out_of_turn(run: &str, node: &str, said: String, at_ms: u64) -> Record {
    Record { outcome: Outcome::Failed(said), ..noted(run, node, OUT_OF_TURN, Vec::new(), at_ms) }
}

/// Whether a record says that its node takes no further part.
#[must_use]
pub fn leaves(record: &Record) -> bool {
    record.work == DROPPED || (record.work == LINK && matches!(record.outcome, Outcome::Failed(_)))
}

/// Nodes that left, in the order they did.
pub fn left(latest: &Latest<'_>) -> Vec<Dropped> {
    let mut records: Vec<&&Record> = latest.values().filter(|record| record.work == DROPPED).collect();
    records.sort_by_key(|record| record.at_ms);
    let text = |record: &Record, key: &str| {
        let found = record.facts.iter().find(|fact| fact.key == key).and_then(|fact| fact.reading.value());
        if let Some(Datum::Text(text)) = found { clean(text, TEXT_BYTES) } else { "?".to_owned() }
    };
    let report = |record: &&&Record| Dropped {
        node: record.node.clone(),
        step: text(record, "step"),
        reason: text(record, "reason"),
    };
    records.iter().map(report).collect()
}

/// The answers of all checks that were asked for, per node; `groups` of the nodes are compared within.
pub fn examine<'a>(
    nodes: &'a [String],
    groups: &'a [String],
    evidence: &Evidence<'a>,
) -> BTreeMap<&'a str, Vec<CheckResult>> {
    let (mut policy, mut ids) = (Policy::default(), Vec::new());
    let mut known = Vec::with_capacity(nodes.len());
    for (node, group) in nodes.iter().zip(groups) {
        let mut facts = NodeFacts::new(node, group);
        for record in evidence.every(node) {
            match record.work.as_str() {
                ASKED => read(record, &mut facts, &mut policy, &mut ids),
                OFFSET => facts.add(CLOCK, &record.outcome, &record.facts),
                work => {
                    if let Some(collector) = work.strip_prefix("collect/") {
                        facts.add(collector, &record.outcome, &record.facts);
                    } else if record.facts.iter().any(is_gpu_health) {
                        // However it ended: what was seen meanwhile may say why.
                        facts.add_meanwhile(record.benchmark(), &record.facts);
                    }
                }
            }
        }
        known.push(facts);
    }
    // A check that this version no longer has cannot be answered.
    let asked: Vec<_> = ids.iter().filter_map(|id| check(id)).collect();
    if asked.is_empty() {
        return BTreeMap::new();
    }
    let answers = checks::evaluate(&asked, &known, &policy);
    nodes.iter().map(String::as_str).zip(answers).collect()
}

/// Takes back what [`asked`] wrote.
fn read<'a>(record: &'a Record, node: &mut NodeFacts<'a>, policy: &mut Policy, ids: &mut Vec<&'a str>) {
    for Fact { key, reading, .. } in &record.facts {
        match (key.split_once('.'), reading.value()) {
            (None, Some(Datum::Text(checks))) if key == "checks" && ids.is_empty() => ids.extend(checks.split(' ')),
            (None, Some(Datum::Text(checks))) if key == "demand" => checks.split(' ').for_each(|id| policy.demand(id)),
            (Some(("limit", name)), Some(Datum::Number(value))) => policy.set_limit(name, *value),
            (Some(("expect", name)), Some(Datum::Number(value))) => policy.expect(name, *value),
            (Some(("label", name)), Some(Datum::Text(value))) => drop(node.labels.insert(name, value)),
            _ => {}
        }
    }
}

/// What a benchmark saw of a GPU while it ran.
fn is_gpu_health(fact: &Fact) -> bool {
    matches!(fact_of(&fact.key), Some((Component::Gpu(_), "health")))
}

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_playbook::{Playbook, plan};

    use super::*;

    const BOOK: &str = "\
name = \"b\"
title = \"B\"
profile = \"smoke\"
[[steps]]
id = \"look\"
check = [\"nic-mtu\", \"time-offset\", \"cpu-threads\", \"machine-check\", \"xid\"]
demand = [\"xid\"]
limits = { clock_fail_s = 60, clock_warn_s = 30 }
expect = { cpus = 8 }
";

    fn nodes() -> Vec<Node> {
        let node = |n: usize| Node { name: format!("n{n}"), ..Node::default() };
        let mut nodes: Vec<Node> = (0..6).map(node).collect();
        nodes[1].labels.insert("cpus".to_owned(), "4".to_owned());
        nodes
    }

    fn collected(node: &Node, collector: &str, key: &str, value: f64) -> Record {
        let facts = vec![fact(key.to_owned(), Datum::Number(value))];
        noted("r", &node.name, &format!("collect/{collector}"), facts, 5)
    }

    #[test]
    fn what_was_asked_is_kept_with_the_run_and_answered_from_its_records_alone() {
        let nodes = nodes();
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let plan = plan(&Playbook::parse(BOOK, "b.toml").unwrap(), &names);
        let mut records = asked("r", &plan, &nodes, 1);
        for (place, node) in nodes.iter().enumerate() {
            records.push(collected(node, "nic", "eth0.mtu", if place == 2 { 1400.0 } else { 1500.0 }));
            records.push(collected(node, "cpu", "cpus.online", if place == 1 { 4.0 } else { 8.0 }));
            let ahead = if place == 3 { 45_000_000_000 } else { 0 };
            let mut log = collected(node, "kernel-log", "lines", 9.0);
            if place == 4 {
                log.facts[0].reading = Reading::Denied;
            }
            records.push(log);
            let clock = Clock { offset_ns: ahead, uncertainty_ns: 1_000_000, exchanges: 5 };
            records.push(offset("r", &node.name, &clock, 5));
        }
        let groups = vec![String::new(); names.len()];
        let answers = examine(&names, &groups, &Evidence::new(&records));
        let bad: Vec<(&str, &str, State)> = answers
            .iter()
            .flat_map(|(node, results)| results.iter().map(|r| (*node, r.check.id, r.weight())))
            .filter(|(_, _, state)| *state != State::Pass)
            .collect();
        // 45 s are a warning here, since the playbook moved the limits; n1 has the CPUs that the inventory promises; and
        // the playbook demands of the two that n4's login may not answer one.
        let expected = [
            ("n2", "nic-mtu", State::Fail),
            ("n3", "time-offset", State::Warn),
            ("n4", "machine-check", State::Warn),
            ("n4", "xid", State::Unknown),
        ];
        assert_eq!(bad, expected);
    }

    #[test]
    fn nodes_that_left_are_told_in_the_order_they_left() {
        let records = [dropped("r", "a", "burn", "a: broken", 9), dropped("r", "b", "look", "b: \u{1b}[2Jodd", 3)];
        let latest: Latest<'_> = records.iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
        let told: Vec<(String, String, String)> =
            left(&latest).into_iter().map(|left| (left.node, left.step, left.reason)).collect();
        let expected = [("b", "look", "b: odd"), ("a", "burn", "a: broken")];
        assert_eq!(told, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    }

    #[test]
    fn a_run_without_checks_has_no_answers() {
        assert!(examine(&["n1".to_owned()], &[String::new()], &Evidence::new([])).is_empty());
    }
}
