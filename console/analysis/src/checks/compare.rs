//! Which nodes of a group differ from the others, and what the others have.

use std::collections::BTreeMap;

use super::facts::shown;
use super::{Found, Gap, NodeFacts, Policy};
use crate::checks::check::some;

/// Facts that must be equal across a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same {
    pub(super) collector: &'static str,
    /// A key; with one `*`, every key of that form that most nodes have.
    pub(super) key: &'static str,
    /// Whether a node that lacks it differs, or has nothing to compare.
    pub(super) lacking: Lacking,
}

/// What it means not to have what others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    Differs,
    Skipped,
}

/// A number expected of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) collector: &'static str,
    pub(super) key: &'static str,
    /// Name of the expectation.
    pub(super) expect: &'static str,
    /// Value of the fact that the expectation counts as one: GiB for memory.
    pub(super) per: f64,
    /// Name of the limit by which it may differ, as a share; without one it may not.
    pub(super) tolerance: Option<&'static str>,
}

/// Nodes with a value each; a group says something about its members from three on.
const ENOUGH: usize = 3;

/// One answer per node of the group.
pub(super) fn equal(group: &[&NodeFacts<'_>], same: &[Same], policy: &Policy) -> Vec<Found> {
    let mut answers: Vec<Answers> = group.iter().map(|_| Answers::default()).collect();
    for same in same {
        for key in keys(group, same) {
            let values: Vec<Value> = group.iter().map(|node| value(node, same, &key)).collect();
            verdicts(&key, &values, policy, &mut answers);
        }
        for (node, answer) in group.iter().zip(&mut answers) {
            if let Err(gap) = node.looked(same.collector) {
                answer.gap.get_or_insert(gap);
            }
        }
    }
    answers.into_iter().map(Answers::found).collect()
}

/// What was found of one node, key by key.
#[derive(Default)]
struct Answers {
    odd: Vec<String>,
    undecided: Vec<String>,
    agreed: usize,
    /// Nodes that hold the value most keys were compared with.
    of: usize,
    gap: Option<Gap>,
}

impl Answers {
    fn found(self) -> Found {
        if !self.odd.is_empty() {
            return Found::fail(some(&self.odd));
        }
        match self.gap {
            Some(gap) => gap.into(),
            None if !self.undecided.is_empty() => Found::unknown(some(&self.undecided)),
            None if self.agreed == 0 => Found::not_applicable("nothing here to compare with other nodes"),
            None => Found::pass(format!("the same as on {} of the group", counted(self.of, "node"))),
        }
    }
}

enum Value {
    Known(String),
    /// Not comparable, with the reason.
    Unknown(Gap),
    /// Not there, and that says nothing.
    Nothing,
}

fn value(node: &NodeFacts<'_>, same: &Same, key: &str) -> Value {
    match node.datum(same.collector, key) {
        Ok(datum) => Value::Known(shown(datum)),
        Err(Gap::Absent(_)) if same.lacking == Lacking::Differs => Value::Known("none".to_owned()),
        Err(Gap::Absent(_) | Gap::NotLooked(_)) => Value::Nothing,
        Err(gap) => Value::Unknown(gap),
    }
}

/// Words of a kernel command line that differ from node to node by their nature.
const OWN: [&str; 12] = [
    "BOOT_IMAGE",
    "BOOTIF",
    "boot_server",
    "hostname",
    "initrd",
    "ip",
    "ks",
    "rd.luks.uuid",
    "rd.md.uuid",
    "resume",
    "root",
    "systemd.machine_id",
];

/// The keys to compare. Of a pattern, all of them where lacking one differs; else those that more than half of the
/// nodes have: container interfaces with random names are nobody's oddity.
fn keys(group: &[&NodeFacts<'_>], same: &Same) -> Vec<String> {
    let Some((prefix, suffix)) = same.key.split_once('*') else { return vec![same.key.to_owned()] };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for node in group {
        for instance in node.instances(same.collector, prefix, suffix) {
            *seen.entry(instance).or_default() += 1;
        }
    }
    let looked = group.iter().filter(|node| node.looked(same.collector).is_ok()).count();
    let compared = |instance: &str, count: usize| match same.lacking {
        Lacking::Differs => !OWN.contains(&instance),
        Lacking::Skipped => instance != "lo" && count * 2 > looked,
    };
    let compared = seen.into_iter().filter(|(instance, count)| compared(instance, *count));
    compared.map(|(instance, _)| format!("{prefix}{instance}{suffix}")).collect()
}

fn verdicts(key: &str, values: &[Value], policy: &Policy, answers: &mut [Answers]) {
    let mut held: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values {
        if let Value::Known(value) = value {
            *held.entry(value).or_default() += 1;
        }
    }
    let n: usize = held.values().sum();
    for (value, answer) in values.iter().zip(answers.iter_mut()) {
        if let Value::Unknown(gap) = value {
            answer.gap.get_or_insert_with(|| gap.clone());
        }
    }
    // All without it: nothing to compare.
    if held.len() == 1 && held.contains_key("none") {
        return;
    }
    // Of two as frequent values neither is a majority, so which of them is taken does not matter.
    let Some((majority, most)) = held.iter().max_by_key(|(_, count)| **count).map(|(value, count)| (*value, *count))
    else {
        return;
    };
    let clear = held.len() == 1 || (n >= ENOUGH && most as f64 >= policy.limit("majority") * n as f64);
    for (value, answer) in values.iter().zip(answers) {
        match value {
            Value::Known(_) if n < 2 => {}
            Value::Known(value) if !clear => answer.undecided.push(format!(
                "{key} is {value}, and no value is clearly the usual one ({} values on {}; {majority} on {most})",
                held.len(),
                counted(n, "node")
            )),
            Value::Known(value) if value == majority => {
                (answer.agreed, answer.of) = (answer.agreed + 1, answer.of.max(most));
            }
            Value::Known(value) => {
                answer.odd.push(format!("{key} is {value}, {most} of {} have {majority}", counted(n, "node")));
            }
            Value::Unknown(_) | Value::Nothing => {}
        }
    }
}

/// One answer per node: against what is expected of it, or else against the group.
pub(super) fn count(group: &[&NodeFacts<'_>], count: &Count, policy: &Policy) -> Vec<Found> {
    let read = |node: &NodeFacts<'_>| node.number(count.collector, count.key).map(|value| value / count.per);
    let tolerance = count.tolerance.map_or(0.0, |name| policy.limit(name));
    let values: Vec<Result<f64, Gap>> = group.iter().map(|node| read(node)).collect();
    let usual = usual(&values, tolerance, policy);
    let answer = |(node, value): (&&NodeFacts<'_>, &Result<f64, Gap>)| {
        let what = count.expect;
        let expected = match expectation(node, what, policy) {
            Ok(expected) => expected,
            Err(why) => return Found::unknown(why),
        };
        match (value, expected) {
            // What is expected and is not there is missing.
            (Err(Gap::Absent(why)), Some(expected)) if expected > 0.0 => {
                Found::fail(format!("{what}: {} expected, {why}", number(expected)))
            }
            (Err(gap), _) => gap.clone().into(),
            (Ok(value), Some(expected)) => compare(what, *value, expected, tolerance, "expected"),
            (Ok(value), None) => against_usual(what, *value, usual, tolerance),
        }
    };
    group.iter().zip(&values).map(answer).collect()
}

/// The label of that name, or what the playbook says.
fn expectation(node: &NodeFacts<'_>, name: &str, policy: &Policy) -> Result<Option<f64>, String> {
    match node.labels.get(name) {
        None => Ok(policy.expected(name)),
        Some(text) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(format!("the inventory's label {name} = \"{text}\" is no number")),
        },
    }
}

/// What the group has.
#[derive(Clone, Copy)]
enum Usual {
    /// The value, the nodes that have it, and the nodes with any.
    Clear(f64, usize, usize),
    /// The nodes with any value.
    Unclear(usize),
}

fn usual(values: &[Result<f64, Gap>], tolerance: f64, policy: &Policy) -> Usual {
    let mut known: Vec<f64> = values.iter().filter_map(|value| value.as_ref().ok().copied()).collect();
    known.sort_by(f64::total_cmp);
    let Some(median) = known.get(known.len() / 2).copied() else { return Usual::Unclear(0) };
    let most = known.iter().filter(|value| near(**value, median, tolerance)).count();
    let n = known.len();
    let clear = most == n || (n >= ENOUGH && most as f64 >= policy.limit("majority") * n as f64);
    if clear { Usual::Clear(median, most, n) } else { Usual::Unclear(n) }
}

fn against_usual(what: &str, value: f64, usual: Usual, tolerance: f64) -> Found {
    match usual {
        Usual::Clear(_, _, 1) => {
            Found::not_applicable(format!("{what}: {}, and nothing to compare it with", number(value)))
        }
        Usual::Clear(median, most, n) if near(value, median, tolerance) => {
            Found::pass(format!("{what}: {}, as on {most} of {}", number(value), counted(n, "node")))
        }
        Usual::Clear(median, most, n) => {
            Found::fail(format!("{what}: {}, {most} of {} have {}", number(value), counted(n, "node"), number(median)))
        }
        Usual::Unclear(n) => {
            Found::unknown(format!("{what}: {}, and the {n} nodes do not agree on a usual value", number(value)))
        }
    }
}

fn compare(what: &str, value: f64, wanted: f64, tolerance: f64, word: &str) -> Found {
    let said = format!("{what}: {}, {} {word}", number(value), number(wanted));
    if near(value, wanted, tolerance) { Found::pass(said) } else { Found::fail(said) }
}

fn near(value: f64, wanted: f64, tolerance: f64) -> bool {
    (value - wanted).abs() <= tolerance * wanted.abs()
}

fn number(value: f64) -> String {
    if value.fract().abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.1}") }
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
