//! What the console notes beside the records of nodes: what was asked of them, how wrong their clocks are, who left and why.

use muster_analysis::records::DROPPED;
use muster_analysis::records::checks::{ASKED, OFFSET};
use muster_fleet::{Clock, Node};
use muster_playbook::Plan;
use muster_run::{OUT_OF_TURN, Record, noted};
use muster_wire::{Datum, Fact, Outcome, Reading, Unit};

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

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_analysis::records::Evidence;
    use muster_analysis::records::checks::examine;
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
}
