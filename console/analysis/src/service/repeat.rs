//! Which part fails again and again, wherever it sits now: by its serial number, not by the node that held it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A part that can be told from every other of its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// What it is, as components are named: `gpu`, `disk`, `node`.
    pub kind: String,
    /// Its serial number, or another name that no other part has.
    pub serial: String,
}

/// One failure of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// When it began, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// The node that held the part.
    pub node: String,
    /// Where in it, such as `gpu:3`.
    pub component: String,
    /// The part; `None` where the node did not tell.
    pub part: Option<Part>,
    /// What was said.
    pub reason: String,
}

/// A part with its failures, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// The part.
    pub part: Part,
    /// Its failures.
    pub failures: Vec<Failure>,
}

/// Parts that failed at least twice, those that failed most often first, then the one that failed last.
#[must_use]
pub fn repeated(failures: &[Failure]) -> Vec<Repeated> {
    let mut by_part: BTreeMap<&Part, Vec<Failure>> = BTreeMap::new();
    for failure in failures {
        if let Some(part) = &failure.part {
            by_part.entry(part).or_default().push(failure.clone());
        }
    }
    let mut found: Vec<Repeated> = by_part
        .into_iter()
        .filter(|(_, failures)| failures.len() > 1)
        .map(|(part, mut failures)| {
            failures.sort_by(|a, b| a.at_ms.cmp(&b.at_ms).then_with(|| a.node.cmp(&b.node)));
            Repeated { part: part.clone(), failures }
        })
        .collect();
    let last = |one: &Repeated| one.failures.last().map(|failure| failure.at_ms);
    found.sort_by(|a, b| b.failures.len().cmp(&a.failures.len()).then_with(|| last(b).cmp(&last(a))));
    found
}

/// "third time this gpu fails here", "third time this gpu fails, before on n003 and n009"; `None` of a part that failed once.
#[must_use]
pub fn told(of: &Repeated) -> Option<String> {
    let times = match of.failures.len() {
        0 | 1 => return None,
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        more => ordinal(more),
    };
    let (last, before) = of.failures.split_last()?;
    let mut elsewhere: Vec<&str> =
        before.iter().map(|failure| failure.node.as_str()).filter(|node| *node != last.node).collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    let kind = match of.part.kind.as_str() {
        "gpu" => "GPU",
        other => other,
    };
    Some(match elsewhere.as_slice() {
        [] => format!("{times} time this {kind} fails here"),
        [one] => format!("{times} time this {kind} fails, before on {one}"),
        [first @ .., end] => format!("{times} time this {kind} fails, before on {} and {end}", first.join(", ")),
    })
}

fn ordinal(number: usize) -> String {
    let end = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(at_ms: u64, node: &str, serial: Option<&str>) -> Failure {
        let part = serial.map(|serial| Part { kind: "gpu".to_owned(), serial: serial.to_owned() });
        Failure { at_ms, node: node.to_owned(), component: "gpu:3".to_owned(), part, reason: String::new() }
    }

    #[test]
    fn a_gpu_is_known_again_by_its_serial_number_wherever_it_sits() {
        let all = [
            failure(30, "n2", Some("A")),
            failure(10, "n1", Some("A")),
            failure(20, "n1", Some("B")),
            failure(40, "n1", Some("C")),
            failure(50, "n1", Some("C")),
            failure(60, "n1", Some("C")),
            failure(70, "n1", None),
            failure(80, "n1", None),
        ];
        let found = repeated(&all);
        let told: Vec<(&str, Option<String>)> = found.iter().map(|one| (one.part.serial.as_str(), told(one))).collect();
        let third = "third time this GPU fails here".to_owned();
        let second = "second time this GPU fails, before on n1".to_owned();
        assert_eq!(told, [("C", Some(third)), ("A", Some(second))]);
    }

    #[test]
    fn numbers_are_said_as_people_say_them() {
        let said: Vec<String> = [4, 11, 12, 13, 21, 22, 23, 101, 111].map(ordinal).to_vec();
        assert_eq!(said, ["4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "101st", "111th"]);
    }
}
