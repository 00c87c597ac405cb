//! How loaded the node is: load average, pressure, and who else uses its CPUs.

use muster_wire::{Reading, Unit};

use super::root::number;
use super::{Facts, Root, Then};
use crate::busy;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let average = root.text("/proc/loadavg");
    for (at, key) in ["average.1", "average.5", "average.15"].into_iter().enumerate() {
        facts.count(key, average.clone().and_then(|text| word(&text, at).and_then(|word| number(&word))));
    }
    let tasks = average.and_then(|text| word(&text, 3));
    for (at, key) in ["tasks.running", "tasks.total"].into_iter().enumerate() {
        let part = tasks.clone().and_then(|tasks| number(tasks.split('/').nth(at).unwrap_or_default()));
        facts.count(key, part);
    }
    let stat = root.text("/proc/stat");
    let blocked = stat.and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("procs_blocked "));
        line.map_or(Reading::Absent, number)
    });
    facts.count("tasks.blocked", blocked);
    for resource in ["cpu", "memory", "io"] {
        let text = root.text(&format!("/proc/pressure/{resource}"));
        for kind in ["some", "full"] {
            let share = text.clone().and_then(|text| stalled(&text, kind)).map(|percent| percent / 100.0);
            facts.number(&format!("pressure.{resource}.{kind}"), share, Some(Unit::Ratio));
        }
    }
    facts.extend(busy::look(root));
}

fn word(text: &str, at: usize) -> Reading<String> {
    let word = text.split_whitespace().nth(at);
    word.map_or_else(|| Reading::Failed("too few words".to_owned()), |word| Reading::Value(word.to_owned()))
}

/// Percent of the last 10 s in which some or all tasks waited; kernels before 5.13 have no `full` for CPUs.
fn stalled(text: &str, kind: &str) -> Reading<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(kind));
    let Some(line) = line else { return Reading::Absent };
    let value = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="));
    value.map_or_else(|| Reading::Failed("no avg10".to_owned()), number)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Tree, number, reading_of};
    use super::*;

    #[test]
    fn load_and_pressure_are_read() {
        let tree = Tree::new(&[
            ("/proc/loadavg", "1.50 0.75 0.10 2/345 6789\n"),
            ("/proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\nprocs_blocked 4\n"),
            ("/proc/pressure/io", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=x\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(number(&facts, "average.5"), 0.75);
        assert_eq!(number(&facts, "tasks.running"), 2.0);
        assert_eq!(number(&facts, "tasks.total"), 345.0);
        assert_eq!(number(&facts, "tasks.blocked"), 4.0);
        assert_eq!(number(&facts, "pressure.io.some"), 0.125);
        assert!(matches!(reading_of(&facts, "pressure.io.full"), Reading::Failed(_)));
        assert_eq!(reading_of(&facts, "pressure.memory.some"), Reading::Absent);
        assert!(matches!(reading_of(&facts, muster_wire::FOREIGN_CPU), Reading::Failed(_)));
    }

    #[test]
    fn garbage_has_failed() {
        let facts = Tree::new(&[("/proc/loadavg", "busy"), ("/proc/stat", "intr 5")]).look(look);
        assert!(matches!(reading_of(&facts, "average.1"), Reading::Failed(_)));
        assert!(matches!(reading_of(&facts, "average.15"), Reading::Failed(_)));
        assert_eq!(reading_of(&facts, "tasks.blocked"), Reading::Absent);
    }
}
