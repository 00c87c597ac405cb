//! What pairs point at, in sentences.

use super::change::{against, between};
use super::localise::{Candidate, Kind, Misfit, Suspect, Undecided, Warning};
use super::report::{Alternatives, Of};
use super::topology::Source;

/// Candidates that a line names.
const NAMED: usize = 8;

/// The word for where a topology comes from.
#[must_use]
pub const fn source_word(source: Source) -> &'static str {
    match source {
        Source::Labels => "labels",
        Source::Csv => "csv",
        Source::Slurm => "slurm",
        Source::Ibnetdiscover => "ibnetdiscover",
        Source::Latency => "guessed from latency",
        Source::Flat => "unknown",
    }
}

pub(super) fn open(Of { metric, found }: &Of<Undecided>) -> String {
    let name = |c: &Candidate| format!("{} {}", word(c.kind), c.element);
    let names: Vec<String> = found.candidates.iter().take(NAMED).map(name).collect();
    let more = found.candidates.len().saturating_sub(NAMED);
    // A sentence that says contested, or names the nodes of a group itself, needs no list before it.
    let spoken = found.reason.starts_with("contested: ")
        || matches!(&found.candidates[..], [one] if found.reason.starts_with(&one.element));
    match names.len() {
        _ if spoken => format!("undecided in {metric}: {}", found.reason),
        0 => format!("undecided in {metric}: {}", found.reason),
        _ if more > 0 => format!("undecided in {metric}: {} or {more} more; {}", names.join(" or "), found.reason),
        _ => format!("undecided in {metric}: {}; {}", names.join(" or "), found.reason),
    }
}

pub(super) fn misfit(found: &Misfit) -> String {
    let by = if found.by == "paths" { "the measured paths" } else { "the measured pairs" };
    let fits = found.fits.as_ref().map_or_else(|| format!("{by} do not fit it"), |leaf| format!("{by} say {leaf}"));
    let with = found.swapped_with.as_ref().map_or_else(String::new, |other| format!(": swapped with {other}?"));
    format!("topology says {} is on {}, {fits}{with}", found.node, found.said)
}

/// What is said of an element that is slow by little.
#[must_use]
pub fn warning(Of { metric, found }: &Of<Warning>) -> String {
    format!(
        "warning: {} {}: {metric} {:+.1} % against its peers (standard error {:.1} %, {} visits)",
        word(found.kind),
        found.element,
        (found.effect - 1.0) * 100.0,
        found.error * 100.0,
        found.pairs
    )
}

/// What a node or a link may stand for: pairs end where the cable of a node does.
pub(super) fn alternatives(suspect: &Suspect) -> Option<Alternatives> {
    let (parts, advice) = match suspect.kind {
        Kind::Node | Kind::NodeRx | Kind::NodeTx | Kind::Nic => (
            vec![format!("{}'s NIC", suspect.element), "its cable".to_owned(), "its port of the leaf".to_owned()],
            "move the cable to another port to find out",
        ),
        Kind::Uplink => (
            vec![
                "the cable".to_owned(),
                "the port at its upper end".to_owned(),
                "the port at its lower end".to_owned(),
            ],
            "swap the cable or the transceivers to find out",
        ),
        Kind::Leaf | Kind::Pair => return None,
    };
    Some(Alternatives { element: suspect.element.clone(), parts, advice: advice.to_owned() })
}

/// What is said of a suspect.
#[must_use]
pub fn accusation(Of { metric, found }: &Of<Suspect>) -> String {
    let visits = match found.slow {
        0 => format!("by all {} visits together, none is far off by itself", found.pairs),
        slow => format!("{slow} of {} visits slow", found.pairs),
    };
    format!(
        "{} {}: {metric} {} its peers (95 % interval {}; {visits}; confidence {:.2})",
        word(found.kind),
        found.element,
        against(found.effect),
        between(found.interval),
        found.confidence
    )
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Nic => "NIC",
        Kind::NodeRx => "receiving side of node",
        Kind::NodeTx => "sending side of node",
        Kind::Leaf => "leaf",
        Kind::Uplink => "uplink",
        Kind::Pair => "pair",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slow_visit_is_not_counted_as_evidence() {
        let found = Suspect {
            kind: Kind::Uplink,
            element: "leaf2-spine1".to_owned(),
            effect: 3.18,
            interval: [2.0, 4.0],
            pairs: 37,
            slow: 0,
            confidence: 0.99,
        };
        let said = accusation(&Of { metric: "retransmits".to_owned(), found });
        assert!(said.contains("retransmits 3.2x that of its peers (95 % interval 2.0x to 4.0x;"), "{said}");
        assert!(said.contains("; by all 37 visits together, none is far off by itself; confidence"), "{said}");
    }
}
