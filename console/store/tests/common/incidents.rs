//! Incidents for the tests of this crate.

use muster_store::Incident;

/// An incident that its number decides.
pub(crate) fn incident(number: usize) -> Incident {
    Incident {
        node: format!("n{:03}", number % 7),
        start_ms: 1_700_000_000_000 + number as u64,
        end_ms: number.is_multiple_of(2).then_some(1_700_000_100_000),
        category: "network".to_owned(),
        reason: "link flapping".to_owned(),
        source: "operator".to_owned(),
        who: "ann".to_owned(),
        found_by: (!number.is_multiple_of(3)).then(|| vec!["disk".to_owned()]),
    }
}
