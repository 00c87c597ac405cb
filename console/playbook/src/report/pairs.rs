//! What pairs of nodes point at, as the `muster.pairs` document (assets/schemas/muster.pairs.json), and in words.

use muster_analysis::network::Localisation;
use muster_analysis::network::localise::{Candidate, Kind, SURE, Suspect, Undecided};
use muster_analysis::network::topology::Source;
use serde::{Deserialize, Serialize};

/// Name of the document.
pub const PAIRS_SCHEMA: &str = "muster.pairs";

/// The `muster.pairs` document: suspects of all metrics together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsReport {
    /// [`PAIRS_SCHEMA`].
    pub schema: String,
    /// Version of the document; 1.
    pub version: u32,
    /// Where the distances come from.
    pub topology: String,
    /// The scan behind it; absent for pairs read from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<PairsRun>,
    /// Accused, metric by metric, most certain first.
    pub suspects: Vec<Of<Suspect>>,
    /// Slow pairs that several explanations fit.
    pub undecided: Vec<Of<Undecided>>,
    /// Pairs whose measurement would decide, most useful first.
    pub next_pairs: Vec<[String; 2]>,
}

/// The scan behind a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairsRun {
    /// Run id.
    pub id: String,
    /// Rounds in which something was measured.
    pub rounds: usize,
    /// Visits of pairs, both directions counted as one.
    pub visits: usize,
    /// Of those, the ones that failed.
    pub failed: usize,
    /// Visits after the last round, to pairs that it left in doubt.
    #[serde(default)]
    pub again: usize,
    /// Nodes that could not be asked, or were not asked again.
    pub left_out: Vec<LeftOut>,
}

/// A node outside the matrix, or with a part of its pairs only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Node name.
    pub node: String,
    /// Why.
    pub reason: String,
}

/// A finding and the metric that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Of<T> {
    /// Name of the metric.
    pub metric: String,
    /// The finding.
    #[serde(flatten)]
    pub found: T,
}

impl PairsReport {
    /// A report without findings.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self {
            schema: PAIRS_SCHEMA.to_owned(),
            version: 1,
            topology: source_word(source).to_owned(),
            run: None,
            suspects: Vec::new(),
            undecided: Vec::new(),
            next_pairs: Vec::new(),
        }
    }

    /// Adds what one metric shows.
    pub fn add(&mut self, metric: &str, found: Localisation) {
        let metric = || metric.to_owned();
        self.suspects.extend(found.suspects.into_iter().map(|found| Of { metric: metric(), found }));
        self.undecided.extend(found.undecided.into_iter().map(|found| Of { metric: metric(), found }));
        let new: Vec<_> = found.next_pairs.into_iter().filter(|p| !self.next_pairs.contains(p)).collect();
        self.next_pairs.extend(new);
    }

    /// Exit code that the findings come to: 2 with a suspect that is [`SURE`], 3 with others, where slow pairs are left
    /// unexplained or a node was left out, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let left_out = self.run.as_ref().is_some_and(|run| !run.left_out.is_empty());
        if self.suspects.iter().any(|suspect| suspect.found.confidence >= SURE) {
            2
        } else if !self.suspects.is_empty() || !self.undecided.is_empty() || left_out {
            3
        } else {
            0
        }
    }

    /// One line for each finding.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.suspects.iter().map(accusation).collect();
        for Of { metric, found } in &self.undecided {
            let name = |c: &Candidate| format!("{} {}", word(c.kind), c.element);
            let names: Vec<String> = found.candidates.iter().map(name).collect();
            lines.push(format!("undecided in {metric}: {}; {}", names.join(" or "), found.reason));
        }
        if !self.next_pairs.is_empty() {
            let pairs: Vec<String> = self.next_pairs.iter().take(8).map(|[a, b]| format!("{a}-{b}")).collect();
            lines.push(format!("to decide, measure {}", pairs.join(", ")));
        }
        if lines.is_empty() {
            lines.push("nothing stands out".to_owned());
        }
        if let Some(run) = &self.run {
            lines.extend(run.left_out.iter().map(|left| format!("left out: {}: {}", left.node, left.reason)));
            let again = if run.again > 0 { format!(", {} looked at again", run.again) } else { String::new() };
            lines.push(format!(
                "{} pairs in {} rounds, {} failed{again}; run {}",
                run.visits, run.rounds, run.failed, run.id
            ));
        }
        if matches!(self.topology.as_str(), "unknown" | "guessed from latency") {
            lines.push(format!("topology: {}; give one with --topology", self.topology));
        }
        lines
    }
}

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

/// What is said of a suspect.
#[must_use]
pub fn accusation(Of { metric, found }: &Of<Suspect>) -> String {
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let [low, high] = found.interval.map(percent);
    format!(
        "{} {} at {} % of the usual {metric} ({low} to {high} %; {} of {} visits slow; confidence {:.2})",
        word(found.kind),
        found.element,
        percent(found.effect),
        found.slow,
        found.pairs,
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
    fn only_a_sure_suspect_fails_and_a_doubtful_one_is_undecided() {
        let suspect = |confidence| Suspect {
            kind: Kind::Pair,
            element: "n1-n2".to_owned(),
            effect: 0.5,
            interval: [0.4, 0.6],
            pairs: 1,
            slow: 1,
            confidence,
        };
        let code = |confidences: &[f64]| {
            let mut report = PairsReport::new(Source::Latency);
            report.suspects = confidences.iter().map(|c| Of { metric: "bw".to_owned(), found: suspect(*c) }).collect();
            report.exit_code()
        };
        assert_eq!([code(&[]), code(&[0.6]), code(&[0.6, 0.95])], [0, 3, 2]);
    }
}
