//! Which defects does the log tell of, and which benchmarks showed them? What coverage is estimated from.

use super::Defect;
use crate::risk::Incident;

/// A validation that ended well is held against a later incident for this long, in hours.
const VOUCHED_H: f64 = 7.0 * 24.0;
/// Incidents of one node that begin within this many hours of each other tell of one defect.
const SAME_H: f64 = 24.0;

/// A validation of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Node.
    pub node: String,
    /// When it ended, in hours of the log's origin.
    pub at_h: f64,
}

/// Defects of `incidents` (by node, then start) as seen at `now_h`, with the places of their finders in `benchmarks`.
///
/// An incident says nothing about coverage when nobody looked for it; it counts as missed when a validation of the node
/// ended within the seven days before it, and by its finders when it names them.
#[must_use]
pub fn defects(incidents: &[Incident], validations: &[Validation], benchmarks: &[String], now_h: f64) -> Vec<Defect> {
    let mut found: Vec<(&Incident, Option<&Vec<String>>)> = Vec::new();
    for incident in incidents.iter().filter(|i| i.check().is_ok() && i.start_h <= now_h) {
        let finders = incident.found_by.as_ref();
        match found.last_mut() {
            Some((last, known)) if last.node == incident.node && incident.start_h - last.start_h < SAME_H => {
                *known = known.or(finders);
            }
            _ => found.push((incident, finders)),
        }
    }
    let missed = |incident: &Incident| {
        let vouched = |v: &&Validation| (0.0..VOUCHED_H).contains(&(incident.start_h - v.at_h));
        validations.iter().filter(|v| v.node == incident.node).any(|v| vouched(&v))
    };
    let defect = |(incident, finders): (&Incident, Option<&Vec<String>>)| {
        let found_by = match finders {
            Some(names) => names.iter().filter_map(|name| benchmarks.iter().position(|b| b == name)).collect(),
            None if missed(incident) => Vec::new(),
            None => return None,
        };
        Some(Defect { category: incident.category, age_h: now_h - incident.start_h, found_by })
    };
    found.into_iter().filter_map(defect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::Category;

    #[test]
    fn only_what_somebody_looked_for_says_something_about_coverage() {
        let incident = |node: &str, start_h: f64, found_by: Option<&[&str]>| Incident {
            found_by: found_by.map(|names| names.iter().map(|n| (*n).to_owned()).collect()),
            ..Incident::new(node, start_h, None, Category::Disk)
        };
        let log = [
            incident("a", 100.0, Some(&["disk"])),
            // The operator's note of the same defect.
            incident("a", 110.0, None),
            incident("b", 100.0, None),
            // Passed at 250, broke at 300.
            incident("c", 300.0, None),
            incident("d", 350.0, Some(&["unheard-of"])),
            incident("e", 999.0, Some(&["disk"])),
        ];
        let checks = [Validation { node: "c".into(), at_h: 250.0 }, Validation { node: "b".into(), at_h: 120.0 }];
        let found = defects(&log, &checks, &["gemm".to_owned(), "disk".to_owned()], 400.0);
        let told: Vec<_> = found.iter().map(|d| (d.age_h, d.found_by.clone())).collect();
        assert_eq!(told, [(300.0, vec![1]), (100.0, vec![]), (50.0, vec![])]);
    }
}
