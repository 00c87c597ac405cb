//! Who a node is: the few facts by which hardware is told apart, out of all that the collectors saw.

use crate::snapshot::{FactRow, NodeRow};

/// Label, collector and the keys of which the first known one counts.
const FIELDS: &[(&str, &str, &[&str])] = &[
    ("serial", "identity", &["dmi.serial", "dmi.chassis_serial", "dmi.board_serial"]),
    ("product", "identity", &["dmi.product"]),
    ("vendor", "identity", &["dmi.vendor"]),
    ("BIOS", "identity", &["bios.version"]),
    ("system", "identity", &["os.name"]),
    ("kernel", "identity", &["kernel.release"]),
    ("CPU", "cpu", &["model"]),
    ("sockets", "cpu", &["sockets"]),
    ("cores", "cpu", &["cores"]),
    ("memory", "memory", &["total"]),
];

/// One line of the passport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) label: String,
    pub(crate) value: String,
    /// Whether there is a value; else `value` says why not.
    pub(crate) known: bool,
}

/// The passport of `node`: one line per field, disk and NIC; empty before any collector has reported.
pub(crate) fn fields(node: &NodeRow) -> Vec<Field> {
    fields_of(&node.facts)
}

fn fields_of(facts: &[FactRow]) -> Vec<Field> {
    let mut fields: Vec<Field> = FIELDS.iter().filter_map(|(label, c, keys)| field(facts, label, c, keys)).collect();
    for name in devices(facts, "disk", "device.", ".size") {
        fields.push(device(facts, "disk", &name, &[format!("device.{name}.size"), format!("device.{name}.model")]));
    }
    for name in devices(facts, "nic", "", ".state").into_iter().filter(|n| n != "lo") {
        let keys = ["speed_mbit", "state", "driver"].map(|f| format!("{name}.{f}"));
        fields.push(device(facts, "nic", &name, &keys));
    }
    fields
}

fn field(facts: &[FactRow], label: &str, collector: &str, keys: &[&str]) -> Option<Field> {
    let of = |key: &&str| facts.iter().find(|f| f.collector == collector && f.key == *key);
    let found: Vec<&FactRow> = keys.iter().filter_map(of).collect();
    let fact = found.iter().find(|f| f.known).or(found.first())?;
    Some(Field { label: label.to_owned(), value: fact.value.clone(), known: fact.known })
}

/// Names between `before` and `after` in the keys of a collector.
fn devices(facts: &[FactRow], collector: &str, before: &str, after: &str) -> Vec<String> {
    let own = facts.iter().filter(|f| f.collector == collector);
    own.filter_map(|f| Some(f.key.strip_prefix(before)?.strip_suffix(after)?.to_owned())).collect()
}

fn device(facts: &[FactRow], collector: &str, name: &str, keys: &[String]) -> Field {
    let own = |key: &String| facts.iter().find(|f| f.collector == collector && f.key == *key && f.known);
    let found: Vec<&FactRow> = keys.iter().filter_map(own).collect();
    let word = |f: &&FactRow| match f.value.parse::<f64>().ok().filter(|_| f.key.ends_with("speed_mbit")) {
        Some(mbit) => format!("{} Gb/s", mbit / 1e3),
        None => f.value.clone(),
    };
    let value: Vec<String> = found.iter().map(word).collect();
    Field { label: format!("{collector} {name}"), known: !value.is_empty(), value: value.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_serial_is_said_and_the_next_best_one_counts() {
        let fact = |collector: &str, key: &str, value: &str, known| FactRow {
            collector: collector.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            known,
        };
        let rows = [
            fact("identity", "dmi.serial", "denied", false),
            fact("identity", "dmi.board_serial", "B-7", true),
            fact("nic", "eth0.state", "up", true),
            fact("nic", "eth0.speed_mbit", "100000", true),
            fact("nic", "lo.state", "up", true),
            fact("disk", "device.nvme0n1.size", "1.92 TB", true),
        ];
        let lines = |facts: &[FactRow]| -> Vec<String> {
            fields_of(facts).into_iter().map(|f| format!("{}: {} {}", f.label, f.value, f.known)).collect()
        };
        assert_eq!(lines(&rows), ["serial: B-7 true", "disk nvme0n1: 1.92 TB true", "nic eth0: 100 Gb/s, up true"]);
        assert_eq!(lines(&rows[..1]), ["serial: denied false"]);
        assert!(lines(&[]).is_empty());
    }
}
